//! The scopes of a trace.

use std::time::Duration;

use profiler_report::MemoryUse;

use super::ended::RecordEnding;
use super::record::{LinkedScope, NONE, RecordKind, ScopeRecord};
use super::trace::Trace;
use crate::cuda::GpuRecord;
use crate::cuda::{CudaLoss, StreamId};
use crate::name::SourceLocation;

/// One scope of a [`Trace`].
///
/// Times are in nanoseconds. CPU and GPU times are separate and are never added.
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

    pub(super) fn trace(self) -> &'t Trace {
        self.trace
    }

    fn node(self) -> &'t LinkedScope {
        &self.trace.nodes[self.index]
    }

    /// Returns its index among the window's records.
    pub(crate) fn index(self) -> usize {
        self.index
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'t str {
        self.trace.name_of(self.record().name)
    }

    /// Returns the location of the first call site of its name.
    #[must_use]
    pub fn location(self) -> Option<SourceLocation> {
        let name = self.trace.names.get(self.record().name as usize)?;
        Some(name.location)
    }

    /// Returns `true` if a handle gave it its parent, which may be on another thread.
    pub(crate) fn has_parent_elsewhere(self) -> bool {
        let extra = self.record().extra.as_deref();
        extra.is_some_and(|extra| extra.parent != 0)
    }

    /// Returns its start, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn start_ns(self) -> i64 {
        self.trace.clock_line.unix_ns(self.record().start)
    }

    /// Returns its CPU time including its children: `cpu_time_total`. For a future, this is the time from its first
    /// poll to its end. Zero if CPU times were not recorded when it began.
    #[must_use]
    pub fn cpu_ns(self) -> f64 {
        let elapsed = if self.has_cpu() {
            self.record().elapsed
        } else {
            0
        };
        self.trace.clock_line.ns(elapsed.max(0))
    }

    /// Returns `true` if CPU times were recorded when it began.
    pub(crate) fn has_cpu(self) -> bool {
        self.record().has_cpu
    }

    /// Returns its CPU time without its children: `self_cpu_time_total`. For a future, this is the time of its polls
    /// less the scopes inside them. Zero if CPU times were not recorded when it began.
    #[must_use]
    pub fn self_cpu_ns(self) -> f64 {
        let own = if self.has_cpu() { self.node().own } else { 0 };
        self.trace.clock_line.ns(own.max(0))
    }

    /// Returns its GPU time, if it has one.
    #[must_use]
    pub fn gpu(self) -> Option<GpuSpan> {
        self.gpu_record()
            .filter(|gpu| gpu.loss.is_none())
            .map(GpuSpan::of)
    }

    /// Returns why its GPU time is missing, if it was to have one.
    #[must_use]
    pub fn gpu_loss(self) -> Option<CudaLoss> {
        self.gpu_record().and_then(|gpu| gpu.loss)
    }

    /// Returns `true` if streams were bound to the scope while it was open.
    pub(crate) fn is_bound(self) -> bool {
        self.node().is_bound
    }

    pub(crate) fn gpu_record(self) -> Option<&'t GpuRecord> {
        self.trace.gpu.get(self.node().gpu as usize)
    }

    /// Returns the enclosing scope; if that is not in the trace, the nearest one around it that is. The parent of a
    /// future is the scope of its first poll, which may end before the future. With a [`Handle`](crate::Handle), the
    /// parent is the handle's scope, if that is in the trace; it may be on another thread, and may end before its child.
    #[must_use]
    pub fn parent(self) -> Option<Event<'t>> {
        let parent = self.node().parent;
        (parent != NONE).then(|| Self::new(self.trace, parent as usize))
    }

    /// Returns the enclosing scopes, innermost first. Scopes that began before the window or ended after it are
    /// included only with [`with_stack`](crate::session::ProfileBuilder::with_stack), which records the innermost 512.
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

    /// Returns the values of `shapes`, in the order of the argument, if the session records shapes.
    #[must_use]
    pub fn shapes(self) -> Option<&'t [Box<[usize]>]> {
        let wanted = self.trace.meta.options.record_shapes;
        let extra = self.record().extra.as_deref().filter(|_| wanted)?;
        extra.shapes.as_deref()
    }

    /// Returns its memory use, if the session profiles memory. Futures have none.
    #[must_use]
    pub fn memory(self) -> Option<MemoryUse> {
        let wanted = self.trace.meta.options.profile_memory;
        let extra = self.record().extra.as_deref().filter(|_| wanted)?;
        extra.memory
    }

    /// Returns the native stack it was opened in, as the standard library prints it, if the session records it.
    #[must_use]
    pub fn native_stack(self) -> Option<String> {
        let wanted = self.trace.meta.options.native_stack;
        let extra = self.record().extra.as_deref().filter(|_| wanted)?;
        extra.native.as_ref().map(ToString::to_string)
    }

    /// Returns the name of the thread it ended on.
    #[must_use]
    pub fn thread_name(self) -> Option<&'t str> {
        self.trace.thread(self.record().thread)?.name.as_deref()
    }

    /// Returns the system's id of the thread it ended on.
    #[must_use]
    pub fn thread_id(self) -> u64 {
        let thread = self.trace.thread(self.record().thread);
        thread.map_or(0, |thread| thread.id)
    }

    /// Returns `true` if it is a future.
    #[must_use]
    pub fn is_future(self) -> bool {
        matches!(self.record().kind, RecordKind::Future { .. })
    }

    /// Returns `true` if a panic unwound through it.
    #[must_use]
    pub fn has_panicked(self) -> bool {
        self.record().ending == RecordEnding::Panicked
    }

    /// Returns `true` if it is a future that was dropped before it completed.
    #[must_use]
    pub fn is_dropped(self) -> bool {
        self.record().ending == RecordEnding::Dropped
    }
}

