//! Contexts that are destroyed while the profiler uses them, in child processes, since a driver may
//! crash on their objects.

use std::process::ExitCode;

use profiler_runtime::{scope, summary};
use serde_json::{Value, json};

use crate::child::{self, Part, Played};
use crate::device::{Gpu, raw};
use crate::driver::Driver;
use crate::findings::{Check, Findings, Theme};
use crate::measured::settle;
use crate::neighbours::{self, Harm};
use crate::own::Own;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "contexts that end",
    checks: &[
        Check {
            name: "a context that is destroyed with times unread loses only these times",
            bound: "the process exits by itself; calls and reasons add up; the other context \
                    is measured as before",
            run: destroyed,
        },
        Check {
            name: "a context created after one that was flushed and destroyed is measured",
            bound: "the process exits by itself; all calls before have a GPU time; calls and \
                    reasons after that add up, and in the end all calls have a GPU time again, \
                    if the driver numbers contexts (from CUDA 12 on); medians as for two \
                    contexts. Skipped if the same program fails with the profiler off",
            run: replaced,
        },
        Check {
            name: "a primary context that is flushed and reset is measured again",
            bound: "as for the destroyed context",
            run: reset,
        },
    ],
};

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "context destroyed",
        play: destroy,
    },
    Part {
        name: "context replaced",
        play: replace,
    },
    Part {
        name: "context reset",
        play: reset_primary,
    },
];

const CALLS: u64 = 20;
const LENGTH: u64 = 100_000;
/// The maximum number of flushes after which the profiler must have recognized a new context.
const BATCHES: u64 = 10;

/// Reports the results of a name from a child.
fn counts(name: &str) -> Value {
    settle();
    let summary = summary();
    let row = summary.row(name);
    let times = row.and_then(|row| row.cuda.as_ref());
    json!({
        "calls": row.map_or(0, |row| row.calls),
        "timed": times.map_or(0, |times| times.calls),
        "without": row.map_or(0, |row| row.without_cuda),
        "median": times.map_or(0.0, |times| times.p50_ns),
    })
}

/// The results of a name in a child.
struct Counts {
    calls: u64,
    timed: u64,
    without: u64,
    median: f64,
}

impl Counts {
    fn of(child: &Played, name: &str) -> Result<Self, Trouble> {
        let reported = child.value(name)?;
        let count = |key: &str| reported[key].as_u64().unwrap_or(0);
        Ok(Self {
            calls: count("calls"),
            timed: count("timed"),
            without: count("without"),
            median: reported["median"].as_f64().unwrap_or(f64::NAN),
        })
    }

    /// Checks that every call is accounted for, and that the times read are the kernel's length.
    fn judge(&self, gpu: &Gpu, findings: &mut Findings, name: &str) {
        findings.figure(
            format!("{name}: calls with a GPU time"),
            self.timed as f64,
            "",
        );
        findings.expect_count(
            &format!("{name}: calls with a time or a reason"),
            self.timed + self.without,
            self.calls,
        );
        if self.timed > 0 {
            findings.figure(format!("{name}: median"), self.median / 1e3, "µs");
            let length = LENGTH as f64;
            let least = length * 0.968 - gpu.timer_step - 1_000.0;
            let what = format!("{name}: the median in ns");
            findings.expect_between(&what, self.median, least, length + 1e6);
        }
    }
}

fn destroyed(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let child = child::run("context destroyed", &[])?.successful()?;
    let doomed = Counts::of(&child, "in the context to destroy")?;
    findings.figure(
        "calls read before it was destroyed",
        doomed.timed as f64,
        "",
    );
    findings.expect_count("calls", doomed.calls, CALLS);
    findings.expect_count(
        "calls with a time or a reason",
        doomed.timed + doomed.without,
        CALLS,
    );
    let beside = Counts::of(&child, "next to the context to destroy")?;
    beside.judge(gpu, findings, "beside it");
    findings.expect_count("calls next to it with a GPU time", beside.timed, CALLS);
    tell_notices(&child, findings);
    Ok(())
}

