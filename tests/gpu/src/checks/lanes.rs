//! Kernels of several threads and streams in one window of a child process.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::scope;
use profiler_runtime::session::GpuLaunch;

use crate::child::{self, Part};
use crate::device::{Gpu, Stamps, raw};
use crate::figures::{differences, median};
use crate::findings::{Check, Findings, Theme};
use crate::trouble::Trouble;
use crate::window::{self, Window, Work};

pub(crate) const THEME: Theme = Theme {
    name: "parallel work of windows",
    checks: &[Check {
        name: "each kernel of parallel work is under the scope around its launch, and on its stream",
        bound: "4 threads with 2 streams each: 25 kernels under each thread's scope for each stream, on one stream that no \
                other scope has, launched by that thread, and on the stream of the scope's GPU time; their median length \
                is that of the kernels by their stamps, within 5 µs and 0.1 %, which differs by 30 µs from any other's",
        run: |gpu, findings| {
            window::expect_cupti(gpu)?;
            child::judged(LANES, &[], findings)
        },
    }],
};

const LANES: &str = "lanes";

pub(crate) const PARTS: &[Part] = &[Part {
    name: LANES,
    play: || child::judge(lanes),
}];

const THREADS: u64 = 4;
const STREAMS: u64 = 2;
const CALLS: usize = 25;

/// A stream of a thread.
struct Lane {
    /// The name of the scopes.
    name: String,
    thread: String,
    length: u64,
    stream: Arc<CudaStream>,
    stamps: Stamps,
}

impl Lane {
    fn new(gpu: &Gpu, thread: u64, stream: u64) -> Result<Self, Trouble> {
        Ok(Self {
            name: format!("thread {thread}, stream {stream}"),
            thread: format!("lane {thread}"),
            length: 30_000 * (1 + thread * STREAMS + stream),
            stream: gpu.stream()?,
            stamps: Stamps::new(gpu.driver, CALLS)?,
        })
    }

    fn launch(&self, gpu: &Gpu, call: usize) -> Result<(), Trouble> {
        let _scope = scope!(&*self.name, stream = &self.stream);
        gpu.kernels
            .spin(raw(&self.stream), self.length, self.stamps.of(call))
    }
}

fn lanes(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let threads: Vec<Vec<Lane>> = (0..THREADS)
        .map(|thread| {
            (0..STREAMS)
                .map(|stream| Lane::new(gpu, thread, stream))
                .collect()
        })
        .collect::<Result<_, Trouble>>()?;
    let window = Window::record(gpu, findings, || {
        std::thread::scope(|scope| {
            let started: Vec<_> = threads
                .iter()
                .map(|lanes| {
                    let run = || {
                        gpu.context.bind_to_thread()?;
                        for call in 0..CALLS {
                            lanes.iter().try_for_each(|lane| lane.launch(gpu, call))?;
                        }
                        Ok::<_, Trouble>(())
                    };
                    let name = lanes.first().map_or("lane", |lane| &lane.thread);
                    std::thread::Builder::new()
                        .name(name.to_owned())
                        .spawn_scoped(scope, run)
                })
                .collect::<Result<_, _>>()?;
            for thread in started {
                let ended = thread.join();
                ended.map_err(|_| Trouble::Missing("a thread panicked".to_owned()))??;
            }
            Ok(())
        })
    })?;
    let work = window.work();
    let all = THREADS * STREAMS * CALLS as u64;
    findings.expect_count("kernels", work.len() as u64, all);
    let mut streams = Vec::new();
    for lane in threads.iter().flatten() {
        streams.push(judge(gpu, findings, (&window, &work), lane)?);
    }
    let lanes = streams.len();
    streams.sort_unstable();
    streams.dedup();
    findings.expect_count("streams", streams.len() as u64, lanes as u64);
    findings.figure("kernels at once, at most", at_once(&work) as f64, "");
    Ok(())
}

/// Judges the kernels of one scope. Returns the number of their stream.
fn judge(
    gpu: &Gpu,
    findings: &mut Findings,
    (window, work): (&Window, &[Work<'_>]),
    lane: &Lane,
) -> Result<u32, Trouble> {
    let name = &lane.name;
    let of_scope: Vec<&Work<'_>> = work
        .iter()
        .filter(|work| work.scope == Some(&**name))
        .collect();
    findings.expect_count(
        &format!("kernels of `{name}`"),
        of_scope.len() as u64,
        CALLS as u64,
    );
    let stream = of_scope
        .first()
        .map_or(u32::MAX, |work| work.details.stream);
    let elsewhere = of_scope.iter().filter(|work| work.details.stream != stream);
    findings.expect_count(
        &format!("kernels of `{name}` on another stream"),
        elsewhere.count() as u64,
        0,
    );
    let (mut of_thread, mut of_stream) = (0, 0);
    for event in window.trace.events().filter(|event| event.name() == name) {
        for kernel in event.gpu_work() {
            let thread = kernel.launch().and_then(GpuLaunch::thread_name);
            of_thread += u64::from(thread == Some(&*lane.thread));
            let measured = event.gpu().map(|gpu| gpu.stream);
            of_stream += u64::from(measured.is_some() && kernel.stream() == measured);
        }
    }
    findings.expect_count(
        &format!("kernels of `{name}` launched by its thread"),
        of_thread,
        CALLS as u64,
    );
    findings.expect_count(
        &format!("kernels of `{name}` on the stream of the GPU time"),
        of_stream,
        CALLS as u64,
    );
    let lengths: Vec<f64> = of_scope.iter().map(|work| work.ns as f64).collect();
    let errors = differences(&lengths, &lane.stamps.lengths()?);
    findings.figure(
        format!("{name}: length minus stamps, median"),
        median(&errors) / 1e3,
        "µs",
    );
    findings.expect_between(
        &format!("`{name}`: the median length minus stamps in ns"),
        median(&errors),
        -(gpu.timer_step + 1_000.0),
        5_000.0 + 0.001 * lane.length as f64,
    );
    Ok(stream)
}

/// Returns how many kernels ran at the same time, at most.
fn at_once(work: &[Work<'_>]) -> usize {
    let running = |at: i64| {
        let running = work
            .iter()
            .filter(|work| (work.start_ns..work.end_ns()).contains(&at));
        running.count()
    };
    let starts = work.iter().map(|work| running(work.start_ns));
    starts.max().unwrap_or(0)
}
