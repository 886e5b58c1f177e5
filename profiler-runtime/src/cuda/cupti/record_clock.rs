//! The clock of CUPTI's records, and how its times become the profiler's.
//!
//! CUPTI dates its records by the clock that was registered with it last, which belongs to all of the process. The profiler
//! registers the system's clock, once: a further time would spoil records. Another profiler may register one of its own
//! before or after that. PyTorch's counts ticks of the processor.
//!
//! So the clock is read, and compared with the profiler's. If it is another one, two more readings, some milliseconds
//! apart, tell its rate. Each flush takes a further reading: times are those on the line through the first reading and the
//! last one, so that errors of the first readings do not grow with the time. A clock that stands still, changes its rate or
//! jumps is not used: no time is better than a wrong one.
//!
//! All of this happens on the recorder's thread.

use std::thread;
use std::time::Duration;

use profiler_cuda_sys::cupti::Cupti;
use profiler_host::process::platform;

use crate::clock::unix_ns;

/// A difference to the profiler's clock that is attributed to the readings themselves, in nanoseconds.
const TOLERANCE_NS: i128 = 1_000;
/// The time between the readings that tell the rate.
const PAUSE: Duration = Duration::from_millis(4);
/// How many readings are taken, of which the most exact one counts.
const TRIES: u32 = 8;
/// A reading that takes longer tells nothing, in nanoseconds.
const MAX_WIDTH_NS: i128 = 1_000_000;
/// The rates that a clock may have, in nanoseconds for a thousand of its units: those of counters between 10 GHz and 10 MHz.
const RATES: std::ops::RangeInclusive<i128> = 100..=100_000;
/// A clock is steady if it is found where it was expected, but for a thousandth of the time since it was read last.
const STEADY: i128 = 1_000;
/// A record that is further from the present has another clock than the one that was read, in nanoseconds.
const MAX_DISTANCE_NS: i128 = 24 * 3_600_000_000_000;

/// The time by which CUPTI dates its records if it uses the profiler's clock: the system's, as the windows' time line.
pub(super) extern "C" fn clock_ns() -> u64 {
    u64::try_from(unix_ns(platform::wall_time())).unwrap_or_default()
}

/// Why the times of records cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ClockError {
    #[error("stands still or goes backwards")]
    StandsStill,
    #[error("runs {} ns for each of its units, as no clock does", *.0 as f64 / 1e3)]
    Rate(i128),
    #[error("is not steady: it was {0} ns from where it was expected")]
    NotSteady(i128),
    #[error("took longer than a millisecond to read")]
    NotRead,
    #[error("is not the one of the records, which lie {0} ns from the present")]
    OfRecords(i128),
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    /// The middle of the profiler's readings before and after, in nanoseconds since the Unix epoch.
    ours: i128,
    theirs: i128,
    /// The time between those readings.
    width: i128,
}

/// The clock of CUPTI's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RecordClock {
    /// The profiler's.
    Ours,
    /// Another one, whose rate is known.
    Other(Line),
    /// It has not been looked at, or its times mean nothing.
    #[default]
    Unknown,
}

/// The times of another clock, by two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    first: Reading,
    last: Reading,
}

impl RecordClock {
    /// Finds out which clock CUPTI uses. Takes some milliseconds if it is not the profiler's.
    pub(super) fn of(cupti: &Cupti) -> Result<Self, ClockError> {
        Self::find(|pause| {
            thread::sleep(pause);
            Reading::of(cupti)
        })
    }

    /// Finds it out from readings that are taken after a pause each.
    fn find(
        mut read: impl FnMut(Duration) -> Result<Option<Reading>, ClockError>,
    ) -> Result<Self, ClockError> {
        let first = read(Duration::ZERO)?;
        let Some(first) = first.filter(|reading| !reading.is_ours()) else {
            return Ok(Self::Ours);
        };
        let (Some(second), Some(third)) = (read(PAUSE)?, read(PAUSE)?) else {
            return Ok(Self::Ours);
        };
        let line = Line::through(first, second)?;
        line.extended_to(third).map(Self::Other)
    }

    /// Reads the clock again: whether it is still the same one.
    pub(super) fn check(&mut self, cupti: &Cupti) -> Result<(), ClockError> {
        if *self == Self::Unknown {
            return Ok(());
        }
        let checked = Reading::of(cupti)
            .and_then(|reading| reading.map_or(Ok(*self), |reading| self.after(reading)));
        *self = match checked {
            Ok(clock) => clock,
            // The thread had no time to look.
            Err(ClockError::NotRead) => return Ok(()),
            Err(_) => Self::Unknown,
        };
        checked.map(|_| ())
    }

    /// Returns the clock with one more reading.
    fn after(self, reading: Reading) -> Result<Self, ClockError> {
        match self {
            Self::Ours if !reading.is_ours() => {
                Err(ClockError::NotSteady(reading.theirs - reading.ours))
            }
            Self::Other(line) => line.extended_to(reading).map(Self::Other),
            known => Ok(known),
        }
    }

