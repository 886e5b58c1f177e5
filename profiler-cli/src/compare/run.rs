//! The figures of one run of a program.

use std::collections::BTreeMap;

use profiler_report::{Environment, OwnCost, Row, SampledGpu, Summary, Timeline, TrackKind};

use super::metric::Metric;

/// A function has measured children if these take more than this fraction of its time.
const CHILDREN: f64 = 0.05;
/// The resolution of CUDA events in nanoseconds, as NVIDIA documents it.
const CUDA_RESOLUTION_NS: f64 = 500.0;

/// The figures of one run of a program, by function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) environment: Environment,
    pub(crate) functions: BTreeMap<String, Figures>,
    /// The largest relative error of percentiles.
    pub(crate) percentile_error: f64,
    /// The clocks of the GPU; `None` if no device was sampled.
    pub(crate) clocks: Option<Clocks>,
}

/// How often the clocks of a GPU were held back, on the device where that was most often.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Clocks {
    /// The share of the samples, from 0 to 1.
    pub(crate) held_back: f64,
    /// The reasons.
    pub(crate) reasons: Vec<String>,
}

/// Clocks that were held back in fewer samples than this fraction were not.
const SELDOM: f64 = 0.05;

impl Clocks {
    fn of(gpus: &[SampledGpu]) -> Option<Self> {
        let gpus = gpus.iter().filter(|gpu| gpu.clock_samples > 0);
        let clocks = gpus.map(|gpu| Self {
            held_back: gpu.held_back_samples as f64 / gpu.clock_samples as f64,
            reasons: gpu
                .held_back
                .iter()
                .map(|held| held.reason.clone())
                .collect(),
        });
        clocks.max_by(|left, right| left.held_back.total_cmp(&right.held_back))
    }

    pub(crate) fn are_held_back(&self) -> bool {
        self.held_back >= SELDOM
    }
}

/// The figures of one function in one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) calls: f64,
    /// The figures that are known, for one call.
    pub(crate) per_call: BTreeMap<Metric, f64>,
    /// What reading the thread's clock took in each call, in nanoseconds; zero without thread times.
    pub(crate) thread_clock_ns: f64,
    /// Differences per call below this many nanoseconds are those of the clock, on the CPU and on the GPU.
    pub(crate) cpu_resolution_ns: f64,
    pub(crate) cuda_resolution_ns: f64,
}

impl Figures {
    /// Returns `true` if reading the thread's clock took longer than a call: what is left of such a thread time is the error of
    /// what was subtracted.
    pub(super) fn is_mostly_thread_clock(&self) -> bool {
        let thread = self.per_call.get(&Metric::Thread);
        thread.is_none_or(|thread_ns| *thread_ns < self.thread_clock_ns)
    }

    /// Returns the smallest difference of a metric that its clock can tell.
    pub(super) fn resolution(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Allocated => 0.0,
            Metric::Thread => self.thread_clock_ns * UNCERTAIN,
            metric if metric.is_cuda() => self.cuda_resolution_ns,
            _ => self.cpu_resolution_ns,
        }
    }
}

impl Run {
    pub(crate) fn of_summary(summary: &Summary) -> Self {
        let rows = summary.rows.iter();
        let functions = rows.map(|row| (row.name.clone(), figures(row, summary.own_cost)));
        Self {
            environment: summary.environment.clone(),
            functions: functions.collect(),
            percentile_error: summary.percentile_error,
            clocks: Clocks::of(&summary.gpus),
        }
    }

    /// Reads the window of a trace as a run. Its percentiles are exact, and it has no cost of a call.
    pub(crate) fn of_timeline(timeline: &Timeline) -> Self {
        let mut devices: Vec<String> = Vec::new();
        for track in &timeline.tracks {
            let is_device = track.kind == TrackKind::GpuStream && !track.device_name.is_empty();
            if is_device && !devices.contains(&track.device_name) {
                devices.push(track.device_name.clone());
            }
        }
        let environment = Environment {
            devices,
            start_unix_ns: timeline.start_unix_ns,
            ..Environment::default()
        };
        let rows = timeline.key_averages().rows;
        let functions = rows
            .iter()
            .map(|row| (row.name.clone(), figures(row, OwnCost::default())));
        Self {
            environment,
            functions: functions.collect(),
            percentile_error: 0.0,
            clocks: None,
        }
    }

    /// Returns a figure of a function.
    pub(crate) fn figure(&self, name: &str, metric: Metric) -> Option<f64> {
        self.functions.get(name)?.per_call.get(&metric).copied()
    }
}

/// The part of a cost that is not certain: it is subtracted, and depends on the state of the caches.
const UNCERTAIN: f64 = 0.1;

fn figures(row: &Row, cost: OwnCost) -> Figures {
    let mut per_call = BTreeMap::new();
    let calls = row.calls as f64;
    if let Some(cpu) = row.cpu.filter(|cpu| cpu.calls > 0) {
        let calls = cpu.calls as f64;
        per_call.insert(Metric::Elapsed, cpu.self_ns / calls);
        if is_leaf(cpu.self_ns, cpu.mean_ns * calls) {
            per_call.insert(Metric::ElapsedP95, cpu.p95_ns);
        }
        if let Some(thread_ns) = row.self_thread_time_total_ns {
            per_call.insert(Metric::Thread, thread_ns / calls);
        }
        if let Some(memory) = row.memory {
            per_call.insert(Metric::Allocated, memory.self_cpu_allocated as f64 / calls);
        }
    }
    if let Some(cuda) = row.cuda.filter(|_| row.cuda_calls() > 0) {
        let calls = row.cuda_calls() as f64;
        per_call.insert(Metric::Cuda, cuda.self_ns / calls);
        if cuda.calls > 0 && is_leaf(cuda.self_ns, cuda.mean_ns * calls) {
            per_call.insert(Metric::CudaP95, cuda.p95_ns);
        }
    }
    Figures {
        calls,
        per_call,
        thread_clock_ns: cost.thread_time_ns,
        // Without the reading of the thread's clock, which is outside of the elapsed time.
        cpu_resolution_ns: (cost.call_ns - cost.thread_time_ns).max(0.0) * UNCERTAIN,
        cuda_resolution_ns: CUDA_RESOLUTION_NS,
    }
}

/// Returns `true` if the percentiles of a function are its own, and not those of its children.
fn is_leaf(own_ns: f64, total_ns: f64) -> bool {
    total_ns > 0.0 && own_ns >= (1.0 - CHILDREN) * total_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_were_only_reported_are_compared_for_each_call_of_the_name() {
        let mut cuda = profiler_report::Times::default();
        (cuda.total_ns, cuda.self_ns) = (60.0, 60.0);
        let mut row = Row::default();
        (row.calls, row.cuda) = (4, Some(cuda));
        let figures = figures(&row, OwnCost::default());
        assert_eq!(figures.per_call.get(&Metric::Cuda), Some(&15.0));
        assert_eq!(figures.per_call.get(&Metric::CudaP95), None);
    }
}
