//! Programs with a GPU: each runs in a process of its own, on a simulated driver.

use std::ffi::OsStr;
use std::fmt::Display;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::report::{Row, Times};
use profiler_runtime::{FlushReport, ProfilerGuard, flush, init, summary};
use profiler_simulated_driver::{Installation, Report, Simulator};
use tempfile::TempDir;

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
    /// The case.
    pub told: String,
    pub report: Report,
    pub stderr: String,
    pub stdout: String,
    folder: TempDir,
}

impl Ran {
    /// A file in the folder of the process: see [`OnDriver::file`].
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How many warnings the profiler has given.
    pub fn warnings(&self) -> usize {
        self.stderr.matches("profiler: warning: ").count()
    }
}

/// Tells a process which case of its test it runs.
const TOLD: &str = "PROFILER_TESTS_TOLD";

/// Returns the case that this process runs.
pub fn told() -> String {
    std::env::var(TOLD).unwrap_or_default()
}

/// Returns whether this process is the one that has the driver.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Returns false in the process that has the driver. In the one that started the test, runs it there first, if calls are
/// measured: the second half of the attribute's argument `on`.
#[must_use]
pub fn ran_on(driver: impl FnOnce() -> OnDriver) -> bool {
    if !is_child() && crate::measuring() {
        driver().run_each();
    }
    !is_child()
}

/// How a test runs in a process of its own with a simulated driver, once or in each of several cases.
///
/// Nothing that waits for a device may be called by the profiler there. The process must succeed, and leave no misuse and
/// no event behind.
#[derive(Clone)]
pub struct OnDriver {
    cases: Vec<Case>,
    compare: Option<Comparison>,
}

type Install = Rc<dyn Fn(Installation) -> Installation>;
type SetUp = Rc<dyn Fn(&mut Command)>;
type Check = Rc<dyn Fn(&Ran)>;
type Comparison = Rc<dyn Fn(&[Ran])>;

#[derive(Clone)]
struct Case {
    told: String,
    installation: Vec<Install>,
    script: String,
    files: Vec<(&'static str, &'static str)>,
    set_up: Vec<SetUp>,
    is_called: bool,
    may_misuse: Rc<dyn Fn(&str) -> bool>,
    /// How many events are left, if that is known.
    keeps: Option<u64>,
    then: Vec<Check>,
}

/// Returns the newest driver, to be changed.
#[must_use]
pub fn driver() -> OnDriver {
    let case = Case {
        told: String::new(),
        installation: Vec::new(),
        script: String::new(),
        files: Vec::new(),
        set_up: Vec::new(),
        is_called: true,
        may_misuse: Rc::new(|_| false),
        keeps: Some(0),
        then: Vec::new(),
    };
    OnDriver {
        cases: vec![case],
        compare: None,
    }
}

impl OnDriver {
    fn change(mut self, change: impl Fn(&mut Case)) -> Self {
        self.cases.iter_mut().for_each(change);
        self
    }

    /// Has the driver run these commands before the test.
    #[must_use]
    pub fn script(self, script: &str) -> Self {
        self.change(|case| case.script = format!("{}\n{script}", case.script))
    }

    /// Sets up the process.
    #[must_use]
    pub fn set_up(self, set_up: impl Fn(&mut Command) + 'static) -> Self {
        let set_up: SetUp = Rc::new(set_up);
        self.change(|case| case.set_up.push(Rc::clone(&set_up)))
    }

    /// Sets a variable of the process.
    #[must_use]
    pub fn env(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let (name, value) = (name.to_owned(), value.as_ref().to_owned());
        self.set_up(move |command| _ = command.env(&name, &value))
    }

    /// Sets a variable of the process to the path of a file in a folder that is empty: see [`Ran::file`].
    #[must_use]
    pub fn file(self, variable: &'static str, file: &'static str) -> Self {
        self.change(|case| case.files.push((variable, file)))
    }

    /// Has scopes that name no stream be measured on the legacy default one.
    #[must_use]
    pub fn legacy_stream(self) -> Self {
        self.env("PROFILER_CUDA_STREAM", "legacy")
    }

