//! Axis-aligned boxes.

use glam::Vec3;

/// An axis-aligned box [m]. Unbounded shapes have infinite corners; [`Bounds::EMPTY`] has them reversed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Corner with the smallest coordinates [m].
    pub min: Vec3,
    /// Corner with the largest coordinates [m].
    pub max: Vec3,
}

impl Bounds {
    /// The box that contains nothing.
    pub const EMPTY: Self = Self {
        min: Vec3::INFINITY,
        max: Vec3::NEG_INFINITY,
    };
    /// The box that contains everything.
    pub const EVERYTHING: Self = Self {
        min: Vec3::NEG_INFINITY,
        max: Vec3::INFINITY,
    };

    /// The smallest box around `points`.
    pub fn of(points: impl IntoIterator<Item = Vec3>) -> Self {
        points.into_iter().fold(Self::EMPTY, |bounds, point| Self {
            min: bounds.min.min(point),
            max: bounds.max.max(point),
        })
    }

    /// The smallest box around both.
    pub fn union(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// The part common to both; empty (reversed) where they do not meet.
    pub fn intersection(self, other: Self) -> Self {
        Self {
            min: self.min.max(other.min),
            max: self.max.min(other.max),
        }
    }

    /// The box grown by `margin` [m] on every side.
    pub fn grown(self, margin: f32) -> Self {
        Self {
            min: self.min - Vec3::splat(margin),
            max: self.max + Vec3::splat(margin),
        }
    }

    /// Edge lengths [m].
    pub fn size(self) -> Vec3 {
        self.max - self.min
    }

    /// True where no point is inside.
    pub fn is_empty(self) -> bool {
        !self.min.cmple(self.max).all()
    }

    /// True where all corners are finite numbers.
    pub fn is_finite(self) -> bool {
        self.min.is_finite() && self.max.is_finite()
    }

    /// True where `point` is inside or on the border.
    pub fn contains(self, point: Vec3) -> bool {
        self.min.cmple(point).all() && point.cmple(self.max).all()
    }

    /// Distance [m] from `point` to the box, zero inside.
    pub fn distance(self, point: Vec3) -> f32 {
        self.distance_squared(point).sqrt()
    }

    /// Squared distance [m²] from `point` to the box, zero inside.
    #[inline]
    pub fn distance_squared(self, point: Vec3) -> f32 {
        (self.min - point)
            .max(point - self.max)
            .max(Vec3::ZERO)
            .length_squared()
    }

    /// The eight corners; infinite ones included.
    pub fn corners(self) -> [Vec3; 8] {
        std::array::from_fn(|i| {
            let pick = |bit: usize, low: f32, high: f32| if i >> bit & 1 == 0 { low } else { high };
            Vec3::new(
                pick(0, self.min.x, self.max.x),
                pick(1, self.min.y, self.max.y),
                pick(2, self.min.z, self.max.z),
            )
        })
    }
}
