//! A kernel that makes its context fail, in child processes, with the profiler on and off.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{flush, scope, summary};
use serde_json::json;

use crate::child::{self, Part, Played};
use crate::device::{Event, Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::measured::{lost_to, settle};
use crate::neighbours::{self, Harm};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "failures",
    checks: &[Check {
        name: "a sticky error reaches the program as it does without the profiler",
        bound: "the same codes from the same calls with the profiler on and off, the first of \
                them 700 (or 719); earlier measurements keep their GPU times; every call is \
                counted; open calls are counted as `context_failed`; `flush` returns soon \
                after its 2 s; the process exits by itself",
        run: sticky,
    }],
};

pub(crate) const PARTS: &[Part] = &[Part {
    name: "sticky error",
    play: break_the_context,
}];

const BEFORE: u64 = 20;
const AFTER: u64 = 20;

fn sticky(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    neighbours::spare(Harm::IllegalAddress)?;
    let run = |enabled| child::run("sticky error", &[("PROFILER_ENABLED", enabled)])?.successful();
    let (on, off): (Played, Played) = (run("1")?, run("0")?);
    let (seen, expected) = (on.value("codes")?, off.value("codes")?);
    findings.note(format!(
        "codes of synchronize, synchronize, launch, record and query: {expected}"
    ));
    findings.expect(seen == expected, || format!("with the profiler on: {seen}"));
    let first = expected
        .get(0)
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0);
    findings.expect(first == 700 || first == 719, || {
        format!("the first code is {first}")
    });
    findings.expect_count("calls", on.count("calls")?, BEFORE + 1 + AFTER);
    findings.expect_count(
        "GPU times of calls before",
        on.count("read before")?,
        BEFORE,
    );
    let failed = on.count("context failed")?;
    findings.figure("calls counted as `context_failed`", failed as f64, "");
    findings.expect(failed > 0, || {
        "no call is counted as `context_failed`".to_owned()
    });
    let seconds = on.number("flush seconds")?;
    findings.figure("flush", seconds, "s");
    findings.expect(seconds < 4.0, || format!("flush took {seconds} s"));
    for notice in on.stderr.lines().filter(|line| !line.is_empty()) {
        findings.note(format!("said: {notice}"));
    }
    Ok(())
}

/// Runs in the child: checks every code, and exits as if nothing had happened.
fn break_the_context() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    let (driver, handle, event) = (gpu.driver, raw(&stream), Event::new(gpu.driver)?);
    for _ in 0..BEFORE {
        let _scope = scope!("before the fault", stream = &stream);
        gpu.kernels.spin(handle, 100_000, 0)?;
    }
    stream.synchronize()?;
    settle();
    {
        let _scope = scope!("the fault", stream = &stream);
        gpu.kernels.fault(handle)?;
    }
    let codes = [
        driver.cuStreamSynchronize(handle),
        driver.cuStreamSynchronize(handle),
        gpu.kernels.try_empty(handle),
        driver.cuEventRecord(event.handle, handle),
        driver.cuEventQuery(event.handle),
    ];
    for _ in 0..AFTER {
        let _scope = scope!("after the fault", stream = &stream);
        gpu.kernels.try_empty(handle);
    }
    let began = Instant::now();
    flush(Duration::from_secs(2));
    let seconds = began.elapsed().as_secs_f64();
    let rows = summary().rows;
    let before = rows.iter().find(|row| row.name == "before the fault");
    child::report(&json!({
        "codes": codes,
        "calls": rows.iter().map(|row| row.calls).sum::<u64>(),
        "read before": before.and_then(|row| row.cuda.as_ref()).map_or(0, |times| times.calls),
        "context failed": lost_to(CudaLoss::ContextFailed),
        "flush seconds": seconds,
    }));
    Ok(ExitCode::SUCCESS)
}
