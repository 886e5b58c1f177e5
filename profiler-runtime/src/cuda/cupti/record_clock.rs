//! The clock of CUPTI's records, and how its times become the profiler's.
//!
//! CUPTI dates its records by the clock that was registered with it last, which belongs to all of the process. The profiler
//! registers the system's clock, once: a further time would spoil records. Another profiler may register one of its own
//! before or after that. PyTorch's counts ticks of the processor.
//!
//! So the clock is read, and compared with the profiler's. If it is another one, two more readings, some milliseconds
//! apart, tell its rate. From then on it is read ten times a second: times are those on the line through the first reading and
//! the last one, so that errors of the first readings do not grow with the time. A clock that stands still, changes its rate or
//! jumps is not used: no time is better than a wrong one.
//!
//! A reading is as exact as it was fast, so the fastest of several counts. It is off by half of what it took at most: a clock
//! of a steady rate is never further from its line than its readings tell, however busy the machine is. Beyond that, it may be
//! off by what systems slew their clocks.
//!
//! CUPTI's own clock, which it keeps where it takes no other one, counts nanoseconds and is some microseconds from the
//! profiler's. It is known by its rate: as long as the readings cannot tell that from one, no length is changed.
//!
//! All of this happens on the recorder's thread.

use std::thread;
use std::time::Duration;

use profiler_cuda_sys::cupti::Cupti;
use profiler_host::process::platform;

use crate::clock::unix_ns;

/// A difference to the profiler's clock that is attributed to the readings themselves, in nanoseconds.
const TOLERANCE_NS: i128 = 1_000;
/// The time between the readings that tell the rate: so many times what the first one took, within bounds. Then the rate is
/// known to a thousandth.
const PAUSE_WIDTHS: u32 = 1_000;
const MIN_PAUSE: Duration = Duration::from_millis(4);
const MAX_PAUSE: Duration = Duration::from_millis(50);
/// How many readings are taken, of which the most exact one counts.
const TRIES: u32 = 8;
/// A reading that takes longer tells nothing, in nanoseconds.
const MAX_WIDTH_NS: i128 = 1_000_000;
/// A reading that is as fast need not be taken again, in nanoseconds.
const FAST_NS: i128 = 2_000;
/// The rates that a clock may have, in nanoseconds for a thousand of its units: those of counters between 10 GHz and 10 MHz.
const RATES: std::ops::RangeInclusive<i128> = 100..=100_000;
/// A clock is steady if it is found where it was expected, but for this part of the time since it was read last: systems slew
/// their clocks by 500 millionths.
const STEADY: i128 = 2_000;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    /// The middle of the profiler's readings before and after, in nanoseconds since the Unix epoch.
    ours: i128,
    theirs: i128,
    /// The time between those readings.
    width: i128,
}

/// The clock of CUPTI's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RecordClock {
    /// The profiler's, by this reading.
    Ours(Reading),
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
        let Some(first) = read(Duration::ZERO)? else {
            return Ok(Self::Ours(Reading::default()));
        };
        if first.is_ours() {
            return Ok(Self::Ours(first));
        }
        let width = u64::try_from(first.width).unwrap_or_default();
        let pause = Duration::from_nanos(width).saturating_mul(PAUSE_WIDTHS);
        let pause = pause.clamp(MIN_PAUSE, MAX_PAUSE);
        let (Some(second), Some(third)) = (read(pause)?, read(pause)?) else {
            return Ok(Self::Ours(Reading::default()));
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
            Self::Ours(first) if !reading.is_ours() && first.is_apart_from(&reading) => {
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
            Self::Ours(_) | Self::Unknown => None,
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
            if reading.is_ours() && (0..=FAST_NS).contains(&reading.width) {
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

    /// Returns `true` if the readings tell that one clock has gained on the other between them.
    fn is_apart_from(&self, other: &Self) -> bool {
        let gained = (other.theirs - self.theirs) - (other.ours - self.ours);
        gained.abs() > self.width.midpoint(other.width) + TOLERANCE_NS
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
        let off = self.on_line(reading.theirs) - reading.ours;
        let since = (reading.ours - last.ours).max(0);
        // Each reading is off by half of its width at most, and the line beyond the last one by what the rate is.
        let (known, beyond) = (last.theirs - first.theirs, reading.theirs - last.theirs);
        let of_rate = (first.width + last.width) * beyond.max(0) / known.max(1);
        let of_readings = (last.width + reading.width + of_rate) / 2;
        if off.abs() > of_readings + TOLERANCE_NS + since / STEADY {
            return Err(ClockError::NotSteady(off));
        }
        Self::through(first, reading)
    }

    fn ours_at(&self, theirs: i128) -> i128 {
        if self.counts_nanoseconds() {
            return self.first.ours + theirs - self.first.theirs;
        }
        self.on_line(theirs)
    }

    /// Returns `true` if the readings cannot tell the clock's rate from one nanosecond a unit. Lengths of records are then
    /// exact, while the rate of the line is only known to a thousandth at first.
    fn counts_nanoseconds(&self) -> bool {
        !self.first.is_apart_from(&self.last)
    }

    fn on_line(&self, theirs: i128) -> i128 {
        let Self { first, last } = self;
        let (ours, other) = (last.ours - first.ours, last.theirs - first.theirs);
        // Not zero: see `through`.
        first.ours + (theirs - first.theirs) * ours / other.max(1)
    }

    fn rate(&self) -> f64 {
        if self.counts_nanoseconds() {
            return 1.0;
        }
        (self.last.ours - self.first.ours) as f64 / (self.last.theirs - self.first.theirs) as f64
    }
}

#[cfg(test)]
mod tests;
