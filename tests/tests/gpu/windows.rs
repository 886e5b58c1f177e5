//! A window holds the GPU time of each of its scopes, whenever the device comes to it, and waits for none of them on
//! the thread that steps.

use std::time::Duration;

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::session::Event;
use profiler_runtime::{Activity, Profile, Schedule, Trace, measure_execution_time, scope};
use profiler_tests::gpu::{Gpu, driver, exact, simulator, started};

const PATIENCE: Duration = Duration::from_secs(20);

fn of<'t>(trace: &'t Trace, name: &str) -> Vec<Event<'t>> {
    trace
        .events()
        .filter(|event| event.name() == name)
        .collect()
}

#[test(on = driver())]
fn a_window_is_handed_over_when_the_device_has_passed_it_and_not_before() {
    let (_profiler, gpu, stream) = started();
    let (sender, traces) = std::sync::mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1).repeat(2))
        .on_trace_ready(move |trace: &Trace| {
            let times = of(trace, "work")
                .into_iter()
                .map(|event| event.gpu().map(|span| span.ns));
            sender.send((trace.step_num(), times.collect::<Vec<_>>()))
        })
        .start()
        .expect("started");
    for step in 1..=2 {
        let work = scope!("work", stream = &stream);
        gpu.spin(&stream, 1_000_000 * step);
        drop(work);
        profile.step();
    }
    assert!(
        !profile.wait(Duration::from_millis(300)),
        "the device has passed nothing"
    );
    assert!(traces.try_recv().is_err());
    simulator()
        .advance(1_500_000)
        .expect("the clock is virtual");
    let (step, times) = traces.recv_timeout(PATIENCE).expect("the first window");
    assert_eq!((step, times.len()), (1, 1));
    exact(times[0].expect("a GPU time"), 1_000_000.0);
    assert!(
        traces.recv_timeout(Duration::from_millis(100)).is_err(),
        "the second is not passed"
    );
    stream.synchronize().expect("nothing failed");
    assert!(profile.wait(PATIENCE));
    let (step, times) = traces.try_recv().expect("the second window");
    assert_eq!((step, times.len()), (2, 1));
    exact(times[0].expect("a GPU time"), 2_000_000.0);
}

#[test(on = driver())]
fn a_lost_gpu_time_has_its_reason_in_the_window() {
    let (_profiler, _gpu, stream) = started();
    let mode = cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let ((), trace) = Profile::builder()
        .run(|_| {
            stream.begin_capture(mode).expect("it captures");
            drop(scope!("in a capture", stream = &stream));
            let flags =
                cudarc::driver::sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            stream.end_capture(flags).expect("it ends");
        });
    let trace = trace.expect("a window");
    let event = of(&trace, "in a capture")[0];
    assert_eq!(
        (event.gpu(), event.gpu_loss()),
        (None, Some(CudaLoss::Captured))
    );
}

#[measure_execution_time(name = "toggled", stream = stream)]
fn toggled(gpu: &Gpu, stream: &cudarc::driver::CudaStream) {
    gpu.spin(stream, 5_000);
}

#[test(on = driver())]
fn activities_are_turned_off_and_on_again() {
    let (_profiler, gpu, stream) = started();
    let ((), trace) = Profile::builder().run(|profile| {
        toggled(&gpu, &stream);
        profile.toggle_collection(false, [Activity::Cuda]);
        toggled(&gpu, &stream);
        profile.toggle_collection(false, [Activity::Cpu]);
        toggled(&gpu, &stream);
        profile.toggle_collection(true, [Activity::Cpu, Activity::Cuda]);
        toggled(&gpu, &stream);
        stream.synchronize().expect("nothing failed");
    });
    let trace = trace.expect("a window");
    let times: Vec<bool> = of(&trace, "toggled")
        .iter()
        .map(|event| event.gpu().is_some())
        .collect();
    assert_eq!(
        times,
        [true, false, true],
        "one call is not in the window at all"
    );
}
