//! Captures, and the graphs that they create.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{scope, summary};

use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::graph::{GLOBAL, Graph, THREAD_LOCAL};
use crate::measured::{expect_all, gpu_times, lost_to, row};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "captures",
    checks: &[
        Check {
            name: "captures in the strictest mode succeed while other threads measure",
            bound: "no call of 40 captures fails, and no measured call on the other thread \
                    loses its GPU time",
            run: beside_the_resolver,
        },
        Check {
            name: "a scope on a capturing stream does not change the graph",
            bound: "the graph contains only the kernels; the calls are counted, flagged, and \
                    have no GPU time",
            run: left_alone,
        },
        Check {
            name: "a scope with `cuda_graph` is measured at each launch of the graph",
            bound: "as many measurements as launches; the median is at least 300 µs (the \
                    kernels) less a timer step and 3 %, and at most 50 µs more; the next \
                    launch begins after the previous one was read, within a second",
            run: replays,
        },
    ],
};

fn beside_the_resolver(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const CAPTURES: usize = 40;
    let (capturing, measured) = (gpu.stream()?, gpu.stream()?);
    let is_over = AtomicBool::new(false);
    let (captures, calls) = std::thread::scope(|scope| {
        let other = scope.spawn(|| -> Result<u64, Trouble> {
            gpu.context.bind_to_thread()?;
            let mut calls = 0;
            while !is_over.load(Relaxed) {
                let _scope = scope!("beside captures", stream = &measured);
                gpu.kernels.spin(raw(&measured), 50_000, 0)?;
                calls += 1;
                std::thread::sleep(Duration::from_micros(200));
            }
            Ok(calls)
        });
        let captures = (0..CAPTURES).try_fold(0_u64, |made, _| {
            let graph = Graph::capture(gpu.driver, raw(&capturing), GLOBAL, || {
                gpu.kernels.spin(raw(&capturing), 20_000, 0)?;
                // Long enough for the resolver to poll several times.
                std::thread::sleep(Duration::from_millis(5));
                gpu.kernels.spin(raw(&capturing), 20_000, 0)
            })?;
            graph.launch(raw(&capturing))?;
            capturing.synchronize()?;
            Ok::<_, Trouble>(made + 1)
        });
        is_over.store(true, Relaxed);
        (captures, other.join())
    });
    let calls = calls.map_err(|_| Trouble::Missing("the thread panicked".to_owned()))??;
    findings.expect_count("successful captures", captures?, CAPTURES as u64);
    findings.figure("calls measured during the captures", calls as f64, "");
    expect_all(findings, "beside captures", calls)?;
    Ok(())
}

fn left_alone(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    let handle = raw(&stream);
    let before = lost_to(CudaLoss::Captured);
    let graph = Graph::capture(gpu.driver, handle, THREAD_LOCAL, || {
        for _ in 0..3 {
            let _scope = scope!("while capturing", stream = &stream);
            gpu.kernels.spin(handle, 20_000, 0)?;
        }
        Ok(())
    })?;
    findings.expect_count("nodes of the graph", graph.nodes()? as u64, 3);
    graph.launch(handle)?;
    stream.synchronize()?;
    let row = row("while capturing")?;
    findings.expect_count("calls", row.calls, 3);
    findings.expect_count("calls without GPU time", row.without_cuda, 3);
    findings.expect_count(
        "calls flagged as captured",
        lost_to(CudaLoss::Captured) - before,
        3,
    );
    Ok(())
}

fn replays(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const REPLAYS: u64 = 10;
    let stream = gpu.stream()?;
    let handle = raw(&stream);
    let graph = Graph::capture(gpu.driver, handle, THREAD_LOCAL, || {
        let _scope = scope!("in a graph", cuda_graph, stream = &stream);
        gpu.kernels.spin(handle, 300_000, 0)
    })?;
    let mut longest = Duration::ZERO;
    for replay in 0..REPLAYS {
        graph.launch(handle)?;
        stream.synchronize()?;
        // Each launch overwrites the events of the previous one, so the resolver must read them in
        // between.
        let began = Instant::now();
        while replays_read() <= replay && began.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(1));
        }
        longest = longest.max(began.elapsed());
    }
    let times = gpu_times("in a graph")?;
    findings.figure(
        "longest time until a launch was read",
        longest.as_secs_f64() * 1e3,
        "ms",
    );
    findings.figure("median of a launch", times.p50_ns / 1e3, "µs");
    findings.expect_count("measurements", times.calls, REPLAYS);
    let least = 300_000.0 * 0.968 - gpu.timer_step - 1_000.0;
    findings.expect_between("the median in ns", times.p50_ns, least, 350_000.0);
    Ok(())
}

/// Returns how many launches were read so far.
fn replays_read() -> u64 {
    let summary = summary();
    let times = summary.row("in a graph").and_then(|row| row.cuda.as_ref());
    times.map_or(0, |times| times.calls)
}
