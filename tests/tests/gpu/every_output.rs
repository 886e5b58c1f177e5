//! A GPU time is the same in every output, wherever it comes from. What compares two files has its tests beside the comparison.

use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use cudarc::driver::CudaStream;
use flate2::read::GzDecoder;
use profiler_host::process::output::WriteTimeout;
use profiler_report::internal::{SummaryFormat, write_summary};
use profiler_runtime::cuda::bind_stream;
use profiler_runtime::report::{CallTree, CallTreeOptions, Row};
use profiler_runtime::{Handle, Profile, builder, scope, summary};
use profiler_runtime_cli::ConvertFormat;
use profiler_tests::gpu::{Gpu, OnDriver, driver, finish, told};
use profiler_tests::stop;
use profiler_tests::traces::read_back;
use serde_json::Value;

use crate::support::captures::{begin, end};

/// The time of one call of `work`, and of its two calls.
const CALL_NS: u64 = 1_234_567;
const NS: f64 = 2.0 * CALL_NS as f64;
/// As tables show it.
const SHOWN: &str = "2.47 ms";

const TIMEOUT: WriteTimeout = WriteTimeout::Total(Duration::from_secs(60));

/// Where a GPU time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    NamedStream,
    BoundStream,
    DefaultStream,
    Reported,
    Replay,
    /// What CUPTI records. Only windows have it.
    Kernels,
}

impl Source {
    const ALL: [Self; 6] = [
        Self::NamedStream,
        Self::BoundStream,
        Self::DefaultStream,
        Self::Reported,
        Self::Replay,
        Self::Kernels,
    ];

    fn told() -> Self {
        let all = Self::ALL.into_iter();
        let mut of_name = all.filter(|source| format!("{source:?}") == told());
        of_name.next().expect("the name of a case")
    }

    fn driver() -> OnDriver {
        driver().table(
            Self::ALL.map(|source| (format!("{source:?}"), source)),
            |driver, source| match source {
                Self::NamedStream | Self::BoundStream | Self::Reported => driver,
                Self::DefaultStream => driver.legacy_stream(),
                // The graph keeps the events of its scope.
                Self::Replay => driver.keeps(2),
                Self::Kernels => driver.kernels(),
            },
        )
    }

    /// Has `work` take its time on the device, twice.
    fn run(self, gpu: &Gpu, stream: &Arc<CudaStream>) {
        let _outer = scope!("outer");
        if self == Self::Replay {
            begin(stream);
            {
                let _work = scope!("work", stream = stream, cuda_graph);
                gpu.spin(stream, CALL_NS);
            }
            let graph = end(stream);
            for _ in 0..2 {
                graph.launch().expect("nothing failed");
                finish(stream);
            }
            std::mem::forget(graph);
            return;
        }
        for _ in 0..2 {
            match self {
                Self::NamedStream => {
                    let _work = scope!("work", stream = stream);
                    gpu.spin(stream, CALL_NS);
                }
                Self::BoundStream => {
                    let _work = scope!("work");
                    bind_stream(stream);
                    gpu.spin(stream, CALL_NS);
                }
                Self::DefaultStream => {
                    let _work = scope!("work");
                    gpu.spin(&gpu.context.default_stream(), CALL_NS);
                }
                Self::Reported => {
                    let _work = scope!("work");
                    let start = Instant::now();
                    let end = start + Duration::from_nanos(CALL_NS);
                    while Instant::now() < end {
                        thread::yield_now();
                    }
                    Handle::current().report_device_time("kernel", start, end);
                }
                Self::Kernels | Self::Replay => {
                    let _work = scope!("work");
                    gpu.spin(stream, CALL_NS);
                }
            }
            gpu.finish();
        }
    }
}

/// Returns `true` if bytes have the time as a number of this kind, at any place.
fn has_number<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f64, expected: f64) -> bool {
    let numbers = bytes.windows(N).filter_map(|bytes| bytes.try_into().ok());
    let mut numbers = numbers.map(value);
    numbers.any(|number| (number - expected).abs() <= expected * 1e-6)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|found| found == part)
}

/// Returns `true` if bytes have the time as a number of a Protocol Buffer.
fn has_varint(bytes: &[u8]) -> bool {
    let near = |at: usize| {
        let parts = bytes[at..].iter().take(9);
        let mut value = 0_u64;
        for (part, byte) in (0..).zip(parts) {
            value |= u64::from(byte & 0x7f) << (7 * part);
            if byte & 0x80 == 0 {
                break;
            }
        }
        (value as f64 - NS).abs() <= 1.0
    };
    (0..bytes.len()).any(near)
}

