//! Other actions of a process that measures: it forks, captures before the profiler has used the
//! device, or resets the device while a guard of `init` exists. Each runs in a child process.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use profiler_runtime::{flush, init, scope, summary};
use serde_json::json;

use crate::child::{self, Part};
use crate::device::{Gpu, raw};
use crate::driver::Driver;
use crate::findings::{Check, Findings, Theme};
use crate::graph::{GLOBAL, Graph};
use crate::measured::{row, settle};
use crate::neighbours::{self, Harm};
use crate::own::Own;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "processes",
    checks: &[
        Check {
            name: "a forked process measures, writes a summary and exits, and its parent continues",
            bound: "the child exits with 0 within 10 s; all 20 calls of the parent have a GPU \
                    time",
            run: forked,
        },
        Check {
            name: "the profiler can use the device for the first time while a stream captures",
            bound: "a capture in the strictest mode, during which this thread and another one \
                    measure on another stream for the first time: it succeeds with its one \
                    node, and all 20 calls have a GPU time",
            run: met_in_a_capture,
        },
        Check {
            name: "the guard of `init` can be dropped after the device was reset",
            bound: "the process exits by itself; all 20 calls before the reset have a GPU \
                    time. Skipped if the same program fails with the profiler off",
            run: guard_after_reset,
        },
    ],
};

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "fork",
        play: part_fork,
    },
    Part {
        name: "met in a capture",
        play: part_met_in_a_capture,
    },
    Part {
        name: "guard after reset",
        play: part_guard_after_reset,
    },
];

/// The calls in each half of a role.
const CALLS: u64 = 10;
const NAME: &str = "measured";

unsafe extern "C" {
    safe fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn kill(process: i32, signal: i32) -> i32;
}

fn expect_all_times(findings: &mut Findings, child: &child::Played) -> Result<(), Trouble> {
    findings.expect_count("calls", child.count("calls")?, 2 * CALLS);
    findings.expect_count("calls with a GPU time", child.count("timed")?, 2 * CALLS);
    Ok(())
}

/// The statistics of the calls of a role.
fn report(more: &serde_json::Value) -> Result<ExitCode, Trouble> {
    let row = row(NAME)?;
    child::report(&json!({
        "calls": row.calls,
        "timed": row.cuda.map_or(0, |times| times.calls),
        "more": more,
    }));
    Ok(ExitCode::SUCCESS)
}

fn fork_and_wait(work: impl FnOnce()) -> Result<Option<i32>, Trouble> {
    const NO_HANG: i32 = 1;
    const KILL: i32 = 9;
    let process = fork();
    if process < 0 {
        return Err(Trouble::Missing("the system refused to fork".to_owned()));
    }
    if process == 0 {
        work();
        crate::runner::end_now(0);
    }
    let began = Instant::now();
    let mut status = 0;
    while began.elapsed() < Duration::from_secs(10) {
        // SAFETY: this process forked the child, and no other code waits for it.
        if unsafe { waitpid(process, &raw mut status, NO_HANG) } == process {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: as above; the child still exists.
    unsafe {
        kill(process, KILL);
        waitpid(process, &raw mut status, 0);
    }
    Ok(None)
}

fn fork_status(status: Option<i32>) -> String {
    status.map_or("had not ended after 10 s".to_owned(), |status| {
        format!("ended with status {status}")
    })
}

fn forked(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let child = child::run("fork", &[])?.successful()?;
    let forked = child.value("more")?.as_str().unwrap_or_default();
    findings.expect(forked == fork_status(Some(0)), || {
        format!("the forked process {forked}")
    });
    expect_all_times(findings, &child)
}

fn part_fork() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    let measure = || {
        for _ in 0..CALLS {
            let _scope = scope!("measured", stream = &stream);
            gpu.kernels.spin(raw(&stream), 50_000, 0)?;
        }
        Ok::<_, Trouble>(())
    };
    measure()?;
    let status = fork_and_wait(|| {
        // The driver does not work in the fork, so nothing is launched.
        for _ in 0..CALLS {
            let _scope = scope!("measured", stream = &stream);
        }
        flush(Duration::from_secs(1));
        std::hint::black_box(summary());
    })?;
    measure()?;
    report(&json!(fork_status(status)))
}

fn met_in_a_capture(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let child = child::run("met in a capture", &[])?.successful()?;
    findings.expect_count("nodes of the graph", child.count("more")?, 1);
    expect_all_times(findings, &child)
}

fn part_met_in_a_capture() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let (capturing, stream) = (gpu.stream()?, gpu.stream()?);
    let measure = || {
        for _ in 0..CALLS {
            let _scope = scope!("measured", stream = &stream);
            gpu.kernels.spin(raw(&stream), 50_000, 0)?;
        }
        Ok::<_, Trouble>(())
    };
    let graph = Graph::capture(gpu.driver, raw(&capturing), GLOBAL, || {
        gpu.kernels.spin(raw(&capturing), 20_000, 0)?;
        measure()?;
        let other = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let context = gpu.context.cu_ctx() as usize;
                let set = gpu.driver.cuCtxSetCurrent(context);
                gpu.driver.check("cuCtxSetCurrent", set)?;
                measure()
            });
            other.join()
        });
        // Long enough for the resolver to poll several times.
        std::thread::sleep(Duration::from_millis(20));
        other.map_err(|_| Trouble::Missing("the thread panicked".to_owned()))?
    })?;
    graph.launch(raw(&capturing))?;
    gpu.context.synchronize()?;
    report(&json!(graph.nodes()?))
}

fn guard_after_reset(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const PART: &str = "guard after reset";
    neighbours::spare(Harm::Reset)?;
    child::expect_success_without_profiler(PART, 0, 1)?;
    let child = child::run(PART, &[])?.successful()?;
    expect_all_times(findings, &child)
}

fn part_guard_after_reset() -> Result<ExitCode, Trouble> {
    let guard = init().map_err(|error| Trouble::Missing(error.to_string()))?;
    let driver = Driver::get().map_err(Trouble::Missing)?;
    let own = Own::primary(driver, 0)?;
    let stream = own.as_stream();
    for _ in 0..2 * CALLS {
        let _scope = scope!("measured", stream = &stream);
        own.spin(50_000)?;
    }
    drop(stream);
    own.synchronize()?;
    settle();
    // With the profiler off, there is no row.
    let reported = report(&json!(null)).unwrap_or(ExitCode::SUCCESS);
    driver.check(
        "cuDevicePrimaryCtxReset",
        driver.cuDevicePrimaryCtxReset_v2(0),
    )?;
    drop(guard);
    Ok(reported)
}
