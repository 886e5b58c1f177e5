//! If CUPTI cannot record, or loses something, windows say so, and everything else is measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::report::{KernelGap, SliceKind};
use profiler_runtime::session::Event;
use profiler_runtime::{Activity, Profile, Trace, init, scope};
use profiler_tests::gpu::{self, Gpu, OnDriver, cupti_of_driver, driver, simulator, started};
use profiler_tests::stop;
const KERNELS: u64 = 20;
/// No test that passes gets here: the search for a driver ends after a minute.
const PATIENCE: Duration = Duration::from_secs(120);

/// Records a window with some kernels in one scope.
fn window() -> Arc<Trace> {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let profile = Profile::builder().start().expect("started");
    simulator().advance(1_000_000_000).expect("virtual");
    {
        let _scope = scope!("scope", stream = &stream);
        for _ in 0..KERNELS {
            gpu.spin(&stream, 1_000);
        }
    }
    gpu.context.synchronize().expect("nothing failed");
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    // Whatever happens to the kernels, the scope has its GPU time.
    let scope = trace.events().find(|event| event.name() == "scope");
    let time = scope.and_then(Event::gpu).expect("a GPU time");
    gpu::exact(time.ns, 20_000.0);
    trace
}

/// Returns the lengths of the work of a window that has a scope.
fn kernels_in_scope(trace: &Trace) -> u64 {
    let kernels = trace.gpu_work().filter(|work| work.scope().is_some());
    kernels.count() as u64
}

#[test(on = driver().kernels().env("PROFILER_CUPTI_LIBRARY", "/no/such/libcupti.so.12"))]
fn a_library_that_is_not_there_is_reported() {
    let _profiler = init().expect("set up");
    let trace = window();
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(
        reason.contains("/no/such/libcupti.so.12 cannot be loaded")
            && reason.contains("PROFILER_CUPTI_LIBRARY"),
        "{reason}"
    );
    assert_eq!(kernels_in_scope(&trace), 0);
}

/// With a request for kernels there is a warning, and without one there is none.
fn held_by_a_tool() -> OnDriver {
    let held = driver()
        .installed(|of| of.cupti_release("13.0"))
        .script("cupti holder Nsight Systems");
    let unasked = held.clone().set_up(cupti_of_driver).warnings(0);
    held.kernels().warnings(1).and(unasked)
}

#[test(on = held_by_a_tool())]
fn a_tool_that_has_cupti_is_named() {
    let _profiler = init().expect("set up");
    let trace = window();
    let tool = Some("Nsight Systems".to_owned());
    assert_eq!(kernel_status(), KernelStatus::Taken { tool });
    let reason = trace.no_kernels_reason().expect("a reason");
    assert!(reason.contains("(Nsight Systems)"), "{reason}");
}

#[test(on = driver().script("devices 0").kernels().warnings(1).says(["kernels are left out"]))]
fn a_driver_without_a_device_is_one_warning_if_kernels_are_required() {
    let _profiler = init().expect("set up");
    cudarc::driver::CudaContext::new(0).expect_err("there is no device");
    for _ in 0..2 {
        let ((), trace) = Profile::builder()
            .kernels(true)
            .run(|_| drop(scope!("work")));
        let trace = trace.expect("a window");
        let reason = trace.no_kernels_reason().expect("a reason");
        assert!(reason.contains("without a device"), "{reason}");
    }
}

#[test(on = driver().set_up(cupti_of_driver).script("clock real; fault cuptiActivityEnable always delay 300ms"))]
fn what_ran_while_cupti_was_starting_is_a_gap_and_no_idle_time() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let run = || {
        let _scope = scope!("scope", stream = &stream);
        for _ in 0..KERNELS {
            gpu.spin(&stream, 1_000);
        }
    };
    // Nothing has asked for kernels: the window opens before CUPTI records.
    let profile = Profile::builder().start().expect("started");
    run();
    let was_starting = !kernel_status().is_ready();
    while !kernel_status().is_ready() {
        std::thread::sleep(Duration::from_millis(1));
    }
    run();
    gpu.context.synchronize().expect("nothing failed");
    stop(&profile);
    if !was_starting {
        // The machine held the program up for longer than the start takes.
        return;
    }
    let trace = profile.trace().expect("a trace");
    assert_eq!(kernels_in_scope(&trace), KERNELS);
    let line = trace.timeline();
    let gaps: &[KernelGap] = &line.kernel_gaps;
    let [gap] = gaps else { panic!("{gaps:?}") };
    let calls = line.slices.iter();
    let calls = calls.filter(|slice| slice.kind == SliceKind::Call);
    let starts: Vec<i64> = calls.map(|slice| slice.start_ns).collect();
    let gap_end = gap.start_ns + gap.duration_ns;
    assert!(
        gap.start_ns <= starts[0] && starts[0] < gap_end && gap_end <= starts[1],
        "{gap:?}, {starts:?}"
    );
    let reason = gap.to_string();
    assert!(reason.contains("CUPTI was starting"), "{reason}");
    let missing: Vec<&str> = line.missing.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(missing, [reason.as_str()]);
    let kernels = trace.key_averages().kernels();
    let [scope] = &kernels.scopes[..] else {
        panic!("{kernels}")
    };
    assert_eq!((scope.calls, scope.launches), (1, Some(KERNELS)));
    let length = gap.duration_ns as f64;
    gpu::exact(kernels.unrecorded_ns, length);
    assert!(
        kernels.to_json().contains("\"unrecorded_ns\":"),
        "{}",
        kernels.to_json()
    );
    assert!(kernels.to_string().contains(&reason), "{kernels}");
}

#[test(on = driver().kernels())]
fn a_session_without_gpu_times_or_kernels_does_not_use_cupti() {
    let (_profiler, gpu, stream) = started();
    let cpu_alone = Profile::builder().activities([Activity::Cpu]);
    let ((), trace) = cpu_alone.run(|_| {
        gpu.spin(&stream, 1_000);
        gpu.context.synchronize().expect("nothing failed");
    });
    let trace = trace.expect("a trace");
    assert!(!trace.has_kernels() && trace.no_kernels_reason().is_none());
    assert_eq!(trace.gpu_work().count(), 0);
    let report = simulator().report().expect("a report");
    assert_eq!(report.calls_of("cuptiSubscribe"), 0);
}

#[test(on = driver().kernels())]
fn kernels_are_recorded_once_the_program_uses_cuda_although_no_scope_ends() {
    let _profiler = init().expect("set up");
    // The first measured call starts the search for a driver.
    drop(scope!("before"));
    let profile = Profile::builder().start().expect("started");
    // The thread of the windows sleeps after half a second in which no scope ends.
    std::thread::sleep(Duration::from_secs(1));
    let outer = scope!("outer");
    let gpu = Gpu::new(0);
    let start = Instant::now();
    while !kernel_status().is_ready() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(kernel_status().is_ready(), "{:?}", kernel_status());
    let stream = gpu.stream();
    gpu.spin(&stream, 1_000);
    gpu.context.synchronize().expect("nothing failed");
    drop(outer);
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    assert!(kernels_in_scope(&trace) > 0);
}