/// Returns the line that begins with `work`.
fn line_of_work(text: &str) -> &str {
    let line = text
        .lines()
        .find(|line| line.trim_start().starts_with("work"));
    line.unwrap_or_default()
}

fn shows_row(rows: &Value) -> bool {
    let mut rows = rows.as_array().expect("rows").iter();
    let row = rows
        .find(|row| row["name"] == "work")
        .expect("it was called");
    let own = row["cuda"]["self_ns"].as_f64();
    own.is_some_and(|own| (own - NS).abs() <= 1.0)
}

/// Returns `true` if a file in a format of summaries shows the time. A new format does not compile here.
fn summary_shows(format: SummaryFormat, path: &Path) -> bool {
    let text = || fs::read_to_string(path).expect("text");
    match format {
        SummaryFormat::Table => line_of_work(&text()).contains(SHOWN),
        SummaryFormat::Json => converted_shows(ConvertFormat::Json, path),
        SummaryFormat::Csv => converted_shows(ConvertFormat::Csv, path),
        SummaryFormat::Html => converted_shows(ConvertFormat::Html, path),
        SummaryFormat::Pstats => converted_shows(ConvertFormat::Prof, path),
        SummaryFormat::Pprof => converted_shows(ConvertFormat::Pprof, path),
        // Stacks are weighted by times on the CPU there.
        SummaryFormat::Stacks => text().contains("work"),
        SummaryFormat::Prometheus => {
            let series = "profiler_self_seconds_total{name=\"work\",clock=\"cuda\"} ";
            let text = text();
            let value = text.lines().find_map(|line| line.strip_prefix(series));
            let seconds: Option<f64> = value.map(|value| value.parse().expect("a number"));
            seconds.is_some_and(|seconds| (seconds * 1e9 - NS).abs() <= 1.0)
        }
    }
}

/// Returns `true` if a file that `profiler convert` wrote shows the time. A new format does not compile here.
fn converted_shows(format: ConvertFormat, path: &Path) -> bool {
    let bytes = fs::read(path).expect("a file");
    let text = || String::from_utf8_lossy(&bytes);
    match format {
        ConvertFormat::Json => {
            let report: Value = serde_json::from_slice(&bytes).expect("valid JSON");
            shows_row(&report["rows"])
        }
        ConvertFormat::Csv => {
            let mut table = csv::Reader::from_reader(&bytes[..]);
            let heads = table.headers().expect("a head").clone();
            let at = |name| {
                heads
                    .iter()
                    .position(|head| head == name)
                    .expect("a column")
            };
            let (name, own) = (at("name"), at("cuda_self_ns"));
            let mut rows = table.records().map(|row| row.expect("a row"));
            let row = rows
                .find(|row| &row[name] == "work")
                .expect("it was called");
            row[own]
                .parse()
                .is_ok_and(|own: f64| (own - NS).abs() <= 1.0)
        }
        ConvertFormat::Html => text().contains(SHOWN),
        // GPU times are in a file beside it, in seconds.
        ConvertFormat::Prof => {
            let beside = path.with_extension("cuda.prof");
            let bytes = fs::read(beside).unwrap_or_default();
            has_number(&bytes, f64::from_le_bytes, NS / 1e9)
        }
        ConvertFormat::Pprof => {
            let mut unpacked = Vec::new();
            let read = GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked);
            read.expect("it is compressed");
            has_varint(&unpacked)
        }
        ConvertFormat::Folded => {
            let weight = |line: &str| line.rsplit_once(' ')?.1.parse::<f64>().ok();
            let text = text();
            let of_work = text.lines().filter(|line| line.contains("work"));
            let sum: f64 = of_work.filter_map(weight).sum();
            (sum - NS).abs() <= 1.0
        }
        ConvertFormat::Chrome => {
            let averages = read_back(path).key_averages();
            row_shows(averages.row("work"))
        }
        // A span for each time, by its begin and its end: what reads these formats compares them with the file in Chrome's.
        ConvertFormat::Perfetto | ConvertFormat::Otlp => has(&bytes, b"work"),
    }
}

