//! The sources of ticks.

use profiler_host::process::platform::Instant;

use super::calibration;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::counter;

/// Where ticks come from.
pub(super) enum Source {
    /// The processor's counter, read in place.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Counter,
    /// The nanoseconds of the system's monotonic clock since an origin.
    System(Instant),
}

/// The ticks that the system's clock begins with: in places a reading of zero means "never".
const SYSTEM_ORIGIN_NS: u64 = 1_000_000_000;

impl Source {
    pub(super) fn ticks(&self) -> u64 {
        match self {
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            Self::Counter => counter::read(),
            Self::System(origin) => ns_since(*origin).saturating_add(SYSTEM_ORIGIN_NS),
        }
    }

    /// Returns `true` if ticks are those of [`counter::read`](super::counter::read).
    pub(super) fn is_counter(&self) -> bool {
        !matches!(self, Self::System(_))
    }

    /// Returns the best source that this machine has and the nanoseconds per tick. The last value is `true` if the
    /// machine has a better source that does not agree with the system's clock.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) fn best(origin: Instant) -> (Self, f64, bool) {
        let is_invariant = counter::is_invariant();
        let rate = is_invariant
            .then(|| calibration::nanoseconds_per_tick(|| ns_since(origin), counter::read));
        match rate.flatten() {
            Some(rate) => (Self::Counter, rate, false),
            None => (Self::System(origin), 1.0, is_invariant),
        }
    }

    /// Returns the system's clock: other processors have no counter that every system lets programs read.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) fn best(origin: Instant) -> (Self, f64, bool) {
        let system = || ns_since(origin);
        let stands_still = calibration::nanoseconds_per_tick(system, system).is_none();
        (Self::System(origin), 1.0, stands_still)
    }
}

/// Returns the nanoseconds since `origin`: 64 bits hold 584 years. Returns zero if the clock went backwards.
fn ns_since(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