    /// Returns when a record says that something happened, in nanoseconds since the Unix epoch; `None` if that is not known.
    /// Zero, which stands for no time, stays so.
    pub(super) fn unix_ns(&self, at: u64) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Other(line) if at != 0 => u64::try_from(line.ours_at(at.into())).ok(),
            _ => Some(at),
        }
    }

    /// Returns an error if a record is dated by another clock than the one that was read, which is the case if CUPTI tells
    /// its own time although the records have that of a client.
    pub(super) fn check_record(&self, start: u64) -> Result<(), ClockError> {
        let distance = i128::from(start) - i128::from(clock_ns());
        if *self == Self::Unknown || start == 0 || distance.abs() <= MAX_DISTANCE_NS {
            return Ok(());
        }
        Err(ClockError::OfRecords(distance))
    }

    /// Returns the nanoseconds of a unit of the clock if it is not the profiler's.
    pub(super) fn other_rate(&self) -> Option<f64> {
        match self {
            Self::Other(line) => Some(line.rate()),
            Self::Ours | Self::Unknown => None,
        }
    }
}

impl Reading {
    fn of(cupti: &Cupti) -> Result<Option<Self>, ClockError> {
        Self::take(&|| clock_ns(), &|| cupti.timestamp())
    }

    /// Reads both clocks. Returns `None` if CUPTI does not tell its time.
    fn take(
        ours: &dyn Fn() -> u64,
        theirs: &dyn Fn() -> Option<u64>,
    ) -> Result<Option<Self>, ClockError> {
        let mut best: Option<Self> = None;
        for _ in 0..TRIES {
            let before = i128::from(ours());
            let Some(read) = theirs() else {
                return Ok(None);
            };
            let after = i128::from(ours());
            let reading = Self {
                ours: before.midpoint(after),
                theirs: read.into(),
                width: after - before,
            };
            // The system's clock may be set back.
            if reading.width >= 0 && best.is_none_or(|best| reading.width < best.width) {
                best = Some(reading);
            }
            if reading.is_ours() && reading.width <= MAX_WIDTH_NS {
                break;
            }
        }
        best.filter(|best| best.width <= MAX_WIDTH_NS)
            .map(Some)
            .ok_or(ClockError::NotRead)
    }

    /// Returns `true` if CUPTI has told the profiler's time.
    fn is_ours(&self) -> bool {
        let distance = (self.theirs - self.ours).abs();
        distance <= self.width / 2 + TOLERANCE_NS
    }
}

impl Line {
    fn through(first: Reading, last: Reading) -> Result<Self, ClockError> {
        let theirs = last.theirs - first.theirs;
        if theirs <= 0 {
            return Err(ClockError::StandsStill);
        }
        let rate = (last.ours - first.ours) * 1_000 / theirs;
        if !RATES.contains(&rate) {
            return Err(ClockError::Rate(rate));
        }
        Ok(Self { first, last })
    }

    /// Moves the end of the line to a later reading, which must be close to it.
    fn extended_to(self, reading: Reading) -> Result<Self, ClockError> {
        let Self { first, last } = self;
        let off = self.ours_at(reading.theirs) - reading.ours;
        // The rate is as uncertain as its two readings.
        let known = (last.ours - first.ours).max(1);
        let since = (reading.ours - last.ours).max(0);
        let widths = first.width + last.width + reading.width;
        let uncertain = widths * (1 + since / known) + TOLERANCE_NS;
        if off.abs() > uncertain + since / STEADY {
            return Err(ClockError::NotSteady(off));
        }
        Self::through(first, reading)
    }

    fn ours_at(&self, theirs: i128) -> i128 {
        let Self { first, last } = self;
        let (ours, other) = (last.ours - first.ours, last.theirs - first.theirs);
        // Not zero: see `through`.
        first.ours + (theirs - first.theirs) * ours / other.max(1)
    }

    fn rate(&self) -> f64 {
        (self.last.ours - self.first.ours) as f64 / (self.last.theirs - self.first.theirs) as f64
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(clock, RecordClock::Ours);
        assert_eq!(clock.unix_ns(EPOCH + 7), Some(EPOCH + 7));
        let early = found(|since| EPOCH + since - since.min(900));
        assert_eq!(early, Ok(RecordClock::Ours), "by less than the tolerance");
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
        let replaced = RecordClock::Ours.after(reading(100, 2_000));
        assert!(matches!(replaced, Err(ClockError::NotSteady(_))));
        assert_eq!(RecordClock::Unknown.unix_ns(5), None);
    }

    #[test]
    fn records_of_another_time_are_told() {
        let clock = RecordClock::Ours;
        assert_eq!(clock.check_record(clock_ns()), Ok(()));
        assert_eq!(clock.check_record(0), Ok(()), "it has no time");
        assert!(clock.check_record(77_000_000).is_err());
    }
}
