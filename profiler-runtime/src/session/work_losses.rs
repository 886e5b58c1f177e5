//! Kernels and other work that is missing from a window.

use crate::cuda::WorkLosses;

/// Kernels, copies, fills and waits that are missing from a window, or of which something is missing, by reason. All zero
/// for a complete one.
///
/// Some losses are known for the process only, since they happen before it is known which window they concern: `dropped`,
/// `no_buffer`, `unreadable`, `launch_queue_full`, `queue_full` and `without_name`. Each of several sessions that record at once counts
/// all of these.
///
/// # Examples
///
/// ```
/// use profiler_runtime::session::LostWork;
///
/// assert!(LostWork::default().is_complete());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
#[non_exhaustive]
pub struct LostWork {
    /// Records that CUPTI dropped.
    pub dropped: u64,
    /// Records that found no buffer, since all were in use: at least this many, as a whole buffer may count as one.
    pub no_buffer: u64,
    /// Records that CUPTI could not read, or that stood after one in its buffer: at least this many, as the rest of a buffer
    /// counts as one.
    pub unreadable: u64,
    /// Launches that found their queue full, or that were too many to wait for their records. Their work is in the window,
    /// outside of all scopes.
    pub launch_queue_full: u64,
    /// Records that were not taken in time.
    pub queue_full: u64,
    /// Launches whose records had not arrived when the window was delivered. An empty graph, which has none, is among them
    /// only if it is not known to have finished, as after the last launch on a stream without GPU times or a wait.
    pub incomplete: u64,
    /// Work for whose times the device had no space, or whose clock was not usable. It is in the window, without times.
    pub without_time: u64,
    /// Launches and records that came after the window had reached its capacity.
    pub over_capacity: u64,
    /// Kernels whose names were not kept, since there were too many.
    pub without_name: u64,
    /// Launches and records that could not be stored for lack of memory.
    pub no_memory: u64,
    /// Launches and records that were thrown away, since the session's handlers were behind.
    pub handler_behind: u64,
    /// Launches and records that belong to earlier windows of the session, and came after these had been delivered. Those of
    /// the last window are in none: a warning says if there are any.
    pub late: u64,
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
    pub fn counted(&self) -> [(u64, &'static str); 12] {
        [
            (
                self.dropped,
                "records of kernels and copies were dropped by CUPTI: record fewer steps",
            ),
            (
                self.no_buffer,
                "or more records of kernels and copies found all buffers in use: launch from fewer threads at once",
            ),
            (
                self.unreadable,
                "or more records of kernels and copies could not be read by CUPTI: try another release of it",
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
                if self.dropped + self.no_buffer + self.unreadable + self.queue_full > 0 {
                    "launches had no record of their work when the window was delivered: lost as said above, or the device had \
                     not finished"
                } else {
                    "launches had no record of their work when the window was delivered: have the device finish before `step`"
                },
            ),
            (
                self.without_time,
                "kernels and copies have no times, since the device had no space for them or their clock was not usable: record \
                 fewer steps",
            ),
            (
                self.over_capacity,
                "launches and records of their work came after the window was full: raise its capacity (PROFILER_TRACE_CAPACITY, or `capacity` in the code), or record fewer steps",
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
            (
                self.handler_behind,
                "launches and records of their work were thrown away because the session's handlers were behind: do less in \
                 them, or record fewer windows",
            ),
            (
                self.late,
                "launches and records of their work belong to earlier windows, which had been delivered: have the device \
                 finish before `step`",
            ),
        ]
    }

    /// Adds what is missing from another window.
    pub(super) fn add(&mut self, other: Self) {
        let Self {
            dropped,
            no_buffer,
            unreadable,
            launch_queue_full,
            queue_full,
            incomplete,
            without_time,
            over_capacity,
            without_name,
            no_memory,
            handler_behind,
            late,
        } = other;
        self.dropped += dropped;
        self.no_buffer += no_buffer;
        self.unreadable += unreadable;
        self.launch_queue_full += launch_queue_full;
        self.queue_full += queue_full;
        self.incomplete += incomplete;
        self.without_time += without_time;
        self.over_capacity += over_capacity;
        self.without_name += without_name;
        self.no_memory += no_memory;
        self.handler_behind += handler_behind;
        self.late += late;
    }

    /// Adds what was lost before it reached a window.
    pub(super) fn add_counted(&mut self, lost: WorkLosses) {
        self.dropped += lost.dropped;
        self.no_buffer += lost.no_buffer;
        self.unreadable += lost.unreadable;
        self.launch_queue_full += lost.launch_queue_full;
        self.queue_full += lost.queue_full;
        self.without_name += lost.no_name;
    }
}
