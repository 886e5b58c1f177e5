//! The sources of ticks.

use super::calibration;
#[cfg(target_arch = "x86_64")]
use super::counter;
use crate::process::platform::Instant;

/// Where ticks come from.
pub(super) enum Source {
    /// The time-stamp counter, read in place.
    #[cfg(target_arch = "x86_64")]
    Counter,
    /// A counter that `quanta` reads.
    #[cfg(not(any(target_arch = "x86_64", target_family = "wasm")))]
    Quanta(quanta::Clock),
    /// The nanoseconds of the system's monotonic clock since an origin.
    System(Instant),
}

/// The ticks that the system's clock begins with: in places a reading of zero means "never".
const SYSTEM_ORIGIN_NS: u64 = 1_000_000_000;

impl Source {
    pub(super) fn ticks(&self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Counter => counter::read(),
            #[cfg(not(any(target_arch = "x86_64", target_family = "wasm")))]
            Self::Quanta(clock) => clock.raw(),
            Self::System(origin) => ns_since(*origin).saturating_add(SYSTEM_ORIGIN_NS),
        }
    }

    /// Returns `true` if ticks are those of [`counter::read`](super::counter::read).
    pub(super) fn is_counter(&self) -> bool {
        !matches!(self, Self::System(_)) && cfg!(target_arch = "x86_64")
    }

    /// Returns the best source that this machine has and the nanoseconds per tick. The last value is `true` if the
    /// machine has a better source that does not agree with the system's clock.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn best(origin: Instant) -> (Self, f64, bool) {
        let is_invariant = counter::is_invariant();
        let rate = is_invariant
            .then(|| calibration::nanoseconds_per_tick(|| ns_since(origin), counter::read));
        match rate.flatten() {
            Some(rate) => (Self::Counter, rate, false),
            None => (Self::System(origin), 1.0, is_invariant),
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_family = "wasm")))]
    pub(super) fn best(origin: Instant) -> (Self, f64, bool) {
        // `quanta` waits for the system's clock to advance, forever if it stands still: check that it does not.
        let system = || ns_since(origin);
        if calibration::nanoseconds_per_tick(system, system).is_none() {
            return (Self::System(origin), 1.0, true);
        }
        const REFERENCE: u64 = 1 << 40;
        let clock = quanta::Clock::new();
        let rate = clock.delta_as_nanos(0, REFERENCE) as f64 / REFERENCE as f64;
        (Self::Quanta(clock), rate, false)
    }

    /// Returns the system's clock: WebAssembly has no counter.
    #[cfg(target_family = "wasm")]
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