fn row_shows(row: Option<&Row>) -> bool {
    let own = row.and_then(|row| row.cuda).map(|cuda| cuda.self_ns);
    own.is_some_and(|own| (own - NS).abs() <= 1.0)
}

fn tree_shows(tree: &CallTree) -> bool {
    let functions = tree.functions();
    let function = functions.iter().find(|function| &*function.name == "work");
    let cuda = function.and_then(|function| function.cuda);
    // Kernels are functions of their own there.
    cuda.is_some_and(|cuda| (cuda.total_ns - NS).abs() <= 1.0)
}

/// Runs the command line, and returns what it prints.
fn printed(arguments: &[&str]) -> String {
    let mut file = tempfile::tempfile().expect("a file");
    io::stdout().flush().expect("room");
    // SAFETY: the descriptors are open; this process runs one test, so nobody else prints meanwhile.
    let before = unsafe {
        let before = libc::dup(libc::STDOUT_FILENO);
        libc::dup2(file.as_raw_fd(), libc::STDOUT_FILENO);
        before
    };
    let status = profiler_runtime_cli::main(["profiler"].iter().chain(arguments));
    io::stdout().flush().expect("room");
    // SAFETY: as above; the duplicate is closed once.
    unsafe {
        libc::dup2(before, libc::STDOUT_FILENO);
        libc::close(before);
    }
    let mut text = String::new();
    file.rewind().expect("a file");
    file.read_to_string(&mut text).expect("text");
    assert_eq!(
        format!("{status:?}"),
        format!("{:?}", ExitCode::SUCCESS),
        "{arguments:?}: {text}"
    );
    text
}

#[test(on = Source::driver())]
fn each_source_of_gpu_times_is_in_each_output() {
    let source = Source::told();
    let _profiler = builder().callers(true).init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let profile = Profile::builder()
        .kernels(source == Source::Kernels)
        .start()
        .expect("started");
    source.run(&gpu, &stream);
    gpu.finish();
    stop(&profile);
    let (summary, trace) = (summary(), profile.trace().expect("a trace"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: String| folder.path().join(name);
    let of_summary = source != Source::Kernels;
    let mut wrong = Vec::new();
    let mut check = |what: String, shows: bool, expected: bool| {
        if shows != expected {
            wrong.push(what);
        }
    };

    for (ending, format) in SummaryFormat::ENDINGS {
        let path = file(format!("summary{ending}"));
        write_summary(&summary, &path, TIMEOUT).expect("room");
        let expected = of_summary || format == SummaryFormat::Stacks;
        check(
            format!("summary as {format:?}"),
            summary_shows(format, &path),
            expected,
        );
    }
    check(
        "summary's row".to_owned(),
        row_shows(summary.row("work")),
        of_summary,
    );
    check(
        "summary's call tree".to_owned(),
        tree_shows(&summary.call_tree()),
        of_summary,
    );

    let written = file("trace.json".to_owned());
    trace.export_chrome_trace(&written).expect("room");
    check(
        "window's row".to_owned(),
        row_shows(trace.key_averages().row("work")),
        true,
    );
    let tree = trace.timeline().call_tree(CallTreeOptions::new());
    check("window's call tree".to_owned(), tree_shows(&tree), true);

    for format in ConvertFormat::value_variants() {
        let is_of_trace = matches!(
            format,
            ConvertFormat::Perfetto | ConvertFormat::Chrome | ConvertFormat::Otlp
        );
        for (input, has_times) in [("summary.json", of_summary), ("trace.json", true)] {
            if is_of_trace && input == "summary.json" {
                continue;
            }
            let output = file(format!("{input}{}", format.ending()));
            let input = file(input.to_owned());
            // Stacks cannot be weighted by what no call has.
            if *format == ConvertFormat::Folded && !has_times {
                continue;
            }
            printed(&[
                "convert",
                path_text(&input),
                "-o",
                path_text(&output),
                "--metric",
                "self_cuda_time_total",
            ]);
            check(
                format!("{} as {format:?}", input.display()),
                converted_shows(*format, &output),
                has_times,
            );
        }
    }
    let screen = printed(&["top", path_text(&file("summary.json".to_owned()))]);
    check(
        "top".to_owned(),
        line_of_work(&screen).contains(SHOWN),
        of_summary,
    );
    assert!(wrong.is_empty(), "{source:?}: {wrong:#?}");
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
