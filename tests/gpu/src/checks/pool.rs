//! The event pool at its limit, in a child process with a small limit.

use std::process::ExitCode;

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{scope, summary};
use serde_json::json;

use crate::child::{self, Part};
use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::measured::{lost_to, row, settle};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "pool",
    checks: &[Check {
        name: "at its limit the pool drops GPU times but no calls, and recovers",
        bound: "with 64 pairs and 200 calls after a kernel of 300 ms: 200 calls; at most 64 \
                with a GPU time; the others counted as `pool_empty`; after that, 20 more calls \
                all have a GPU time",
        run: at_the_cap,
    }],
};

pub(crate) const PARTS: &[Part] = &[Part {
    name: "pool",
    play: exhaust,
}];

const CAP: u64 = 64;
const CALLS: u64 = 200;
const AFTER: u64 = 20;

fn at_the_cap(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let child = child::run("pool", &[("PROFILER_CUDA_EVENTS", "64")])?.successful()?;
    let [read, empty] = [child.count("read")?, child.count("pool empty")?];
    findings.figure("calls with a GPU time", read as f64, "");
    findings.figure("pairs in use at most", child.number("high water")?, "");
    findings.expect_count("calls", child.count("calls")?, CALLS);
    findings.expect(read > 0 && read <= CAP, || {
        format!("{read} calls have a GPU time")
    });
    findings.expect_count("calls with a time or a reason", read + empty, CALLS);
    findings.expect(child.count("high water")? <= CAP, || {
        "more pairs than the cap".to_owned()
    });
    findings.expect_count(
        "GPU times once it was drained",
        child.count("read after")?,
        AFTER,
    );
    Ok(())
}

/// Runs in the child.
fn exhaust() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    gpu.plug(&stream, 300_000_000)?;
    for _ in 0..CALLS {
        let _scope = scope!("at the cap", stream = &stream);
    }
    let full = row("at the cap")?;
    let empty = lost_to(CudaLoss::PoolEmpty);
    for _ in 0..AFTER {
        let _scope = scope!("after the cap", stream = &stream);
        gpu.kernels.empty(raw(&stream))?;
    }
    settle();
    let after = row("after the cap")?;
    child::report(&json!({
        "calls": full.calls,
        "read": full.cuda.map_or(0, |times| times.calls),
        "pool empty": empty,
        "read after": after.cuda.map_or(0, |times| times.calls),
        "high water": summary().cuda.high_water,
    }));
    Ok(ExitCode::SUCCESS)
}
