//! Kernels and other work on the devices, as handlers see it.

use std::fmt;
use std::time::Duration;

use profiler_report::GpuWork;

use super::event::Event;
use super::trace::Trace;
use super::work::{LaunchRecord, WorkRecord};
use crate::cuda::StreamId;

/// A kernel, a copy, a fill or a wait of a [`Trace`], as CUPTI recorded it.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Profile, scope};
///
/// let ((), trace) = Profile::builder().run(|_| {
///     let _scope = scope!("forward");
///     // launch kernels
/// });
/// for work in trace?.gpu_work() {
///     let scope = work.scope().map_or("(no measured scope)", |scope| scope.name());
///     println!("{scope}: {} took {:?}", work.name(), work.duration());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct GpuEvent<'t> {
    trace: &'t Trace,
    record: &'t WorkRecord,
}

impl<'t> GpuEvent<'t> {
    /// Returns its name, demangled: that of a kernel, or `Memcpy HtoD` and the like.
    #[must_use]
    pub fn name(self) -> &'t str {
        self.trace.work.name(self.record.name)
    }

    /// Returns its start, in nanoseconds since the Unix epoch; `None` if the device had no space for the times.
    #[must_use]
    pub fn start_ns(self) -> Option<i64> {
        self.record.span.map(|(start, _)| start)
    }

    /// Returns how long it ran; `None` if the device had no space for the times.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        let (start, end) = self.record.span?;
        let ns = u64::try_from(end.saturating_sub(start)).unwrap_or_default();
        Some(Duration::from_nanos(ns))
    }

    /// Returns what it did, on which device and stream.
    #[must_use]
    pub fn details(self) -> GpuWork {
        self.record.details
    }

    /// Returns the stream that the program launched it on, if that is known.
    #[must_use]
    pub fn stream(self) -> Option<StreamId> {
        self.record.stream_key.map(StreamId)
    }

    /// Returns the innermost scope around the call that launched it. `None` if the window has no such scope.
    #[must_use]
    pub fn scope(self) -> Option<Event<'t>> {
        let scope = self.trace.work.scope_of(self.record)?;
        (scope < self.trace.scopes.len()).then(|| Event::new(self.trace, scope))
    }

    /// Returns the call that launched it, if that was recorded. All nodes of a graph have one launch.
    #[must_use]
    pub fn launch(self) -> Option<GpuLaunch<'t>> {
        let record = self.trace.work.launch_of(self.record)?;
        let trace = self.trace;
        Some(GpuLaunch { trace, record })
    }
}

impl fmt::Debug for GpuEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuEvent")
            .field("name", &self.name())
            .field("duration", &self.duration())
            .field("scope", &self.scope().map(Event::name))
            .finish_non_exhaustive()
    }
}

/// A call of CUDA that launched work.
#[derive(Clone, Copy)]
pub struct GpuLaunch<'t> {
    trace: &'t Trace,
    record: &'t LaunchRecord,
}

impl<'t> GpuLaunch<'t> {
    /// Returns the name of the function that was called, such as `cuLaunchKernel`.
    #[must_use]
    pub fn name(self) -> &'t str {
        self.trace.work.name(self.record.name)
    }

    /// Returns when it was called, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn start_ns(self) -> i64 {
        self.record.span.0
    }

    /// Returns how long the call took.
    #[must_use]
    pub fn duration(self) -> Duration {
        let (start, end) = self.record.span;
        Duration::from_nanos(u64::try_from(end.saturating_sub(start)).unwrap_or_default())
    }

    /// Returns the name of its thread, if it has one and a scope of the window ran on it.
    #[must_use]
    pub fn thread_name(self) -> Option<&'t str> {
        self.trace.thread(self.record.thread)?.name.as_deref()
    }
}

impl fmt::Debug for GpuLaunch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpuLaunch")
            .field("name", &self.name())
            .field("duration", &self.duration())
            .finish_non_exhaustive()
    }
}

impl Trace {
    /// Returns the kernels, copies, fills and waits of the window, in the order of their starts. Empty if CUPTI did not
    /// record.
    pub fn gpu_work(&self) -> impl Iterator<Item = GpuEvent<'_>> {
        let records = self.work.work.iter();
        records.map(|record| GpuEvent {
            trace: self,
            record,
        })
    }
}

impl<'t> Event<'t> {
    /// Returns the work that it launched itself, without that of the scopes inside, in the order of the starts. Each call
    /// reads all work of the window.
    pub fn gpu_work(self) -> impl Iterator<Item = GpuEvent<'t>> {
        let (trace, index) = (self.trace(), self.index());
        let is_own = move |work: &GpuEvent<'t>| trace.work.scope_of(work.record) == Some(index);
        trace.gpu_work().filter(is_own)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;
    use profiler_report::internal::StreamKey;

    #[test]
    fn work_is_found_from_its_scope_and_from_the_window() {
        let mut sample = Sample::new();
        let outer = sample.scope("gpu event: outer", 0, 0, 10_000);
        sample.work("first", true, 100, (500, 900), GpuWork::default());
        sample.scope("gpu event: inner", outer, 1000, 10_000);
        sample.gpu(StreamKey::NOWHERE, 0, 10.0, 10.0);
        sample.work("second", true, 1100, (1500, 1700), GpuWork::default());
        sample.work("third", false, 1200, (1700, 1800), GpuWork::default());
        let trace = sample.trace();
        let scopes: Vec<_> = trace
            .gpu_work()
            .map(|work| (work.name(), work.scope().map(Event::name)))
            .collect();
        assert_eq!(
            scopes,
            [
                ("first", Some("gpu event: outer")),
                ("second", Some("gpu event: inner")),
                ("third", None)
            ]
        );
        let own = |event: Event<'_>| {
            event
                .gpu_work()
                .map(|work| work.name().to_owned())
                .collect()
        };
        let own: Vec<Vec<String>> = trace.events().map(own).collect();
        assert_eq!(own, [["first"], ["second"]]);
        let last = trace.gpu_work().last().expect("three");
        assert_eq!(last.duration(), Some(Duration::from_nanos(100)));
        let launch = last.launch().expect("it has one");
        assert_eq!(
            (launch.name(), launch.thread_name()),
            ("cuLaunchKernel", Some("main"))
        );
        assert!(last.start_ns() > Some(launch.start_ns()));
        assert!(trace.has_kernels() && last.stream().is_some());
    }
}
