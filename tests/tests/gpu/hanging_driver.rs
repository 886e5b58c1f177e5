//! If the driver hangs or shuts down, or a context fails, GPU times are lost and counted; the program continues and
//! ends normally. The last times are read before the driver shuts down. After that, and in a forked process, no thread
//! calls the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{flush, init, scope, summary};
use profiler_tests::gpu::{
    Gpu, OnDriver, Ran, cuda, driver, exact, finish, lost, on_a_thread, row, settle, simulator,
    started, tell, told,
};

/// Measures `scopes` scopes of 10 us on a stream of the driver.
fn measured(gpu: &Gpu, name: &str, scopes: usize) {
    let stream = pending(gpu, name, scopes);
    stream.synchronize().expect("nothing failed");
}

/// Like [`measured`], without waiting for the stream.
fn pending(gpu: &Gpu, name: &str, scopes: usize) -> Arc<CudaStream> {
    let stream = gpu.stream();
    for _ in 0..scopes {
        let _scope = scope!(name, stream = &stream);
        gpu.spin(&stream, 10_000);
    }
    stream
}

#[test(on = driver())]
fn a_flush_does_not_wait_for_a_call_that_hangs() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    tell("fault cuEventQuery from 1 hang");
    measured(&gpu, "hangs", 10);
    // The call hangs until the fault is cleared below: a flush that waited for it would never return.
    let report = flush(Duration::from_millis(300));
    assert!(report.unread > 0, "{report:?}");
    let stuck = |notice: &String| notice.contains("not returned from a call");
    assert_eq!(
        summary().notices.iter().filter(|said| stuck(said)).count(),
        1
    );
    assert!(summary().cuda.in_flight > 0);
    // Calls are still measured.
    measured(&gpu, "meanwhile", 10);
    assert_eq!(row("meanwhile").calls, 10);
    tell("clear-faults; release");
    settle();
    for name in ["hangs", "meanwhile"] {
        assert_eq!(
            (cuda(name).calls, row(name).without_cuda),
            (10, 0),
            "{name}"
        );
        exact(cuda(name).total_ns, 100_000.0);
    }
    assert_eq!(summary().cuda.in_flight, 0);
}

#[test(on = driver().keeps_events().cases(["guard", "return", "exit"]).warnings(1))]
fn a_program_ends_although_its_driver_hangs() {
    let profiler = (told() == "guard").then(|| init().expect("set up"));
    let gpu = Gpu::new(0);
    tell("fault cuEventQuery from 1 hang");
    measured(&gpu, "hangs", 10);
    if told() == "exit" {
        std::process::exit(0);
    }
    drop(profiler);
}

#[test(on = driver())]
fn work_that_never_ends_is_not_waited_for() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stalling, other) = (gpu.stream(), gpu.stream());
    tell("fault cuLaunchKernel nth 1 stall");
    for stream in [&stalling, &other] {
        for _ in 0..5 {
            let _scope = scope!(
                if stream == &other { "other" } else { "stalls" },
                stream = stream
            );
            gpu.spin(stream, 10_000);
        }
    }
    other.synchronize().expect("nothing failed");
    // The flush below returns before the stalled work ends, so it cannot wait for the resolver to read the rest.
    while (cuda("other").calls, summary().cuda.in_flight) != (5, 5) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let report = flush(Duration::from_millis(200));
    assert_eq!(report.unread, 5, "{report:?}");
    exact(cuda("other").total_ns, 50_000.0);
    assert_eq!(cuda("stalls").calls, 0);
    assert!(
        summary().notices.is_empty(),
        "the driver does not hang: {:?}",
        summary().notices
    );
    tell("release");
    finish(&stalling);
    assert_eq!((cuda("stalls").calls, row("stalls").without_cuda), (5, 0));
}

fn gone_at_exit() -> OnDriver {
    let scripts = [
        ("guard", "shutdown at-exit"),
        ("exit", "shutdown at-exit"),
        ("now", ""),
    ];
    driver().table(scripts, |driver, script| driver.script(script))
}

