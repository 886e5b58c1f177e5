//! Times of a window: nanoseconds from its beginning.

use crate::session::ClockLine;

/// Converts the times of a window to nanoseconds from the base.
#[derive(Clone, Copy)]
pub(crate) struct Times<'t> {
    /// In nanoseconds since the Unix epoch.
    base_ns: i64,
    clock: &'t ClockLine,
}

impl<'t> Times<'t> {
    pub(crate) fn new(clock: &'t ClockLine, base_ns: i64) -> Self {
        Self { base_ns, clock }
    }

    pub(crate) fn of_ticks(self, ticks: u64) -> i64 {
        self.of_unix(self.clock.unix_ns(ticks))
    }

    /// A time before the base, possible if a window opened right at it, becomes the base.
    pub(crate) fn of_unix(self, unix_ns: i64) -> i64 {
        self.measured(unix_ns).max(0)
    }

    /// Returns a time as it was measured, also before the base: the distance to others must stay.
    pub(crate) fn measured(self, unix_ns: i64) -> i64 {
        unix_ns.saturating_sub(self.base_ns)
    }

    /// Converts a length.
    pub(crate) fn of_length(self, ticks: i64) -> i64 {
        super::whole(self.clock.ns(ticks))
    }
}
