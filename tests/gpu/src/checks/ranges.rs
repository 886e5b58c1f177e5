//! The ranges of scopes in a tool that understands NVTX: one that writes them down, and Nsight Systems.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, ExitCode};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use profiler_nvtx_recorder::{Call, FILE, INJECTION, Line, Range, found};
use profiler_runtime::{MeasureFuture, measure_execution_time, scope};

use crate::child::{self, Part};
use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "ranges of NVTX",
    checks: &[
        Check {
            name: "the ranges of scopes, functions and futures reach an NVTX tool",
            bound: "in one domain, the tool gets exactly the ranges of the program, in their order, with registered names, \
                    each one ended; and the names of a thread and of the stream. Skipped without the tool \
                    `libprofiler_nvtx_recorder.so` next to this program",
            run: recorded,
        },
        Check {
            name: "Nsight Systems counts the ranges of scopes",
            bound: "as many instances as there were calls. Skipped if `nsys` is not found, or fails",
            run: by_nsight_systems,
        },
    ],
};

const PROGRAM: &str = "program with ranges";

pub(crate) const PARTS: &[Part] = &[Part {
    name: PROGRAM,
    play: program,
}];

const CALLS: usize = 10;
const OUTER: &str = "outer range";
const INNER: &str = "inner range";
const FUTURE: &str = "future with a range";
const THREAD: &str = "thread with ranges";
/// The name of a function is its path.
const FUNCTION: &str = "::function_with_a_range";

#[measure_execution_time]
fn function_with_a_range() {}

/// Runs in the child: what a tool gets is known.
fn program() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    for _ in 0..CALLS {
        let _outer = scope!("outer range", stream = &stream);
        for _ in 0..2 {
            let _inner = scope!("inner range", stream = &stream);
            gpu.kernels.spin(raw(&stream), 20_000, 0)?;
        }
        function_with_a_range();
    }
    let mut is_pending = true;
    let once_pending = std::future::poll_fn(move |_| {
        if std::mem::take(&mut is_pending) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    });
    let mut future = pin!(once_pending.measure_execution_time("future with a range"));
    let mut context = Context::from_waker(Waker::noop());
    while future.as_mut().poll(&mut context).is_pending() {}
    let thread = std::thread::Builder::new().name(THREAD.to_owned());
    let thread = thread.spawn(|| (0..CALLS).for_each(|_| function_with_a_range()))?;
    let ended = thread.join();
    ended.map_err(|_| Trouble::Missing("a thread panicked".to_owned()))?;
    stream.synchronize()?;
    Ok(ExitCode::SUCCESS)
}

/// A file of this run, which is removed afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(ending: &str) -> Self {
        let file = format!("gpu-suite-{}{ending}", std::process::id());
        Self(std::env::temp_dir().join(file))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It need not exist.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn text(path: &Path) -> Result<&str, Trouble> {
    let text = path.to_str();
    text.ok_or_else(|| Trouble::Missing(format!("{} is no UTF-8", path.display())))
}

fn recorded(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let tool = found().ok_or_else(|| {
        let reason = "libprofiler_nvtx_recorder.so does not lie next to this program";
        Trouble::Skip(reason.to_owned())
    })?;
    let file = Scratch::new(".nvtx");
    let variables = [(INJECTION, text(&tool)?), (FILE, text(&file.0)?)];
    child::run(PROGRAM, &variables)?.successful()?;
    let lines = Call::read_all(&file.0);
    findings.figure("calls of the tool", lines.len() as f64, "");
    for Line { call, .. } in &lines {
        if let Call::Wrong(what) = call {
            findings.failures.push(format!("the tool says: {what}"));
        }
    }
    let count = |is: &dyn Fn(&Call) -> bool| {
        let calls = lines.iter().filter(|line| is(&line.call));
        calls.count() as u64
    };
    findings.expect_count(
        "domains",
        count(&|call| matches!(call, Call::Domain(name) if name == "profiler")),
        1,
    );
    findings.expect_count(
        "names of the thread",
        count(&|call| matches!(call, Call::Thread(_, name) if name == THREAD)),
        1,
    );
    findings.expect(count(&|call| matches!(call, Call::Stream(..))) > 0, || {
        "the stream got no name".to_owned()
    });
    findings.expect_count(
        "ranges without a registered name",
        count(&|call| {
            matches!(call, Call::Push(range) | Call::Start(_, range) if !range.is_registered)
        }),
        0,
    );
    stacks(findings, &lines);
    futures(findings, &lines);
    Ok(())
}

