//! Work that one thread asks for and another one launches stands under the scope that asked for it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use profiler_runtime::cuda::LaunchHookState;
use profiler_runtime::report::{IdleCharge, Timeline};
use profiler_runtime::{Activity, Handle, HandleId, Profile, Trace, cuda, init, scope};
use profiler_tests::gpu::{OnDriver, cupti_of_driver, driver, exact, on_a_thread};
use profiler_tests::traces::read_back;

use crate::support::kernels::{Program, assert_scopes, assert_times, found};

/// Larger than any fill.
const BYTES: usize = 1 << 20;

/// The records are on one time line with the scopes.
fn with_cupti() -> OnDriver {
    driver().script("clock real").set_up(cupti_of_driver)
}

fn memory(stream: &Arc<CudaStream>) -> CudaSlice<u8> {
    // SAFETY: the device writes it, and nothing reads it.
    unsafe { stream.alloc(BYTES) }.expect("there is memory")
}

fn assert_complete(trace: &Trace) {
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
}

/// Asserts that each piece of work stands under the scope that the program noted, and that no note asks for more.
#[track_caller]
fn assert_all(trace: &Trace, program: &Program) {
    assert_complete(trace);
    let found = found(trace);
    assert_scopes(&found, program);
    assert_times(&found);
    let notes: Vec<&str> = trace.kernel_notes().collect();
    assert_eq!(notes, [""; 0]);
}

/// Has another thread, which measures nothing, do what is sent to it.
fn with_runner<T: Send>(on_task: impl Fn(T) + Sync, ask: impl FnOnce(&dyn Fn(T))) {
    let (tasks, to_do) = mpsc::channel::<(T, mpsc::Sender<()>)>();
    thread::scope(|threads| {
        let runner = thread::Builder::new().name("runner".to_owned());
        let run = || {
            for (task, done) in to_do {
                on_task(task);
                done.send(()).expect("it is awaited");
            }
        };
        runner.spawn_scoped(threads, run).expect("a thread");
        let tasks = tasks;
        ask(&|task| {
            let (done, is_done) = mpsc::channel();
            tasks.send((task, done)).expect("the runner runs");
            is_done.recv().expect("it does each task");
        });
    });
}

/// Has another thread launch ten fills for the scope `asks`: inside of its handle, or after having left that.
fn record_fills(program: &Program, is_inside: bool) -> Arc<Trace> {
    let stream = program.gpu.stream();
    let memory = Mutex::new(memory(&stream));
    program.record(|program| {
        let fill = |asker: Handle| {
            bind(&program.gpu.context);
            let _asker = is_inside.then_some(asker.enter());
            let mut memory = memory.lock().expect("no panic");
            program.fill(&stream, &mut memory, is_inside.then_some("asks"));
        };
        with_runner(fill, |fill| {
            let _asks = scope!("asks");
            (0..10).for_each(|_| fill(Handle::current()));
        });
    })
}

#[test(on = with_cupti())]
fn fills_for_a_scope_that_ends_out_of_order_are_its_own() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let memory = Mutex::new(memory(&stream));
    let trace = program.record(|program| {
        let fill = |asker: Handle| {
            bind(&program.gpu.context);
            let _asker = asker.enter();
            let mut memory = memory.lock().expect("no panic");
            program.fill(&stream, &mut memory, Some("asks"));
        };
        with_runner(fill, |fill| {
            let first = scope!("first");
            let asks = scope!("asks");
            let asker = Handle::current();
            fill(asker.clone());
            drop(first);
            fill(asker);
            drop(asks);
        });
    });
    assert_all(&trace, &program);
}

#[test(on = with_cupti())]
fn fills_that_another_thread_launches_in_an_entered_handle_are_the_askers() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let trace = record_fills(&program, true);
    assert_all(&trace, &program);
    assert_eq!(found(&trace).len(), 10);
    let averages = trace.key_averages();
    let kernels = averages.kernels();
    let [scope] = &kernels.scopes[..] else {
        panic!("{kernels}")
    };
    assert_eq!(
        (scope.scope.as_deref(), scope.launches),
        (Some("asks"), Some(10))
    );
    let asks = averages
        .row("asks")
        .expect("a row")
        .cuda
        .expect("a GPU time");
    let ns = fills_ns(&trace);
    exact(asks.total_ns, ns);
    exact(asks.self_ns, ns);
}

