//! The GPU time of one scope, on its way from a measured thread to the resolver and back.

use std::mem::ManuallyDrop;
#[cfg(target_pointer_width = "64")]
use std::mem::offset_of;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use profiler_cuda_sys::driver::Event;
use profiler_host::diagnostics::user_code;
use profiler_host::sync::{Queue, RaceCell, ReentrancyGuard, prefetch};
use profiler_report::CudaLoss;
use profiler_report::internal::StreamKey;

use crate::cuda::context::Context;
use crate::cuda::ffi::library;
use crate::local::SharedScope;
use crate::local::callers::CountedCall;
use crate::log_record::LogRequest;

/// How other scopes refer to a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopeRef {
    /// Unique in the process, and never zero.
    pub(crate) key: u64,
    pub(crate) stream_key: StreamKey,
    /// The number of the scope's name; [`NO_NAME`](Self::NO_NAME) if it is not known.
    pub(crate) name: u32,
    /// `true` if the scope's start event was recorded.
    pub(crate) has_begun: bool,
}

impl ScopeRef {
    /// The number of no name.
    pub(crate) const NO_NAME: u32 = u32::MAX;

    /// No scope.
    pub(crate) const NONE: Self = Self {
        key: 0,
        stream_key: StreamKey::NOWHERE,
        name: 0,
        has_begun: false,
    };
}

/// The scopes around a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enclosing {
    /// The key of the innermost scope around it on the same stream.
    pub(crate) parent: Option<NonZero<u64>>,
    /// The start of that scope, if other scopes inside it may overlap this one.
    pub(crate) parent_start: Option<StartEvent>,
    /// The name of the scope directly around it, if that is on another stream.
    pub(crate) parent_on_other_stream: Option<u32>,
}

impl Enclosing {
    /// No scope around it.
    pub(crate) const NONE: Self = Self {
        parent: None,
        parent_start: None,
        parent_on_other_stream: None,
    };
}

/// The event at the start of a scope that may have ended since. Its pair may then measure another scope, or be
/// destroyed.
///
/// # Generations
///
/// Each pair has a counter that is incremented whenever a scope gives the pair back. The counter outlives the pair. The
/// resolver uses the event only if epoch and generation are those that were saved while the scope was open.
///
/// `Relaxed` suffices, although the comparison and the driver call after it are not atomic together:
///
/// - The event exists during the call, because only the resolver destroys events.
/// - The scope's pair normally comes back through the resolver too. A measured thread gives it back only if the scope
///   is abandoned or its ring rejected it. The event may then be recorded again during the call, and the resulting
///   distance is wrong. But it counts towards the self time of that scope, which is never computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartEvent {
    event: Event,
    epoch: u32,
    generation: u32,
    counter: &'static AtomicU32,
}

impl StartEvent {
    /// Refers to the start of the open scope that owns `pair`.
    pub(crate) fn of(pair: &Pair) -> Self {
        Self {
            event: pair.begin,
            epoch: pair.epoch,
            generation: pair.generation.load(Relaxed),
            counter: pair.generation,
        }
    }

    /// Returns the event if it is still that of the scope. Called by the resolver.
    pub(crate) fn event(self, epoch: u32) -> Option<Event> {
        (self.epoch == epoch && self.counter.load(Relaxed) == self.generation).then_some(self.event)
    }
}

/// A scope's time on the CPU, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuSpan {
    pub(crate) end: u64,
    /// Without the cost of reading the clock.
    pub(crate) elapsed: i64,
    /// `true` if no scope of the same name was around it.
    pub(crate) outermost: bool,
    /// The node of the call tree that it was counted on, if callers are counted.
    pub(crate) call: CountedCall,
}

/// Two events around a scope's work. They are owned by the owner of the [`GpuMeasurement`] that contains the pair; a
/// copy of the pair only names them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) begin: Event,
    pub(crate) end: Event,
    pub(crate) context: &'static Context,
    /// Incremented when a scope gives the pair back. Outlives the pair: see [`StartEvent`].
    pub(crate) generation: &'static AtomicU32,
    /// The epoch of the context in which the events were made.
    pub(crate) epoch: u32,
    /// `true` if the events are part of a graph, whose replays record them again.
    pub(crate) is_graph: bool,
}

#[cfg(test)]
impl Pair {
    pub(crate) fn for_test(context: &'static Context, begin: Event, end: Event) -> Self {
        Self {
            begin,
            end,
            context,
            generation: Box::leak(Box::default()),
            epoch: 0,
            is_graph: true,
        }
    }
}

