//! Which GPU times the segments of a call are inside of, and which are inside of them.

use crate::stats::{Added, Inside, Nested};

/// The most scopes around the segments of an open call that are kept apart.
const MAX_WAITING: usize = 64;

/// What the segments of a call that were read add to sums. Of an open call, it is not known which sums these are.
#[derive(Debug, Default)]
pub(crate) struct SegmentNesting {
    /// Those that are inside of another GPU time, or around one.
    waiting: Vec<Waiting>,
    pub(crate) added: Added,
}

/// Segments that wait for the end of their call.
#[derive(Debug)]
struct Waiting {
    /// The key of the scope around them on their stream.
    parent: Option<u64>,
    inside: Inside,
    ns: f64,
    own: f64,
}

impl SegmentNesting {
    /// Adds a segment with this total and self time.
    pub(crate) fn add(&mut self, (parent, inside): (Option<u64>, Inside), (ns, own): (f64, f64)) {
        if parent.is_none() && inside.is_empty() {
            self.added += Added::alone(ns, own);
            return;
        }
        // Beyond the bound, a recursive call may count twice.
        let parent = parent.filter(|_| self.waiting.len() < MAX_WAITING);
        let known = self.waiting.iter_mut();
        match known.into_iter().find(|waiting| waiting.parent == parent) {
            Some(waiting) => {
                waiting.inside.add(inside);
                waiting.ns += ns;
                waiting.own += own;
            }
            None => self.waiting.push(Waiting {
                parent,
                inside,
                ns,
                own,
            }),
        }
    }

    /// Counts the segments of a call that has ended. Returns what is passed on to the scopes around them.
    pub(crate) fn count(&mut self, call: Nested) -> Vec<(u64, Inside)> {
        let Self { waiting, added } = self;
        let count = |waiting: Waiting| {
            let Waiting {
                parent,
                mut inside,
                ns,
                own,
            } = waiting;
            *added += inside.count(call, (ns, own));
            Some((parent?, inside))
        };
        waiting.drain(..).filter_map(count).collect()
    }
}
