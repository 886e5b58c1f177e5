//! The way of finished scopes to the resolver.

use rtrb::PushError;

use super::item::Item;
use super::resolver;
use super::thread::Thread;
use crate::collect::Rings;
use crate::local::Busy;
use crate::switch::with_control;

static RINGS: Rings<Item> = Rings::new();

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Taken,
    /// There was no room for it.
    Full,
    /// The same, and its log entry has reached its logger.
    FullAfterLog,
    /// There was nothing to be pushed: the scope had been given up.
    Nothing,
}

/// Leaves what there is no room for.
pub(super) fn push(thread: &mut Thread, item: &mut Option<Item>) -> Pushed {
    let ring = match &mut thread.ring {
        Some(ring) => ring,
        empty => match make() {
            Some(made) => empty.insert(made),
            None => return Pushed::Full,
        },
    };
    let Some(taken) = item.take() else {
        return Pushed::Nothing;
    };
    match ring.push(taken) {
        Ok(()) => {
            let half = ring.buffer().capacity() / 2;
            // What is known to be free without a look at the other end, first.
            if ring.cached_slots() < half && ring.slots() < half {
                resolver::wake();
            }
            Pushed::Taken
        }
        Err(PushError::Full(rejected)) => {
            *item = Some(rejected);
            resolver::wake();
            Pushed::Full
        }
    }
}

#[cold]
fn make() -> Option<rtrb::Producer<Item>> {
    let _busy = Busy::claim();
    let capacity = with_control(|control| control.settings.ring);
    resolver::ensure_started().then(|| RINGS.make(capacity))
}

/// Moves what stands in the rings now to `batch`.
pub(super) fn drain(batch: &mut Vec<Item>) {
    RINGS.drain(batch);
}

/// How many items wait in the rings.
pub(super) fn waiting() -> usize {
    RINGS.waiting()
}
