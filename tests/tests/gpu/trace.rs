//! On each stream a trace shows what scopes took on the GPU, no time twice and none lost, with an arrow from the scope
//! on the CPU, however streams are shared.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::session::Event;
use profiler_runtime::{
    MeasureFuture, Profile, Trace, init, measure_execution_time, scope, tensorboard_trace_handler,
};
use profiler_tests::gpu;
use profiler_tests::gpu::{Gpu, driver, on_threads};
use profiler_tests::poll;
use profiler_tests::traces::{kept_events, of_category, read, total_ns, whole_names};

fn traced(gpu: &Gpu, f: impl FnOnce()) -> Arc<Trace> {
    let _profiler = init().expect("nothing forbids it");
    let run = |_: &Profile| {
        f();
        // The clock of the driver stands still until a thread waits for the device.
        gpu.context.synchronize().expect("the device continues");
    };
    let ((), trace) = Profile::builder().run(run);
    let trace = trace.expect("a window");
    assert!(trace.truncation().is_complete(), "{:?}", trace.truncation());
    trace
}

/// A scope around others, which have the stream to themselves for `ns` each.
fn nested(gpu: &Gpu, stream: &Arc<CudaStream>, ns: u64) {
    let _outer = scope!("shown: outer", stream = stream);
    gpu.spin(stream, ns);
    for _ in 0..2 {
        let _inner = scope!("shown: inner", stream = stream);
        gpu.spin(stream, ns);
        drop(scope!("shown: innermost", stream = stream));
    }
    gpu.spin(stream, ns);
}

fn self_ns(trace: &Trace, name: &str) -> f64 {
    let events = trace.events().filter(|event| event.name() == name);
    events.filter_map(|event| Some(event.gpu()?.self_ns)).sum()
}

/// Those that took any time there.
fn scopes_on_the_gpu(trace: &Trace) -> usize {
    let times = trace.events().filter_map(Event::gpu);
    times.filter(|gpu| gpu.ns > 0.0).count()
}

#[test(on = driver())]
fn kernels_are_what_scopes_took_themselves() {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let trace = traced(&gpu, || (0..20).for_each(|_| nested(&gpu, &stream, 50_000)));
    let events = kept_events(&trace, "kernels_are_what_scopes_took_themselves");
    assert_eq!(scopes_on_the_gpu(&trace), 60);
    assert_eq!(of_category(&events, "gpu_user_annotation").len(), 60);
    let scopes = of_category(&events, "cpu_op");
    let empty = scopes.iter().filter(|event| event["args"]["cuda_ns"] == 0);
    assert_eq!(empty.count(), 40, "those say so themselves");
    for name in ["shown: outer", "shown: inner"] {
        let (kernels, own) = (total_ns(&events, "kernel", name), self_ns(&trace, name));
        assert!(own > 0.0);
        // Each reading has a resolution of half a microsecond.
        assert!(
            (kernels - own).abs() <= 20.0 * 1000.0,
            "{name}: {kernels} instead of {own} ns"
        );
    }
    let outer: f64 = trace
        .events()
        .filter(|event| event.parent().is_none())
        .filter_map(|event| Some(event.gpu()?.ns))
        .sum();
    let busy: f64 = ["shown: outer", "shown: inner", "shown: innermost"]
        .map(|name| total_ns(&events, "kernel", name))
        .iter()
        .sum();
    assert!((busy - outer).abs() <= 20.0 * 5.0, "{busy} of {outer} ns");
    let arrows = of_category(&events, "ac2g").len();
    assert_eq!(
        arrows,
        2 * of_category(&events, "gpu_user_annotation").len(),
        "one from each scope to the first of its kernels"
    );
}

#[test(on = driver())]
fn streams_are_shown_apart() {
    let gpu = Gpu::new(0);
    let streams = [gpu.stream(), gpu.stream(), gpu.stream()];
    let trace = traced(&gpu, || {
        let _around = scope!("shown: around");
        on_threads(&streams, |stream| nested(&gpu, stream, 20_000));
    });
    let events = kept_events(&trace, "streams_are_shown_apart");
    let mut shown: Vec<u64> = of_category(&events, "kernel")
        .iter()
        .filter_map(|event| event["args"]["stream"].as_u64())
        .collect();
    shown.sort_unstable();
    shown.dedup();
    assert_eq!(shown.len(), 3, "{shown:?}");
    let names: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "thread_name" && event["pid"] == 0)
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    for stream in &streams {
        let handle = gpu::name_of(stream);
        assert!(
            names.iter().any(|name| name.contains(&handle)),
            "{handle} in {names:?}"
        );
    }
}