impl Trace {
    /// Returns the scopes of the window: by thread and in the order in which they opened, then futures.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let is_event = |index: &usize| !matches!(self.scopes[*index].kind, RecordKind::Poll { .. });
        (0..self.scopes.len())
            .filter(is_event)
            .map(|index| Event::new(self, index))
    }

    /// Returns the number of scopes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events().count()
    }

    /// Returns `true` if there are no scopes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events().next().is_none()
    }

    /// Returns the GPU times of CUDA graphs that were replayed in the window (`captured = true`), with their names.
    /// Replays that the device had not finished when the window was delivered are missing.
    pub fn replays(&self) -> impl Iterator<Item = (&str, GpuSpan)> {
        self.replays
            .iter()
            .map(|gpu| (self.name_of(gpu.name), GpuSpan::of(gpu)))
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

/// One scope of a stack: its name, and where that stands in the source.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Frame<'t> {
    /// The scope's name.
    pub name: &'t str,
    /// The location of the first call site of the name.
    pub location: Option<SourceLocation>,
}

impl<'t> Frame<'t> {
    fn new(trace: &'t Trace, name: u32) -> Self {
        Self {
            name: trace.name_of(name),
            location: trace.names.get(name as usize).map(|name| name.location),
        }
    }
}

/// The GPU time of a scope. That of a scope to which [streams were bound](crate::cuda::bind_stream) is the sum of its times on
/// them. In a window with recorded kernels, a scope has none if its own kernels, or those of scopes inside, say more.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GpuSpan {
    /// When the device started on it, in nanoseconds since the Unix epoch; `None` if that is not known.
    pub start_ns: Option<i64>,
    /// The uncertainty of `start_ns`, in nanoseconds. Durations do not depend on it.
    pub uncertainty_ns: f64,
    /// Its duration in nanoseconds, including its children on the same stream: `cuda_time_total`.
    pub ns: f64,
    /// Its duration in nanoseconds, without its children on the same stream: `self_cuda_time_total`.
    pub self_ns: f64,
    /// The stream it was measured on; the first of several.
    pub stream: StreamId,
    /// The ordinal of the device, if it is known.
    pub device: Option<u32>,
}

impl GpuSpan {
    pub(crate) fn of(gpu: &GpuRecord) -> Self {
        Self {
            start_ns: gpu.start,
            uncertainty_ns: gpu.uncertainty_ns.into(),
            ns: gpu.ns,
            self_ns: gpu.own,
            stream: StreamId(gpu.stream_key),
            device: gpu.device,
        }
    }

    /// Returns its duration.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.ns.max(0.0) / 1e9)
    }
}
