//! CPU time: ticks on the measured path, nanoseconds and wall time everywhere else.
//!
//! Ticks are those of the invariant time-stamp counter on x86-64 processors that have one, and of the virtual counter on
//! aarch64. On other processors and on WebAssembly, ticks are nanoseconds of the system's monotonic clock.

mod calibration;
mod counter;
#[cfg(test)]
pub(crate) mod mock;
mod source;
mod spans;
mod thread_time;
mod wall;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_host::diagnostics;
use profiler_host::process::platform;
use profiler_host::process::platform::Instant;
use profiler_host::sync::RaceCell;

use self::source::Source;
pub(crate) use self::spans::Spans;
pub(crate) use self::thread_time::thread_time;
pub(crate) use self::wall::WallAnchor;
pub(crate) use profiler_host::process::platform::unix_ns;

/// The clock of the process, calibrated once.
pub(crate) struct Clock {
    source: Source,
    ns_per_tick: f64,
    /// `true` if the machine has a counter that does not agree with the system's clock.
    is_fallback: bool,
    /// Calls that take fewer ticks than this cannot be told from the noise of the clock.
    too_short: u64,
    /// When the clock was calibrated: the start of the run for the summary.
    origin: u64,
    /// The wall time of the calibration, as the system's clock showed it then.
    origin_unix_ns: i64,
}

/// An odd number, so that the median is one of the gaps. Enough to outlast cold caches, and done in about 20 µs.
const CALIBRATION_ROUNDS: usize = 1001;

/// `true` if ticks are those of the counter that is read in place; `false` until the clock is calibrated.
static HAS_COUNTER: AtomicBool = AtomicBool::new(false);
/// The ticks that are subtracted from each measurement: the median difference of two readings with nothing in between, or
/// what [`set_cost`] has set.
static COST: AtomicU64 = AtomicU64::new(0);

/// Returns the clock. The first call calibrates it, which takes about a millisecond.
#[inline]
pub(crate) fn clock() -> &'static Clock {
    static CLOCK: RaceCell<Clock> = RaceCell::new();
    CLOCK.get_or_init(Clock::calibrate)
}

/// Returns `true` if [`read_counter`] may be called. Calibrates the clock if this was not done before.
pub(crate) fn has_counter() -> bool {
    clock();
    HAS_COUNTER.load(Relaxed)
}

/// Returns the current ticks with one instruction. Valid only if [`has_counter`] returned `true`.
#[inline(always)]
pub(crate) fn read_counter() -> u64 {
    #[cfg(test)]
    if let Some(ticks) = mock::ticks() {
        return ticks;
    }
    // Miri has no counter, and tests take the fast path there all the same.
    if cfg!(miri) {
        return clock().ticks();
    }
    counter::read()
}

/// Returns the current ticks, in the fastest way that this machine has.
#[inline]
pub(crate) fn now() -> u64 {
    if HAS_COUNTER.load(Relaxed) {
        read_counter()
    } else {
        clock().ticks()
    }
}

/// Returns the ticks between two readings of a measurement, minus what an empty one takes.
#[inline]
pub(crate) fn elapsed(start: u64, end: u64) -> i64 {
    let cost = COST.load(Relaxed);
    #[cfg(test)]
    let cost = mock::ticks().map_or(cost, |_| 0);
    subtract(start, end, cost)
}

/// [`elapsed`] for a thread that keeps the [`cost`].
///
/// The result is negative if the readings are closer together than usual. It is not clamped to zero, which would bias
/// the mean of many short calls upwards.
#[inline(always)]
pub(crate) fn subtract(start: u64, end: u64, cost: u64) -> i64 {
    #[cfg(test)]
    let cost = mock::ticks().map_or(cost, |_| 0);
    end.wrapping_sub(cost).wrapping_sub(start).cast_signed()
}

/// Returns the ticks that are subtracted from each measurement. Calibrates the clock if this was not done before.
pub(crate) fn cost() -> u64 {
    clock();
    COST.load(Relaxed)
}

/// Sets the ticks that are subtracted from each measurement, once the clock is calibrated.
pub(crate) fn set_cost(ticks: u64) {
    COST.store(ticks, Relaxed);
}

/// Warns, once, if the clock is not the best one of this machine. Called with no lock held.
pub(crate) fn warn_if_fallback() {
    if clock().is_fallback {
        diagnostics::warn_once(
            "the system's monotonic clock stands still or goes backwards: CPU times are what it shows; is a tool such \
             as libfaketime in use?",
        );
    }
}

