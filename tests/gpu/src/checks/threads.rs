//! Several threads at once.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use profiler_runtime::scope;

use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::measured::expect_all;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "threads",
    checks: &[
        Check {
            name: "threads with separate streams are measured independently",
            bound: "the median of each thread's kernels is at least 100 µs times its number \
                    less a timer step and 3 %, and at most 150 µs more; no call is lost",
            run: own_streams,
        },
        Check {
            name: "each thread has its own per-thread stream",
            bound: "a thread that runs kernels of 200 µs on it never measures the 2 ms of \
                    another: its median is below 1 ms",
            run: per_thread,
        },
        Check {
            name: "threads that share a stream and a name are counted together",
            bound: "all calls are counted; the sum of their times is at least that of the \
                    kernels less 1 %, and at most the time of the host for them, including the \
                    wait for each",
            run: shared,
        },
        Check {
            name: "the first call of a thread without a context has its GPU time",
            bound: "20 threads without a current context, each with one call on a named \
                    stream: all have a GPU time",
            run: without_context,
        },
    ],
};

const CALLS: u64 = 40;
const THREADS: u64 = 4;

/// Runs `work` on several threads, each with the context current and a number from 1.
fn on_threads(gpu: &Gpu, work: impl Fn(u64) -> Result<(), Trouble> + Sync) -> Result<(), Trouble> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS)
            .map(|number| {
                let work = &work;
                scope.spawn(move || {
                    gpu.context.bind_to_thread()?;
                    work(number)
                })
            })
            .collect();
        for thread in threads {
            let result = thread.join();
            result.map_err(|_| Trouble::Missing("a thread panicked".to_owned()))??;
        }
        Ok(())
    })
}

fn own_streams(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    on_threads(gpu, |number| {
        let (stream, name) = (gpu.stream()?, format!("thread {number}"));
        for _ in 0..CALLS {
            let _scope = scope!(&*name, stream = &stream);
            gpu.kernels.spin(raw(&stream), number * 100_000, 0)?;
        }
        Ok(())
    })?;
    for number in 1..=THREADS {
        let name = format!("thread {number}");
        let times = expect_all(findings, &name, CALLS)?;
        findings.figure(format!("{name}, median"), times.p50_ns / 1e3, "µs");
        let length = number as f64 * 100_000.0;
        let least = length * 0.968 - gpu.timer_step - 1_000.0;
        findings.expect_between(
            &format!("{name}: the median in ns"),
            times.p50_ns,
            least,
            length + 150_000.0,
        );
    }
    Ok(())
}

fn per_thread(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    on_threads(gpu, |number| {
        let stream = gpu.context.per_thread_stream();
        let (name, length) = if number == 1 {
            ("per thread, 2 ms", 2_000_000)
        } else {
            ("per thread, 200 us", 200_000)
        };
        for _ in 0..CALLS / 2 {
            let _scope = scope!(name, stream = &stream);
            gpu.kernels.spin(raw(&stream), length, 0)?;
        }
        Ok(())
    })?;
    let short = expect_all(findings, "per thread, 200 us", CALLS / 2 * (THREADS - 1))?;
    let long = expect_all(findings, "per thread, 2 ms", CALLS / 2)?;
    findings.figure("kernels of 200 µs, median", short.p50_ns / 1e3, "µs");
    findings.figure("kernels of 2 ms, median", long.p50_ns / 1e3, "µs");
    findings.expect_between(
        "the short median in ns",
        short.p50_ns,
        150_000.0,
        1_000_000.0,
    );
    findings.expect_between(
        "the long median in ns",
        long.p50_ns,
        1_900_000.0,
        2_500_000.0,
    );
    Ok(())
}

fn shared(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (stream, host_ns) = (gpu.stream()?, AtomicU64::new(0));
    on_threads(gpu, |_| {
        for _ in 0..CALLS {
            let began = Instant::now();
            {
                let _scope = scope!("shared stream", stream = &stream);
                gpu.kernels.spin(raw(&stream), 50_000, 0)?;
            }
            stream.synchronize()?;
            let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            host_ns.fetch_add(ns, Relaxed);
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    })?;
    let calls = CALLS * THREADS;
    let times = expect_all(findings, "shared stream", calls)?;
    let kernels = calls as f64 * 50_000.0;
    findings.figure(
        "sum of measurements / sum of kernels",
        times.total_ns / kernels,
        "",
    );
    findings.expect(
        times.total_ns >= kernels * 0.99 - calls as f64 * (gpu.timer_step + 1_000.0),
        || format!("the measurements only add up to {} ns", times.total_ns),
    );
    let host_ns = host_ns.load(Relaxed) as f64;
    findings.figure(
        "sum of measurements / time of the host",
        times.total_ns / host_ns,
        "",
    );
    findings.expect(times.total_ns <= host_ns * 1.001, || {
        format!(
            "the measurements add up to {} ns, but the host waited for all of them within {host_ns} ns",
            times.total_ns
        )
    });
    Ok(())
}

fn without_context(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const NAME: &str = "thread without a context";
    const STARTED: u64 = 20;
    let stream = gpu.stream()?;
    for _ in 0..STARTED {
        let ended = std::thread::scope(|scope| {
            scope
                .spawn(|| drop(scope!("thread without a context", stream = &stream)))
                .join()
        });
        ended.map_err(|_| Trouble::Missing("a thread panicked".to_owned()))?;
    }
    expect_all(findings, NAME, STARTED)?;
    Ok(())
}
