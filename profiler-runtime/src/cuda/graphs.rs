//! Scopes inside captured graphs: their events are recorded again with each replay.
//!
//! Nothing tells of a replay but its events, which stand elsewhere on the time line afterwards. Replays
//! that follow each other faster than the resolver looks are seen as one.

use super::anchor::Anchor;
use super::context::Context;
use super::driver::{Driver, Event};
use super::item::{Item, Recorded};

/// Scopes in graphs at most; each keeps its events for as long as its context lives.
const MAX_GRAPHS: usize = 256;

#[derive(Default)]
pub(super) struct Graphs {
    captured: Vec<Graph>,
}

struct Graph {
    item: Item,
    recorded: Recorded,
    /// Where the end stood after the last replay that was seen, from the anchor.
    last: Option<f64>,
}

/// A replay that was seen.
pub(super) struct Replay<'a> {
    pub(super) item: &'a Item,
    pub(super) ns: f64,
}

impl Graphs {
    /// Gives the item back where there are too many.
    pub(super) fn add(&mut self, item: Item, recorded: Recorded) -> Option<Item> {
        if self.captured.len() >= MAX_GRAPHS {
            return Some(item);
        }
        self.captured.push(Graph {
            item,
            recorded,
            last: None,
        });
        None
    }

    pub(super) fn are_in(&self, context: &Context) -> bool {
        self.captured
            .iter()
            .any(|graph| graph.recorded.context.index == context.index)
    }

    fn of(&mut self, context: u32) -> impl Iterator<Item = &mut Graph> {
        self.captured
            .iter_mut()
            .filter(move |graph| graph.recorded.context.index == context)
    }

    /// The replays in a context since the last time.
    pub(super) fn poll<'a>(
        &'a mut self,
        driver: &'a Driver,
        context: u32,
        anchor: &Anchor,
    ) -> impl Iterator<Item = Replay<'a>> {
        let anchor = anchor.event();
        self.of(context).filter_map(move |graph| {
            let ns = graph.replayed(driver, anchor?)?;
            Some(Replay {
                item: &graph.item,
                ns,
            })
        })
    }

    /// Has places counted from another anchor.
    pub(super) fn move_to(
        &mut self,
        driver: &Driver,
        context: u32,
        before: Event,
        anchor: &Anchor,
    ) {
        let after = anchor.event();
        for graph in self.of(context) {
            let end = graph.recorded.pair.end;
            // Where it was replayed meanwhile, it stands where no replay was seen.
            let known = graph
                .last
                .filter(|last| driver.elapsed(before, end) == Ok(*last));
            graph.last = known.and_then(|_| driver.elapsed(after?, end).ok());
        }
    }

    /// Forgets what was in a context that is gone.
    pub(super) fn forget(&mut self, context: u32) {
        self.captured
            .retain(|graph| graph.recorded.context.index != context);
    }
}

impl Graph {
    /// The time of a replay that was not seen before, if there is a whole one.
    fn replayed(&mut self, driver: &Driver, anchor: Event) -> Option<f64> {
        let pair = &self.recorded.pair;
        let place = || {
            let passed = driver.query(pair.end).is_ok() && driver.query(pair.begin).is_ok();
            passed
                .then(|| driver.elapsed(anchor, pair.end).ok())
                .flatten()
        };
        let before = place()?;
        if self.last == Some(before) {
            return None;
        }
        let ns = driver.elapsed(pair.begin, pair.end).ok()?;
        // Another replay may have begun in between.
        if ns < 0.0 || place() != Some(before) {
            return None;
        }
        self.last = Some(before);
        Some(ns)
    }
}
