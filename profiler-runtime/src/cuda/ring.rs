//! The way of finished scopes to the resolver.

use rtrb::PushError;

use super::context::Context;
use super::item::{Item, Recorded};
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
    /// There was nothing to be pushed: the scope had been given up.
    Nothing,
}

pub(super) fn push(thread: &mut Thread, item: Item) -> Pushed {
    let ring = match &mut thread.ring {
        Some(ring) => ring,
        empty => match make() {
            Some(made) => empty.insert(made),
            None => return rejected(thread, item),
        },
    };
    match ring.push(item) {
        Ok(()) => {
            let half = ring.buffer().capacity() / 2;
            // What is known to be free without a look at the other end, first.
            if ring.cached_slots() < half && ring.slots() < half {
                resolver::wake();
            }
            Pushed::Taken
        }
        Err(PushError::Full(item)) => {
            resolver::wake();
            rejected(thread, item)
        }
    }
}

/// The events may still be pending; to record them again is all that will be done to them.
#[cold]
fn rejected(thread: &mut Thread, item: Item) -> Pushed {
    if let Ok(Recorded {
        pair,
        context,
        is_graph: false,
        ..
    }) = item.outcome
    {
        let context: &'static Context = context;
        thread.put_back(context, pair);
    }
    Pushed::Full
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
