//! Clocks of any offset, rate and fault, read exactly or not.

use std::cell::Cell;

use super::*;

const EPOCH: u64 = 1_700_000_000_000_000_000;

/// Finds a clock that shows `theirs` after so many nanoseconds of the profiler's. Each look at that one takes 50 ns.
fn found(theirs: impl Fn(u64) -> u64) -> Result<RecordClock, ClockError> {
    let now = Cell::new(EPOCH);
    let ours = || {
        now.set(now.get() + 50);
        now.get()
    };
    RecordClock::find(|pause| {
        now.set(now.get() + u64::try_from(pause.as_nanos()).expect("it is short"));
        Reading::take(&ours, &|| Some(theirs(now.get() + 25 - EPOCH)))
    })
}

#[test]
fn a_clock_between_two_readings_is_the_profilers() {
    let clock = found(|since| EPOCH + since).expect("it is steady");
    assert!(matches!(clock, RecordClock::Ours(_)), "{clock:?}");
    assert_eq!(clock.unix_ns(EPOCH + 7), Some(EPOCH + 7));
    let early = found(|since| EPOCH + since - since.min(900));
    assert!(
        matches!(early, Ok(RecordClock::Ours(_))),
        "by less than the tolerance: {early:?}"
    );
}

#[test]
fn another_clock_is_related_by_its_offset_and_its_rate() {
    for (per_us, offset) in [(2_400, 77_000_000), (1_000, 5_000), (25, 1_u64 << 60)] {
        let clock = found(|since| offset + since * per_us / 1_000).expect("it is steady");
        let rate = clock.other_rate().expect("it is another one");
        let expected = 1_000.0 / per_us as f64;
        assert!((rate / expected - 1.0).abs() < 1e-4, "{rate}");
        for since in [0, 1_000_000, 20_000_000] {
            let at = clock.unix_ns(offset + since * per_us / 1_000);
            let off = at.expect("a time").abs_diff(EPOCH + since);
            assert!(off <= 1_000, "{per_us}: {off} ns");
        }
        assert_eq!(clock.unix_ns(0), Some(0), "no time");
    }
}

#[test]
fn clocks_that_mean_nothing_are_refused() {
    assert_eq!(found(|_| 5), Err(ClockError::StandsStill));
    assert_eq!(
        found(|since| u64::MAX - since),
        Err(ClockError::StandsStill)
    );
    let fast = found(|since| since * 1_000);
    assert!(matches!(fast, Err(ClockError::Rate(_))), "{fast:?}");
    let slow = found(|since| since / 1_000);
    assert!(matches!(slow, Err(ClockError::Rate(_))), "{slow:?}");
    let jumping = found(|since| since + if since > 6_000_000 { 500_000 } else { 0 });
    assert!(
        matches!(jumping, Err(ClockError::NotSteady(_))),
        "{jumping:?}"
    );
    let unread = Reading::take(&|| EPOCH, &|| None);
    assert_eq!(unread, Ok(None), "an old library does not tell");
}

#[test]
fn a_reading_that_took_long_is_taken_again() {
    // The thread is interrupted in the first two.
    let looks = Cell::new(0);
    let ours = || {
        looks.set(looks.get() + 1);
        EPOCH
            + if looks.get() < 5 {
                looks.get() * 3_000_000
            } else {
                20_000_000 + looks.get()
            }
    };
    let reading = Reading::take(&ours, &|| Some(ours())).expect("one was short");
    assert!(
        reading.is_some_and(|reading| reading.width < 10),
        "{reading:?}"
    );
    let slow = || {
        looks.set(looks.get() + 1);
        EPOCH + looks.get() * 3_000_000
    };
    let reading = Reading::take(&slow, &|| Some(EPOCH));
    assert_eq!(reading, Err(ClockError::NotRead));
}

#[test]
fn a_clock_close_to_the_profilers_is_told_from_it_by_a_fast_reading() {
    // The first reading takes 45 µs, and is around the other clock's time.
    let looks = Cell::new(0);
    let ours = || {
        looks.set(looks.get() + 1);
        EPOCH + looks.get() * 100 + if looks.get() > 1 { 45_000 } else { 0 }
    };
    let theirs = || Some(EPOCH + looks.get() * 100 + 30_000);
    let reading = Reading::take(&ours, &theirs).expect("one was fast");
    let reading = reading.expect("the clock tells its time");
    assert!(!reading.is_ours(), "{reading:?}");
    assert!(reading.width <= 100, "{reading:?}");
}

#[test]
fn a_clock_that_meets_the_profilers_is_told_from_it_by_its_rate() {
    let reading = |since: i128, theirs: i128| Reading {
        ours: i128::from(EPOCH) + since,
        theirs: i128::from(EPOCH) + theirs,
        width: 200,
    };
    let tenth = 100_000_000;
    let clock = RecordClock::Ours(reading(0, 900));
    let ignored = clock.after(reading(tenth, tenth + 1_200));
    assert_eq!(ignored, Ok(clock), "it counts nanoseconds as before");
    let fast = clock.after(reading(tenth, tenth + 900 + tenth / 50_000));
    assert!(matches!(fast, Err(ClockError::NotSteady(_))), "{fast:?}");
}

