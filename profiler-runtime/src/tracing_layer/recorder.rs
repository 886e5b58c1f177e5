//! Recording a span: when it is created, entered, exited and closed.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::panicking;

use profiler_host::diagnostics::{self, catch_own_panic};
use profiler_host::sync::ReentrancyGuard;
use profiler_report::SpanLoss;
use tracing::Metadata;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::filter::is_of_model;
use super::futures;
use super::held::{self, Held, HeldTime};
use super::layers;
use super::open_spans::{ClosedSpan, Kind, OpenSpan, OpenSpans};
use super::sites::{self, SpanSite};
use super::stack::{self, NoSlot};
use super::whole::WholeTimes;
use crate::losses::{self, count_lost_spans, count_unmeasured};
use crate::scope::{OpenScope, end, end_part};
use crate::switch::{self, SiteDecision};

/// The open spans of one layer.
#[derive(Debug)]
pub(super) struct Recorder {
    /// The number of the layer.
    layer: u64,
    spans: OpenSpans,
    /// How spans are measured; `None` if that depends on their call sites.
    kind: Option<Kind>,
    /// `true` until the program has been warned that this layer is the second one of its subscriber.
    must_warn: AtomicBool,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        layers::end(self.layer);
        held::forget(self.layer);
    }
}

impl Recorder {
    pub(super) fn new() -> Self {
        losses::note_layer();
        Self {
            layer: layers::new(),
            spans: OpenSpans::new(),
            kind: None,
            must_warn: AtomicBool::new(false),
        }
    }

    /// Notes that this layer is the second one of its subscriber and does nothing. The warning comes with the next span, as
    /// `tracing` holds a lock now that an event may want.
    pub(super) fn note_second(&self) {
        self.must_warn.store(true, Relaxed);
    }

    fn warn_of_second(&self) {
        if self.must_warn.load(Relaxed) && self.must_warn.swap(false, Relaxed) {
            diagnostics::warn_once(
                "a subscriber has two ProfilerLayers, of which only the outermost measures: remove the other one",
            );
        }
    }

    /// Measures all spans in one way. Called before there are spans.
    pub(super) fn measure(&mut self, kind: Kind) {
        self.kind = Some(kind);
    }

    fn kind_of(&self, site: &SpanSite) -> Kind {
        self.kind.unwrap_or_else(|| {
            if site.is_whole() {
                Kind::Whole
            } else if site.is_undecided() {
                Kind::Undecided
            } else {
                Kind::Entered
            }
        })
    }

