//! Recording a span: when it is created, entered, exited and closed.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::panicking;

use tracing::Metadata;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};

use super::open_spans::{ClosedSpan, OpenSpans};
use super::sites;
use super::stack::{self, NoStack};
use super::whole::WholeTimes;
use crate::diagnostics::{self, SpanLoss, catch_own_panic, count_lost_spans, count_unmeasured};
use crate::local;
use crate::name;
use crate::scope::{OpenScope, ScopeArgs, end, end_part};
use crate::stats::StatCell;
use crate::switch::{self, SiteDecision};

/// The open spans of one layer.
#[derive(Debug)]
pub(super) struct Recorder {
    /// Tells the layers of a process apart: each registry has ids of its own.
    layer: u64,
    spans: OpenSpans,
}

impl Recorder {
    pub(super) fn new() -> Self {
        static LAYERS: AtomicU32 = AtomicU32::new(0);
        diagnostics::note_layer();
        Self {
            layer: LAYERS.fetch_add(1, Relaxed).into(),
            spans: OpenSpans::new(),
        }
    }

    /// Measures spans from the first enter to the last exit. Called before there are spans.
    pub(super) fn measure_whole(&mut self) {
        self.spans.is_whole = true;
    }

    #[inline(never)]
    fn create(&self, metadata: &'static Metadata<'static>, id: u64) {
        let switch = switch::load();
        if switch::is_off(switch) {
            return;
        }
        let Some((number, site)) = sites::of(metadata) else {
            return self.create_slow(metadata, id);
        };
        let Some(decision) = site.decided(switch) else {
            return self.create_slow(metadata, id);
        };
        if !decision.is_excluded() && !self.spans.insert_at_home(id, number) {
            self.create_slow(metadata, id);
        }
    }

    #[cold]
    #[inline(never)]
    fn create_slow(&self, metadata: &'static Metadata<'static>, id: u64) {
        let Some((number, site)) = sites::search(metadata) else {
            return count_lost_spans(SpanLoss::TooManyCallSites, 1);
        };
        let is_measured = match site.decided(switch::load()) {
            Some(decision) => !decision.is_excluded(),
            None => site.decide_new(metadata),
        };
        if is_measured && !self.spans.insert(id, number) {
            count_lost_spans(SpanLoss::TooManyOpen, 1);
        }
    }

    /// Opens the scope of a span. The fast path is that of an ordinary call. All slow calls are tail calls, so that it has no
    /// registers to save.
    #[inline(never)]
    pub(super) fn enter(&self, id: u64) {
        let switch = switch::load();
        if switch::is_off(switch) {
            return;
        }
        // First: nothing else is live across the call.
        if panicking() {
            return self.enter_slow(id);
        }
        let Some(span) = self.spans.at_home(id) else {
            return self.enter_slow(id);
        };
        let Some(decision) = sites::by_number(span.site()).decided(switch) else {
            return self.enter_slow(id);
        };
        if span.is_entered() || !stack::push_if_room(self.layer, id, || OpenScope::fast(decision)) {
            return self.enter_slow(id);
        }
        span.enter();
    }

    #[cold]
    #[inline(never)]
    fn enter_slow(&self, id: u64) {
        let Some(span) = self.spans.get(id) else {
            return;
        };
        let number = span.site();
        let site = sites::by_number(number);
        let Some(decision) = site.decision(switch::load()) else {
            return;
        };
        let is_open = |id| self.spans.get(id).is_some();
        if let Err(reason) = stack::reserve(self.layer, is_open) {
            span.miss();
            return count_missing(reason);
        }
        if span.is_entered() && stack::enter_again(self.layer, id) {
            return;
        }
        let opened = match self.spans.whole(id) {
            None => open(decision),
            Some(whole) => open(decision.for_part()).map(|mut open| {
                whole.begin(&mut open, decision, number);
                open
            }),
        };
        if let Some(open) = opened {
            span.enter();
            stack::push_if_room(self.layer, id, || Some(open));
        } else {
            // Within the profiler, whose events a subscriber may answer with spans.
            span.miss();
        }
    }

    #[inline(never)]
    pub(super) fn exit(&self, id: u64) {
        let Some(open) = stack::exit_innermost(self.layer, id) else {
            return self.exit_slow(id);
        };
        if self.spans.is_whole {
            return self.exit_whole(id, &open);
        }
        // The clock is read here, before what is left to do.
        end(&open);
        match self.spans.at_home(id) {
            Some(span) if !span.exit() => {}
            Some(span) => count_continued(span.site()),
            None => self.count_exit(id),
        }
    }

    #[cold]
    #[inline(never)]
    fn exit_slow(&self, id: u64) {
        let Some(open) = stack::exit(self.layer, id) else {
            return;
        };
        if self.spans.is_whole {
            self.exit_whole(id, &open);
        } else {
            end(&open);
            self.count_exit(id);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_exit(&self, id: u64) {
        if let Some(span) = self.spans.get(id)
            && span.exit()
        {
            count_continued(span.site());
        }
    }

    #[inline(never)]
    fn exit_whole(&self, id: u64, open: &OpenScope) {
        let (part, span) = (end_part(open), self.spans.get(id));
        if let (Some(part), Some(span), Some(whole)) = (part, span, self.spans.whole(id)) {
            whole.end(open, &part);
            span.exit();
        }
    }

    #[inline(never)]
    pub(super) fn close(&self, id: u64) {
        if self.spans.is_unused() {
            return;
        }
        match self.spans.at_home(id) {
            Some(span) if span.is_plain() => span.remove(),
            _ => self.close_slow(id),
        }
    }

    /// Counts a span that is closed, and was not entered and exited once or is measured as a whole.
    #[cold]
    #[inline(never)]
    fn close_slow(&self, id: u64) {
        let Some(span) = self.spans.get(id) else {
            return;
        };
        let closed = span.closed();
        count_lost(closed);
        if let Some(whole) = self.spans.whole(id) {
            count_whole(whole, closed);
        } else if closed.exits > 1 {
            with_cell(closed.site, StatCell::count_resumed_span);
        }
        span.remove();
    }
}

/// Counts a time that continues a call.
#[cold]
#[inline(never)]
fn count_continued(site: u32) {
    with_cell(site, StatCell::count_continued);
}

/// Opens the scope of a span, as a call site does.
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

/// Counts a span that is measured as a whole, when it is closed.
#[cold]
fn count_whole(whole: &WholeTimes, closed: ClosedSpan) {
    let Some(decision) = sites::by_number(closed.site).last_decision() else {
        return;
    };
    catch_own_panic("a span was closed", || {
        if closed.exits > 0 {
            whole.count(decision, closed.site);
        } else {
            whole.abandon(closed.site);
        }
    });
}

/// Counts what is missing of a span that is closed.
fn count_lost(closed: ClosedSpan) {
    if closed.enters == 0 && !closed.is_missing {
        count_lost_spans(SpanLoss::NeverEntered, 1);
    }
    let unfinished = closed.enters.wrapping_sub(closed.exits);
    if unfinished > 0 {
        count_lost_spans(SpanLoss::NeverExited, unfinished.into());
    }
}

/// Runs `count` on a cell of the site's name.
pub(super) fn with_cell(site: u32, count: impl FnOnce(&StatCell)) {
    let Some(decision) = sites::by_number(site).last_decision() else {
        return;
    };
    let id = decision.id();
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
