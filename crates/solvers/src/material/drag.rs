//! Drag of a sphere in air: Stokes' law with the correction of Schiller & Naumann (1935), good to Re ≈ 1000.

/// A grain in air.
#[derive(Clone, Copy, Debug)]
pub struct Drag {
    /// Response time at creeping speed, ρ d² / 18 η [s].
    stokes_time: f32,
    /// Reynolds number per speed, ρ_air d / η [s/m].
    reynolds_per_speed: f32,
    /// Part of gravity left after buoyancy, 1 − ρ_air / ρ.
    pub buoyancy: f32,
}

impl Drag {
    /// A grain of `size` [m] and `grain_density` [kg/m³] in air of `density` [kg/m³] and `viscosity` [Pa s].
    pub fn new(size: f64, grain_density: f64, density: f64, viscosity: f64) -> Self {
        Self {
            stokes_time: (grain_density * size * size / (18.0 * viscosity)) as f32,
            reynolds_per_speed: (density * size / viscosity) as f32,
            buoyancy: (1.0 - density / grain_density) as f32,
        }
    }

    /// Time [s] in which drag takes away all but 1/e of a relative `speed` [m/s]: τ = τ_Stokes / (1 + 0.15 Re^0.687).
    pub fn response_time(&self, speed: f32) -> f32 {
        self.stokes_time / (1.0 + 0.15 * (self.reynolds_per_speed * speed).powf(0.687))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Terminal speed v = g τ(v), by iteration.
    fn terminal(drag: &Drag) -> f32 {
        (0..200).fold(1.0f32, |v, _| {
            0.5 * (v + 9.81 * drag.buoyancy * drag.response_time(v))
        })
    }

    #[test]
    fn fine_dust_falls_as_stokes_says() {
        // 10 µm quartz: v = ρ g d² / 18 η = 7.9 mm/s.
        let drag = Drag::new(10e-6, 2650.0, 1.204, 1.82e-5);
        assert!(
            (terminal(&drag) - 7.93e-3).abs() < 2e-4,
            "{}",
            terminal(&drag)
        ); // Re = 0.005 slows it by 0.4 %
    }

    #[test]
    fn rain_and_sand_fall_at_the_speeds_that_are_measured() {
        // Gunn & Kinzer 1949: a 1 mm drop falls at 4.03 m/s.
        let drop = Drag::new(1e-3, 998.0, 1.204, 1.82e-5);
        assert!(
            (terminal(&drop) / 4.03 - 1.0).abs() < 0.05,
            "{}",
            terminal(&drop)
        );
    }
}
