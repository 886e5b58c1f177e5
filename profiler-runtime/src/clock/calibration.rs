//! Calibration of the processor's counter against the system's monotonic clock.

/// The time over which both clocks are compared.
const SPAN_NS: u64 = 1_000_000;
/// The most readings of the system's clock. A reading takes more than a nanosecond, so a clock that advances reaches
/// the span with fewer; one that stands still must not be waited for.
const MAX_READINGS: u32 = 1 << 20;
/// The number of pairs of readings of which the closest is taken.
const PAIRS: usize = 16;
/// Plausible nanoseconds per tick: counters run at a megahertz to some gigahertz. Any other rate means that the system's
/// clock was set during the calibration.
const PLAUSIBLE_RATES: std::ops::RangeInclusive<f64> = 1e-3..=1e4;

/// Returns the nanoseconds of the system's clock per tick of the counter. Returns `None` if one of the two does not
/// advance, or if their rate is implausible.
pub(super) fn nanoseconds_per_tick(
    system_ns: impl Fn() -> u64,
    counter: impl Fn() -> u64,
) -> Option<f64> {
    let (first_ns, first_ticks) = closest_pair(&system_ns, &counter);
    // Bound the number of readings, not the time: the clock that would show the time may stand still or go backwards.
    (0..MAX_READINGS).find(|_| system_ns().saturating_sub(first_ns) >= SPAN_NS)?;
    let (last_ns, last_ticks) = closest_pair(&system_ns, &counter);
    let ns = last_ns.checked_sub(first_ns)? as f64;
    let ticks = last_ticks.checked_sub(first_ticks)? as f64;
    let rate = ns / ticks;
    PLAUSIBLE_RATES.contains(&rate).then_some(rate)
}

/// Reads both clocks several times and returns the closest pair: the one where the fewest ticks passed around the
/// reading of the system's clock.
fn closest_pair(system_ns: impl Fn() -> u64, counter: impl Fn() -> u64) -> (u64, u64) {
    let bracket = || {
        let before = counter();
        let ns = system_ns();
        let after = counter();
        (
            after.saturating_sub(before),
            ns,
            u64::midpoint(before, after),
        )
    };
    let closest = (1..PAIRS).fold(bracket(), |best, _| {
        let next = bracket();
        if next.0 < best.0 { next } else { best }
    });
    (closest.1, closest.2)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock whose reading is `next` of the reading before.
    fn clock(start: u64, next: impl Fn(u64) -> u64) -> impl Fn() -> u64 {
        let shown = Cell::new(start);
        move || {
            shown.set(next(shown.get()));
            shown.get()
        }
    }

    #[test]
    fn clocks_that_advance_have_a_rate() {
        // Each reading of either takes 25 ns, and the counter has three ticks per nanosecond.
        let ns = Cell::new(0);
        let counter = || {
            ns.set(ns.get() + 25);
            3 * ns.get()
        };
        let system = || {
            ns.set(ns.get() + 25);
            ns.get()
        };
        let rate = nanoseconds_per_tick(system, counter).expect("both advance");
        assert!((rate * 3.0 - 1.0).abs() < 1e-3, "{rate}");
    }

    #[test]
    fn a_clock_that_stands_still_is_not_waited_for() {
        let still = clock(7, |shown| shown);
        assert_eq!(
            nanoseconds_per_tick(still, clock(0, |ticks| ticks + 1)),
            None
        );
    }

    #[test]
    fn a_clock_that_goes_backwards_is_not_waited_for() {
        let backwards = clock(1 << 40, |shown| shown.saturating_sub(1000));
        assert_eq!(
            nanoseconds_per_tick(backwards, clock(0, |ticks| ticks + 1)),
            None
        );
    }

    #[test]
    fn a_clock_that_steps_back_an_hour_is_not_waited_for() {
        let readings = Cell::new(0);
        let steps_back = || {
            readings.set(readings.get() + 1);
            if readings.get() < 100 {
                3_600_000_000_000 + readings.get()
            } else {
                readings.get()
            }
        };
        assert_eq!(
            nanoseconds_per_tick(steps_back, clock(0, |ticks| ticks + 1)),
            None
        );
    }

    #[test]
    fn a_clock_that_is_set_during_the_calibration_gives_no_rate() {
        let leaps = clock(0, |shown| shown + (1 << 50));
        assert_eq!(
            nanoseconds_per_tick(leaps, clock(0, |ticks| ticks + 1)),
            None
        );
    }

    #[test]
    fn a_counter_that_stands_still_gives_no_rate() {
        let goes = clock(0, |shown| shown + 1000);
        assert_eq!(nanoseconds_per_tick(goes, || 5), None);
    }
}