impl Clock {
    fn calibrate() -> Self {
        let (source, ns_per_tick, is_fallback) = Source::best(Instant::now());
        let mut gaps = [0_u64; CALIBRATION_ROUNDS];
        for gap in &mut gaps {
            let start = source.ticks();
            *gap = source.ticks().saturating_sub(start);
        }
        gaps.sort_unstable();
        let cost = gaps[CALIBRATION_ROUNDS / 2];
        // The counter may advance by many ticks at a time. The smallest positive difference of two gaps is that step.
        let step = gaps
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .find(|&gap| gap > 0)
            .unwrap_or(1);
        let origin = source.ticks();
        COST.store(cost, Relaxed);
        HAS_COUNTER.store(source.is_counter(), Relaxed);
        Self {
            source,
            ns_per_tick,
            is_fallback,
            too_short: 4 * cost.max(step),
            origin,
            origin_unix_ns: unix_ns(platform::wall_time()),
        }
    }

    /// Returns the current ticks.
    pub(crate) fn ticks(&self) -> u64 {
        #[cfg(test)]
        if let Some(ticks) = mock::ticks() {
            return ticks;
        }
        self.source.ticks()
    }

    /// Returns the ticks since the calibration.
    pub(crate) fn since_origin(&self) -> u64 {
        self.ticks().saturating_sub(self.origin)
    }

    /// Returns when the clock was calibrated, in nanoseconds since the Unix epoch: one value for the whole process, also
    /// if the system's clock is set meanwhile.
    pub(crate) fn origin_unix_ns(&self) -> i64 {
        self.origin_unix_ns
    }

    /// Returns the wall time of the calibration, by the system's clock as it is set now.
    pub(crate) fn began(&self) -> std::time::SystemTime {
        let age = self.nanoseconds(self.since_origin() as f64).max(0.0);
        let now = platform::wall_time();
        now.checked_sub(Duration::from_secs_f64(age / 1e9))
            .unwrap_or(now)
    }

    /// Converts ticks to nanoseconds. Takes a float because totals may exceed what an integer conversion holds.
    pub(crate) fn nanoseconds(&self, ticks: f64) -> f64 {
        ticks * self.ns_per_tick
    }

    /// Converts a duration to ticks.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "less than the centuries that 64 bits hold"
    )]
    pub(crate) fn in_ticks(&self, duration: Duration) -> u64 {
        (duration.as_nanos() as f64 / self.nanoseconds(1.0)) as u64
    }

    /// Returns the number of ticks below which a single call cannot be timed.
    pub(crate) fn too_short(&self) -> u64 {
        self.too_short
    }
}

#[cfg(test)]
mod tests {
    use super::mock::MockClock;
    use super::*;

    #[test]
    fn ticks_become_the_nanoseconds_that_passed() {
        // Bracketed by ticks on both sides, so that a thread that is preempted only widens the bounds.
        let bracketed = || (clock().ticks(), Instant::now(), clock().ticks());
        let start = bracketed();
        std::thread::sleep(Duration::from_millis(20));
        let end = bracketed();
        let passed = end.1.duration_since(start.1).as_nanos() as f64;
        let least = clock().nanoseconds((end.0 - start.2) as f64);
        let most = clock().nanoseconds((end.2 - start.0) as f64);
        assert!(
            (0.99 * least..=1.01 * most).contains(&passed),
            "{passed} ns, expected {least} to {most}"
        );
    }

    #[test]
    fn the_cost_of_a_reading_is_subtracted() {
        let cost = 21;
        assert_eq!(subtract(1000, 1000 + cost, cost), 0);
        assert_eq!(subtract(1000, 1007 + cost, cost), 7);
        assert_eq!(subtract(1000, 995 + cost, cost), -5);
    }

    #[test]
    fn the_counter_is_read_in_place_if_there_is_one() {
        let before = clock().ticks();
        if has_counter() {
            let ticks = read_counter();
            assert!((before..=clock().ticks()).contains(&ticks));
        } else {
            assert!(!clock().source.is_counter());
        }
    }

    #[test]
    fn a_mocked_clock_advances_as_the_test_says() {
        clock();
        let before = now();
        {
            let mock = MockClock::at(5);
            let start = now();
            mock.advance(7);
            assert_eq!((start, now(), clock().ticks()), (5, 12, 12));
            assert_eq!(elapsed(start, now()), 7);
            let other = std::thread::spawn(now).join().expect("it does not panic");
            assert!(other > 12, "other threads keep the real clock");
        }
        assert!(now() >= before);
    }
}
