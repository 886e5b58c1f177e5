//! The effects of the legacy default stream on others, and that the profiler only uses it on
//! request.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use profiler_runtime::{scope, set_enabled};

use crate::device::Gpu;
use crate::driver::made;
use crate::figures::median;
use crate::findings::{Check, Findings, Theme};
use crate::graph::{GLOBAL, Graph, THREAD_LOCAL};
use crate::measured::settle;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "default stream",
    checks: &[
        Check {
            name: "blocking streams stay independent while functions without a stream are measured",
            bound: "the median of 10 rounds of 40 kernels of 0.5 ms on four blocking streams \
                    is at most 1.2 times as long on as off; with the legacy default stream it \
                    may be four times, which is a figure",
            run: independent,
        },
        Check {
            name: "captures of blocking streams stay valid while a function without a stream is measured",
            bound: "none of 200 captures fails in either mode; how many fail with the legacy \
                    default stream is a figure",
            run: captures,
        },
    ],
};

/// The measured call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measured {
    Off,
    WithoutStream,
    OnLegacy,
}

impl Measured {
    fn call<T>(self, gpu: &Gpu, work: impl FnOnce() -> T) -> T {
        if self == Self::OnLegacy {
            let _scope = scope!("on the legacy stream", stream = &gpu.context);
            return work();
        }
        let _scope = scope!("without a stream");
        work()
    }
}

/// Creates streams as `cudaStreamCreate` does.
struct Blocking<'a> {
    gpu: &'a Gpu,
    handles: Vec<usize>,
}

impl<'a> Blocking<'a> {
    fn new(gpu: &'a Gpu, count: usize) -> Result<Self, Trouble> {
        let mut streams = Self {
            gpu,
            handles: Vec::new(),
        };
        for _ in 0..count {
            streams
                .handles
                .push(made(gpu.driver, "cuStreamCreate", |stream| {
                    gpu.driver.cuStreamCreate(stream, 0)
                })?);
        }
        Ok(streams)
    }
}

impl Drop for Blocking<'_> {
    fn drop(&mut self) {
        for handle in &self.handles {
            // A stream that cannot be destroyed is freed when the process exits.
            let _ = self.gpu.driver.cuStreamDestroy_v2(*handle);
        }
    }
}

fn independent(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const ROUNDS: usize = 10;
    let streams = Blocking::new(gpu, 4)?;
    let round = |measured: Measured| -> Result<f64, Trouble> {
        set_enabled(measured != Measured::Off);
        let began = Instant::now();
        for launch in 0..40 {
            let stream = streams.handles[launch % streams.handles.len()];
            measured.call(gpu, || gpu.kernels.spin(stream, 500_000, 0))?;
        }
        gpu.context.synchronize()?;
        let ms = began.elapsed().as_secs_f64() * 1e3;
        set_enabled(true);
        settle();
        Ok(ms)
    };
    let kinds = [Measured::Off, Measured::WithoutStream, Measured::OnLegacy];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (times, kind) in times.iter_mut().zip(kinds) {
            times.push(round(kind)?);
        }
    }
    let [off, without, legacy] = times.map(|times| median(&times));
    findings.figure("off", off, "ms");
    findings.figure("on, without a stream", without, "ms");
    findings.figure("on, with the legacy default stream", legacy, "ms");
    if gpu.simulated {
        findings.note("the figures are those of the simulated driver and have no bounds");
    } else {
        findings.expect_between("on as a multiple of off", without / off, 0.0, 1.2);
    }
    Ok(())
}

/// Counts how many captures failed while another thread measured, and the calls that it measured.
fn failed_beside(gpu: &Gpu, mode: u32, measured: Measured) -> Result<(u64, u64), Trouble> {
    const CAPTURES: usize = 200;
    let streams = Blocking::new(gpu, 1)?;
    let stream = streams.handles[0];
    let (is_over, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| -> Result<(), Trouble> {
            gpu.context.bind_to_thread()?;
            while !is_over.load(Relaxed) {
                measured.call(gpu, || ());
                calls.fetch_add(1, Relaxed);
            }
            Ok(())
        });
        let failed = (0..CAPTURES).filter(|_| {
            let captured = Graph::capture(gpu.driver, stream, mode, || {
                gpu.kernels.spin(stream, 20_000, 0)?;
                // Wait until the other thread has measured a whole call, unless it has failed.
                let before = calls.load(Relaxed);
                while calls.load(Relaxed) < before + 2 && !other.is_finished() {
                    std::thread::yield_now();
                }
                gpu.kernels.spin(stream, 20_000, 0)
            });
            captured.is_err()
        });
        let failed = failed.count() as u64;
        is_over.store(true, Relaxed);
        let joined = other.join();
        joined.map_err(|_| Trouble::Missing("the thread panicked".to_owned()))??;
        settle();
        Ok((failed, calls.load(Relaxed)))
    })
}

fn captures(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    for (mode, name) in [(GLOBAL, "global"), (THREAD_LOCAL, "thread-local")] {
        let (failed, calls) = failed_beside(gpu, mode, Measured::WithoutStream)?;
        findings.figure(
            format!("{name}: calls measured during the captures"),
            calls as f64,
            "",
        );
        findings.expect_count(&format!("{name}: captures that failed"), failed, 0);
        let (failed, _) = failed_beside(gpu, mode, Measured::OnLegacy)?;
        let figure = format!("{name}: captures that failed with the legacy default stream");
        findings.figure(figure, failed as f64, "of 200");
    }
    Ok(())
}
