//! Times in a file: nanoseconds from a base.

use crate::session::Timeline;

/// Converts the times of a window to nanoseconds from the base.
#[derive(Clone, Copy)]
pub(super) struct Times<'t> {
    /// In nanoseconds since the Unix epoch.
    pub(super) base_ns: i64,
    timeline: &'t Timeline,
}

impl<'t> Times<'t> {
    pub(super) fn new(timeline: &'t Timeline, base_ns: i64) -> Self {
        Self { base_ns, timeline }
    }

    pub(super) fn of_ticks(self, ticks: u64) -> i64 {
        self.of_unix(self.timeline.unix_ns(ticks))
    }

    /// A time before the base, possible if a window opened right at it, becomes the base.
    pub(super) fn of_unix(self, unix_ns: i64) -> i64 {
        unix_ns.saturating_sub(self.base_ns).max(0)
    }

    /// Converts a length.
    #[cfg(feature = "export")]
    pub(super) fn of_length(self, ticks: i64) -> i64 {
        super::whole(self.timeline.ns(ticks))
    }
}
