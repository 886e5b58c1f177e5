//! Whatever a program does with scopes, futures, handles and threads, nothing is lost and nothing is counted twice: each call, log
//! entry, reported time and kernel is where the program says.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use profiler_runtime::{Handle, MeasureFuture as _, Profile, init, scope, summary};
use profiler_tests::gpu::{Gpu, driver, settle};
use profiler_tests::poll::poll_once;
use profiler_tests::stop;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

const NAMES: usize = 4;
const THREADS: usize = 3;

/// Something that a thread of the program does. A place is any number: it is taken modulo what is there.
#[derive(Clone, Debug)]
enum Step {
    Open {
        name: usize,
        is_logged: bool,
    },
    /// Ends the scope at this place, in any order, on any thread.
    Close {
        place: usize,
    },
    /// Enters the handle of the scope at this place for a call on another thread.
    CallInside {
        place: usize,
        name: usize,
    },
    /// Tells the scope at this place, which may have ended, a time of a device.
    Report {
        place: usize,
        ns: u64,
    },
    Launch {
        ns: u64,
    },
    /// Makes a future that is ready after some polls.
    Async {
        name: usize,
        polls: usize,
    },
    Poll {
        place: usize,
    },
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let (name, place, ns) = (|| 0..NAMES, || 0..16_usize, || 1..50_000_u64);
    let step = prop_oneof![
        6 => (name(), any::<bool>()).prop_map(|(name, is_logged)| Step::Open { name, is_logged }),
        5 => place().prop_map(|place| Step::Close { place }),
        2 => (place(), name()).prop_map(|(place, name)| Step::CallInside { place, name }),
        3 => (place(), ns()).prop_map(|(place, ns)| Step::Report { place, ns }),
        3 => ns().prop_map(|ns| Step::Launch { ns }),
        1 => (name(), 0..4_usize).prop_map(|(name, polls)| Step::Async { name, polls }),
        4 => place().prop_map(|place| Step::Poll { place }),
    ];
    (0..THREADS, step)
}

/// What the program knows of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct OfName {
    calls: u64,
    entries: u64,
    reported_ns: f64,
}

type Measured = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Program {
    names: [String; NAMES],
    /// The open scopes, with their names and whether they are logged.
    open: Vec<(Moved, usize, bool)>,
    /// The handles of all scopes, also of those that have ended.
    handles: Vec<(Handle, usize)>,
    futures: Vec<(Measured, usize)>,
    truth: [OfName; NAMES],
    kernels: Vec<u64>,
}