    /// Notes a span. Returns a reason if there is no place for it.
    #[inline(never)]
    fn create(&self, metadata: &'static Metadata<'static>, id: u64) -> Option<SpanLoss> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return None;
        }
        let Some((number, site)) = sites::of(metadata) else {
            return self.create_slow(metadata, id);
        };
        let Some(decision) = site.decided(switch) else {
            return self.create_slow(metadata, id);
        };
        if !decision.is_excluded()
            && (self.kind == Some(Kind::Whole) || !self.spans.insert_at_home(id, number))
        {
            return self.create_slow(metadata, id);
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn create_slow(&self, metadata: &'static Metadata<'static>, id: u64) -> Option<SpanLoss> {
        self.insert_with(metadata, |site, kind| self.spans.insert(id, site, kind))
    }

    /// Inserts a span if its call site is measured. Returns a reason if there is no place for it.
    fn insert_with(
        &self,
        metadata: &'static Metadata<'static>,
        insert: impl FnOnce(u32, Kind) -> bool,
    ) -> Option<SpanLoss> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return None;
        }
        let Some((number, site)) = sites::search(metadata) else {
            return Some(SpanLoss::TooManyCallSites);
        };
        let is_measured = match site.decided(switch) {
            Some(decision) => !decision.is_excluded(),
            None => site.decide_new(metadata),
        };
        let is_known = self.kind.is_some() || is_of_model(metadata.target());
        if is_known || !site.last_decision().is_some_and(is_plain) {
            site.settle();
        }
        let is_lost = is_measured && !insert(number, self.kind_of(site));
        is_lost.then_some(SpanLoss::TooManyOpen)
    }

    /// Enters a span that was created while measuring was off, or that found no place. Other threads may enter it at the same
    /// time. Returns a reason if there is no place for it now.
    #[cold]
    #[inline(never)]
    fn enter_late(&self, metadata: &'static Metadata<'static>, id: u64) -> Option<SpanLoss> {
        // This thread may hold the lock that decides between threads.
        if ReentrancyGuard::is_entered() {
            losses::count_refused();
            return None;
        }
        let loss = self.insert_with(metadata, |site, kind| {
            self.spans.insert_late(id, site, kind)
        });
        self.enter_slow(id);
        loss
    }

    /// Opens the scope of a span. The fast path is that of an ordinary call. All slow calls are tail calls, so that it has no
    /// registers to save. Returns `false` if the layer does not know the span, which may have been created while measuring
    /// was off.
    #[inline(never)]
    pub(super) fn enter(&self, id: u64) -> bool {
        let switch = switch::load();
        if switch::is_off(switch) {
            // The exit of this enter must not end the time of one further out.
            stack::enter_again(self.layer, id);
            return true;
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
        if span.is_entered()
            || !stack::push_if_room(self.layer, id, span, || OpenScope::fast(decision))
        {
            return self.enter_slow(id);
        }
        span.enter();
        true
    }

    #[cold]
    #[inline(never)]
    fn enter_slow(&self, id: u64) -> bool {
        let Some(span) = self.spans.get(id) else {
            self.warn_of_second();
            return !switch::was_off_since(0);
        };
        self.enter_known(span, id);
        true
    }

    fn enter_known(&self, span: &OpenSpan, id: u64) {
        // Before all else: whatever is decided now, the exit is that of this enter.
        if span.is_entered() && stack::enter_again(self.layer, id) {
            return;
        }
        if ReentrancyGuard::is_entered() {
            losses::count_refused();
            return span.miss();
        }
        let number = span.site();
        let Some(decision) = sites::by_number(number).decision(switch::load()) else {
            return span.miss();
        };
        if let Err(reason) = stack::reserve(self.layer, self.is_open()) {
            span.miss();
            return count_missing(reason);
        }
        let (opened, layer) = match self.spans.whole(id) {
            None if is_plain(decision) && held::holds(self.layer, id, number) => {
                let opened = open(decision.for_part()).map(|mut open| {
                    open.make_part();
                    open
                });
                (opened, self.layer | stack::WHOLE)
            }
            None => (open(decision), self.layer),
            Some(whole) => {
                let opened = open(decision.for_part()).map(|mut open| {
                    whole.begin(&mut open, decision, number);
                    open
                });
                (opened, self.layer | stack::WHOLE)
            }
        };
        if let Some(open) = opened {
            span.enter();
            stack::push_if_room(layer, id, span, || Some(open));
        } else {
            // Within the profiler, whose events a subscriber may answer with spans.
            span.miss();
        }
    }

    /// Says whether a span is open, as the thread's stack asks.
    fn is_open(&self) -> impl Fn(u64) -> bool {
        |id| self.spans.get(id).is_some()
    }

    #[inline(never)]
    pub(super) fn exit(&self, id: u64) {
        let Some((open, span)) = stack::exit_innermost(self.layer, id) else {
            if !stack::is_empty() {
                self.exit_slow(id);
            }
            return;
        };
        // SAFETY: the entry was this layer's, and the spans that it refers to are freed with the layer.
        exit_entered(id, &open, unsafe { &*span });
    }

    #[cold]
    #[inline(never)]
    fn exit_slow(&self, id: u64) {
        let Some((open, span)) = stack::exit(self.layer, id, self.is_open()) else {
            return;
        };
        // SAFETY: as in `exit`.
        let span = unsafe { &*span };
        if open.is_part() {
            self.exit_part(id, &open, span);
        } else {
            exit_entered(id, &open, span);
        }
    }

    fn exit_part(&self, id: u64, open: &OpenScope, span: &OpenSpan) {
        let Some(part) = end_part(open).filter(|_| span.is(id)) else {
            return;
        };
        if let Some(whole) = self.spans.whole(id) {
            whole.end(open, &part);
            span.exit();
            return;
        }
        let (site, start) = (span.site(), open.start());
        let time = HeldTime { start, part };
        catch_own_panic("a span was exited", || {
            match held::hold(self.layer, id, time) {
                Held::Kept => {}
                Held::Unknown => held::count_each(site, &[time]),
                Held::Full(times) => {
                    held::count_each(site, &times);
                    sites::by_number(site).settle();
                    self.spans.move_home(id, site);
                }
            }
        });
        if span.exit() {
            futures::note_again(id, start);
        }
    }

    #[inline(never)]
    pub(super) fn close(&self, id: u64) {
        match self.spans.at_home(id) {
            Some(span) if span.is_plain() => span.remove(),
            None if self.spans.is_unused() => {}
            _ => self.close_slow(id),
        }
    }

    /// Counts a span that is closed, and was not entered and exited once or is measured as a whole. Finds out whether it was
    /// that of a future, unless the thread may hold the locks that this takes.
    #[cold]
    #[inline(never)]
    fn close_slow(&self, id: u64) {
        let Some(span) = self.spans.get(id) else {
            return;
        };
        let closed = span.closed();
        if closed.is_entered() {
            stack::give_up(self.layer, id);
        }
        count_lost(closed);
        if let Some(whole) = self.spans.whole(id) {
            count_whole(whole, closed);
        } else if let Some(times) = held::take(self.layer, id) {
            catch_own_panic("a span was closed", || count_held(id, closed, &times));
        } else if closed.exits > 1 && !ReentrancyGuard::is_entered() {
            let mut so_far = 0;
            sites::with_cell(closed.site, |cell| so_far = cell.count_reentered_span());
            if self.kind.is_none() && !closed.is_entered() {
                futures::judge(id, sites::by_number(closed.site), so_far);
            }
        }
        span.remove();
        // That of a span which did not stay where it was.
        if let Some(first) = self.spans.get(id) {
            count_lost(first.closed());
            first.remove();
        }
    }
}

