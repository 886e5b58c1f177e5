//! Programs whose every kernel, copy and fill tells by its size which call launched it, and what windows say about them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use cudarc::driver::{CudaGraph, CudaSlice, CudaStream, DevicePtrMut, result};
use profiler_runtime::report::{GpuWorkKind, Slice, SliceKind, Timeline};
use profiler_runtime::{Profile, Trace};
use profiler_simulated_driver::{Activity, ActivityKind};
use profiler_tests::gpu::{Gpu, simulator};
use profiler_tests::stop;

/// A kernel by its nanoseconds, or a copy or a fill by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    Kernel(u64),
    Copy(u64),
    Fill(u64),
}

/// Work with the name of the scope that launched it.
pub(crate) type Launched = (Work, Option<&'static str>);

/// A program that notes under which scope it launches what.
pub(crate) struct Program {
    pub(crate) gpu: Gpu,
    launched: Mutex<Vec<Launched>>,
    next: AtomicU64,
}

impl Program {
    pub(crate) fn new() -> Self {
        Self {
            gpu: Gpu::new(0),
            launched: Mutex::new(Vec::new()),
            next: AtomicU64::new(1_000),
        }
    }

    /// Returns a size that no work had before.
    fn size(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    fn note(&self, work: Work, scope: Option<&'static str>) {
        self.launched.lock().expect("no panic").push((work, scope));
    }

    /// Launches a kernel.
    pub(crate) fn kernel(&self, stream: &Arc<CudaStream>, scope: Option<&'static str>) {
        let ns = self.size();
        self.note(Work::Kernel(ns), scope);
        self.gpu.spin(stream, ns);
    }

    /// Copies to the device.
    pub(crate) fn copy(
        &self,
        stream: &Arc<CudaStream>,
        to: &mut CudaSlice<u8>,
        scope: Option<&'static str>,
    ) {
        let bytes = self.size();
        self.note(Work::Copy(bytes), scope);
        let from = vec![1_u8; usize::try_from(bytes).expect("it fits")];
        stream.memcpy_htod(&from, to).expect("nothing failed");
    }

    /// Fills memory of the device.
    pub(crate) fn fill(
        &self,
        stream: &Arc<CudaStream>,
        memory: &mut CudaSlice<u8>,
        scope: Option<&'static str>,
    ) {
        let bytes = self.size();
        self.note(Work::Fill(bytes), scope);
        let bytes = usize::try_from(bytes).expect("it fits");
        let (address, _sync) = memory.device_ptr_mut(stream);
        // SAFETY: the memory is larger than any size of a program, and lives until the device has finished.
        unsafe { result::memset_d8_async(address, 0, bytes, stream.cu_stream()) }
            .expect("nothing failed");
    }

    /// Launches a graph whose nodes are kernels of these lengths.
    pub(crate) fn replay(&self, graph: &CudaGraph, nodes: &[u64], scope: Option<&'static str>) {
        for ns in nodes {
            self.note(Work::Kernel(*ns), scope);
        }
        graph.launch().expect("nothing failed");
    }

    /// Captures kernels of new lengths into a graph.
    pub(crate) fn capture(
        &self,
        stream: &Arc<CudaStream>,
        kernels: usize,
    ) -> (CudaGraph, Vec<u64>) {
        use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
        stream
            .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
            .expect("it may capture");
        let nodes: Vec<u64> = (0..kernels).map(|_| self.size()).collect();
        for ns in &nodes {
            self.gpu.spin(stream, *ns);
        }
        let graph = stream.end_capture(CUgraphInstantiate_flags(0));
        let graph = graph
            .expect("the capture is valid")
            .expect("it captured something");
        (graph, nodes)
    }

    /// Runs the program in a window, and returns the window once the device has finished.
    pub(crate) fn record(&self, work: impl FnOnce(&Self)) -> Arc<Trace> {
        let profile = Profile::builder().kernels(true).start().expect("started");
        work(self);
        self.gpu.context.synchronize().expect("nothing failed");
        stop(&profile);
        profile.trace().expect("a trace")
    }

    /// Returns what was launched, sorted.
    pub(crate) fn launched(&self) -> Vec<Launched> {
        let mut launched = self.launched.lock().expect("no panic").clone();
        launched.sort_unstable();
        launched
    }
}

/// A kernel, a copy or a fill of a window.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) work: Work,
    /// The name of the scope that it stands under.
    pub(crate) scope: Option<String>,
    /// In nanoseconds since the Unix epoch.
    pub(crate) span: (i64, i64),
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) correlation: u32,
    pub(crate) is_of_graph: bool,
}

