//! Finds out whether a thread uses CUDA although its scopes name no stream. The summary points such scopes out.

use crate::clock::clock;

/// The search for a current CUDA context on a thread, at the ends of scopes that name no stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextSeen {
    Yes,
    /// Not yet, after this many scopes.
    NotAfter(u32),
}

/// A scope that takes longer, in nanoseconds, asks the driver: the call costs less than a thousandth of its time.
const LONG_NS: f64 = 100_000.0;

impl ContextSeen {
    /// Returns `true` if the driver must be asked at the end of a scope that took `elapsed` ticks.
    ///
    /// Only a driver call on the thread itself tells whether it has a context, and most threads keep a context once
    /// they have one. So a thread asks until the answer is yes, and never again. A thread without a context, as in a
    /// pool of workers, must not ask for every call either: it asks when its first, second, fourth, eighth… scope ends,
    /// and when a long scope ends, as all scopes are that create a context.
    pub(crate) fn is_due(&mut self, elapsed: i64) -> bool {
        let Self::NotAfter(scopes) = self else {
            return false;
        };
        *scopes = scopes.saturating_add(1);
        scopes.is_power_of_two() || clock().nanoseconds(elapsed as f64) > LONG_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_scopes_ask_at_powers_of_two_and_long_ones_always() {
        let mut seen = ContextSeen::NotAfter(0);
        let due: Vec<_> = (1..=20).filter(|_| seen.is_due(0)).collect();
        assert_eq!(due, [1, 2, 4, 8, 16]);
        assert!(seen.is_due(i64::MAX >> 1));
        assert!(!ContextSeen::Yes.is_due(i64::MAX >> 1));
    }
}
