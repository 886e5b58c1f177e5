//! Keeps threads that run host functions away from the driver.

/// How many scopes skip the driver after the first refusal.
const FIRST_LENGTH: u32 = 64;
/// The most scopes that skip the driver after a refusal.
const MAX_LENGTH: u32 = 1 << 20;

/// An exponential back-off after the driver's answer that it must not be called on this thread (code 800).
///
/// The driver gives this answer inside a host function (`cuLaunchHostFunc`). Threads that run host functions belong to
/// the driver and usually run nothing else, but that is not documented, and nothing reports when a host function has
/// ended. So the next 64 scopes of the thread skip the driver, after another refusal the next 128, and so on. A thread
/// of the program that got the answer once is measured again soon; a thread of the driver's asks some twenty times in
/// all.
///
/// There are two states: `remaining == 0`, where scopes call the driver, and `remaining > 0`, where each scope
/// decrements it. The length is never reset: a call that succeeds does not tell that the next one is allowed.
#[derive(Debug)]
pub(super) struct HostFunctionBackoff {
    /// How many of the next scopes skip the driver.
    remaining: u32,
    /// How many scopes the last refusal made skip the driver.
    length: u32,
}

impl HostFunctionBackoff {
    pub(super) const fn new() -> Self {
        Self {
            remaining: 0,
            length: 0,
        }
    }

    /// Returns `true` if a scope must not call the driver now, and counts the scope.
    #[inline]
    pub(super) fn skips_scope(&mut self) -> bool {
        self.remaining > 0 && self.count_skipped()
    }

    #[cold]
    #[inline(never)]
    fn count_skipped(&mut self) -> bool {
        self.remaining -= 1;
        true
    }

    /// Returns `true` if the driver must not be called now.
    pub(super) fn is_active(&self) -> bool {
        self.remaining > 0
    }

    /// Notes that the driver has refused a call.
    #[cold]
    #[inline(never)]
    pub(super) fn extend(&mut self) {
        self.length = (2 * self.length).clamp(FIRST_LENGTH, MAX_LENGTH);
        self.remaining = self.length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(backoff: &mut HostFunctionBackoff) -> u32 {
        let mut skipped = 0;
        while backoff.skips_scope() {
            skipped += 1;
        }
        skipped
    }

    #[test]
    fn each_refusal_doubles_the_scopes_that_skip_the_driver() {
        let mut backoff = HostFunctionBackoff::new();
        assert_eq!(skipped(&mut backoff), 0);
        let mut lengths = Vec::new();
        for _ in 0..17 {
            backoff.extend();
            assert!(backoff.is_active());
            lengths.push(skipped(&mut backoff));
            assert!(!backoff.is_active());
        }
        assert_eq!(lengths[..3], [64, 128, 256]);
        assert_eq!(lengths[14..], [1 << 20; 3]);
    }
}