/// Counts a span that is closed, whose times were held back.
#[cold]
fn count_held(id: u64, closed: ClosedSpan, times: &[HeldTime]) {
    let site = sites::by_number(closed.site);
    // As for other spans that are closed within the profiler.
    let is_inside = ReentrancyGuard::is_entered();
    let is_of_future = || !is_inside && !closed.is_entered() && futures::is_of_future(id, times);
    if times.len() > 1 && (site.is_whole() || is_of_future()) {
        site.set_whole();
        return held::count_as_one(closed.site, times);
    }
    held::count_each(closed.site, times);
    if times.len() > 1 && !is_inside {
        sites::with_cell(closed.site, |cell| _ = cell.count_reentered_span());
    }
    if !times.is_empty() {
        site.settle();
    }
}

/// Returns `true` if nothing is done once a call has ended that cannot be held back.
fn is_plain(decision: SiteDecision) -> bool {
    decision.for_part() == decision
}

/// Ends a time of a span of which each is a call.
#[inline(always)]
fn exit_entered(id: u64, open: &OpenScope, span: &OpenSpan) {
    // It may have been closed before it was exited.
    if span.is(id) && span.exit() {
        futures::note_again(id, open.start());
    }
    end(open);
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
        open = OpenScope::without_args(decision);
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
    // A span that was entered while measuring was off is not measured, and not lost.
    if closed.enters == 0 && !closed.is_missing && !switch::was_off_since(closed.times_off) {
        count_lost_spans(SpanLoss::NeverEntered, 1);
    }
    if closed.is_entered() {
        let unfinished = closed.enters.wrapping_sub(closed.exits);
        count_lost_spans(SpanLoss::NeverExited, unfinished.into());
    }
}

/// In the registry, the mark of a span that was counted as lost.
struct CountedAsLost;

/// Counts a span for which there is no place: once, however often it is entered from then on.
#[cold]
fn count_without_place<S>(context: &Context<'_, S>, id: &Id, reason: SpanLoss)
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    // A measured allocator may be called for the mark.
    let _reentrancy = ReentrancyGuard::try_enter();
    let is_marked = context
        .span(id)
        .is_some_and(|span| span.extensions_mut().replace(CountedAsLost).is_some());
    if !is_marked {
        count_lost_spans(reason, 1);
    }
}

/// Counts a time for which there is no place.
#[cold]
fn count_missing(reason: NoSlot) {
    match reason {
        NoSlot::ThreadEnded => count_lost_spans(SpanLoss::ThreadEnded, 1),
        NoSlot::Unavailable => count_unmeasured(),
    }
}

/// Spans are entered, exited and closed without [`Filtered`](tracing_subscriber::filter::Filtered), which would look each
/// up in the registry to find out whether this layer wanted it: here, it has an entry if so. Only a span without an entry
/// takes that way, once measuring has been off.
impl<S: tracing::Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(reason) = self.create(attributes.metadata(), id.into_u64()) {
            count_without_place(&context, id, reason);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(metadata) = context.metadata(id)
            && let Some(reason) = self.enter_late(metadata, id.into_u64())
        {
            count_without_place(&context, id, reason);
        }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::ProfilerLayer;
    use crate::name;

    #[cfg(unix)]
    #[test]
    fn a_span_for_which_there_is_no_place_is_lost_once_and_not_while_measuring_is_off() {
        use profiler_host::process::fork;

        let layer = ProfilerLayer::new();
        let spans = &layer.state.filtered.inner().spans;
        for id in 1 << 40..(1 << 40) + 1_000_000 {
            spans.insert(id, 0, Kind::Entered);
        }
        let subscriber = tracing_subscriber::registry().with(layer);
        fork::set_home();
        // The switch is that of the process.
        crate::fork_and::fork_and(|| {
            tracing::subscriber::with_default(subscriber, || {
                let lost = || losses::lost_spans().iter().map(|it| it.1).sum::<u64>();
                let before = lost();
                let early = tracing::info_span!("early");
                let is_lost = lost() == before + 1;
                crate::set_enabled(false);
                let late = tracing::info_span!("late");
                for span in [&early, &late] {
                    span.in_scope(|| ());
                }
                let is_off = lost() == before + 1;
                crate::set_enabled(true);
                for span in [&early, &late, &early, &late] {
                    span.in_scope(|| ());
                }
                is_lost && is_off && lost() == before + 2
            })
        });
    }

    #[test]
    fn a_span_that_is_closed_within_the_profiler_asks_for_no_lock() {
        let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("closed within");
            span.in_scope(|| ());
            span.in_scope(|| ());
            let _inside = ReentrancyGuard::try_enter();
            drop(span);
        });
        let all = name::all();
        let name = all
            .iter()
            .find(|name| name.text.ends_with("::closed within"));
        let totals = name.expect("it was measured").totals();
        assert_eq!((totals.calls(), totals.reentered_spans), (2, 0));
    }
}
