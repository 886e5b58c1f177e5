//! An open scope that is to have a GPU time.

use std::mem::ManuallyDrop;
use std::num::NonZero;

use profiler_report::CudaLoss;

use super::state;
use super::target::NamedBy;
use crate::cuda::context::measurement::{Bound, CpuSpan, GpuMeasurement, ScopeRef, StartEvent};
use crate::cuda::resolver::totals;
use crate::cuda::stream::{KeepAlive, Stream, StreamRef};

/// The GPU options of a call.
#[derive(Debug, Default)]
pub(crate) struct GpuOptions {
    /// The stream that the call names. If it is borrowed, the caller must keep the borrow until the scope ends. The
    /// beginning of the scope takes it.
    pub(crate) stream: Option<Stream>,
    pub(crate) mode: Mode,
}

impl GpuOptions {
    /// The options of a call that names its stream, and no more.
    #[inline]
    pub(crate) fn on(stream: StreamRef<'_>) -> Self {
        Self {
            stream: Some(stream.stream),
            mode: Mode::Later,
        }
    }
}

/// A scope that is about to open.
#[derive(Clone, Copy)]
pub(super) struct NewScope {
    pub(super) serial: u64,
    /// The id of the name.
    pub(super) name: u32,
    pub(super) is_future: bool,
}

impl NewScope {
    #[inline(always)]
    pub(super) const fn new(serial: u64, name: u32) -> Self {
        Self {
            serial,
            name,
            is_future: false,
        }
    }

    /// Returns the scope of a future, which no thread finds by its serial.
    pub(super) const fn of_future(name: u32) -> Self {
        Self {
            is_future: true,
            ..Self::new(0, name)
        }
    }
}

/// Whether the profiler's own cost is sampled in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CostSampling {
    On,
    Off,
}

/// How a scope's events are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The resolver reads them later.
    #[default]
    Later,
    /// The end of the scope waits for the device and reads them.
    Synchronous,
    /// They become part of the graph that is being captured, and the resolver reads them after each replay.
    Captured,
}

/// An open scope that is to have a GPU time.
#[derive(Debug)]
pub(crate) struct OpenGpuScope {
    /// Its measurement, which knows the scope and those around it. The first event of its pair is recorded; without a pair,
    /// it has the reason.
    pub(super) measurement: Box<GpuMeasurement>,
    pub(super) mode: Mode,
    pub(super) named_by: NamedBy,
    /// `true` if a future was polled inside, so that scopes inside may overlap.
    pub(super) has_futures: bool,
    pub(super) ownership: StreamOwnership,
    /// How long opening it took, in ticks, if the profiler's cost is sampled.
    pub(super) cost: Option<NonZero<u64>>,
}

impl OpenGpuScope {
    /// A scope whose end does not wait for the device, and which does not own its stream.
    #[inline(always)]
    pub(super) fn new(measurement: Box<GpuMeasurement>, named_by: NamedBy) -> Self {
        Self {
            measurement,
            mode: Mode::Later,
            named_by,
            has_futures: false,
            ownership: StreamOwnership::Borrowed,
            cost: None,
        }
    }

    /// Stores the scope's time on the CPU, when it has ended.
    #[inline(always)]
    pub(super) fn set_span(&mut self, span: CpuSpan) {
        // Field by field, so that the span stays in registers until it is stored.
        let stored = &mut self.measurement.span;
        stored.end = span.end;
        stored.elapsed = span.elapsed;
        stored.outermost = span.outermost;
        stored.call = span.call;
    }

    /// Returns `true` if nothing but the thread, whose current stream it is on, keeps its stream alive.
    pub(super) fn is_on_current_stream(&self) -> bool {
        self.named_by == NamedBy::Thread && matches!(self.ownership, StreamOwnership::Borrowed)
    }

    /// Returns the start event; `None` if the scope has no GPU time.
    pub(super) fn start(&self) -> Option<StartEvent> {
        self.measurement.pair.as_ref().map(StartEvent::of)
    }
}

/// Gives up a scope that will not end, and counts it.
pub(crate) fn abandon(opened: OpenGpuScope) {
    abandon_measurement(opened.measurement);
}

/// [`abandon`] for a case that cannot occur. Leaks what keeps the stream alive, so that the compiler need not keep the scope
/// in memory in order to drop it.
#[inline(always)]
pub(super) fn abandon_without_owner(opened: OpenGpuScope) {
    let _leaked = ManuallyDrop::new(opened.ownership);
    abandon_measurement(opened.measurement);
}

#[cold]
#[inline(never)]
fn abandon_measurement(measurement: Box<GpuMeasurement>) {
    let is_new = match measurement.bound.as_ref() {
        // The scope may end on a thread that does not find it, and its call is counted there only if it does.
        Some(Bound::Segment { scope, .. }) => scope.segments(|segments| {
            segments.lose_open(CudaLoss::Abandoned);
            segments.count_without()
        }),
        _ => true,
    };
    if is_new {
        totals::count_without(measurement.scope.name, CudaLoss::Abandoned);
    }
    measurement.give_back();
}

/// The owner that keeps a scope's stream alive until the scope ends.
#[derive(Debug)]
pub(super) enum StreamOwnership {
    /// Something outside: the caller's borrow, the process, whose default stream is never freed, or the thread, whose
    /// current stream it is. Replacing the current stream makes the scope an owner.
    Borrowed,
    /// The scope itself, if anything keeps the stream alive: the call named it.
    Owned { _keep_alive: KeepAlive },
}

impl StreamOwnership {
    pub(super) fn owned(stream: Stream) -> Self {
        Self::Owned {
            _keep_alive: stream.into_keep_alive(),
        }
    }
}

/// The open GPU scope of a future, which the future keeps between its polls. In a box, because most futures have none.
#[derive(Debug, Default)]
pub(crate) struct TaskGpuScope(Box<Option<OpenGpuScope>>);

impl TaskGpuScope {
    pub(super) fn set(&mut self, opened: OpenGpuScope) {
        *self.0 = Some(opened);
    }

    pub(super) fn scope(&self) -> Option<ScopeRef> {
        self.0
            .as_ref()
            .as_ref()
            .map(|opened| opened.measurement.scope)
    }

    pub(super) fn start(&self) -> Option<StartEvent> {
        self.0.as_ref().as_ref().and_then(OpenGpuScope::start)
    }

    /// Returns the key of its GPU time; zero for none.
    pub(crate) fn key(&self) -> u64 {
        self.scope().map_or(0, |scope| scope.key)
    }

    /// Takes the scope out, and keeps the box for another future.
    pub(crate) fn into_opened(mut self) -> Option<OpenGpuScope> {
        let opened = self.0.take();
        state::with(|thread| thread.keep_task_box(self));
        opened
    }
}
