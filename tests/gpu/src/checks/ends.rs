//! A program that exits with work in flight, in a child process each.

use std::process::ExitCode;
use std::time::Duration;

use profiler_runtime::scope;
use serde_json::Value;

use crate::child::{self, Part};
use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::neighbours::{self, Harm};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "ends",
    checks: &[
        Check {
            name: "a program that returns without a guard exits normally and writes its summary",
            bound: "exit code 0, no panic message, all 30 calls in the JSON, each with its GPU \
                    time",
            run: returns,
        },
        Check {
            name: "a program that calls `exit` exits normally and writes its summary",
            bound: "exit code 7, as requested; no panic message; all 30 calls in the JSON, \
                    each with its GPU time",
            run: exits,
        },
        Check {
            name: "a program that measures before it initializes the driver has its last GPU times",
            bound: "as for a program that returns: exit handlers run in reverse order, so the \
                    driver would shut down before a handler that the profiler registered first",
            run: met_first,
        },
        Check {
            name: "a program whose context is destroyed before its end exits normally and writes its summary",
            bound: "exit code 0, no panic message, all 30 calls in the JSON",
            run: context_gone,
        },
        Check {
            name: "a program that ends while another thread measures exits normally",
            bound: "exit code 0, no panic message, at least one call in the JSON. Skipped if \
                    one of three runs with the profiler off fails: a launch while the driver \
                    shuts down may crash without the profiler",
            run: thread_goes_on,
        },
    ],
};

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "returns",
        play: part_returns,
    },
    Part {
        name: "exits",
        play: part_exits,
    },
    Part {
        name: "met first",
        play: part_met_first,
    },
    Part {
        name: "context gone",
        play: part_context_gone,
    },
    Part {
        name: "thread continues",
        play: part_thread_continues,
    },
];

const CALLS: u64 = 30;
const NAME: &str = "at the end";

/// The summary that a role wrote.
struct Left {
    calls: u64,
    timed: u64,
}

impl Left {
    fn expect_all_calls(&self, findings: &mut Findings) {
        findings.expect_count("calls in the summary", self.calls, CALLS);
    }

    fn expect_all_times(&self, findings: &mut Findings) {
        self.expect_all_calls(findings);
        findings.expect_count("GPU times in the summary", self.timed, CALLS);
    }
}

/// Runs a role to its end, and reads its summary.
fn ended(findings: &mut Findings, part: &str, code: i32) -> Result<Left, Trouble> {
    neighbours::spare(Harm::UnfinishedWork)?;
    let file = format!(
        "gpu-suite-{}-{}.json",
        std::process::id(),
        part.replace(' ', "-")
    );
    let path = std::env::temp_dir().join(file);
    let text = path.to_string_lossy().into_owned();
    let child = child::run(part, &[("PROFILER_SUMMARY", &text)])?;
    findings.expect(child.status.code() == Some(code), || {
        format!(
            "it ended with {}, not {code}; its output: {}",
            child.status,
            child.stderr.trim()
        )
    });
    findings.expect(!child.stderr.contains("panicked"), || {
        format!("its output: {}", child.stderr)
    });
    let summary = std::fs::read_to_string(&path);
    // The file may be missing, which the next line reports.
    let _ = std::fs::remove_file(&path);
    let summary: Value = serde_json::from_str(&summary?)?;
    let rows = summary["rows"].as_array();
    let row = rows.and_then(|rows| rows.iter().find(|row| row["name"] == NAME));
    let row = row.ok_or_else(|| Trouble::Missing(format!("the summary has no row `{NAME}`")))?;
    let cuda = row.get("cuda").unwrap_or(&Value::Null);
    findings.note(format!("CUDA in its row: {cuda}"));
    let count = |of: &Value| of["calls"].as_u64().unwrap_or(0);
    Ok(Left {
        calls: count(row),
        timed: count(cuda),
    })
}

fn returns(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    ended(findings, "returns", 0)?.expect_all_times(findings);
    Ok(())
}

fn exits(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    ended(findings, "exits", 7)?.expect_all_times(findings);
    Ok(())
}

fn met_first(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    ended(findings, "met first", 0)?.expect_all_times(findings);
    Ok(())
}

fn context_gone(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    ended(findings, "context gone", 0)?.expect_all_calls(findings);
    Ok(())
}

fn thread_goes_on(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    neighbours::spare(Harm::UnfinishedWork)?;
    child::expect_success_without_profiler("thread continues", 0, 3)?;
    let left = ended(findings, "thread continues", 0)?;
    findings.figure("calls in the summary", left.calls as f64, "");
    findings.expect(left.calls > 0, || "no call is in the summary".to_owned());
    Ok(())
}

/// Returns a device with 30 calls in flight.
fn in_flight() -> Result<Gpu, Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    for _ in 0..CALLS {
        let _scope = scope!("at the end", stream = &stream);
        gpu.kernels.spin(raw(&stream), 2_000_000, 0)?;
    }
    Ok(gpu)
}

fn part_returns() -> Result<ExitCode, Trouble> {
    // The device outlives `main`, as in programs that keep it in a static.
    std::mem::forget(in_flight()?);
    Ok(ExitCode::SUCCESS)
}

fn part_exits() -> Result<ExitCode, Trouble> {
    let _gpu = in_flight()?;
    std::process::exit(7);
}

fn part_met_first() -> Result<ExitCode, Trouble> {
    // No driver is loaded yet.
    drop(scope!("before the driver"));
    part_returns()
}

fn part_context_gone() -> Result<ExitCode, Trouble> {
    // The last reference: cudarc releases the primary context.
    drop(in_flight()?);
    Ok(ExitCode::SUCCESS)
}

fn part_thread_continues() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    std::thread::spawn(move || -> Result<(), Trouble> {
        gpu.context.bind_to_thread()?;
        loop {
            let _scope = scope!("at the end", stream = &stream);
            gpu.kernels.spin(raw(&stream), 50_000, 0)?;
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    std::thread::sleep(Duration::from_millis(200));
    Ok(ExitCode::SUCCESS)
}
