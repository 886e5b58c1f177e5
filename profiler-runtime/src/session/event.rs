//! One scope of a trace, as it is looked at.

use std::panic::Location;
use std::time::Duration;

use super::record::{RecordEnding, RecordKind, ScopeRecord};
use super::trace::{NONE, Node, Trace};
use crate::cuda::GpuRecord;
use crate::cuda::{CudaLoss, StreamId};
use crate::memory::MemoryUse;

/// One scope of a [`Trace`].
///
/// Times are in nanoseconds; those of the CPU and those of the GPU stand side by side and are never added.
#[derive(Clone, Copy)]
pub struct Event<'t> {
    trace: &'t Trace,
    index: usize,
}

impl<'t> Event<'t> {
    pub(crate) fn new(trace: &'t Trace, index: usize) -> Self {
        Self { trace, index }
    }

    pub(crate) fn record(self) -> &'t ScopeRecord {
        &self.trace.scopes[self.index]
    }

    fn node(self) -> &'t Node {
        &self.trace.nodes[self.index]
    }

    /// Where it is among the window's records.
    pub(crate) fn index(self) -> usize {
        self.index
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'t str {
        self.trace.name_of(self.record().name)
    }

    /// Where the first call site of its name stands.
    #[must_use]
    pub fn location(self) -> Option<&'static Location<'static>> {
        let name = self.trace.names.get(self.record().name as usize)?;
        Some(name.location)
    }

    /// When it began, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn start_ns(self) -> i64 {
        self.trace.timeline.unix_ns(self.record().start)
    }

    /// How long it took on the CPU, with what it called: `cpu_time_total`. A future's is from its first poll to
    /// its end. Zero where CPU times were not recorded when it began.
    #[must_use]
    pub fn cpu_ns(self) -> f64 {
        let elapsed = if self.has_cpu() {
            self.record().elapsed
        } else {
            0
        };
        self.trace.timeline.ns(elapsed.max(0))
    }

    /// Whether CPU times were recorded when it began.
    pub(crate) fn has_cpu(self) -> bool {
        self.record().has_cpu
    }

    /// What it took on the CPU itself: `self_cpu_time_total`. A future's is what its polls took, less what ran
    /// inside of them. Zero where CPU times were not recorded when it began.
    #[must_use]
    pub fn self_cpu_ns(self) -> f64 {
        let own = if self.has_cpu() { self.node().own } else { 0 };
        self.trace.timeline.ns(own.max(0))
    }

    /// Its GPU time, where it has one.
    #[must_use]
    pub fn gpu(self) -> Option<GpuSpan> {
        self.gpu_record()
            .filter(|gpu| gpu.loss.is_none())
            .map(GpuSpan::of)
    }

    /// Why it has no GPU time, where it was to have one.
    #[must_use]
    pub fn gpu_loss(self) -> Option<CudaLoss> {
        self.gpu_record().and_then(|gpu| gpu.loss)
    }

    pub(crate) fn gpu_record(self) -> Option<&'t GpuRecord> {
        self.trace.gpu.get(self.node().gpu as usize)
    }

    /// The scope directly around it, where that is in the trace too; else the next one around that is. A future has
    /// the one that it was first polled in, which may end before it.
    #[must_use]
    pub fn parent(self) -> Option<Event<'t>> {
        let parent = self.node().parent;
        (parent != NONE).then(|| Self::new(self.trace, parent as usize))
    }

    /// The scopes around it, innermost first. Those that are not in the trace, since they began before the window
    /// or ended after it, are there only where the session was told
    /// [`with_stack`](crate::ProfileBuilder::with_stack): the innermost 512 then.
    pub fn stack(self) -> impl Iterator<Item = Frame<'t>> {
        let wanted = self.trace.meta.options.with_stack;
        let extra = self.record().extra.as_deref().filter(|_| wanted);
        let around = extra.and_then(|extra| extra.around.as_deref());
        let parents = std::iter::successors(self.parent(), |event| event.parent());
        let names = around.unwrap_or_default().iter().rev().copied();
        let inside = parents
            .take(if around.is_some() { 0 } else { usize::MAX })
            .map(|event| event.record().name);
        names
            .chain(inside)
            .map(move |name| Frame::new(self.trace, name))
    }

    /// What `shapes` gave, in the order of the argument, where the session records shapes.
    #[must_use]
    pub fn shapes(self) -> Option<&'t [Box<[usize]>]> {
        let wanted = self.trace.meta.options.record_shapes;
        let extra = self.record().extra.as_deref().filter(|_| wanted)?;
        extra.shapes.as_deref()
    }

    /// What it did to memory, where the session profiles memory; futures have none.
    #[must_use]
    pub fn memory(self) -> Option<MemoryUse> {
        let wanted = self.trace.meta.options.profile_memory;
        let extra = self.record().extra.as_deref().filter(|_| wanted)?;
        extra.memory
    }

    /// The native frames it was opened in, as the standard library prints them, where the session asks for them.
    #[must_use]
    pub fn native_stack(self) -> Option<String> {
        let wanted = self.trace.meta.options.native_stack;
        let extra = self.record().extra.as_deref().filter(|_| wanted)?;
        extra.native.as_ref().map(ToString::to_string)
    }

    /// The name of the thread it ended on.
    #[must_use]
    pub fn thread_name(self) -> Option<&'t str> {
        self.trace.thread(self.record().thread)?.name.as_deref()
    }

    /// The system's number of the thread it ended on.
    #[must_use]
    pub fn thread_id(self) -> u64 {
        let thread = self.trace.thread(self.record().thread);
        thread.map_or(0, |thread| thread.id)
    }

    /// Whether it is a future.
    #[must_use]
    pub fn is_future(self) -> bool {
        matches!(self.record().kind, RecordKind::Future { .. })
    }

    /// Whether a panic went through it.
    #[must_use]
    pub fn has_panicked(self) -> bool {
        self.record().ending == RecordEnding::Panicked
    }

    /// Whether it is a future that was dropped before it was done.
    #[must_use]
    pub fn is_dropped(self) -> bool {
        self.record().ending == RecordEnding::Dropped
    }
}

impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.name())
            .field("cpu_ns", &self.cpu_ns())
            .field("gpu", &self.gpu())
            .finish_non_exhaustive()
    }
}

/// One scope of a stack: a name, and where the name stands.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Frame<'t> {
    /// The scope's name.
    pub name: &'t str,
    /// Where the first call site of the name stands.
    pub location: Option<&'static Location<'static>>,
}

impl<'t> Frame<'t> {
    fn new(trace: &'t Trace, name: u32) -> Self {
        Self {
            name: trace.name_of(name),
            location: trace.names.get(name as usize).map(|name| name.location),
        }
    }
}

/// What a scope took on the device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct GpuSpan {
    /// When the device came to it, in nanoseconds since the Unix epoch; none where that is not known.
    pub start_ns: Option<i64>,
    /// How far off `start_ns` may be, in nanoseconds. Durations do not depend on it.
    pub uncertainty_ns: f64,
    /// How long it took, in nanoseconds, with what it called on the same stream: `cuda_time_total`.
    pub ns: f64,
    /// The same without what it called on the same stream: `self_cuda_time_total`.
    pub self_ns: f64,
    /// The stream it was measured on.
    pub stream: StreamId,
    /// The ordinal of the device, where it is known.
    pub device: Option<u32>,
}

impl GpuSpan {
    pub(crate) fn of(gpu: &GpuRecord) -> Self {
        Self {
            start_ns: gpu.start,
            uncertainty_ns: gpu.uncertainty_ns.into(),
            ns: gpu.ns,
            self_ns: gpu.own,
            stream: StreamId(gpu.line),
            device: gpu.device,
        }
    }

    /// How long it took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.ns.max(0.0) / 1e9)
    }
}
