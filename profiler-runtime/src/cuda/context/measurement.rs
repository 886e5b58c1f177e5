//! What goes from the measured threads to the resolver: plain data, in a box that comes back.

#[cfg(target_pointer_width = "64")]
use std::mem::offset_of;
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;

use super::prefetch;
use crate::cuda::context::Context;
use crate::cuda::ffi::driver::Event;
use crate::cuda::ffi::library;
use crate::cuda::loss::CudaLoss;
use crate::diagnostics::user_code;
use crate::log::LogRequest;
use crate::stream_key::StreamKey;
use crate::sync::RaceCell;

/// How other scopes refer to one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScopeRef {
    /// Unique in the process, and never zero.
    pub(crate) key: u64,
    pub(crate) stream_key: StreamKey,
    /// The number of its name.
    pub(crate) name: u32,
    /// Whether its begin was recorded.
    pub(crate) has_begun: bool,
}

impl ScopeRef {
    /// That of no scope.
    pub(crate) const NOTHING: Self = Self {
        key: 0,
        stream_key: StreamKey::NOWHERE,
        name: 0,
        has_begun: false,
    };
}

/// What a scope is inside of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Enclosing {
    /// The key of the scope around it on the same line.
    pub(crate) inside: Option<NonZero<u64>>,
    /// Where that one began, if others inside of it may overlap this one.
    pub(crate) from: Option<StartEvent>,
    /// The name of the scope directly around it, if that is on another line.
    pub(crate) apart: Option<u32>,
}

impl Enclosing {
    pub(crate) const NOTHING: Self = Self {
        inside: None,
        from: None,
        apart: None,
    };
}

/// The event at the begin of a scope that may have ended since, and its event be another's, or gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartEvent {
    event: Event,
    epoch: u32,
    generation: u32,
    counter: &'static AtomicU32,
}

impl StartEvent {
    pub(crate) fn of(pair: &Pair) -> Self {
        Self {
            event: pair.begin,
            epoch: pair.epoch,
            generation: pair.generation.load(Relaxed),
            counter: pair.generation,
        }
    }

    /// The event, where it is still that of the scope; asked by the resolver, which alone destroys events.
    pub(crate) fn event(self, epoch: u32) -> Option<Event> {
        (self.epoch == epoch && self.counter.load(Relaxed) == self.generation).then_some(self.event)
    }
}

/// A scope on the CPU, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuSpan {
    pub(crate) end: u64,
    /// Less the cost of reading the clock.
    pub(crate) elapsed: i64,
    /// Whether no scope of the same name was around it.
    pub(crate) outermost: bool,
}

/// Two events. They belong to whoever owns the item that they stand in; a copy of this is their names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) begin: Event,
    pub(crate) end: Event,
    pub(crate) context: &'static Context,
    /// Counts up with each scope that gives the pair back. It outlives the pair: scopes refer to others.
    pub(crate) generation: &'static AtomicU32,
    /// Which life of its context the events belong to.
    pub(crate) epoch: u32,
    /// Whether the events are part of a graph, and are recorded again with each replay.
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

/// A scope that was to have a GPU time, finished, and the events that it was measured with; between two scopes,
/// the events alone.
///
/// Owned by whoever has it at the time: a pool, a thread's magazine, an open scope, a ring, the resolver. One that
/// is dropped is lost to its pool, and its events with it, so that everyone who lets go of one says where it
/// goes.
// What a scope only reads stands first, what each one writes comes next, and in one cache line: to write what
// another processor has read last takes as long as all else that the measured thread does. What is seldom
// needed comes last, and is written only where it is another one.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct GpuMeasurement {
    /// None in one that is for scopes without events.
    pub(crate) pair: Option<Pair>,
    /// Where the scope around it began, if others inside of that may overlap this one.
    pub(crate) from: Option<StartEvent>,
    pub(crate) scope: ScopeRef,
    /// The key of the scope on the same line that it was inside of.
    pub(crate) inside: Option<NonZero<u64>>,
    pub(crate) span: CpuSpan,
    /// The name of the scope that it was directly inside of, if that is on another line.
    pub(crate) apart: Option<u32>,
    /// Why it has no GPU time.
    pub(crate) loss: Option<CudaLoss>,
    /// Whether neither the call nor its thread named the stream.
    pub(crate) is_fallback: bool,
    /// The driver's number of the capture that its events are part of; zero for none, or where it has no number.
    pub(crate) capture: u64,
    pub(crate) log: Option<LogRequest>,
}

/// All that each scope writes stands in one line. (CUDA has drivers for 64 bits alone.)
#[cfg(target_pointer_width = "64")]
const _: () = {
    const LINE: usize = 64;
    let (from, to) = (
        offset_of!(GpuMeasurement, scope),
        offset_of!(GpuMeasurement, span) + size_of::<CpuSpan>(),
    );
    assert!(from % LINE == 0 && offset_of!(GpuMeasurement, inside) < to && to <= from + LINE);
};

/// Items without events that nobody needs, for those to come.
fn spare() -> &'static ArrayQueue<Box<GpuMeasurement>> {
    static SPARE: RaceCell<ArrayQueue<Box<GpuMeasurement>>> = RaceCell::new();
    SPARE.get_or_init(|| ArrayQueue::new(MAX_SPARE))
}
const MAX_SPARE: usize = 4096;

impl GpuMeasurement {
    /// A new one around these events.
    pub(crate) fn new(pair: Option<Pair>) -> Box<GpuMeasurement> {
        Box::new(Self {
            pair,
            from: None,
            scope: ScopeRef::NOTHING,
            inside: None,
            span: CpuSpan {
                end: 0,
                elapsed: 0,
                outermost: false,
            },
            apart: None,
            loss: None,
            is_fallback: false,
            capture: 0,
            log: None,
        })
    }

    /// One for a scope that has no events.
    #[cold]
    pub(crate) fn without(loss: CudaLoss) -> Box<GpuMeasurement> {
        let known = if library::is_shut_down() {
            None
        } else {
            spare().pop()
        };
        let mut item = known.unwrap_or_else(|| Self::new(None));
        item.loss = Some(loss);
        item
    }

    /// Has what each scope writes be here when one does.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch::for_writing(&self.scope);
    }

    /// Makes it that of a scope that has ended.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        scope: &ScopeRef,
        around: &Enclosing,
        is_fallback: bool,
        span: &CpuSpan,
    ) {
        self.scope = *scope;
        self.inside = around.inside;
        self.span = *span;
        if self.from.is_some() || around.from.is_some() {
            self.from = around.from;
        }
        if self.apart != around.apart {
            self.apart = around.apart;
        }
        if self.is_fallback != is_fallback {
            self.is_fallback = is_fallback;
        }
    }

    /// Notes whether the scope has no GPU time, and why.
    #[inline]
    pub(crate) fn set_loss(&mut self, loss: Option<CudaLoss>) {
        if self.loss != loss {
            self.loss = loss;
        }
    }

    /// Lets go of it: it goes where the next scope finds it. Its events are another one's from now on.
    pub(crate) fn give_back(mut self: Box<Self>) {
        if self.log.is_some() {
            user_code::drop_value(self.log.take());
        }
        if library::is_shut_down() {
            return;
        }
        match self.pair {
            // Part of a graph that is not ours to take back.
            Some(Pair { is_graph: true, .. }) => {}
            Some(Pair { context, .. }) => context.put_back(self),
            // Where there are many already it goes.
            None => _ = spare().push(self),
        }
    }
}
