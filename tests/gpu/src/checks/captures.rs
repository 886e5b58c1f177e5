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
            name: "captures in the strictest mode go on while other threads measure",
            bound: "no call of 40 captures fails, and no measured call on the other thread loses its GPU time",
            run: beside_the_resolver,
        },
        Check {
            name: "a scope on a stream that captures leaves the graph alone",
            bound: "the graph holds the kernels and nothing else; the calls are counted, flagged, and have no GPU time",
            run: left_alone,
        },
        Check {
            name: "a scope with `captured` is read at each replay of the graph",
            bound: "as many readings as replays, and the median of 300 µs kernels less a timer step and 3 %, to \
                    50 µs more; the next replay begins when the one before was read, a second later at most",
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
    findings.expect_count("captures that went well", captures?, CAPTURES as u64);
    findings.figure("calls measured meanwhile", calls as f64, "");
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
        let _scope = scope!("in a graph", captured, stream = &stream);
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
        "until a replay was read, longest",
        longest.as_secs_f64() * 1e3,
        "ms",
    );
    findings.figure("median of a replay", times.p50_ns / 1e3, "µs");
    findings.expect_count("readings", times.calls, REPLAYS);
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