fn destroy() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let (stream, own) = (gpu.stream()?, Own::new(gpu.driver, 0)?);
    let other = own.as_stream();
    own.with(|| {
        for _ in 0..CALLS {
            let _scope = scope!("in the context to destroy", stream = &other);
            own.spin(1_000_000)?;
        }
        Ok(())
    })?;
    drop(other);
    // Destroy it while its scopes are in flight. This waits for the kernels, not for the profiler.
    own.destroy()?;
    for _ in 0..CALLS {
        let _scope = scope!("next to the context to destroy", stream = &stream);
        gpu.kernels.spin(raw(&stream), LENGTH, 0)?;
    }
    let names = [
        "in the context to destroy",
        "next to the context to destroy",
    ];
    child::report(&json!({ names[0]: counts(names[0]), names[1]: counts(names[1]) }));
    Ok(ExitCode::SUCCESS)
}

fn replaced(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    used_again(gpu, findings, "context replaced")
}

fn reset(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    neighbours::spare(Harm::Reset)?;
    used_again(gpu, findings, "context reset")
}

fn used_again(gpu: &Gpu, findings: &mut Findings, part: &str) -> Result<(), Trouble> {
    child::expect_success_without_profiler(part, 0, 1)?;
    let child = child::run(part, &[])?.successful()?;
    for name in ["before", "at once", "in the end"] {
        let counts = Counts::of(&child, name)?;
        counts.judge(gpu, findings, name);
        if name == "before" {
            findings.expect_count("before: calls with a GPU time", counts.timed, CALLS);
        }
    }
    let batches = child.count("batches")?;
    findings.figure(
        "flushes until all calls were measured again",
        batches as f64,
        "",
    );
    let (whole, known) = (
        child.value("is whole")? == true,
        gpu.driver.exports("cuCtxGetId"),
    );
    findings.note(format!("the driver numbers contexts: {known}"));
    findings.expect(whole || !known, || {
        format!("calls are left out after {batches} flushes")
    });
    findings.note(format!(
        "the new context has the handle of the old one: {}",
        child.value("same handle")?
    ));
    tell_notices(&child, findings);
    Ok(())
}

fn tell_notices(child: &Played, findings: &mut Findings) {
    for notice in child.stderr.lines().filter(|line| !line.is_empty()) {
        findings.note(format!("said: {notice}"));
    }
}

fn replace() -> Result<ExitCode, Trouble> {
    use_again(|driver| Own::current(driver, 0), |_, own| own.destroy())
}

fn reset_primary() -> Result<ExitCode, Trouble> {
    use_again(
        |driver| Own::primary(driver, 0),
        // The stream and the kernels are destroyed with their context.
        |driver, _| {
            driver.check(
                "cuDevicePrimaryCtxReset",
                driver.cuDevicePrimaryCtxReset_v2(0),
            )
        },
    )
}

/// Measures in a context, destroys it, and measures in its successor: immediately, and until the
/// profiler recognizes it.
fn use_again(
    make: impl Fn(&'static Driver) -> Result<Own, Trouble>,
    end: impl FnOnce(&'static Driver, Own) -> Result<(), Trouble>,
) -> Result<ExitCode, Trouble> {
    let driver = Driver::get().map_err(Trouble::Missing)?;
    let own = make(driver)?;
    let handle = own.context;
    let before = measure(&own, "before")?;
    end(driver, own)?;
    let own = make(driver)?;
    let at_once = measure(&own, "at once")?;
    let (mut batches, mut whole, mut last) = (0, false, json!(null));
    let mut timed = 0;
    while batches < BATCHES && !whole {
        last = measure(&own, "in the end")?;
        let now = last["timed"].as_u64().unwrap_or(0);
        whole = now - timed == CALLS;
        timed = now;
        batches += 1;
    }
    child::report(&json!({
        "before": before,
        "at once": at_once,
        "in the end": last,
        "batches": batches,
        "is whole": whole,
        "same handle": own.context == handle,
    }));
    Ok(ExitCode::SUCCESS)
}

fn measure(own: &Own, name: &'static str) -> Result<Value, Trouble> {
    let stream = own.as_stream();
    for _ in 0..CALLS {
        let _scope = scope!(name, stream = &stream);
        own.spin(LENGTH)?;
    }
    drop(stream);
    own.synchronize()?;
    Ok(counts(name))
}
