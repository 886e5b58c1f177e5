//! The costs of measuring while kernels are recorded, in child processes: in the suite's own process CUPTI is never turned
//! on, so that the costs measured there are those without it.

use std::time::{Duration, Instant};

use profiler_runtime::Profile;
use profiler_runtime::cuda::{KernelStatus, kernel_status};

use super::{cost, loops};
use crate::child::{self, Part};
use crate::device::Gpu;
use crate::findings::{Check, Findings, Theme};
use crate::trouble::Trouble;
use crate::window;

pub(crate) const THEME: Theme = Theme {
    name: "cost with CUPTI",
    checks: &[
        Check {
            name: "CUPTI was not turned on in the process that measured the other costs",
            bound: "no session of this process asked for kernels, and no CUPTI is loaded: it may slow down all launches from \
                    then on",
            run: is_off,
        },
        Check {
            name: "what does a call cost in a session with kernels, and after it?",
            bound: "the session has kernels; the costs are figures. Each state of the process has a name of its own",
            run: |gpu, findings| {
                window::expect_cupti(gpu)?;
                child::judged(CALLS, &[], findings)
            },
        },
        Check {
            name: "how much slower is a loop in a session with kernels, and after it?",
            bound: "every call has a GPU time, and the session has kernels; the slowdowns are figures. What CUPTI itself \
                    costs is the difference between the bare steps",
            run: |gpu, findings| {
                window::expect_cupti(gpu)?;
                child::judged(LOOPS, &[], findings)
            },
        },
    ],
};

const CALLS: &str = "calls in sessions";
const LOOPS: &str = "loops in sessions";

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: CALLS,
        play: || child::judge(calls),
    },
    Part {
        name: LOOPS,
        play: || child::judge(slowdowns),
    },
];

/// The states of a process, in their order: with no session, or with one that records kernels or does not.
const STATES: [(&str, Option<bool>); 4] = [
    ("before any session", None),
    ("in a session without kernels", Some(false)),
    ("in a session with kernels", Some(true)),
    ("after the session with kernels", None),
];

fn is_off(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let status = kernel_status();
    findings.expect(status == KernelStatus::NotRequested, || {
        format!("the profiler says: {status}")
    });
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let loaded = maps.lines().find(|line| line.contains("libcupti"));
    findings.expect(loaded.is_none(), || {
        format!("CUPTI is loaded: {}", loaded.unwrap_or_default())
    });
    Ok(())
}

/// Runs `measure` in each state.
fn in_each_state(
    findings: &mut Findings,
    measure: impl Fn(&mut Findings) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    for (state, kernels) in STATES {
        let mut of_state = Findings::default();
        let measured = match kernels {
            None => measure(&mut of_state),
            Some(kernels) => in_session(&mut of_state, kernels, &measure),
        };
        findings.add(state, of_state);
        measured?;
    }
    Ok(())
}

fn in_session(
    findings: &mut Findings,
    kernels: bool,
    measure: impl Fn(&mut Findings) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let refused = |error: &dyn std::fmt::Display| Trouble::Missing(error.to_string());
    let began = Instant::now();
    let profile = Profile::builder().kernels(kernels).start();
    let profile = profile.map_err(|error| refused(&error))?;
    findings.figure(
        "start of the session",
        began.elapsed().as_secs_f64() * 1e3,
        "ms",
    );
    let measured = measure(findings);
    profile.stop();
    findings.expect(profile.wait(Duration::from_secs(10)), || {
        "the session had not ended after 10 s".to_owned()
    });
    measured?;
    let trace = profile.trace();
    let trace = trace.ok_or_else(|| Trouble::Missing("the session has no trace".to_owned()))?;
    if kernels && !trace.has_kernels() {
        return Err(window::why_none(trace.no_kernels_reason()));
    }
    for (count, reason) in trace.lost_work().counted() {
        if count > 0 {
            findings.note(format!("{count} {reason}"));
        }
    }
    Ok(())
}

fn calls(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    in_each_state(findings, |findings| {
        cost::compare(gpu, findings, None, 40).map(drop)
    })
}

fn slowdowns(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    in_each_state(findings, |findings| {
        let lengths: &[u64] = if gpu.simulated { &[10] } else { &[10, 160] };
        for us in lengths {
            let mut of_length = Findings::default();
            let kernel = us * 1_000;
            let compared = loops::compare(gpu, &mut of_length, kernel, Duration::ZERO, 7);
            findings.add(&format!("kernels of {us} µs"), of_length);
            compared?;
        }
        Ok(())
    })
}