/// A finished scope that was to have a GPU time, with its event pair. Between two scopes, the pair alone.
///
/// # Ownership
///
/// It is always in a box, and the box moves: from the context's pool to a thread's magazine, to the open scope, through
/// the thread's ring to the resolver, and back to the pool. Its owner must pass it on, or call
/// [`give_back`](Self::give_back): dropping it loses the pair, and leaks its events.
// Fields are ordered by their writers. Fields that a scope only reads come first. Those that each scope writes follow,
// in one cache line: writing a line that the resolver's core has read last takes as long as everything else that the
// measured thread does. Fields that rarely change come last, and are written only if they differ.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct GpuMeasurement {
    /// `None` in one for a scope without events.
    pub(crate) pair: Option<Pair>,
    /// As in [`Enclosing`].
    pub(crate) parent_start: Option<StartEvent>,
    pub(crate) scope: ScopeRef,
    /// As in [`Enclosing`].
    pub(crate) parent: Option<NonZero<u64>>,
    pub(crate) span: CpuSpan,
    /// As in [`Enclosing`].
    pub(crate) parent_on_other_stream: Option<u32>,
    /// Why the scope has no GPU time.
    pub(crate) loss: Option<CudaLoss>,
    /// `true` if neither the call nor its thread named the stream.
    pub(crate) is_fallback: bool,
    /// The driver's number of the capture that its events are part of; zero if there is none, or no number.
    pub(crate) capture: u64,
    pub(crate) log: Option<LogRequest>,
    /// The position of the scope in the order in which scopes left the rings. Set by the resolver.
    pub(crate) sequence: u64,
    /// `true` if a scope on another stream was inside. Set by the resolver.
    pub(crate) has_inner_elsewhere: bool,
    /// `None` for an ordinary scope.
    // Not dropped with the box, which whoever has it gives back: code that drops it would lengthen the path of each scope.
    pub(crate) bound: ManuallyDrop<Option<Bound>>,
}

/// What a measurement is of a scope that was bound to streams while it was open: see
/// [`bind_stream`](crate::cuda::bind_stream).
#[derive(Debug)]
pub(crate) enum Bound {
    /// One of its segments, which began on the CPU at this time, in ticks.
    Segment { scope: Arc<SharedScope>, begun: u64 },
    /// The end of the call, which has no events.
    Call(Arc<SharedScope>),
}

/// Everything that each scope writes is in one cache line, and all fields that it compares are in that of the pair or in
/// one more. (CUDA has drivers for 64-bit systems only.)
#[cfg(target_pointer_width = "64")]
const _: () = {
    const LINE: usize = 64;
    let (from, to) = (
        offset_of!(GpuMeasurement, scope),
        offset_of!(GpuMeasurement, span) + size_of::<CpuSpan>(),
    );
    assert!(
        from % LINE == 0 && offset_of!(GpuMeasurement, parent) < to && to <= from + LINE,
        "the written fields share a cache line"
    );
    assert!(
        offset_of!(GpuMeasurement, parent_start) + size_of::<Option<StartEvent>>() <= LINE,
        "the fields up to `parent_start` share a cache line"
    );
    let compared = offset_of!(GpuMeasurement, parent_on_other_stream) / LINE;
    assert!(
        compared == offset_of!(GpuMeasurement, loss) / LINE
            && compared == offset_of!(GpuMeasurement, is_fallback) / LINE,
        "the other compared fields share a cache line"
    );
};

/// Free measurements without events, for scopes that have no GPU time.
fn without_events() -> &'static Queue<Box<GpuMeasurement>> {
    static FREE: RaceCell<Queue<Box<GpuMeasurement>>> = RaceCell::new();
    FREE.get_or_init(|| Queue::new(MAX_WITHOUT_EVENTS))
}
const MAX_WITHOUT_EVENTS: usize = 4096;

impl GpuMeasurement {
    /// Creates one with an event pair, or without.
    pub(crate) fn new(pair: Option<Pair>) -> Box<Self> {
        Box::new(Self {
            pair,
            parent_start: None,
            scope: ScopeRef::NONE,
            parent: None,
            span: CpuSpan {
                end: 0,
                elapsed: 0,
                outermost: false,
                call: CountedCall::NONE,
            },
            parent_on_other_stream: None,
            loss: None,
            is_fallback: false,
            capture: 0,
            log: None,
            sequence: 0,
            has_inner_elsewhere: false,
            bound: ManuallyDrop::new(None),
        })
    }

    /// Returns one for a scope that has no events.
    #[cold]
    pub(crate) fn without(loss: CudaLoss) -> Box<Self> {
        let free = if library::is_shut_down() {
            None
        } else {
            without_events().pop()
        };
        let mut measurement = free.unwrap_or_else(|| Self::new(None));
        measurement.loss = Some(loss);
        measurement
    }