#[test(on = with_cupti())]
fn a_window_whose_scopes_have_kernels_alone_does_not_say_that_they_have_no_times() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let record = |is_inside: bool| {
        let window = Profile::builder().activities([Activity::Cpu, Activity::Cuda]);
        let ((), trace) = window.kernels(true).run(|_| {
            let mut scope = Some(scope!("asks"));
            if !is_inside {
                scope.take();
            }
            program.gpu.spin(&stream, 1_000);
            drop(scope);
            stream.synchronize().expect("nothing failed");
        });
        let trace = trace.expect("a window");
        assert_complete(&trace);
        trace.no_cuda_reason().map(str::to_owned)
    };
    assert_eq!(record(true), None);
    let reason = record(false).expect("no scope has a time");
    assert!(reason.starts_with("its scopes name no stream"), "{reason}");
}

fn fills_ns(trace: &Trace) -> f64 {
    let lengths = found(trace)
        .into_iter()
        .map(|found| found.span.1 - found.span.0);
    lengths.sum::<i64>() as f64
}

fn bind(context: &Arc<CudaContext>) {
    context.bind_to_thread().expect("nothing failed");
}

#[test(on = with_cupti())]
fn fills_that_another_thread_launches_without_a_handle_belong_to_no_scope() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let trace = record_fills(&program, false);
    assert_complete(&trace);
    assert_scopes(&found(&trace), &program);
    let notes: Vec<&str> = trace.kernel_notes().collect();
    assert!(
        notes.len() == 1 && notes[0].contains(": `runner` ("),
        "{notes:?}"
    );
}

thread_local! {
    /// Whom this thread launches for.
    static ASKER: Cell<Option<HandleId>> = const { Cell::new(None) };
}

#[test(on = with_cupti())]
fn the_launch_hook_names_the_scope_where_no_handle_is_entered() {
    /// How often the hook was asked, and for how many kernels of this program.
    static ASKED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
    let hook = |launch: &cuda::LaunchCall<'_>| {
        ASKED[0].fetch_add(1, Relaxed);
        let is_known = launch.name() == "cuLaunchKernel" && launch.kernel() == Some("spin_ns");
        let is_called = cuda::launch_hook_state() == LaunchHookState::Called;
        ASKED[1].fetch_add(u64::from(is_known && is_called), Relaxed);
        ASKER.get()
    };
    assert!(cuda::set_launch_hook(hook));
    assert!(!cuda::set_launch_hook(|_| None), "the first one stays");
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let memory = Mutex::new(memory(&stream));
    assert_eq!(cuda::launch_hook_state(), LaunchHookState::Unused);
    let trace = program.record(|program| {
        let run = |(asker, scope): (Handle, &'static str)| {
            bind(&program.gpu.context);
            ASKER.set(asker.id());
            program.kernel(&stream, Some(scope));
            program.fill(&stream, &mut memory.lock().expect("no panic"), Some(scope));
            {
                let _inner = scope!("runs");
                program.kernel(&stream, Some(scope));
                let _entered = Handle::current().enter();
                program.kernel(&stream, Some("runs"));
            }
            ASKER.set(None);
            program.kernel(&stream, None);
            let _inner = scope!("runs");
            program.kernel(&stream, Some("runs"));
        };
        with_runner(run, |run| {
            for _ in 0..5 {
                let _first = scope!("first");
                run((Handle::current(), "first"));
                let _second = scope!("second");
                run((Handle::current(), "second"));
            }
        });
    });
    assert_complete(&trace);
    assert_scopes(&found(&trace), &program);
    // Ten times five kernels and a fill.
    assert_eq!(ASKED.each_ref().map(|asked| asked.load(Relaxed)), [60, 50]);
}

#[test(on = with_cupti())]
fn a_launch_whose_hook_panics_stands_under_the_scope_of_its_thread() {
    std::panic::set_hook(Box::new(|_| {}));
    assert!(cuda::set_launch_hook(|_| panic!("of the hook")));
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let _scope = scope!("launches");
        (0..3).for_each(|_| program.kernel(&stream, Some("launches")));
    });
    assert_all(&trace, &program);
}

#[test(on = with_cupti())]
fn a_scope_inside_of_the_handle_has_what_it_launches() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let _asks = scope!("asks");
        let asker = Handle::current();
        let inner = || {
            on_a_thread(|| {
                bind(&program.gpu.context);
                let _around = scope!("around");
                program.kernel(&stream, Some("around"));
                {
                    let _asker = asker.enter();
                    program.kernel(&stream, Some("asks"));
                    {
                        let _inside = scope!("inside");
                        program.kernel(&stream, Some("inside"));
                        let inside = Handle::current();
                        let _inside = inside.enter();
                        program.kernel(&stream, Some("inside"));
                        let _asker = asker.enter();
                        program.kernel(&stream, Some("asks"));
                    }
                    program.kernel(&stream, Some("asks"));
                }
                program.kernel(&stream, Some("around"));
            });
        };
        inner();
        // On its own thread too.
        let _inside = scope!("inside");
        let _asker = asker.enter();
        program.kernel(&stream, Some("asks"));
    });
    assert_all(&trace, &program);
}

