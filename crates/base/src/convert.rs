//! Vectors of parry and rapier, and ours. Theirs are of another version of glam, one that takes roots and floors by calls into a
//! library: rapier asks for it, so that bodies move alike on all processors. In our loops one such root was found to take
//! a seventh of a step of flip. So we have our own version, and convert where the two meet.

use parry3d::glamx;

/// Between two versions of the same type.
pub trait Convert<T> {
    /// The same in the other version.
    fn convert(self) -> T;
}

macro_rules! both_ways {
    ($($ours:ty, $theirs:ty;)*) => {$(
        impl Convert<$theirs> for $ours {
            #[inline]
            fn convert(self) -> $theirs {
                <$theirs>::from_array(self.to_array())
            }
        }

        impl Convert<$ours> for $theirs {
            #[inline]
            fn convert(self) -> $ours {
                <$ours>::from_array(self.to_array())
            }
        }
    )*};
}

both_ways! {
    glam::Vec3, glamx::Vec3;
    glam::Quat, glamx::Quat;
}
