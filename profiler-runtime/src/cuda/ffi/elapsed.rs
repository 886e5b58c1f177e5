//! Times between events as the driver returns them, validated before use.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_host::diagnostics;

/// A year. Longer times are rejected.
const MAX_NS: f64 = 365.0 * 24.0 * 3600.0 * 1e9;

/// The number of rejected times.
static REJECTED: AtomicU64 = AtomicU64::new(0);

/// Returns how many times were rejected.
pub(crate) fn rejected() -> u64 {
    REJECTED.load(Relaxed)
}

/// A time between two events as the driver returned it: any `f32`, not validated yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elapsed {
    milliseconds: f32,
}

impl Elapsed {
    pub(crate) fn from_milliseconds(milliseconds: f32) -> Self {
        Self { milliseconds }
    }

    /// Returns the nanoseconds from an event to a later one of the same stream. Returns `None`, and counts a rejected
    /// time, if the number is negative, not finite, or more than a year.
    pub(crate) fn length(self) -> Option<f64> {
        self.checked(|ns| (0.0..=MAX_NS).contains(&ns))
    }

    /// Returns the nanoseconds from an event to any other event. Returns `None`, and counts a rejected time, if the
    /// number is not finite, or more than a year.
    pub(crate) fn distance(self) -> Option<f64> {
        self.checked(|ns| ns.abs() <= MAX_NS)
    }

    fn checked(self, is_possible: impl Fn(f64) -> bool) -> Option<f64> {
        let ns = f64::from(self.milliseconds) * 1e6;
        if is_possible(ns) {
            return Some(ns);
        }
        reject(self.milliseconds);
        None
    }
}

#[cold]
fn reject(milliseconds: f32) {
    if REJECTED.fetch_add(1, Relaxed) == 0 {
        diagnostics::warn_once(&format!(
            "the CUDA driver said that two events are {milliseconds} ms apart: such times are left out and counted"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_times_are_rejected() {
        for bad in [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            f32::MIN,
            4e10,
        ] {
            let elapsed = Elapsed::from_milliseconds(bad);
            assert_eq!(
                (elapsed.length(), elapsed.distance()),
                (None, None),
                "{bad}"
            );
        }
        let before = Elapsed::from_milliseconds(-2.0);
        assert_eq!((before.length(), before.distance()), (None, Some(-2e6)));
        for good in [0.0, -0.0, f32::MIN_POSITIVE, 1.0, 3e10] {
            let elapsed = Elapsed::from_milliseconds(good);
            let ns = Some(f64::from(good) * 1e6);
            assert_eq!((elapsed.length(), elapsed.distance()), (ns, ns));
        }
        assert!(rejected() >= 13);
    }
}
