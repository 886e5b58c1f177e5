//! Faults of the simulated CUPTI that are no results of its functions.

use super::state::Subscriber;
use crate::driver::fault::When;

/// The fault of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordFault {
    /// It is dropped, and `cuptiActivityGetNumDroppedRecords` counts it.
    Drop,
    /// It is dropped, and nothing counts it.
    Lose,
    /// Its times are zero, as when the device's own buffer was full.
    Untimed,
    /// A record of a kind that no version has precedes it, so that neither is found.
    AfterUnknown,
    /// A record of a kind that the client has not asked for precedes it.
    AfterOverhead,
    /// It has this correlation number.
    Correlation(u32),
    /// It has the correlation number of the record that was written before it.
    Previous,
    /// It is that of a kernel with another name.
    OtherName,
}

/// The thread on which callbacks around driver calls run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallbackFault {
    #[default]
    None,
    /// They run on a thread other than that of the call, which waits for them.
    Foreign,
    /// They are still made after the client has unsubscribed.
    AfterUnsubscribe,
}

/// A clock that counts in units of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OtherClock {
    /// When it was zero, in nanoseconds since 1970.
    pub(super) zero: u64,
    pub(super) ticks_per_us: u64,
}

impl OtherClock {
    /// Returns what it shows at a time in nanoseconds since 1970.
    pub(super) fn at(self, ns: u64) -> u64 {
        let ticks = u128::from(ns.saturating_sub(self.zero)) * u128::from(self.ticks_per_us);
        u64::try_from(ticks / 1_000).unwrap_or(u64::MAX)
    }
}

/// The faults that a script has set.
#[derive(Debug, Default)]
pub(super) struct CuptiFaults {
    /// The tool that has subscribed already.
    pub(super) holder: Option<String>,
    /// The faults of records, each with the number of records that it has seen.
    pub(super) records: Vec<(When, RecordFault, u64)>,
    /// The correlation number that the record written last had before any fault.
    pub(super) last_correlation: u32,
    pub(super) callbacks: CallbackFault,
    /// The subscriber that is called although it has unsubscribed.
    pub(super) lingering: Option<Subscriber>,
    /// Records reach the client before the exit callback of the call that launched them.
    pub(super) early_records: bool,
    /// How many of the next complete buffers never return to the client.
    pub(super) buffers_to_keep: u64,
    /// The client's clock is not used.
    pub(super) ignores_clock: bool,
    /// The clock of another client, by which all times are told.
    pub(super) other_clock: Option<OtherClock>,
    /// The nanoseconds by which all times of records are too late.
    pub(super) clock_offset: u64,
    /// How much longer than the driver's work the records take to be complete, in nanoseconds.
    pub(super) record_delay: u64,
}

impl CuptiFaults {
    /// Returns what happens to the next record.
    pub(super) fn of_next_record(&mut self) -> Option<RecordFault> {
        let mut found = None;
        for (when, fault, seen) in &mut self.records {
            *seen += 1;
            if when.holds(*seen) {
                found = Some(*fault);
            }
        }
        found
    }

    pub(super) fn lingers(&self) -> bool {
        self.lingering.is_some()
    }
}
