//! Which scopes had scopes on other streams inside.
//!
//! A scope knows the name of the one around it on another stream, not its key. Of two open scopes of a thread, the inner one has
//! the larger key. So the scope around is the next one of that name and thread to end with a smaller key.

use std::collections::BTreeMap;

/// The most pairs of a thread and a name that are kept. One is kept until its scope ends, unless that end was lost.
const MAX_KEPT: usize = 1 << 12;

/// The scopes that have ended inside scopes that have not.
#[derive(Debug, Default)]
pub(super) struct InnerElsewhere {
    /// The key of the last one, by the number of the thread and the name of the scope around it.
    last: BTreeMap<(u64, u32), u64>,
}

impl InnerElsewhere {
    /// Notes that a scope with this key has ended inside one of the name `around`, on another stream.
    pub(super) fn add(&mut self, key: u64, around: u32) {
        if self.last.len() >= MAX_KEPT {
            self.last.clear();
        }
        self.last.insert((key >> 40, around), key);
    }

    /// Returns `true` if a scope on another stream was inside the one with this key and name, which has ended.
    pub(super) fn end(&mut self, key: u64, name: u32) -> bool {
        let place = (key >> 40, name);
        let is_inside = self.last.get(&place).is_some_and(|inner| *inner > key);
        if is_inside {
            self.last.remove(&place);
        }
        is_inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER_THREAD: u64 = 1 << 40;

    #[test]
    fn the_scope_around_is_the_next_one_of_its_name_that_was_opened_before() {
        let mut inner = InnerElsewhere::default();
        inner.add(3, 7);
        assert!(!inner.end(4, 7), "opened later");
        assert!(!inner.end(2, 8), "of another name");
        assert!(!inner.end(OTHER_THREAD + 2, 7));
        assert!(inner.end(2, 7));
        assert!(!inner.end(1, 7), "around the one that had it inside");
    }

    #[test]
    fn scopes_whose_ends_were_lost_are_forgotten_at_some_time() {
        let mut inner = InnerElsewhere::default();
        for name in 0..3 * u32::try_from(MAX_KEPT).expect("it is small") {
            inner.add(3, name);
            assert!(inner.last.len() <= MAX_KEPT);
        }
        assert!(!inner.end(2, 0));
    }
}