#[test(on = gone_at_exit().keeps_events().warnings(0))]
fn a_driver_that_is_gone_at_exit_is_no_error() {
    let profiler = (told() == "guard").then(|| init().expect("set up"));
    let gpu = Gpu::new(0);
    measured(&gpu, "last", 10);
    let stream = gpu.stream();
    let _open = scope!("open", stream = &stream);
    // Nothing of cudarc's is dropped: its destructors would find no driver.
    std::mem::forget((gpu, stream.clone()));
    if told() == "now" {
        tell("shutdown");
    }
    drop(profiler);
    std::process::exit(0);
}

#[test(on = driver().keeps_events().warnings(0))]
fn a_driver_that_goes_while_the_program_measures_is_no_error() {
    let profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    measured(&gpu, "before", 10);
    settle();
    let stream = gpu.stream();
    {
        let _scope = scope!("across", stream = &stream);
        gpu.spin(&stream, 10_000);
        tell("shutdown");
    }
    for _ in 0..10 {
        let _scope = scope!("after", stream = &stream);
    }
    settle();
    exact(cuda("before").total_ns, 100_000.0);
    assert_eq!((row("across").calls, row("across").without_cuda), (1, 1));
    assert_eq!((row("after").calls, row("after").without_cuda), (10, 10));
    assert_eq!(lost(CudaLoss::ContextGone), 11, "{:?}", summary().cuda.lost);
    std::mem::forget((gpu, stream));
    drop(profiler);
    std::process::exit(0);
}

#[test(on = driver().keeps_events().script("devices 2").warnings(1).says(["CUDA_ERROR_ILLEGAL_ADDRESS"]))]
fn a_context_that_fails_takes_only_its_own_times_with_it() {
    let _profiler = init().expect("set up");
    let (failing, other) = (Gpu::new(0), Gpu::new(1));
    let (stream, others) = (failing.stream(), other.stream());
    for _ in 0..3 {
        let _pending = scope!("pending", stream = &stream);
        failing.spin(&stream, 10_000);
    }
    {
        let _open = scope!("open", stream = &stream);
        failing.spin(&stream, 10_000);
        let _beside = scope!("beside", stream = &others);
        other.spin(&others, 30_000);
        tell("sticky 0 700");
    }
    for _ in 0..4 {
        let _after = scope!("after", stream = &stream);
    }
    let code = stream.synchronize().expect_err("the context has failed").0 as u32;
    assert_eq!(code, 700, "the program's own call says it");
    others.synchronize().expect("another context");
    settle();
    for (name, calls) in [("pending", 3), ("open", 1), ("after", 4)] {
        assert_eq!(
            (row(name).calls, row(name).without_cuda),
            (calls, calls),
            "{name}"
        );
        assert!(row(name).cuda.is_none(), "{name}");
    }
    assert_eq!(summary().cuda.lost, [(CudaLoss::ContextFailed, 8)]);
    exact(cuda("beside").total_ns, 30_000.0);
    measured(&other, "goes on", 10);
    settle();
    exact(cuda("goes on").total_ns, 100_000.0);
    std::mem::forget((failing, stream));
}

#[test(on = driver().keeps_events().warnings(0))]
fn times_that_a_driver_takes_with_it_are_not_waited_for() {
    let profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    measured(&gpu, "before", 10);
    settle();
    let stream = pending(&gpu, "pending", 10);
    assert_eq!(flush(Duration::from_millis(100)).unread, 10);
    tell("shutdown");
    settle();
    assert_eq!(row("pending").without_cuda, 10);
    assert_eq!(summary().cuda.lost, [(CudaLoss::ContextGone, 10)]);
    std::mem::forget((gpu, stream));
    drop(profiler);
    std::process::exit(0);
}

fn shuts_down() -> OnDriver {
    driver().script("shutdown at-exit").keeps_events()
}

