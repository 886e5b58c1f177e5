//! Calls of NVML that are slow.
//!
//! A call that is slow holds a lock of the driver that long, and launches of the program wait for it. One slow call may have
//! been interrupted: only calls that are slow twice in a row count.

use std::time::Duration;

use super::call::Call;

/// A call that takes longer is slow.
pub(crate) const SLOW: Duration = Duration::from_millis(1);
/// A call counts if it was slow so many times in a row.
pub(crate) const IN_A_ROW: u32 = 2;

/// The calls of a sample that count as slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowCalls {
    /// What they took together.
    pub took: Duration,
    /// The slowest one.
    pub slowest: Option<(Call, Duration)>,
}

impl SlowCalls {
    /// Adds a call.
    pub fn add(&mut self, call: Call, took: Duration) {
        self.took += took;
        if self.slowest.is_none_or(|(_, slowest)| took > slowest) {
            self.slowest = Some((call, took));
        }
    }

    /// Adds those of another device.
    pub fn add_all(&mut self, other: Self) {
        if let Some((call, took)) = other.slowest {
            self.add(call, took);
            self.took += other.took.saturating_sub(took);
        }
    }
}