/// Returns the kernels, copies and fills of a window.
pub(crate) fn found(trace: &Trace) -> Vec<Found> {
    let line = trace.timeline();
    let slices = line
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::GpuWork);
    let of = |slice: &Slice| {
        let details = line.work[slice.work? as usize];
        let begin = line.start_unix_ns + slice.start_ns;
        let ns = u64::try_from(slice.duration_ns).expect("it does not end before it begins");
        let work = match details.kind {
            GpuWorkKind::Kernel(_) => Work::Kernel(ns),
            GpuWorkKind::Memcpy(copy) => Work::Copy(copy.bytes),
            GpuWorkKind::Memset(fill) => Work::Fill(fill.bytes),
            _ => return None,
        };
        Some(Found {
            work,
            scope: scope_of(&line, slice.parent),
            span: (begin, begin + slice.duration_ns),
            device: details.device,
            context: details.context,
            stream: details.stream,
            correlation: details.correlation,
            is_of_graph: details.graph_node.is_some(),
        })
    };
    slices.filter_map(of).collect()
}

fn scope_of(line: &Timeline, slice: Option<u32>) -> Option<String> {
    let slice = line.slices[slice? as usize];
    Some(line.names[slice.name as usize].text.to_string())
}

/// Asserts that a window has exactly the work that the program launched, each under its scope.
#[track_caller]
pub(crate) fn assert_scopes(found: &[Found], program: &Program) {
    let mut expected = program.launched();
    let mut others = found
        .iter()
        .map(|found| (found.work, found.scope.as_deref()))
        .collect::<Vec<_>>();
    others.retain(|other| {
        let place = expected.iter().position(|launched| launched == other);
        place.map(|place| expected.swap_remove(place)).is_none()
    });
    assert!(
        expected.is_empty() && others.is_empty(),
        "missing: {expected:?}; found instead: {others:?}"
    );
}

/// Returns the kernels, copies and fills that the device ran in a window with CUPTI.
pub(crate) fn truth() -> Vec<Activity> {
    let report = simulator().report().expect("a report");
    let traced = report.activities.into_iter().filter(|activity| {
        let kinds = [ActivityKind::Kernel, ActivityKind::Copy, ActivityKind::Fill];
        activity.correlation.is_some() && kinds.contains(&activity.kind)
    });
    traced.collect()
}

/// Asserts that a window says when and where the device did its work, but for one difference between the clocks.
#[track_caller]
pub(crate) fn assert_times(found: &[Found]) {
    let signed = |ns: u64| i64::try_from(ns).expect("it fits");
    let key = |correlation: u32, start: i64| (start, correlation);
    let mut truth = truth();
    truth.sort_by_key(|activity| {
        key(
            activity.correlation.unwrap_or_default(),
            signed(activity.start),
        )
    });
    let mut found = found.to_vec();
    found.sort_by_key(|found| key(found.correlation, found.span.0));
    assert_eq!(found.len(), truth.len());
    let Some(difference) = found
        .first()
        .map(|found| found.span.0 - signed(truth[0].start))
    else {
        return;
    };
    for (found, truth) in found.iter().zip(&truth) {
        let span = (
            signed(truth.start) + difference,
            signed(truth.end) + difference,
        );
        assert_eq!(found.span, span, "{found:?}: {truth:?}");
        let place = (found.device, found.context, found.stream);
        let place = [place.0, place.1, place.2].map(u64::from);
        assert_eq!(place, [truth.device, truth.context, truth.stream_id]);
        assert_eq!(Some(found.correlation), truth.correlation);
        assert_eq!(found.is_of_graph, truth.graph.is_some());
    }
}