/// Judges the ranges that are pushed and popped on each thread.
fn stacks(findings: &mut Findings, lines: &[Line]) {
    let of_thread = |number: u32| -> Vec<&str> {
        let of_thread = lines.iter().filter(|line| line.thread == number);
        let ranges = of_thread.filter_map(|line| match &line.call {
            Call::Push(range) => Some(short(range)),
            Call::Pop => Some("-"),
            _ => None,
        });
        ranges.collect()
    };
    let call = [OUTER, INNER, "-", INNER, "-", FUNCTION, "-", "-"];
    for (thread, expected) in [(0, call.repeat(CALLS)), (1, [FUNCTION, "-"].repeat(CALLS))] {
        let ranges = of_thread(thread);
        findings.expect(ranges == expected, || {
            let pairs = ranges.iter().zip(&expected);
            let alike = pairs
                .take_while(|(range, expected)| range == expected)
                .count();
            format!(
                "thread {thread} has {} pushes and pops, not {}; after {alike} of them comes {:?}",
                ranges.len(),
                expected.len(),
                ranges.get(alike)
            )
        });
    }
}

/// Returns the name of a range as the lists above have it.
fn short(range: &Range) -> &str {
    if range.name.ends_with(FUNCTION) {
        FUNCTION
    } else {
        &range.name
    }
}

/// Judges the ranges that are started and ended.
fn futures(findings: &mut Findings, lines: &[Line]) {
    let started: Vec<u64> = lines
        .iter()
        .filter_map(|line| match &line.call {
            Call::Start(id, range) if range.name == FUTURE => Some(*id),
            _ => None,
        })
        .collect();
    findings.expect_count("ranges of futures", started.len() as u64, 1);
    let ended = lines.iter().filter(|line| match line.call {
        Call::End(id) => started.contains(&id),
        _ => false,
    });
    findings.expect_count("ends of ranges of futures", ended.count() as u64, 1);
}

fn by_nsight_systems(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    /// Nsight Systems takes a long time to start, and to read its own file.
    const LIMIT: Duration = Duration::from_secs(40);
    let report = Scratch::new(".nsys-rep");
    let database = Scratch::new(".sqlite");
    let run = |command: Command| match child::finish(command, "nsys", LIMIT) {
        Ok(ended) if ended.status.success() => Ok(ended.stdout),
        Ok(ended) => {
            let said = ended.stderr.lines().next().unwrap_or("nothing").to_owned();
            let reason = format!("nsys ended with {} and said: {said}", ended.status);
            Err(Trouble::Skip(reason))
        }
        Err(Trouble::Io(error)) => Err(Trouble::Skip(format!("nsys was not found ({error})"))),
        Err(trouble) => Err(Trouble::Skip(trouble.to_string())),
    };
    let mut profile = Command::new("nsys");
    profile
        .args([
            "profile",
            "--trace=nvtx,cuda",
            "--sample=none",
            "--cpuctxsw=none",
        ])
        .args(["--force-overwrite=true", "--output", text(&report.0)?])
        .arg(std::env::current_exe()?)
        .args(["--child", PROGRAM]);
    run(profile)?;
    let mut stats = Command::new("nsys");
    stats
        .args(["stats", "--report", "nvtx_sum", "--format", "csv"])
        .args(["--force-export=true", "--sqlite", text(&database.0)?])
        .arg(&report.0);
    let table = run(stats)?;
    for (name, calls) in [(OUTER, CALLS), (INNER, 2 * CALLS), (FUNCTION, 2 * CALLS)] {
        let instances = instances(&table, name);
        findings.figure(format!("instances of `{name}`"), instances as f64, "");
        findings.expect_count(&format!("instances of `{name}`"), instances, calls as u64);
    }
    Ok(())
}

/// Returns how many ranges of a name a table of `nsys` counts.
fn instances(table: &str, name: &str) -> u64 {
    let mut lines = table.lines().skip_while(|line| !line.contains("Instances"));
    let column = |wanted: &str, line: &str| line.split(',').position(|title| title == wanted);
    let header = lines.next().unwrap_or_default();
    let (Some(count), Some(range)) = (column("Instances", header), column("Range", header)) else {
        return 0;
    };
    let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    // A range stands with its domain: `profiler:outer range`.
    let named = rows.filter(|row| row.get(range).is_some_and(|range| range.ends_with(name)));
    let counts = named.filter_map(|row| row.get(count)?.parse::<u64>().ok());
    counts.sum()
}
