//! Scopes inside captured graphs: their events are recorded again with each replay.
//!
//! Nothing tells of a replay but its events, which stand elsewhere on the time line afterwards. Replays
//! that follow each other faster than the resolver looks are seen as one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::anchor::Anchor;
use super::driver::{Driver, Event};
use super::item::{Item, Pair, Parcel};
use crate::clock::{clock, now};

/// Captured scopes whose replays are looked for.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Whether a look of the resolver may find replays.
pub(crate) fn are_watched() -> bool {
    WATCHED.load(Relaxed) > 0
}

/// The scopes of one context that were captured.
#[derive(Default)]
pub(super) struct Graphs {
    captured: Vec<Graph>,
    /// When a replay was seen last, in ticks; zero for never.
    seen: u64,
}

/// A graph that was replayed this recently is replayed again soon, and each replay writes over the one before.
const LATELY_NS: f64 = 5e8;

struct Graph {
    item: Parcel,
    pair: Pair,
    /// Where the end stood after the last replay that was seen, from the anchor.
    last: Option<f64>,
}

impl Graphs {
    /// How many there can be, the context bounds.
    pub(super) fn add(&mut self, item: Parcel, pair: Pair) {
        WATCHED.fetch_add(1, Relaxed);
        self.captured.push(Graph {
            item,
            pair,
            last: None,
        });
    }

    /// Looks at none of them any more.
    pub(super) fn forget(&mut self) {
        // The destructors of their loggers are foreign code.
        let captured = std::mem::take(&mut self.captured);
        WATCHED.fetch_sub(captured.len(), Relaxed);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(captured)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.captured.is_empty()
    }

    /// Whether replays are to be expected at once.
    pub(super) fn are_replayed(&self) -> bool {
        let age = clock().nanoseconds(now().saturating_sub(self.seen) as f64);
        self.seen != 0 && age < LATELY_NS
    }

    /// Hands each replay since the last time to `seen`.
    pub(super) fn poll(
        &mut self,
        driver: &Driver,
        anchor: &Anchor,
        mut seen: impl FnMut(&Item, f64, f64),
    ) {
        let Some(anchor) = anchor.event() else { return };
        for place in 0..self.captured.len() {
            let Some(ns) = self.captured[place].replayed(driver, anchor) else {
                continue;
            };
            self.seen = now();
            let item = &self.captured[place].item;
            let inside = self.inside(driver, item.link.key);
            seen(item, ns, (ns - inside).max(0.0));
        }
    }

    /// What the scopes directly inside of one took, one after the other as they were captured.
    fn inside(&self, driver: &Driver, key: u64) -> f64 {
        let is_inside =
            |graph: &&Graph| graph.item.inside.is_some_and(|around| around.get() == key);
        let times = self.captured.iter().filter(is_inside).map(|graph| {
            let pair = &graph.pair;
            driver.distance(pair.begin, pair.end).unwrap_or(0.0)
        });
        times.sum()
    }

    /// Has places counted from another anchor.
    pub(super) fn move_to(&mut self, driver: &Driver, before: Event, anchor: &Anchor) {
        let after = anchor.event();
        for graph in &mut self.captured {
            let end = graph.pair.end;
            // Where it was replayed meanwhile, it stands where no replay was seen.
            let known = graph
                .last
                .filter(|last| driver.distance(before, end) == Some(*last));
            graph.last = known.and_then(|_| driver.distance(after?, end));
        }
    }
}

impl Graph {
    /// The time of a replay that was not seen before, if there is a whole one.
    fn replayed(&mut self, driver: &Driver, anchor: Event) -> Option<f64> {
        let pair = &self.pair;
        let place = || {
            let passed = driver.query(pair.end).is_ok() && driver.query(pair.begin).is_ok();
            passed.then(|| driver.distance(anchor, pair.end)).flatten()
        };
        let before = place()?;
        if self.last == Some(before) {
            return None;
        }
        let ns = driver.distance(pair.begin, pair.end)?;
        // Another replay may have begun in between.
        if ns < 0.0 || place() != Some(before) {
            return None;
        }
        self.last = Some(before);
        Some(ns)
    }
}