#[test(on = driver())]
fn a_stream_that_threads_share_counts_no_time_twice() {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let trace = traced(&gpu, || {
        on_threads(0..4, |_| (0..5).for_each(|_| nested(&gpu, &stream, 10_000)));
    });
    let events = kept_events(&trace, "a_stream_that_threads_share_counts_no_time_twice");
    // What other threads queued between the events of a scope counts as its GPU time. If the slice around it leaves no room
    // for that, nothing is drawn, and the scope on the CPU says how long it is. Those on the outside have room.
    let scopes = of_category(&events, "cpu_op");
    let not_drawn: Vec<f64> = scopes
        .iter()
        .filter(|event| event["name"] != "shown: outer")
        .filter_map(|event| event["args"]["cuda_ns"].as_f64().filter(|ns| *ns > 0.0))
        .collect();
    let drawn = of_category(&events, "gpu_user_annotation");
    let drawn: Vec<f64> = drawn
        .iter()
        .filter_map(|event| {
            event["args"]["ns"]
                .as_f64()
                .or(Some(1000.0 * event["dur"].as_f64()?))
        })
        .collect();
    assert_eq!(drawn.len() + not_drawn.len(), scopes_on_the_gpu(&trace));
    let told: f64 = drawn.iter().chain(&not_drawn).sum();
    let measured: f64 = trace
        .events()
        .filter_map(|event| Some(event.gpu()?.ns))
        .sum();
    // Each is rounded to nanoseconds.
    assert!(
        (told - measured).abs() <= drawn.len() as f64,
        "{told} of {measured} ns"
    );
    let mut extents: Vec<(f64, f64)> = of_category(&events, "kernel")
        .iter()
        .filter_map(|event| Some((event["ts"].as_f64()?, event["dur"].as_f64()?)))
        .collect();
    assert!(extents.len() >= 4 * 5, "{extents:?}");
    extents.sort_by(|one, other| one.0.total_cmp(&other.0));
    for pair in extents.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0 + 0.002, "{pair:?}");
    }
}

#[test(on = driver())]
fn what_futures_took_themselves_is_theirs() {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let spin = |ns| gpu.spin(&stream, ns);
    let trace = traced(&gpu, || {
        let _main = scope!("shown: main", stream = &stream);
        let inner = async {
            spin(100_000);
            poll::yields(1).await;
            spin(100_000);
        };
        let outer = async {
            spin(50_000);
            let inner = inner.measure_execution_time("shown: inner");
            inner.stream(&stream).await;
            let _leaf = scope!("shown: leaf", stream = &stream);
            spin(10_000);
        };
        let outer = outer.measure_execution_time("shown: outer");
        poll::run(outer.stream(&stream));
    });
    let events = kept_events(&trace, "what_futures_took_themselves_is_theirs");
    for (name, total, own) in [
        ("shown: main", 260_000.0, 0.0),
        ("shown: outer", 260_000.0, 50_000.0),
        ("shown: inner", 200_000.0, 200_000.0),
        ("shown: leaf", 10_000.0, 10_000.0),
    ] {
        for (category, expected) in [("gpu_user_annotation", total), ("kernel", own)] {
            let shown = total_ns(&events, category, name);
            let off = (shown - expected).abs();
            assert!(
                off <= 2000.0,
                "{name}: {category} of {shown} ns, not {expected}"
            );
        }
    }
}

/// The type of a method with a long path.
struct Net;

impl Net {
    #[measure_execution_time(stream = stream)]
    fn forward(gpu: &Gpu, stream: &Arc<CudaStream>) {
        gpu.spin(stream, 20_000);
    }
}

#[test(on = driver())]
fn gpu_rows_show_the_ends_of_names_and_their_device() {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let trace = traced(&gpu, || Net::forward(&gpu, &stream));
    let events = kept_events(&trace, "gpu_rows_show_the_ends_of_names_and_their_device");
    let event = trace.events().next().expect("a scope");
    assert!(event.name().ends_with("::trace::Net::forward"));
    for category in ["cpu_op", "gpu_user_annotation", "kernel"] {
        let [shown] = of_category(&events, category)[..] else {
            panic!("one {category}");
        };
        assert_eq!(shown["name"], "Net::forward");
    }
    assert_eq!(whole_names(&trace, &["Net::forward"]), [event.name()]);
    let processes: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    let [cpu, gpu] = processes[..] else {
        panic!("two processes: {processes:?}");
    };
    assert_eq!(gpu.split_once(" (GPU").map(|(name, _)| name), Some(cpu));
    assert!(gpu.ends_with(" (GPU 0: Simulated Device 0)"), "{gpu}");
}

#[test(on = driver())]
fn a_folder_is_for_tensorboard_and_a_file_for_hta() {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let trace = traced(&gpu, || Net::forward(&gpu, &stream));
    let folder = tempfile::tempdir().expect("a folder");
    tensorboard_trace_handler(folder.path())(&trace).expect("room");
    let files = std::fs::read_dir(folder.path()).expect("a folder");
    let files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    let file = folder.path().join("trace.json");
    trace.export_chrome_trace(&file).expect("room");
    for (file, category) in [(&files[0], "Runtime"), (&file, "cuda_runtime")] {
        let events = read(file);
        let mut launches = events.iter();
        let launch = launches.find(|event| event["name"] == "cudaLaunchKernel");
        assert_eq!(launch.expect("a launch")["cat"], category);
    }
}
