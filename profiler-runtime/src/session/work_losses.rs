//! Kernels and other work that is missing from a window.

/// Kernels, copies, fills and waits that are missing from a window, or of which something is missing, by reason. All zero
/// for a complete one.
///
/// # Examples
///
/// ```
/// use profiler_runtime::session::LostWork;
///
/// assert!(LostWork::default().is_complete());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LostWork {
    /// Records that CUPTI dropped.
    pub dropped: u64,
    /// Records that found no buffer: all were in use.
    pub no_buffer: u64,
    /// Launches that found their queue full. Their work is in the window, outside of all scopes.
    pub launch_queue_full: u64,
    /// Records that were not taken in time.
    pub queue_full: u64,
    /// Launches whose records had not arrived when the window was delivered.
    pub incomplete: u64,
    /// Work for whose times the device had no space. It is in the window, without times.
    pub without_time: u64,
    /// Launches and records that came after the window had reached its capacity.
    pub over_capacity: u64,
    /// Kernels whose names were not kept, since there were too many.
    pub without_name: u64,
    /// Launches and records that could not be stored for lack of memory.
    pub no_memory: u64,
}

impl LostWork {
    /// Returns `true` if nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the number for each reason, and the text that follows it in a sentence.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::session::LostWork;
    ///
    /// for (count, reason) in LostWork::default().counted() {
    ///     assert_eq!(count, 0, "{count} {reason}");
    /// }
    /// ```
    #[must_use]
    pub fn counted(&self) -> [(u64, &'static str); 9] {
        [
            (
                self.dropped,
                "records of kernels and copies were dropped by CUPTI: record fewer steps",
            ),
            (
                self.no_buffer,
                "records of kernels and copies found all buffers in use: record fewer steps",
            ),
            (
                self.launch_queue_full,
                "launches found their queue full, so that their work has no scope: record fewer steps",
            ),
            (
                self.queue_full,
                "records of kernels and copies were not taken in time: record fewer steps",
            ),
            (
                self.incomplete,
                "launches had no record of their work when the window was delivered: have the device finish before `step`",
            ),
            (
                self.without_time,
                "kernels and copies have no times, since the device had no space for them: record fewer steps",
            ),
            (
                self.over_capacity,
                "launches and records of their work came after the window was full: raise its capacity, or record fewer steps",
            ),
            (
                self.without_name,
                "kernels have no name, since the program has too many different ones",
            ),
            (
                self.no_memory,
                "launches and records of their work were lost for lack of memory: lower the capacity of windows, or record \
                 fewer steps",
            ),
        ]
    }
}
