//! The processes: one prints the report, and one per backend measures with its own driver.

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use bench_harness::{Machine, Options};
use profiler_runtime::flush;
use profiler_simulated_driver::Installation;

use crate::gpu::{Gpu, settle_in};
use crate::processors::Processors;
use crate::report::{Half, PlacedCosts};
use crate::variants::{self, Subject};
use crate::{allocations, calls, cost, subjects, sustained};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The source of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Auto,
    Cpu,
}

impl Backend {
    fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
        }
    }
}

/// Set in a process that runs with the driver.
const CHILD: &str = "GPU_COST_ON_THE_DRIVER";
const BACKEND: &str = "PROFILER_BACKEND";
/// The file for the results of a measuring process.
const REPORT: &str = "GPU_COST_REPORT";

/// The batches per variant, unless `--rounds` is given.
const ROUNDS: usize = 1000;

/// The backend of this process, if it is a measuring one.
pub(crate) fn backend() -> Option<Backend> {
    std::env::var_os(CHILD)?;
    let is_cpu = std::env::var_os(BACKEND).is_some_and(|value| value == Backend::Cpu.as_str());
    Some(if is_cpu { Backend::Cpu } else { Backend::Auto })
}

/// A folder that is deleted when it is dropped.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("gpu-cost-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs this program again with the same options and a driver whose log is off: the log would slow
/// down its calls as it grows.
fn again(folder: &Path) -> Outcome<Command> {
    let driver = Installation::new(folder).create()?;
    let mut command = driver.command(std::env::current_exe()?, "log off");
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("PROFILER_") {
            command.env_remove(variable);
        }
    }
    // Scopes without a stream are measured on the legacy default stream, which is compared too.
    command
        .args(std::env::args_os().skip(1))
        .env(CHILD, "1")
        .env("PROFILER_CUDA_STREAM", "legacy");
    Ok(command)
}

/// Measures with a backend in another process.
pub(crate) fn run(backend: Backend) -> Outcome<Half> {
    let folder = Folder::new()?;
    let report = folder.0.join("report.json");
    let status = again(&folder.0)?
        .env(BACKEND, backend.as_str())
        .env(REPORT, &report)
        .status()?;
    if !status.success() {
        return Err(format!("the measuring process failed: {status}").into());
    }
    Ok(serde_json::from_slice(&std::fs::read(report)?)?)
}

/// Measures in this process, and writes the result to a file for the parent.
pub(crate) fn measure(backend: Backend, options: &Options) -> Outcome<()> {
    let _profiler = profiler_runtime::init()?;
    Gpu::get()?;
    let subjects = variants::all(backend);
    settle_in(&subjects);
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let half = Half {
        costs: placed_costs(&subjects, rounds)?,
        allocations: allocations::measure(&subjects),
        calls: calls::measure(&subjects)?,
        sustained: match backend {
            Backend::Auto => sustained::measure(),
            Backend::Cpu => Vec::new(),
        },
    };
    let path = std::env::var_os(REPORT).ok_or("the variable for the report is not set")?;
    std::fs::write(path, serde_json::to_vec(&half)?)?;
    Ok(())
}

/// Results that do not depend on the placement of the resolver.
fn placed_costs(subjects: &[Subject], rounds: usize) -> Outcome<Vec<PlacedCosts>> {
    let processors = Processors::get()?;
    let mut placed = Vec::new();
    for &placement in processors.placements() {
        processors.place(placement)?;
        Gpu::here().read_where(processors.reader(placement));
        placed.push(PlacedCosts {
            placement,
            costs: cost::measure(subjects, rounds),
        });
    }
    Gpu::here().read_where(None);
    processors.release()?;
    Ok(placed)
}

/// Measures the cost around windows with kernels; see [`kernels`](crate::kernels).
pub(crate) fn kernels() -> Outcome<ExitCode> {
    if backend().is_some() {
        crate::kernels::measure()?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}\n", Machine::this());
    let folder = Folder::new()?;
    let status = again(&folder.0)?
        .env("PROFILER_CUPTI_LIBRARY", folder.0.join("libcuda.so"))
        .status()?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Makes `calls` calls of one variant for callgrind; see `gpu-instructions.sh`.
pub(crate) fn count(variant: &str, calls: u64) -> Outcome<ExitCode> {
    if backend().is_none() {
        let folder = Folder::new()?;
        // The ring has room for all calls, so that none waits for the resolver.
        let status = again(&folder.0)?
            .env("PROFILER_RING", "65536")
            .env("PROFILER_CUDA_EVENTS", "65536")
            .status()?;
        return Ok(if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let _profiler = profiler_runtime::init()?;
    Gpu::get()?;
    let subjects = variants::all(Backend::Auto);
    let Some(Subject { variant, .. }) = subjects.iter().find(|subject| subject.key == variant)
    else {
        let known: Vec<_> = subjects.iter().map(|subject| subject.key).collect();
        println!(
            "unknown variant `{variant}`; the variants are {}",
            known.join(", ")
        );
        return Ok(ExitCode::FAILURE);
    };
    settle_in(&subjects);
    (variant.before)();
    // The first batches warm up for those that are counted. Between batches all GPU times are read, so that each call
    // finds free events.
    for _ in 0..WARMING {
        (variant.run)(subjects::BATCH);
        all_read()?;
    }
    for _ in 0..calls / subjects::BATCH {
        subjects::counted_calls(variant.run, subjects::BATCH);
        all_read()?;
    }
    (variant.after)();
    Ok(ExitCode::SUCCESS)
}

const WARMING: usize = 3;

/// Waits until all GPU times have been read, which may take long on a busy machine and under callgrind.
fn all_read() -> Outcome<()> {
    match flush(Duration::from_secs(60)).unread {
        0 => Ok(()),
        unread => Err(format!("{unread} GPU times were not read within a minute").into()),
    }
}
