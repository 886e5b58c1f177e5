//! What a layer does when a span is created, entered, exited and closed.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::panicking;

use tracing::Metadata;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};

use super::open_spans::{ClosedSpan, OpenSpans};
use super::stack::{self, Exit, NoStack};
use super::sites;
use crate::diagnostics::{self, SpanLoss, catch_own_panic, count_lost_spans, count_unmeasured};
use crate::local;
use crate::name;
use crate::scope::{OpenScope, ScopeArgs, end};
use crate::stats::StatCell;
use crate::switch::{self, SiteDecision};
use crate::sync::ReentrancyGuard;

/// The open spans of one layer.
#[derive(Debug)]
pub(super) struct Recorder {
    /// Tells the layers of a process apart: each registry has ids of its own.
    layer: u32,
    spans: OpenSpans,
}

impl Recorder {
    pub(super) fn new() -> Self {
        static LAYERS: AtomicU32 = AtomicU32::new(0);
        diagnostics::note_layer();
        Self {
            layer: LAYERS.fetch_add(1, Relaxed),
            spans: OpenSpans::new(),
        }
    }

    #[inline(never)]
    fn create(&self, metadata: &'static Metadata<'static>, id: u64) {
        let switch = switch::load();
        // Within the profiler, whose events a subscriber may answer with spans.
        if switch::is_off(switch) || ReentrancyGuard::is_entered() {
            return;
        }
        let Some((number, site)) = sites::of(metadata) else {
            return count_lost_spans(SpanLoss::TooManyCallSites, 1);
        };
        if site.decision_of_new(switch, metadata).is_some() && !self.spans.insert(id, number) {
            count_lost_spans(SpanLoss::TooManyOpen, 1);
        }
    }

    #[inline(never)]
    pub(super) fn enter(&self, id: u64) {
        let switch = switch::load();
        if switch::is_off(switch) {
            return;
        }
        let Some(span) = self.spans.get(id) else {
            return;
        };
        let site = sites::by_number(span.site());
        let Some(decision) = site.and_then(|site| site.decision(switch)) else {
            return;
        };
        let is_open = |id| self.spans.get(id).is_some();
        if let Err(reason) = stack::reserve(self.layer, is_open) {
            return count_missing(reason);
        }
        if span.enter() && stack::enter_again(self.layer, id) {
            return;
        }
        match open(decision) {
            Some(open) => stack::push(self.layer, id, open),
            // Within the profiler.
            None => _ = span.exit(),
        }
    }

    #[inline(never)]
    pub(super) fn exit(&self, id: u64) {
        let open = match stack::exit(self.layer, id) {
            Exit::NotEntered => return,
            Exit::Again => None,
            Exit::Out(open) => Some(open),
        };
        // The clock is read here, before what is left to do.
        if let Some(open) = &open {
            end(open);
        }
        let Some(span) = self.spans.get(id) else {
            return;
        };
        if span.exit() && open.is_some() {
            count_continued(span.site());
        }
    }

    #[inline(never)]
    pub(super) fn close(&self, id: u64) {
        if let Some(closed) = self.spans.remove(id)
            && (closed.enters, closed.exits) != (1, 1)
        {
            count_closed(closed);
        }
    }
}

/// Opens the scope of a span, as a call site does.
#[inline]
fn open(decision: SiteDecision) -> Option<OpenScope> {
    if !panicking()
        && let Some(open) = OpenScope::fast(decision)
    {
        return Some(open);
    }
    open_slow(decision)
}

#[cold]
#[inline(never)]
fn open_slow(decision: SiteDecision) -> Option<OpenScope> {
    let mut open = None;
    catch_own_panic("a span was entered", || {
        open = OpenScope::slow(decision, 1, None, &mut ScopeArgs::default());
    });
    open
}

/// Counts a time that continues a call.
fn count_continued(site: u32) {
    with_cell(site, StatCell::count_continued);
}

/// Counts a span that was not entered and exited just once.
#[cold]
fn count_closed(closed: ClosedSpan) {
    if closed.enters == 0 {
        return count_lost_spans(SpanLoss::NeverEntered, 1);
    }
    let unfinished = closed.enters.wrapping_sub(closed.exits);
    if unfinished > 0 {
        count_lost_spans(SpanLoss::NeverExited, unfinished.into());
    }
    if closed.exits > 1 {
        with_cell(closed.site, StatCell::count_resumed_span);
    }
}

/// Runs `count` on a cell of the site's name.
fn with_cell(site: u32, count: impl FnOnce(&StatCell)) {
    let name = sites::by_number(site).and_then(sites::SpanSite::name);
    let Some(id) = name else { return };
    match local::cell(id) {
        Ok(cell) => count(cell),
        Err(_) => {
            if let Some(name) = name::by_id(id) {
                name.count_without_cell(count);
            }
        }
    }
}

/// Counts a time for which there is no place.
#[cold]
fn count_missing(reason: NoStack) {
    match reason {
        NoStack::ThreadEnded => count_lost_spans(SpanLoss::ThreadEnded, 1),
        NoStack::Unavailable => count_unmeasured(),
    }
}

/// Spans are entered, exited and closed without [`Filtered`](tracing_subscriber::filter::Filtered), which would look each
/// up in the registry to find out whether this layer wanted it: here, it has an entry if so.
impl<S: tracing::Subscriber> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        self.create(attributes.metadata(), id.into_u64());
    }
}
