//! CPU time: raw ticks on the measured path, nanoseconds and wall time everywhere else.
//!
//! Ticks are those of the invariant time-stamp counter where the processor has one (on x86-64; the `quanta`
//! crate reads that of others), else nanoseconds of the system's monotonic clock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

mod calibration;

use crate::diagnostics;
use crate::sync::RaceCell;

/// The clock of the whole process, calibrated once.
pub(crate) struct Clock {
    source: Source,
    /// How long a tick is.
    ns_per_tick: f64,
    /// Whether there is a counter that could not be compared with the system's clock.
    is_fallback: bool,
    /// Calls that take less than this many ticks cannot be told from the clock's own noise.
    too_short: u64,
    /// When the clock was made: the start of the run as the summary sees it.
    origin: u64,
}

/// What ticks are.
enum Source {
    /// Those of a counter that is read in place.
    #[cfg(target_arch = "x86_64")]
    Counter,
    /// Those of a counter that `quanta` reads.
    #[cfg(not(target_arch = "x86_64"))]
    Quanta(quanta::Clock),
    /// Nanoseconds of the system's monotonic clock.
    System(Instant),
}

/// What the system's clock shows at the beginning; zero means "never" in places.
const SYSTEM_ORIGIN_NS: u64 = 1_000_000_000;

impl Source {
    fn ticks(&self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Counter => counter::read(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Quanta(clock) => clock.raw(),
            Self::System(origin) => since(*origin).saturating_add(SYSTEM_ORIGIN_NS),
        }
    }

    /// Whether its ticks are those of [`read_counter`].
    fn is_counter(&self) -> bool {
        !matches!(self, Self::System(_)) && cfg!(target_arch = "x86_64")
    }

    /// The best one there is, and the nanoseconds of its ticks; true where that is not the one it should be.
    #[cfg(target_arch = "x86_64")]
    fn best(origin: Instant) -> (Self, f64, bool) {
        let is_invariant = counter::is_invariant();
        let rate = is_invariant
            .then(|| calibration::nanoseconds_per_tick(|| since(origin), counter::read));
        match rate.flatten() {
            Some(rate) => (Self::Counter, rate, false),
            None => (Self::System(origin), 1.0, is_invariant),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best(origin: Instant) -> (Self, f64, bool) {
        // `quanta` waits for the system's clock to go on.
        let system = || since(origin);
        if calibration::nanoseconds_per_tick(system, system).is_none() {
            return (Self::System(origin), 1.0, true);
        }
        const REFERENCE: u64 = 1 << 40;
        let clock = quanta::Clock::new();
        let rate = clock.delta_as_nanos(0, REFERENCE) as f64 / REFERENCE as f64;
        (Self::Quanta(clock), rate, false)
    }
}

/// Nanoseconds since then: enough for 584 years, and none where the clock went backwards.
fn since(origin: Instant) -> u64 {
    u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Odd, so that the median is one of the readings; enough to outlast a cold start, done in 20 µs.
const CALIBRATION_ROUNDS: usize = 1001;

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
        // The counter may advance in steps of many ticks: the smallest difference between two
        // readings that is not zero.
        let step = gaps
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .find(|&gap| gap > 0)
            .unwrap_or(1);
        let origin = source.ticks();
        COST.store(cost, Relaxed);
        COUNTER.store(source.is_counter(), Relaxed);
        Self {
            source,
            ns_per_tick,
            is_fallback,
            too_short: 4 * cost.max(step),
            origin,
        }
    }

    /// When the clock was made, by the system's clock.
    #[cfg(feature = "trace")]
    pub(crate) fn began(&self) -> SystemTime {
        let age = self.nanoseconds(self.since_origin() as f64).max(0.0);
        let now = SystemTime::now();
        now.checked_sub(Duration::from_secs_f64(age / 1e9))
            .unwrap_or(now)
    }

    /// The present, in ticks.
    pub(crate) fn ticks(&self) -> u64 {
        self.source.ticks()
    }

    /// Ticks since the clock was made.
    pub(crate) fn since_origin(&self) -> u64 {
        self.ticks().saturating_sub(self.origin)
    }

    /// A number of ticks in nanoseconds. Totals may exceed what an integer conversion can take.
    pub(crate) fn nanoseconds(&self, ticks: f64) -> f64 {
        ticks * self.ns_per_tick
    }

    /// A duration in ticks.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "less than the centuries that 64 bits hold"
    )]
    pub(crate) fn in_ticks(&self, duration: Duration) -> u64 {
        (duration.as_nanos() as f64 / self.nanoseconds(1.0)) as u64
    }

    /// Calls shorter than this, in ticks, cannot be timed one by one.
    pub(crate) fn too_short(&self) -> u64 {
        self.too_short
    }
}

/// Whether ticks are those of a counter that can be read in place; false until the clock is made.
static COUNTER: AtomicBool = AtomicBool::new(false);
/// What two readings with nothing between them differ by, in ticks: taken off each measurement.
static COST: AtomicU64 = AtomicU64::new(0);

/// Whether [`read_counter`] may be called; makes the clock if there is none yet.
pub(crate) fn has_counter() -> bool {
    clock();
    COUNTER.load(Relaxed)
}

/// The present in ticks, by one instruction; only after [`has_counter`] said so.
#[inline(always)]
pub(crate) fn read_counter() -> u64 {
    counter::read()
}

/// The present in ticks, the quickest way there is.
#[inline]
pub(crate) fn now() -> u64 {
    if COUNTER.load(Relaxed) {
        counter::read()
    } else {
        clock().ticks()
    }
}