/// A guard that a program moves between threads in spite of its type, as a coroutine's stack may do.
struct Moved(#[allow(dead_code, reason = "it is dropped")] Box<dyn Any>);

// SAFETY: a guard holds numbers and names, and its drop expects other threads: the mark only keeps programs from mistakes.
unsafe impl Send for Moved {}

/// The entries that the logger got.
static DELIVERED: AtomicU64 = AtomicU64::new(0);

fn count_entry(_: &str, _: f64, _: u64) {
    DELIVERED.fetch_add(1, Relaxed);
}

impl Program {
    fn new() -> Self {
        static PROGRAMS: AtomicU64 = AtomicU64::new(0);
        let number = PROGRAMS.fetch_add(1, Relaxed);
        let mut place = 0;
        let names = [(); NAMES].map(|()| {
            place += 1;
            format!("program {number}: {place}")
        });
        Self {
            names,
            open: Vec::new(),
            handles: Vec::new(),
            futures: Vec::new(),
            truth: [OfName::default(); NAMES],
            kernels: Vec::new(),
        }
    }

    /// Does a step, on the thread that calls this.
    fn take(&mut self, step: &Step, gpu: &Gpu, stream: &Arc<CudaStream>) {
        match *step {
            Step::Open { name, is_logged } => {
                let text = &self.names[name];
                let scope: Box<dyn Any> = if is_logged {
                    Box::new(scope!(text.clone(), log = count_entry))
                } else {
                    Box::new(scope!(text.clone()))
                };
                self.handles.push((Handle::current(), name));
                self.open.push((Moved(scope), name, is_logged));
            }
            Step::Close { place } if !self.open.is_empty() => {
                let (scope, name, is_logged) = self.open.remove(place % self.open.len());
                drop(scope);
                self.ended(name, is_logged);
            }
            Step::CallInside { place, name } if !self.handles.is_empty() => {
                let (handle, _) = &self.handles[place % self.handles.len()];
                let _entered = handle.enter();
                drop(scope!(&self.names[name]));
                self.ended(name, false);
            }
            Step::Report { place, ns } if !self.handles.is_empty() => {
                let (handle, name) = &self.handles[place % self.handles.len()];
                let start = Instant::now();
                handle.report_device_time("kernel", start, start + Duration::from_nanos(ns));
                self.truth[*name].reported_ns += ns as f64;
            }
            Step::Launch { ns } => {
                gpu.spin(stream, ns);
                self.kernels.push(ns);
            }
            Step::Async { name, polls } => {
                let mut left = polls;
                let future = std::future::poll_fn(move |_| {
                    left = left.saturating_sub(1);
                    if left > 0 {
                        Poll::Pending
                    } else {
                        Poll::Ready(())
                    }
                });
                let future = future.measure_execution_time(self.names[name].clone());
                self.futures.push((Box::pin(future), name));
            }
            Step::Poll { place } if !self.futures.is_empty() => {
                let place = place % self.futures.len();
                if poll_once(Pin::new(&mut self.futures[place].0)).is_ready() {
                    let (future, name) = self.futures.remove(place);
                    drop(future);
                    self.ended(name, false);
                }
            }
            _ => {}
        }
    }

    fn ended(&mut self, name: usize, is_logged: bool) {
        self.truth[name].calls += 1;
        self.truth[name].entries += u64::from(is_logged);
    }

    /// Ends all that is open.
    fn end(&mut self, gpu: &Gpu, stream: &Arc<CudaStream>) {
        while !self.open.is_empty() {
            self.take(&Step::Close { place: 0 }, gpu, stream);
        }
        while !self.futures.is_empty() {
            self.take(&Step::Poll { place: 0 }, gpu, stream);
        }
    }
}

/// Runs a program in a window: each step on its thread, one after the other.
fn run(steps: &[(usize, Step)], gpu: &Gpu, stream: &Arc<CudaStream>) -> (Program, Vec<u64>) {
    let profile = Profile::builder().kernels(true).start().expect("started");
    let mut program = thread::scope(|scope| {
        let (done, is_done) = mpsc::channel::<Program>();
        let senders: Vec<mpsc::Sender<(Program, Step)>> = (0..THREADS)
            .map(|_| {
                let (sender, steps) = mpsc::channel::<(Program, Step)>();
                let done = done.clone();
                scope.spawn(move || {
                    gpu.context.bind_to_thread().expect("a context");
                    for (mut program, step) in steps {
                        program.take(&step, gpu, stream);
                        done.send(program).expect("it listens");
                    }
                });
                sender
            })
            .collect();
        let mut program = Program::new();
        for (thread, step) in steps {
            senders[*thread]
                .send((program, step.clone()))
                .expect("it listens");
            program = is_done.recv().expect("it does not panic");
        }
        program
    });
    program.end(gpu, stream);
    gpu.context.synchronize().expect("nothing failed");
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    let line = trace.timeline();
    let kernels = line.slices.iter().filter(|slice| slice.work.is_some());
    let mut kernels: Vec<u64> = kernels
        .map(|slice| slice.duration_ns.unsigned_abs())
        .collect();
    kernels.sort_unstable();
    (program, kernels)
}

/// Runs a program, and compares what it knows with what the profiler says.
fn check(
    steps: &[(usize, Step)],
    gpu: &Gpu,
    stream: &Arc<CudaStream>,
) -> Result<(), TestCaseError> {
    let before = (DELIVERED.load(Relaxed), summary());
    let (mut program, kernels) = run(steps, gpu, stream);
    settle();
    let delivered = DELIVERED.load(Relaxed) - before.0;
    let after = summary();
    program.kernels.sort_unstable();
    prop_assert_eq!(&kernels, &program.kernels);
    let entries: u64 = program.truth.iter().map(|name| name.entries).sum();
    prop_assert_eq!(delivered, entries);
    prop_assert_eq!(after.delivered - before.1.delivered, entries);
    prop_assert!(after.dropped.is_empty(), "{:?}", after.dropped);
    for (name, truth) in program.names.iter().zip(&program.truth) {
        let found = after.row(name).map_or((0, 0.0), |row| {
            (row.calls, row.cuda.map_or(0.0, |cuda| cuda.self_ns))
        });
        prop_assert_eq!(found, (truth.calls, truth.reported_ns), "{}", name);
    }
    Ok(())
}

#[test(on = driver().kernels())]
fn guards_that_end_on_another_thread_balance() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let open = |thread| {
        let (name, is_logged) = (0, true);
        (thread, Step::Open { name, is_logged })
    };
    let close = |thread, place| (thread, Step::Close { place });
    let report = |place| (0, Step::Report { place, ns: 100 });
    for steps in [
        // The thread that runs the program, which ends what is open, has measured nothing before.
        &[open(0)][..],
        &[open(0), open(0), report(1)],
        &[open(0), open(0), close(0, 0), report(1)],
        &[open(0), open(0), close(1, 0), report(0)],
        &[open(0), close(1, 0), open(0), open(0), close(0, 1)],
        // A cell of the name is used again while an older guard is held.
        &[
            open(0),
            open(0),
            close(0, 0),
            open(1),
            open(1),
            close(1, 1),
            close(2, 0),
        ],
    ] {
        let checked = check(steps, &gpu, &stream);
        assert!(checked.is_ok(), "{steps:?}: {checked:?}");
    }
}

#[test(on = driver().kernels())]
fn random_programs_balance() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let config = ProptestConfig {
        cases: cases.unwrap_or(50),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let programs = prop::collection::vec(step(), 1..80);
    let checked = TestRunner::new(config).run(&programs, |steps| check(&steps, &gpu, &stream));
    if let Err(failure) = checked {
        panic!("{failure}");
    }
}