    /// Has sessions record kernels, through the CUPTI that is in the driver's file: other tools can use it afterwards.
    #[must_use]
    pub fn kernels(self) -> Self {
        self.set_up(kernels).then(|ran| {
            assert!(
                !ran.report.cupti.subscribed && ran.report.cupti.kinds_enabled.is_empty(),
                "{}: other tools can use CUPTI after the last window: {:?}",
                ran.told,
                ran.report.cupti
            );
        })
    }

    /// Takes another driver.
    #[must_use]
    pub fn installed(self, change: impl Fn(Installation) -> Installation + 'static) -> Self {
        let change: Install = Rc::new(change);
        self.change(|case| case.installation.push(Rc::clone(&change)))
    }

    /// Runs the test in each of these cases, in a process for each. A failure names the case, and [`told`] returns it.
    #[must_use]
    pub fn each<C: Display>(
        self,
        cases: impl IntoIterator<Item = C>,
        with: impl Fn(Self, &C) -> Self,
    ) -> Self {
        self.table(cases.into_iter().map(|case| (case.to_string(), case)), with)
    }

    /// Like [`each`](Self::each), with nothing but the name.
    #[must_use]
    pub fn cases<C: Display>(self, cases: impl IntoIterator<Item = C>) -> Self {
        self.each(cases, |driver, _| driver)
    }

    /// Like [`each`](Self::each), where the driver runs other commands in each case.
    #[must_use]
    pub fn scripts<const N: usize>(self, scripts: [&str; N]) -> Self {
        self.each(scripts, |driver, script| driver.script(script))
    }

    /// Like [`each`](Self::each), with a name and a value for each case.
    #[must_use]
    pub fn table<N: Display, C>(
        self,
        cases: impl IntoIterator<Item = (N, C)>,
        with: impl Fn(Self, &C) -> Self,
    ) -> Self {
        let named = |(name, case): (N, C)| {
            let driver = self.clone().change(|case| {
                let before = if case.told.is_empty() { "" } else { ": " };
                case.told = format!("{}{before}{name}", case.told);
            });
            with(driver, &case).cases
        };
        Self {
            cases: cases.into_iter().flat_map(named).collect(),
            compare: self.compare.clone(),
        }
    }

    /// Runs the test in the cases of another one, too.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.cases.extend(other.cases);
        self
    }

    /// Checks the results of the process.
    #[must_use]
    pub fn then(self, check: impl Fn(&Ran) + 'static) -> Self {
        let check: Check = Rc::new(check);
        self.change(|case| case.then.push(Rc::clone(&check)))
    }

    /// Compares the results of all cases, in their order.
    #[must_use]
    pub fn compare(mut self, check: impl Fn(&[Ran]) + 'static) -> Self {
        self.compare = Some(Rc::new(check));
        self
    }

    /// How many warnings the profiler gives.
    #[must_use]
    pub fn warnings(self, expected: usize) -> Self {
        self.then(move |ran| assert_eq!(ran.warnings(), expected, "{}: {}", ran.told, ran.stderr))
    }

    /// What the process says on the standard error output, each once or more often.
    #[must_use]
    pub fn says<const N: usize>(self, texts: [&'static str; N]) -> Self {
        self.then(move |ran| {
            for text in texts {
                assert!(
                    ran.stderr.contains(text),
                    "{}: {text}: {}",
                    ran.told,
                    ran.stderr
                );
            }
        })
    }

    /// What the process says there once.
    #[must_use]
    pub fn says_once(self, text: &'static str) -> Self {
        let count = move |ran: &Ran| ran.stderr.matches(text).count();
        self.then(move |ran| assert_eq!(count(ran), 1, "{}: {text}: {}", ran.told, ran.stderr))
    }

    /// How many events are left.
    #[must_use]
    pub fn keeps(self, events: u64) -> Self {
        self.change(|case| case.keeps = Some(events))
    }

    /// Has any number of events be left.
    #[must_use]
    pub fn keeps_events(self) -> Self {
        self.change(|case| case.keeps = None)
    }

    /// Has the driver not be called, so that it leaves no report.
    #[must_use]
    pub fn is_not_called(self) -> Self {
        self.change(|case| case.is_called = false)
    }

    /// Has the misuse of some functions of the driver be no error.
    #[must_use]
    pub fn may_misuse(self, functions: impl Fn(&str) -> bool + 'static) -> Self {
        let functions: Rc<dyn Fn(&str) -> bool> = Rc::new(functions);
        self.change(|case| case.may_misuse = Rc::clone(&functions))
    }

    /// Runs the test, and returns the results: the checks have passed.
    ///
    /// # Panics
    ///
    /// Panics if there are several cases.
    #[must_use]
    pub fn run(self) -> Ran {
        let [case] = &self.cases[..] else {
            panic!("one case has results");
        };
        case.run()
    }

    /// Runs the test in all cases, whichever fail.
    ///
    /// # Panics
    ///
    /// Panics if a case fails, and names it.
    pub fn run_each(self) {
        if let [case] = &self.cases[..] {
            case.run();
            return;
        }
        assert!(!self.cases.is_empty(), "a test has cases");
        let (mut all, mut failed) = (Vec::new(), Vec::new());
        for case in &self.cases {
            match catch_unwind(AssertUnwindSafe(|| case.run())) {
                Ok(ran) => all.push(ran),
                Err(_) => failed.push(&case.told),
            }
        }
        assert!(failed.is_empty(), "failed: {failed:?}");
        if let Some(compare) = self.compare {
            compare(&all);
        }
    }
}