#[test(on = with_cupti())]
fn a_scope_that_has_ended_has_what_is_launched_for_it_later_in_its_window() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let mut kept = Handle::none();
    let trace = program.record(|program| {
        let asker = {
            let _asks = scope!("asks");
            Handle::current()
        };
        // What the thread runs meanwhile is not what asked.
        let _other = scope!("other");
        {
            let _asker = asker.enter();
            program.kernel(&stream, Some("asks"));
        }
        kept = asker;
    });
    assert_all(&trace, &program);
    let all = found(&trace);
    let trace = program.record(|program| {
        let _other = scope!("other");
        let _asker = kept.enter();
        program.kernel(&stream, None);
    });
    assert_complete(&trace);
    assert_scopes(&[all, found(&trace)].concat(), &program);
}

#[test(on = with_cupti())]
fn askers_of_threads_that_come_and_go_are_told_apart() {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        for round in 0..12 {
            let name = NAMES[round % 3];
            // Each takes the memory of the one before, and with it the numbers of its scopes.
            let asker = on_a_thread(|| {
                let _asks = scope!(name);
                Handle::current()
            });
            on_a_thread(|| {
                bind(&program.gpu.context);
                let _asker = asker.enter();
                program.kernel(&stream, Some(name));
            });
        }
    });
    assert_all(&trace, &program);
}

#[test(on = with_cupti())]
fn a_future_has_what_is_launched_for_it_by_a_pool() {
    use profiler_runtime::MeasureFuture;
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let launch = |asker: Handle| {
            bind(&program.gpu.context);
            let _asker = asker.enter();
            program.kernel(&stream, Some("future"));
        };
        with_runner(launch, |launch| {
            let future = async {
                for _ in 0..3 {
                    launch(Handle::current());
                    profiler_tests::poll::yields(1).await;
                }
            };
            profiler_tests::poll::run(future.measure_execution_time("future"));
        });
    });
    assert_all(&trace, &program);
}

/// Returns the idle time of each device that is charged to a function.
fn charged(line: &Timeline, name: &str) -> Vec<i64> {
    let idle = line.gpu_idle();
    let of_device = |charges: &[IdleCharge]| {
        let of_name = charges
            .iter()
            .filter(|charge| charge.name.as_deref() == Some(name));
        of_name.map(|charge| charge.idle_ns).sum()
    };
    let devices = idle.devices.iter();
    devices.map(|device| of_device(&device.charges)).collect()
}

/// Two devices wait for a thread that prepares work for one scope, and then for another one.
#[test(on = with_cupti().script("devices 2"))]
fn each_device_waits_for_the_scope_whose_handle_the_launching_thread_is_in() {
    const PREPARED: Duration = Duration::from_millis(20);
    let _profiler = init().expect("set up");
    let (program, other) = (Program::new(), profiler_tests::gpu::Gpu::new(1));
    let streams = [program.gpu.stream(), other.stream()];
    let trace = program.record(|program| {
        let launch = |(device, asker): (usize, Handle)| {
            let gpu = [&program.gpu, &other][device];
            bind(&gpu.context);
            let _asker = asker.enter();
            thread::sleep(PREPARED);
            gpu.spin(&streams[device], 1_000);
        };
        with_runner(launch, |launch| {
            for device in [0, 1] {
                bind(&[&program.gpu, &other][device].context);
                [&program.gpu, &other][device].spin(&streams[device], 1_000);
            }
            for (name, device) in [("first", 0), ("second", 1)] {
                let _asks = scope!(name);
                launch((device, Handle::current()));
            }
        });
        other.context.synchronize().expect("nothing failed");
    });
    assert_complete(&trace);
    let line = trace.timeline();
    let prepared = i64::try_from(PREPARED.as_nanos()).expect("it fits") - 1_000_000;
    // The first device worked for `first` only; the second one had to wait for both.
    let least = |name: &str, least: [i64; 2]| {
        let charged = charged(&line, name);
        let is_enough = charged.iter().zip(least).all(|(ns, least)| *ns >= least);
        assert!(charged.len() == 2 && is_enough, "{name}: {charged:?}");
    };
    least("first", [prepared, prepared]);
    least("second", [0, prepared]);
    assert_eq!(charged(&line, "second")[0], 0);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    trace.export_chrome_trace(&path).expect("room");
    let read = read_back(&path);
    for name in ["first", "second"] {
        assert_eq!(charged(&read, name), charged(&line, name), "{name}");
    }
}