/// The ticks between two readings, less the cost of taking them.
///
/// Below zero where they come closer together than usual: were it cut off there, the mean of many
/// short calls would be too long.
#[inline(always)]
pub(crate) fn elapsed(start: u64, end: u64) -> i64 {
    end.wrapping_sub(start)
        .wrapping_sub(COST.load(Relaxed))
        .cast_signed()
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    #[inline(always)]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, which touches no memory. (A system can forbid it to a
        // program, which ends at it then; none does so unasked.)
        unsafe { _rdtsc() }
    }

    /// Whether the counter runs at one rate whatever the processor does, and is the same on all cores, as far as the
    /// processor says so.
    pub(super) fn is_invariant() -> bool {
        const ADVANCED_POWER: u32 = 0x8000_0007;
        if cfg!(miri) {
            return false;
        }
        #[allow(unused_unsafe, reason = "newer compilers know it for safe")]
        // SAFETY: every x86-64 processor has the instruction, and says by the first leaf which others there are.
        let leaf = |leaf: u32| unsafe { __cpuid(leaf) };
        let has_rdtscp = || leaf(0x8000_0001).edx & 1 << 27 != 0;
        leaf(0x8000_0000).eax >= ADVANCED_POWER
            && leaf(ADVANCED_POWER).edx & 1 << 8 != 0
            && has_rdtscp()
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod counter {
    pub(super) fn read() -> u64 {
        0
    }
}

/// The clock; calibrates it on the first call (about a millisecond).
#[inline]
pub(crate) fn clock() -> &'static Clock {
    static CLOCK: RaceCell<Clock> = RaceCell::new();
    CLOCK.get_or_init(Clock::calibrate)
}

/// Says, once, where the clock is not what it should be; with no lock held.
pub(crate) fn say_if_fallback() {
    if clock().is_fallback {
        diagnostics::warn_once(
            "the system's monotonic clock stands still or goes backwards: CPU times are what it shows; is a tool such \
             as libfaketime in use?",
        );
    }
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn unix_ns(time: SystemTime) -> i64 {
    let signed = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => signed(since),
        Err(error) => -signed(error.duration()),
    }
}

/// Pairs of readings, of which the narrowest is taken.
const NARROWING: usize = 8;

/// Ties ticks of the recent past to wall time; made anew whenever a batch of records is read, since
/// the counter's rate is known to some parts in 10⁴ only and would drift by seconds a day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallAnchor {
    ticks: u64,
    wall: SystemTime,
}

impl WallAnchor {
    pub(crate) fn now() -> Self {
        Self {
            ticks: clock().ticks(),
            wall: SystemTime::now(),
        }
    }

    #[cfg(test)]
    pub(crate) fn at(ticks: u64, wall: SystemTime) -> Self {
        Self { ticks, wall }
    }

    /// The same, as exact as can be had quickly: the narrowest of some brackets.
    pub(crate) fn narrow() -> Self {
        let bracket = || {
            let before = clock().ticks();
            let wall = SystemTime::now();
            let after = clock().ticks();
            let ticks = u64::midpoint(before, after);
            (after.saturating_sub(before), Self { ticks, wall })
        };
        let (_, narrowest) = (0..NARROWING)
            .map(|_| bracket())
            .fold(
                bracket(),
                |best, next| if next.0 < best.0 { next } else { best },
            );
        narrowest
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Nanoseconds since the Unix epoch.
    pub(crate) fn unix_ns(&self) -> i64 {
        unix_ns(self.wall)
    }

    /// The wall time at a reading of [`Clock::ticks`].
    pub(crate) fn wall_time(&self, ticks: u64) -> SystemTime {
        let age = clock().nanoseconds(self.ticks.saturating_sub(ticks) as f64);
        self.wall
            .checked_sub(Duration::from_secs_f64(age / 1e9))
            .unwrap_or(self.wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_the_nanoseconds_that_passed() {
        let (start, instant) = (clock().ticks(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(20));
        let (end, expected) = (clock().ticks(), instant.elapsed().as_nanos() as f64);
        let measured = clock().nanoseconds((end - start) as f64);
        assert!(
            (measured / expected - 1.0).abs() < 0.01,
            "{measured} ns, expected {expected}"
        );
    }

    #[test]
    fn a_time_far_from_the_present_is_cut_off_at_64_bits() {
        let far = Duration::from_secs(1 << 40);
        let (future, past) = (SystemTime::UNIX_EPOCH + far, SystemTime::UNIX_EPOCH - far);
        assert_eq!(unix_ns(future), i64::MAX);
        assert_eq!(unix_ns(past), -i64::MAX);
        for wall in [future, past] {
            let anchor = WallAnchor::at(u64::MAX, wall);
            assert!(anchor.wall_time(0) <= wall);
        }
    }

    #[test]
    fn the_cost_of_reading_is_taken_off() {
        clock();
        let cost = COST.load(Relaxed);
        assert_eq!(elapsed(1000, 1000 + cost), 0);
        assert_eq!(elapsed(1000, 1007 + cost), 7);
        assert_eq!(elapsed(1000, 995 + cost), -5);
    }

    #[test]
    fn the_counter_is_read_in_place_where_there_is_one() {
        let before = clock().ticks();
        if has_counter() {
            let ticks = read_counter();
            assert!((before..=clock().ticks()).contains(&ticks));
        } else {
            assert!(!clock().source.is_counter());
        }
    }

    #[test]
    fn an_anchor_gives_the_wall_time_of_the_recent_past() {
        let before = SystemTime::now();
        let ticks = clock().ticks();
        let after = SystemTime::now();
        std::thread::sleep(Duration::from_millis(5));
        let wall = WallAnchor::now().wall_time(ticks);
        let slack = Duration::from_millis(1);
        assert!(
            wall + slack >= before && wall <= after + slack,
            "{before:?} {wall:?} {after:?}"
        );
    }
}
