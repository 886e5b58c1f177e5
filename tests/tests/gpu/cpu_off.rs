//! With the CPU turned off and the GPU on, a scope keeps its GPU time alone, in the trace and in its table.

use profiler_runtime::session::Event;
use profiler_runtime::{Activity, Profile, scope};
use profiler_tests::gpu::{driver, exact, started};
use profiler_tests::traces::{events, of_category};

#[test(on = driver())]
fn a_scope_without_cpu_time_keeps_its_gpu_time() {
    let (_profiler, gpu, stream) = started();
    let work = || {
        let _scope = scope!("half", stream = &stream);
        gpu.spin(&stream, 50_000);
    };
    let ((), trace) = Profile::builder().run(|profile| {
        work();
        profile.toggle_collection(false, [Activity::Cpu]);
        work();
        work();
        profile.toggle_collection(true, [Activity::Cpu]);
        work();
        stream.synchronize().expect("nothing failed");
    });
    let trace = trace.expect("a window");
    let half: Vec<Event<'_>> = trace
        .events()
        .filter(|event| event.name() == "half")
        .collect();
    let has_cpu: Vec<bool> = half.iter().map(|event| event.cpu_ns() > 0.0).collect();
    assert_eq!(has_cpu, [true, false, false, true]);
    for event in &half {
        assert_eq!(event.cpu_ns() > 0.0, event.self_cpu_ns() > 0.0);
        exact(event.gpu().expect("a GPU time").ns, 50_000.0);
    }
    let averages = trace.key_averages();
    let row = averages
        .rows
        .iter()
        .find(|row| row.name == "half")
        .expect("a row");
    let cpu = row.cpu.as_ref().expect("CPU times");
    let cuda = row.cuda.as_ref().expect("GPU times");
    assert_eq!((row.calls, cpu.calls, cuda.calls), (4, 2, 4));
    let total: f64 = half.iter().map(|event| event.cpu_ns()).sum();
    // Both calls begin and end on whole nanoseconds.
    assert!((cpu.total_ns - total).abs() <= 2.0, "{cpu:?} for {total}");
    let events = events(&trace);
    assert_eq!(of_category(&events, "cpu_op").len(), 2);
    assert_eq!(of_category(&events, "gpu_user_annotation").len(), 4);
}