impl Case {
    fn run(&self) -> Ran {
        let test = format!("{} {}", isolated::test_name(), self.told);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        let new = Installation::new(folder.path());
        let changes = self.installation.iter();
        let installed = changes.fold(new, |driver, change| change(driver)).create();
        let installed = installed.expect("a driver was built");
        let script = format!(
            "clock virtual\nsynchronise abort-from profiler_runtime::\n{}\nreport-at-exit {}",
            self.script,
            path.display()
        );
        let again = isolated::again();
        let mut command = installed.command(again.get_program(), &script);
        command
            .args(again.get_args())
            .env(isolated::AGAIN, "1")
            .env(CHILD, "1")
            .env(TOLD, &self.told);
        for variable in ["PROFILER_CUDA_LIBRARY", "PROFILER_CUDA_STREAM"] {
            // The driver of all other tests, where CI runs them on one.
            command.env_remove(variable);
        }
        // A machine may have NVIDIA's own, which does not work with this driver.
        command.env("PROFILER_KERNELS", "0");
        for set_up in &self.set_up {
            set_up(&mut command);
        }
        for (variable, file) in &self.files {
            command.env(variable, folder.path().join(file));
        }
        let output = command.output().expect("it runs");
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (lossy(&output.stdout), lossy(&output.stderr));
        assert!(
            output.status.success(),
            "{test}: {}\n{stdout}\n{stderr}",
            output.status
        );
        assert!(!stdout.contains("running 0 tests"), "the test is not found");
        let ran = Ran {
            told: self.told.clone(),
            report: if self.is_called {
                Report::read(&path).expect("a report")
            } else {
                Report::default()
            },
            stderr,
            stdout,
            folder,
        };
        let misuses = ran.report.misuses.iter();
        let misuses: Vec<_> = misuses
            .filter(|misuse| !(self.may_misuse)(&misuse.call))
            .collect();
        assert!(misuses.is_empty(), "{test}: {misuses:?}");
        if let Some(events) = self.keeps {
            let alive = ran.report.alive.events;
            assert_eq!(alive, events, "{test}: the events that are left");
        }
        self.then.iter().for_each(|check| check(&ran));
        ran
    }
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

/// The driver of this process, to be told things.
pub fn simulator() -> Simulator {
    let library = std::env::var_os("LD_LIBRARY_PATH").expect("the driver's folder comes first");
    let folder = std::env::split_paths(&library).next().expect("one");
    Simulator::open(&folder.join("libcuda.so")).expect("the driver loads")
}

/// Has the driver of this process run commands.
pub fn tell(script: &str) {
    simulator().run(script).expect("the script is right");
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
        tell(&format!("fault {name} nth {number} hang"));
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
        tell("clear-faults; release");
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

    /// Waits for all streams, and has all that was measured read.
    pub fn finish(&self) {
        self.context.synchronize().expect("nothing failed");
        settle();
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

/// Begins a program that is measured, with a device and a stream.
pub fn started() -> (ProfilerGuard, Gpu, Arc<CudaStream>) {
    let guard = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    (guard, gpu, stream)
}

/// Waits for a stream, and has all that was measured read.
pub fn finish(stream: &CudaStream) {
    stream.synchronize().expect("nothing failed");
    settle();
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
