//! Whether a thread has a context, for scopes that name no stream: those with one are pointed out.

use crate::clock::clock;

/// Whether a context has been found to be current on a thread, by scopes that have no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextSeen {
    Yes,
    /// Not by so many scopes.
    After(u32),
}

/// A scope that takes longer, in nanoseconds, asks whether a context is current: that costs it less than a
/// thousandth.
const LONG_NS: f64 = 100_000.0;

impl ContextSeen {
    /// Whether the driver is to be asked at the end of a scope that took so many ticks.
    ///
    /// The driver alone can tell, for each thread by a call on it, and most threads have a context for good once they
    /// have one. So a thread asks until the answer is yes, and never again. A thread that has none (a pool of workers)
    /// must not go on asking for every call either: it asks when its first, second, fourth, eighth… scope ends, and
    /// when one ends that took long, as all do that make a context.
    pub(crate) fn is_due(&mut self, elapsed: i64) -> bool {
        let Self::After(scopes) = self else {
            return false;
        };
        *scopes = scopes.saturating_add(1);
        scopes.is_power_of_two() || clock().nanoseconds(elapsed as f64) > LONG_NS
    }
}
