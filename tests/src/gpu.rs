//! Programs with a GPU: each runs in a process of its own, on a simulated driver.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::report::{Row, Times};
use profiler_runtime::{FlushReport, flush, summary};
use profiler_simulated_driver::{Installation, Report, Simulator};

use crate::isolated;

/// A kernel that takes as many nanoseconds as its parameter says, and some whose names say it.
const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry work_10us() { ret; }
.visible .entry work_20us() { ret; }
.visible .entry spin_ns(.param .u64 spin_ns_param_0) { ret; }
";

const CHILD: &str = "PROFILER_TESTS_ON_THE_DRIVER";

/// The results of a test's program.
pub struct Ran {
    pub report: Report,
    pub stderr: String,
    pub stdout: String,
}

impl Ran {
    /// How many warnings the profiler has given.
    pub fn warnings(&self) -> usize {
        self.stderr.matches("profiler: warning: ").count()
    }
}

/// The variable by which the parent tells the child what to do.
pub const TOLD: &str = "PROFILER_TESTS_TOLD";

/// Returns the words that the parent passed to this process.
pub fn told() -> String {
    std::env::var(TOLD).unwrap_or_default()
}

/// Returns whether this process is the one that has the driver.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Returns whether this process has the driver. If it does not and calls are measured, another process runs the test
/// with the driver first.
pub fn is_here(script: &str) -> bool {
    if !is_child() && crate::measuring() {
        on_the_driver(script);
    }
    is_child()
}

/// Like [`is_here`], with GPU times on the legacy default stream for scopes that name no stream.
pub fn is_here_with_legacy_stream(script: &str) -> bool {
    if !is_child() && crate::measuring() {
        on_the_driver_with_legacy_stream(script);
    }
    is_child()
}

/// Has scopes that name no stream be measured on the legacy default one.
pub fn legacy_stream(command: &mut Command) {
    command.env("PROFILER_CUDA_STREAM", "legacy");
}

/// Runs the test called `name` again on a driver that has run `script`, and nothing that waits for a device
/// may be called by the profiler. It must succeed, and leave no misuse and no event behind.
pub fn on_the_driver(script: &str) -> Ran {
    checked(on_the_driver_with(script, |_| {}))
}

/// Like [`on_the_driver`], with GPU times on the legacy default stream for scopes that name no stream.
pub fn on_the_driver_with_legacy_stream(script: &str) -> Ran {
    checked(on_the_driver_with(script, legacy_stream))
}

/// Returns whether this process has the driver, whose CUPTI records kernels while sessions do. If it does not and calls
/// are measured, another process runs the test with the driver first.
pub fn is_here_with_kernels(script: &str) -> bool {
    if !is_child() && crate::measuring() {
        let ran = checked(on_the_driver_with(script, kernels));
        assert!(
            !ran.report.cupti.subscribed && ran.report.cupti.kinds_enabled.is_empty(),
            "other tools can use CUPTI after the last window: {:?}",
            ran.report.cupti
        );
    }
    is_child()
}

/// Has sessions record kernels, through the CUPTI that is in the driver's file.
pub fn kernels(command: &mut Command) {
    cupti_of_driver(command);
    command.env("PROFILER_KERNELS", "1");
}

/// Names the CUPTI that is in the driver's file.
pub fn cupti_of_driver(command: &mut Command) {
    let is_path = |name: &OsStr| name == "LD_LIBRARY_PATH";
    let path = command.get_envs().find(|(name, _)| is_path(name));
    let path = path
        .and_then(|(_, value)| value)
        .expect("the driver's folder");
    let folder = std::env::split_paths(path).next().expect("it comes first");
    command
        .env("PROFILER_CUPTI_LIBRARY", folder.join("libcuda.so"))
        .env_remove("PROFILER_KERNELS");
}

/// Asserts that a program left no misuse and no event behind, and returns its results.
pub fn checked(ran: Ran) -> Ran {
    assert_eq!(ran.report.misuses, []);
    assert_eq!(
        ran.report.alive.events, 0,
        "each event that was made was destroyed"
    );
    ran
}

/// Like [`on_the_driver`], with a set-up for the process, and without the checks of its results.
pub fn on_the_driver_with(script: &str, set_up: impl FnOnce(&mut Command)) -> Ran {
    on_driver(Installation::new, script, set_up)
}

/// Like [`on_the_driver_with`], on another driver.
pub fn on_driver(
    installation: impl FnOnce(&Path) -> Installation,
    script: &str,
    set_up: impl FnOnce(&mut Command),
) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    let installed = installation(folder.path())
        .create()
        .expect("a driver was built");
    let script = format!(
        "clock virtual\nsynchronise abort-from profiler_runtime::\n{script}\nreport-at-exit {}",
        path.display()
    );
    let test = isolated::again();
    let mut command = installed.command(test.get_program(), &script);
    command.args(test.get_args()).env(CHILD, "1");
    for variable in ["PROFILER_CUDA_LIBRARY", "PROFILER_CUDA_STREAM"] {
        // The driver of all other tests, where CI runs them on one.
        command.env_remove(variable);
    }
    // A machine may have NVIDIA's own, which does not work with this driver.
    command.env("PROFILER_KERNELS", "0");
    set_up(&mut command);
    let output = command.output().expect("it runs");
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (lossy(&output.stdout), lossy(&output.stderr));
    assert!(
        output.status.success(),
        "{}: {}\n{stdout}\n{stderr}",
        isolated::test_name(),
        output.status
    );
    assert!(!stdout.contains("running 0 tests"), "the test is not found");
    Ran {
        report: Report::read(&path).expect("a report"),
        stderr,
        stdout,
    }
}

