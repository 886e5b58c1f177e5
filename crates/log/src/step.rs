//! Integers as steps.

/// An integer that can be a step: any primitive integer, or a reference to one.
///
/// Steps start at zero, and have 64 bits. A negative integer counts as zero, a larger one as the largest step; the first
/// such step is reported in a warning.
#[diagnostic::on_unimplemented(
    message = "a step is an integer, not `{Self}`",
    label = "not an integer",
    note = "write the step the call belongs to, such as `global_step = epoch * batches + batch`"
)]
pub trait IntoStep {
    /// Converts the integer to a step.
    fn into_step(self) -> u64;

    /// Returns `true` if the integer is no step, and [`into_step`](Self::into_step) returns the nearest one.
    #[inline]
    fn is_out_of_range(&self) -> bool {
        false
    }
}

macro_rules! integers {
    ($($integer:ty),+) => {$(
        impl IntoStep for $integer {
            #[inline]
            fn into_step(self) -> u64 {
                // The conversion fails only for negative integers and for those beyond 64 bits.
                u64::try_from(self).unwrap_or(if self > 0 { u64::MAX } else { 0 })
            }

            #[inline]
            fn is_out_of_range(&self) -> bool {
                u64::try_from(*self).is_err()
            }
        }

        impl IntoStep for &$integer {
            #[inline]
            fn into_step(self) -> u64 {
                (*self).into_step()
            }

            #[inline]
            fn is_out_of_range(&self) -> bool {
                (**self).is_out_of_range()
            }
        }
    )+};
}

integers!(u8, u16, u32, u128, usize, i8, i16, i32, i64, i128, isize);

impl IntoStep for u64 {
    #[inline]
    fn into_step(self) -> u64 {
        self
    }
}

impl IntoStep for &u64 {
    #[inline]
    fn into_step(self) -> u64 {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integer_is_a_step() {
        assert_eq!(7_i32.into_step(), 7);
        assert_eq!((&9_usize).into_step(), 9);
        assert_eq!((-1_i64).into_step(), 0);
        assert_eq!(u128::MAX.into_step(), u64::MAX);
    }

    #[test]
    fn integers_below_zero_and_beyond_64_bits_are_out_of_range() {
        assert!((-1_i64).is_out_of_range() && IntoStep::is_out_of_range(&&-1_i8));
        assert!(u128::MAX.is_out_of_range() && i128::MIN.is_out_of_range());
        assert!(!0_i32.is_out_of_range() && !u64::MAX.is_out_of_range());
        assert!(!u128::from(u64::MAX).is_out_of_range());
    }
}