    /// Prefetches the cache lines that each scope uses: the one that it writes, that of the pair, and that of the fields
    /// which it compares.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch::for_writing(&self.scope);
        prefetch::for_reading(&self.pair);
        prefetch::for_reading(&self.parent_on_other_stream);
    }

    /// Stores a scope that begins. Writes to a second cache line only what has changed.
    ///
    /// Resets only `parent` of what the last scope has left of those around it: if it
    /// [`has_enclosing`](Self::has_enclosing), the caller must call [`set_enclosing`](Self::set_enclosing).
    #[inline(always)]
    pub(crate) fn begin(&mut self, scope: ScopeRef, is_fallback: bool) {
        self.scope = scope;
        self.parent = None;
        if self.is_fallback != is_fallback {
            self.is_fallback = is_fallback;
        }
    }

    /// Returns `true` if something is left of the scopes around another scope.
    #[inline(always)]
    pub(crate) fn has_enclosing(&self) -> bool {
        self.parent_start.is_some() || self.parent_on_other_stream.is_some()
    }

    /// Stores the scopes around a scope. Writes only what has changed to other cache lines than that of the scope.
    pub(crate) fn set_enclosing(&mut self, enclosing: &Enclosing) {
        self.parent = enclosing.parent;
        if self.parent_start.is_some() || enclosing.parent_start.is_some() {
            self.parent_start = enclosing.parent_start;
        }
        if self.parent_on_other_stream != enclosing.parent_on_other_stream {
            self.parent_on_other_stream = enclosing.parent_on_other_stream;
        }
    }

    /// Stores why the scope has no GPU time, or that it has one.
    #[inline]
    pub(crate) fn set_loss(&mut self, loss: Option<CudaLoss>) {
        if self.loss != loss {
            self.loss = loss;
        }
    }

    /// Puts it back where the next scope takes it from. Another scope may record its events from now on.
    pub(crate) fn give_back(mut self: Box<Self>) {
        if self.log.is_some() {
            user_code::drop_value(self.log.take());
        }
        if self.bound.is_some() {
            // The memory is not the program's.
            let _reentrancy = ReentrancyGuard::try_enter();
            *self.bound = None;
        }
        if library::is_shut_down() {
            return;
        }
        match self.pair {
            // The graph owns these events.
            Some(Pair { is_graph: true, .. }) => {}
            Some(Pair { context, .. }) => context.put_back(self),
            // Freed if the queue is full.
            None => _ = without_events().push(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::ffi::fake::{FakeDriver, event};

    #[test]
    fn a_start_event_is_valid_until_its_scope_gives_the_pair_back() {
        let (context, driver) = (Context::with_capacity(64), FakeDriver::new());
        let mut magazine = Vec::new();
        context
            .refill(&driver, &mut magazine, context.in_pool())
            .unwrap();
        let measurement = magazine.pop().unwrap();
        let pair = measurement.pair.unwrap();
        let start = StartEvent::of(&pair);
        assert_eq!(start.event(pair.epoch), Some(pair.begin));
        assert_eq!(start.event(pair.epoch + 1), None, "another epoch");
        measurement.give_back();
        assert_eq!(start.event(pair.epoch), None, "another generation");
    }

    #[test]
    fn begin_overwrites_what_another_scope_has_left() {
        let pair = Pair::for_test(Context::for_test(), event(0x10), event(0x11));
        let mut measurement = GpuMeasurement::new(Some(pair));
        let span = CpuSpan {
            end: 9,
            elapsed: 3,
            outermost: true,
            call: CountedCall::NONE,
        };
        let scope = ScopeRef {
            key: 7,
            ..ScopeRef::NONE
        };
        let inside = Enclosing {
            parent: NonZero::new(5),
            parent_start: Some(StartEvent::of(&pair)),
            parent_on_other_stream: Some(2),
        };
        for (enclosing, is_fallback) in [(inside, true), (Enclosing::NONE, false)] {
            measurement.begin(scope, is_fallback);
            measurement.set_enclosing(&enclosing);
            measurement.span = span;
            assert_eq!(measurement.has_enclosing(), is_fallback);
            assert_eq!(measurement.parent, enclosing.parent);
            assert_eq!(
                measurement.parent_on_other_stream,
                enclosing.parent_on_other_stream
            );
            assert_eq!(
                measurement.parent_start.is_some(),
                enclosing.parent_start.is_some()
            );
            assert_eq!(measurement.is_fallback, is_fallback);
            assert_eq!((measurement.scope.key, measurement.span.end), (7, 9));
        }
    }
}