fn summary_has_the_last(ran: &Ran) {
    let text = std::fs::read_to_string(ran.file("summary.json")).expect("it was written");
    let summary: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let rows = summary["rows"].as_array().expect("it has rows");
    let last = rows.iter().find(|row| row["name"] == "last");
    assert_eq!(last.expect("it was called")["cuda"]["calls"], 10, "{text}");
}

#[test(on = shuts_down().file("PROFILER_SUMMARY", "summary.json").then(summary_has_the_last))]
fn the_last_times_are_read_before_the_driver_ends() {
    // The profiler is there before the driver, and an exit handler of its own comes after the driver's.
    drop(scope!("first"));
    let gpu = Gpu::new(0);
    let stream = pending(&gpu, "last", 10);
    std::mem::forget((gpu, stream));
    simulator()
        .advance(1_000_000)
        .expect("the clock is virtual");
    std::process::exit(0);
}

/// Calls of the driver until its own exit handler had run.
static CALLS: AtomicU64 = AtomicU64::new(0);

fn calls() -> u64 {
    let report = simulator().report().expect("a report");
    report.calls.values().sum()
}

extern "C" fn note_calls() {
    CALLS.store(calls(), Relaxed);
}

extern "C" fn compare_calls() {
    // The profiler's thread looks more often than that while something is pending.
    std::thread::sleep(Duration::from_millis(100));
    // A panic here aborts.
    assert_eq!(calls(), CALLS.load(Relaxed));
}

#[test(on = shuts_down())]
fn a_driver_that_has_ended_is_not_called_any_more() {
    // The last one runs first.
    // SAFETY: a function of this program, which does not unwind: no panic leaves one of the C ABI.
    assert_eq!(unsafe { libc::atexit(compare_calls) }, 0);
    drop(scope!("first"));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::atexit(note_calls) }, 0);
    let gpu = Gpu::new(0);
    let stream = pending(&gpu, "pending", 1);
    std::mem::forget((gpu, stream));
    std::process::exit(0);
}

fn still_measured() -> OnDriver {
    shuts_down()
        .env("PROFILER_BACKEND", "cuda")
        .env("PROFILER_RING", "65536")
        .env("PROFILER_SUMMARY", "stderr")
}

#[test(on = still_measured().warnings(0).says_once("event pairs"))]
fn a_program_that_is_still_measured_when_it_ends_gets_one_table_and_no_warning() {
    drop(scope!("first", log = |_: &str, _: f64, _: u64| {}));
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    measured(&gpu, "on the device", 10);
    std::mem::forget((gpu, stream));
    std::thread::spawn(|| {
        loop {
            drop(scope!("beside", log = |_: &str, _: f64, _: u64| {}));
            // The collector may wait for a processor while the ring fills up, which has a warning of its own.
            std::thread::sleep(Duration::from_micros(50));
        }
    });
    while row("beside").calls < 100 {
        std::thread::yield_now();
    }
    std::process::exit(0);
}

#[test(on = driver())]
fn a_forked_process_leaves_the_driver_to_its_parent() {
    let (_profiler, _gpu, stream) = started();
    let measure = || (0..10).for_each(|_| drop(scope!("either", stream = &stream)));
    measure();
    settle();
    let simulator = simulator();
    let calls = || ["cuEventRecord", "cuStreamIsCapturing"].map(|of| simulator.calls(of));
    let before = calls();
    // SAFETY: the child calls the profiler, which is what is tested, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: an alarm ends the process, as nothing here handles it.
        unsafe { libc::alarm(20) };
        measure();
        on_a_thread(measure);
        // SAFETY: ends the process at once, without handlers of the parent's.
        unsafe { libc::_exit(i32::from(calls() != before)) }
    }
    let mut status = 0;
    // SAFETY: this process forked the child, and `status` may be written.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    // The parent still measures.
    measure();
    settle();
    assert_eq!(cuda("either").calls, 20);
}
