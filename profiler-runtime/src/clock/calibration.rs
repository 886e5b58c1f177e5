//! How long a tick of the processor's counter is.

/// A calibration compares both clocks over this time.
const SPAN_NS: u64 = 1_000_000;
/// Readings of the system's clock at most. A clock that goes is read less often in a millisecond, wherever a reading
/// takes a nanosecond or more; one that stands still must not be waited for.
const MOST_READINGS: u32 = 1 << 20;
/// Pairs of readings, of which the closest is taken.
const PAIRS: usize = 16;

/// Returns the nanoseconds of the system's clock for each tick of the counter; none where one of both does not go on.
pub(super) fn nanoseconds_per_tick(
    system_ns: impl Fn() -> u64,
    counter: impl Fn() -> u64,
) -> Option<f64> {
    let (first_ns, first_ticks) = pair(&system_ns, &counter);
    // Readings are counted, and the time they show is not relied on: the clock may stand still or go backwards.
    (0..MOST_READINGS).find(|_| system_ns().saturating_sub(first_ns) >= SPAN_NS)?;
    let (last_ns, last_ticks) = pair(&system_ns, &counter);
    let ns = last_ns.checked_sub(first_ns)? as f64;
    let ticks = last_ticks.checked_sub(first_ticks)? as f64;
    let rate = ns / ticks;
    // Counters run at a megahertz to some gigahertz. Anything else is no rate: the clock was set meanwhile.
    (1e-3..=1e4).contains(&rate).then_some(rate)
}

/// Reads both clocks at about the same time: the pair with the fewest ticks between two readings of the counter.
fn pair(system_ns: impl Fn() -> u64, counter: impl Fn() -> u64) -> (u64, u64) {
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

    /// A clock that shows `next` of what it showed before, each time it is read.
    fn clock(start: u64, next: impl Fn(u64) -> u64) -> impl Fn() -> u64 {
        let shown = Cell::new(start);
        move || {
            shown.set(next(shown.get()));
            shown.get()
        }
    }

    #[test]
    fn clocks_that_go_have_a_ratio() {
        // Both go on together: 25 ns for each reading of the counter, and three ticks for each nanosecond.
        let ns = Cell::new(0);
        let counter = || {
            ns.set(ns.get() + 25);
            3 * ns.get()
        };
        let system = || {
            ns.set(ns.get() + 25);
            ns.get()
        };
        let rate = nanoseconds_per_tick(system, counter).expect("both go");
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
    fn a_clock_that_is_set_meanwhile_gives_no_rate() {
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