/// The driver of this process, to be told things.
pub fn simulator() -> Simulator {
    let library = std::env::var_os("LD_LIBRARY_PATH").expect("the driver's folder comes first");
    let folder = std::env::split_paths(&library).next().expect("one");
    Simulator::open(&folder.join("libcuda.so")).expect("the driver loads")
}

/// A call of the driver that hangs before it does anything, until this is dropped.
pub struct Held {
    /// How many faults had been triggered before.
    before: u64,
    simulator: Simulator,
}

impl Held {
    /// Has the next call of a driver function hang that begins from now on, or a later one: `number` counts from one.
    /// Every other fault is cleared when this is dropped.
    pub fn call(name: &str, number: u64) -> Self {
        let simulator = simulator();
        let before = simulator.faults();
        simulator
            .run(&format!("fault {name} nth {number} hang"))
            .expect("it is right");
        Self { before, simulator }
    }

    /// Returns when a thread is inside of the call.
    pub fn wait(&self) {
        while self.simulator.faults() == self.before {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns when a thread is inside of the call, or has had time to begin it and did not need to.
    pub fn wait_or_idle(&self) {
        for _ in 0..100 {
            if self.simulator.faults() > self.before {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.simulator
            .run("clear-faults; release")
            .expect("it is right");
    }
}

/// A device with what is needed to keep it busy.
pub struct Gpu {
    pub context: Arc<CudaContext>,
    spins: CudaFunction,
}

impl Gpu {
    pub fn new(device: usize) -> Self {
        let context = CudaContext::new(device).expect("a context");
        let module = context
            .load_module(Ptx::from_src(PTX))
            .expect("the PTX is right");
        let spins = module
            .load_function("spin_ns")
            .expect("the PTX has the kernel");
        Self { context, spins }
    }

    pub fn stream(&self) -> Arc<CudaStream> {
        self.context.new_stream().expect("a stream")
    }

    /// Launches a kernel that takes `ns` nanoseconds.
    pub fn spin(&self, stream: &CudaStream, ns: u64) {
        let one = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (1, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the kernel takes one number.
        let launched = unsafe { stream.launch_builder(&self.spins).arg(&ns).launch(one) };
        launched.expect("the launch succeeds");
    }
}

/// Has all that was measured read.
pub fn settle() -> FlushReport {
    let report = flush(Duration::from_secs(20));
    assert_eq!((report.unread, report.left), (0, 0));
    report
}

pub fn row(name: &str) -> Row {
    summary().row(name).cloned().unwrap_or_default()
}

/// The values of a row that concern the GPU; all zero if it has no GPU time.
#[derive(Debug)]
pub struct Cuda {
    times: Times,
    pub streams: Vec<String>,
    pub other_streams_ns: f64,
    pub idle_stream: bool,
}

impl Deref for Cuda {
    type Target = Times;

    fn deref(&self) -> &Times {
        &self.times
    }
}

/// The GPU time of a name; all zero where it has none.
pub fn cuda(name: &str) -> Cuda {
    let row = row(name);
    Cuda {
        times: row.cuda.unwrap_or_default(),
        streams: row.streams,
        other_streams_ns: row.other_streams_ns.unwrap_or_default(),
        idle_stream: row.idle_stream,
    }
}

/// The driver tells milliseconds with 24 bits: as good as that.
#[track_caller]
pub fn exact(ns: f64, expected: f64) {
    let step = (expected * f64::from(f32::EPSILON)).max(0.5);
    assert!(
        (ns - expected).abs() <= step,
        "{ns} ns instead of {expected} ns"
    );
}

/// How often scopes lost their GPU time for this reason.
pub fn lost(reason: CudaLoss) -> u64 {
    let lost = summary().cuda.lost;
    lost.iter()
        .find(|(of, _)| *of == reason)
        .map_or(0, |(_, count)| *count)
}

/// A stream as summaries name it.
pub fn name_of(stream: &CudaStream) -> String {
    format!("{:p}", stream.cu_stream())
}

/// Works on each item in a thread of its own, all at once, until the threads are gone with all they keep: the
/// scope alone would not wait for that.
pub fn on_threads<T: Send>(items: impl IntoIterator<Item = T>, work: impl Fn(T) + Sync) {
    std::thread::scope(|threads| {
        let start = |item| threads.spawn(|| work(item));
        let started: Vec<_> = items.into_iter().map(start).collect();
        for thread in started {
            thread.join().expect("no thread panicked");
        }
    });
}

/// Works on a thread of its own, until that is gone with all it keeps.
pub fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| threads.spawn(work).join().expect("no thread panicked"))
}
