//! Work that ran on a device, as CUPTI recorded it.

use profiler_report::GpuWork;

/// The name of an activity that is not a kernel, or whose name was not kept.
pub(crate) const NO_NAME: u32 = u32::MAX;

/// A kernel, a copy, a fill or a wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WorkActivity {
    /// The number of the kernel's name; [`NO_NAME`] for other work.
    pub(crate) name: u32,
    /// When it began and ended, in nanoseconds since the Unix epoch. Both are zero if the device had no space for them;
    /// the end alone is zero if it had not ended.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) details: GpuWork,
}

impl WorkActivity {
    /// Returns when it began and ended. Returns `None` if the device had no space for the times.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        (self.end != 0 && self.end >= self.start).then(|| (signed(self.start), signed(self.end)))
    }

    /// Returns `true` if it had not ended when CUPTI was asked for all it had.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.start != 0 && self.end == 0
    }
}
