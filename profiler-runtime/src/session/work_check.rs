//! Checks GPU times against the records of CUPTI: both say when the device worked for a scope.

use std::collections::HashMap;

use super::record::{LinkedScope, NONE};
use super::work::WindowWork;
use crate::cuda::GpuRecord;

/// A difference that is attributed to the resolution of events, in nanoseconds.
const TOLERANCE: f64 = 1_000.0;

/// Scopes whose GPU times and kernels contradict each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Contradictions {
    /// The work takes longer than the GPU time.
    pub(super) longer: u64,
    /// The work begins before the GPU time, by more than the uncertainty of where that begins.
    pub(super) earlier: u64,
}

/// Compares the GPU time of each scope with the work that it and the scopes inside launched on its stream.
pub(super) fn check(work: &WindowWork, nodes: &[LinkedScope], gpu: &[GpuRecord]) -> Contradictions {
    let mut spans: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
    for record in work.on_streams() {
        let scope = work.scope_of(record);
        if let (Some(span), Some(scope), Some(stream)) = (record.span, scope, record.stream_key)
            && let Some(around) = measured_on(stream, scope, nodes, gpu)
        {
            spans.entry(around).or_default().push(span);
        }
    }
    let mut found = Contradictions::default();
    for (around, mut spans) in spans {
        let gpu = &gpu[around as usize];
        spans.sort_unstable();
        let busy = covered(&spans) as f64;
        found.longer += u64::from(busy > gpu.ns + TOLERANCE);
        let begins = spans.first().map(|(start, _)| *start);
        if let (Some(begins), Some(start)) = (begins, gpu.start) {
            let early = (start - begins) as f64;
            found.earlier += u64::from(early > f64::from(gpu.uncertainty_ns) + TOLERANCE);
        }
    }
    found
}

/// Returns the GPU time of the innermost scope, from `scope` outwards, that has one on a stream.
fn measured_on(
    stream: profiler_report::internal::StreamKey,
    scope: usize,
    nodes: &[LinkedScope],
    gpu: &[GpuRecord],
) -> Option<u32> {
    let mut at = Some(scope);
    while let Some(node) = at.and_then(|at| nodes.get(at)) {
        // The sum of several times says nothing of single kernels.
        let time = gpu.get(node.gpu as usize).filter(|_| !node.is_bound);
        if time.is_some_and(|time| time.loss.is_none() && time.stream_key == stream) {
            return Some(node.gpu);
        }
        at = (node.parent != NONE).then_some(node.parent as usize);
    }
    None
}

/// Returns how long at least one of the spans lasts. They are sorted.
fn covered(spans: &[(i64, i64)]) -> i64 {
    let mut end = i64::MIN;
    let mut covered = 0;
    for (start, stop) in spans {
        covered += (stop - (*start).max(end)).max(0);
        end = end.max(*stop);
    }
    covered
}

impl Contradictions {
    /// Returns a note for the window, if there is any.
    pub(super) fn note(self) -> Option<String> {
        let parts = [
            (self.longer, "take longer than"),
            (self.earlier, "begin before"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(scopes, _)| *scopes > 0)
            .map(|(scopes, what)| format!("the kernels of {scopes} scopes {what} their GPU times"))
            .collect();
        (!parts.is_empty()).then(|| {
            format!(
                "{}: CUPTI and the events of the driver contradict each other there, so treat both as estimates",
                parts.join(", and ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::sample::Sample;
    use profiler_report::GpuWork;
    use profiler_report::internal::{RawStream, StreamKey};

    const STREAM: StreamKey = StreamKey {
        context: 0,
        thread: 0,
        stream: RawStream::LEGACY,
    };

    /// A scope with a GPU time from 10 µs on that takes 100 µs, and two kernels.
    fn checked(kernels: [(i64, i64); 2]) -> Contradictions {
        let mut sample = Sample::new();
        sample.scope("check: scope", 0, 0, 1_000);
        sample.gpu(STREAM, 10_000, 100_000.0, 100_000.0);
        for span in kernels {
            sample.work("kernel", true, 10, span, GpuWork::default());
        }
        let trace = sample.trace();
        check(&trace.work, &trace.nodes, &trace.gpu)
    }

    #[test]
    fn kernels_inside_the_gpu_time_are_right() {
        let none = Contradictions::default();
        assert_eq!(checked([(11_000, 50_000), (60_000, 109_000)]), none);
        // The uncertainty is a microsecond, and so is the resolution.
        assert_eq!(checked([(8_500, 50_000), (60_000, 109_000)]), none);
        assert_eq!(none.note(), None);
    }

    #[test]
    fn kernels_that_take_longer_or_begin_earlier_are_noted() {
        let longer = checked([(11_000, 90_000), (90_000, 150_000)]);
        assert_eq!((longer.longer, longer.earlier), (1, 0));
        let earlier = checked([(1_000, 50_000), (60_000, 70_000)]);
        assert_eq!((earlier.longer, earlier.earlier), (0, 1));
        let note = earlier.note().expect("a note");
        assert!(
            note.starts_with("the kernels of 1 scopes begin before"),
            "{note}"
        );
    }

    #[test]
    fn kernels_that_overlap_count_once() {
        let overlapping = checked([(11_000, 100_000), (12_000, 101_000)]);
        assert_eq!(overlapping, Contradictions::default());
    }
}