/// A clock that counts nanoseconds from 30 µs after the profiler's, read every tenth of a second by readings of any
/// width: each is off by all that its width allows, to one side or the other.
#[test]
fn a_clock_of_nanoseconds_keeps_lengths_and_is_steady_however_it_is_read() {
    let mut random = 88_172_645_463_325_252_u64;
    for _ in 0..1_000 {
        let mut now = i128::from(EPOCH);
        let mut read = |pause: Duration| {
            now += i128::try_from(pause.as_nanos()).expect("it is short");
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let width = [100, 2_000, 30_000, 900_000][(random % 4) as usize];
            let side = i128::from(random >> 8 & 1) * 2 - 1;
            Reading {
                ours: now + side * width / 2,
                theirs: now + 30_000,
                width,
            }
        };
        let found = RecordClock::find(|pause| Ok(Some(read(pause))));
        let mut clock = found.expect("it is steady");
        let shift = clock.unix_ns(EPOCH).map(|at| at.wrapping_sub(EPOCH));
        for _ in 0..20 {
            clock = clock
                .after(read(Duration::from_millis(100)))
                .expect("it is steady");
            let at = clock.unix_ns(EPOCH + 1_234_567_891);
            let now = at.map(|at| at.wrapping_sub(EPOCH + 1_234_567_891));
            assert_eq!(now, shift, "{clock:?}");
        }
    }
}

#[test]
fn a_jump_is_found_out_by_what_readings_took() {
    for (width, jump) in [(200, 60_000), (20_000, 150_000), (300_000, 1_000_000)] {
        let now = Cell::new(i128::from(EPOCH));
        let read = |pause: Duration, jump: i128| {
            now.set(now.get() + i128::try_from(pause.as_nanos()).expect("it is short"));
            Reading {
                ours: now.get(),
                theirs: 3 * (now.get() + jump - i128::from(EPOCH)),
                width,
            }
        };
        let clock = RecordClock::find(|pause| Ok(Some(read(pause, 0))));
        let clock = clock.expect("it is steady");
        let tenth = Duration::from_millis(100);
        let jumped = clock.after(read(tenth, jump));
        assert!(matches!(jumped, Err(ClockError::NotSteady(_))), "{width}");
    }
}

#[test]
fn a_clock_may_be_slewed_and_not_jump() {
    /// Returns what becomes of a clock that is read every tenth of a second, runs at `slewed` millionths more after a
    /// second, and is read again `pause` nanoseconds after two seconds, when it is off by `jump`.
    fn read(slewed: i128, pause: i128, jump: i128) -> Result<RecordClock, ClockError> {
        let reading = |since: i128, jump: i128| Reading {
            ours: i128::from(EPOCH) + since,
            theirs: since + (since - 1_000_000_000).max(0) * slewed / 1_000_000 + jump,
            width: 200,
        };
        let line = Line::through(reading(0, 0), reading(8_000_000, 0))?;
        let mut clock = RecordClock::Other(line);
        for tenth in 1..=20 {
            clock = clock.after(reading(tenth * 100_000_000, 0))?;
        }
        clock.after(reading(2_000_000_000 + pause, jump))
    }
    let (tenth, second, minute) = (100_000_000, 1_000_000_000, 60_000_000_000);
    for pause in [tenth, second, minute] {
        for slewed in [0, 20, -450] {
            assert!(read(slewed, pause, 0).is_ok(), "{slewed} {pause}");
        }
        let jumped = read(0, pause, pause / 1_000);
        assert!(matches!(jumped, Err(ClockError::NotSteady(_))), "{pause}");
        assert!(read(0, pause, pause / 4_000).is_ok(), "{pause}");
    }
    assert!(read(600, tenth, 0).is_err(), "no system slews so fast");
    assert!(read(0, tenth, 60_000).is_err());
}

#[test]
fn a_rate_from_slow_readings_takes_longer() {
    let pauses = Cell::new(Duration::ZERO);
    let found = RecordClock::find(|pause| {
        pauses.set(pauses.get() + pause);
        let since = i128::try_from(pauses.get().as_nanos()).expect("it is short");
        Ok(Some(Reading {
            ours: i128::from(EPOCH) + since,
            theirs: 3 * since,
            width: 20_000,
        }))
    });
    assert!(found.is_ok(), "{found:?}");
    assert_eq!(pauses.get(), Duration::from_millis(40));
}

#[test]
fn a_clock_is_read_again_and_stays_or_is_given_up() {
    let reading = |since: i128, theirs: i128| Reading {
        ours: i128::from(EPOCH) + since,
        theirs,
        width: 100,
    };
    let clock = found(|since| 1_000 + 2 * since).expect("it is steady");
    let later = clock.after(reading(100_000_000, 1_000 + 200_004_000));
    let later = later.expect("by some microseconds");
    assert_eq!(
        later.unix_ns(1_000 + 200_004_000),
        Some(EPOCH + 100_000_000),
        "the new reading is on the line"
    );
    let jumped = clock.after(reading(100_000_000, 1_000 + 201_000_000));
    assert!(matches!(jumped, Err(ClockError::NotSteady(_))));
    let ours = RecordClock::Ours(reading(0, i128::from(EPOCH)));
    let replaced = ours.after(reading(100, 2_000));
    assert!(matches!(replaced, Err(ClockError::NotSteady(_))));
    assert_eq!(RecordClock::Unknown.unix_ns(5), None);
}

#[test]
fn records_of_another_time_are_told() {
    let clock = RecordClock::Ours(Reading::default());
    assert_eq!(clock.check_record(clock_ns()), Ok(()));
    assert_eq!(clock.check_record(0), Ok(()), "it has no time");
    assert!(clock.check_record(77_000_000).is_err());
}
