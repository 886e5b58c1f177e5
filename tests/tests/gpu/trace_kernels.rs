//! Where CUPTI recorded a window, its traces show the real kernels, copies and fills, with their launches and with the
//! scopes around them. `tests/consumers` compares what the tools show of these traces with the events.

use std::sync::{Arc, Barrier};

use cudarc::driver::{CudaStream, LaunchConfig};
use cudarc::nvrtc::Ptx;
use profiler_runtime::report::SliceKind;
use profiler_runtime::{Profile, Schedule, Trace, init, scope};
use profiler_tests::gpu::{Gpu, driver, on_threads};
use profiler_tests::traces::{kept_events, of_category, read_back};
use serde_json::Value;

/// A batch as a network has it: a copy to the device, a fill, kernels in scopes inside each other, a copy back.
fn batch(gpu: &Gpu, stream: &Arc<CudaStream>) {
    let _batch = scope!("inside: batch", stream = stream);
    let input = {
        let _upload = scope!("inside: upload", stream = stream);
        stream.clone_htod(&[1_u8; 4096]).expect("memory")
    };
    {
        let _forward = scope!("inside: forward", stream = stream);
        gpu.spin(stream, 20_000);
        let _matmul = scope!("inside: matmul", stream = stream);
        gpu.spin(stream, 30_000);
        gpu.spin(stream, 40_000);
    }
    let zeros = stream.alloc_zeros::<u8>(8192).expect("memory");
    let _download = scope!("inside: download", stream = stream);
    stream.clone_dtoh(&input).expect("memory");
    drop(zeros);
}

fn traced(f: impl FnOnce(&Profile)) -> Arc<Trace> {
    let _profiler = init().expect("nothing forbids it");
    let schedule = Schedule::new().active(3).repeat(1);
    let ((), trace) = Profile::builder().schedule(schedule).run(f);
    let trace = trace.expect("a window");
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    trace
}

/// Returns the number of events of a category, and how long all of them took in nanoseconds.
fn total(events: &[Value], category: &str) -> (usize, i64) {
    let events = of_category(events, category);
    let ns = events.iter().filter_map(|event| event["dur"].as_f64());
    #[allow(clippy::cast_possible_truncation, reason = "some milliseconds")]
    let ns = ns.map(|us| (us * 1000.0).round() as i64).sum();
    (events.len(), ns)
}

#[test(on = driver().kernels())]
fn kernels_copies_and_fills_are_those_of_the_window() {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let trace = traced(|profile| {
        for _ in 0..3 {
            batch(&gpu, &stream);
            gpu.context.synchronize().expect("the device continues");
            profile.step();
        }
    });
    let events = kept_events(&trace, "kernels_copies_and_fills_are_those_of_the_window");
    let line = trace.timeline();
    let work = |prefix: &str| {
        let of_name = line.slices.iter().filter(|slice| {
            let name = &line.names[slice.name as usize].text;
            slice.kind == SliceKind::GpuWork && name.starts_with(prefix)
        });
        of_name.fold((0, 0), |(count, ns), slice| {
            (count + 1, ns + slice.duration_ns)
        })
    };
    assert_eq!(total(&events, "kernel"), work("spin"));
    assert_eq!(total(&events, "kernel"), (9, 270_000));
    assert_eq!(total(&events, "gpu_memcpy"), work("Memcpy"));
    assert_eq!(total(&events, "gpu_memcpy").0, 6);
    assert_eq!(total(&events, "gpu_memset"), work("Memset"));
    assert_eq!(total(&events, "gpu_memset").0, 3);
    for kernel in of_category(&events, "kernel") {
        assert_eq!(kernel["name"], "spin_ns");
        assert!(kernel["args"].get("scope").is_none(), "it is no stand-in");
    }
}

/// Returns the name of an event's track.
fn track_name<'e>(events: &'e [Value], event: &Value) -> &'e str {
    let is_name = |other: &&Value| {
        other["name"] == "thread_name"
            && other["pid"] == event["pid"]
            && other["tid"] == event["tid"]
    };
    let named = events.iter().find(is_name).expect("the track has a name");
    named["args"]["name"].as_str().expect("a name")
}

#[test(on = driver().kernels())]
fn kernels_are_on_the_streams_of_the_scopes_that_launched_them() {
    let gpu = Gpu::new(0);
    let streams = [gpu.stream(), gpu.stream()];
    let trace = traced(|profile| {
        for _ in 0..3 {
            on_threads(&streams, |stream| batch(&gpu, stream));
            gpu.context.synchronize().expect("the device continues");
            profile.step();
        }
    });
    let events = kept_events(
        &trace,
        "kernels_are_on_the_streams_of_the_scopes_that_launched_them",
    );
    let annotations = of_category(&events, "gpu_user_annotation");
    let kernels = of_category(&events, "kernel");
    assert_eq!(kernels.len(), 18);
    for kernel in kernels {
        let of_scope = annotations
            .iter()
            .find(|annotation| annotation["args"]["External id"] == kernel["args"]["External id"]);
        let of_scope = of_scope.expect("its scope");
        let below = track_name(&events, of_scope);
        let stream = format!("stream {} ", kernel["tid"]);
        assert!(
            below.starts_with(&stream) && below.ends_with(": scopes"),
            "{below}"
        );
        assert_eq!(kernel["tid"], kernel["args"]["stream"]);
    }
    let launches = of_category(&events, "cuda_runtime");
    let of_kernels = launches
        .iter()
        .filter(|launch| launch["name"] == "cudaLaunchKernel");
    assert_eq!(of_kernels.count(), 18);
}

#[test(on = driver().script("clock real").kernels())]
fn the_command_line_reads_the_times_of_scopes_that_overlap_on_a_stream() {
    // On a device that is ahead of slow threads, scopes are placed after their calls, where they need not overlap.
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    // However slow the threads are, all of their scopes are open at one time, and that of the first opens and closes
    // before that of the second: neither lies inside the other.
    let (all_are_open, turn) = (Barrier::new(4), Barrier::new(2));
    let trace = traced(|profile| {
        for _ in 0..3 {
            on_threads(0..4, |thread| {
                for _ in 0..5 {
                    if thread == 1 {
                        turn.wait();
                    }
                    let overlapping = scope!("inside: overlapping", stream = &stream);
                    gpu.spin(&stream, 10_000);
                    if thread == 0 {
                        turn.wait();
                    }
                    all_are_open.wait();
                    batch(&gpu, &stream);
                    if thread == 1 {
                        turn.wait();
                        gpu.spin(&stream, 10_000);
                    }
                    drop(overlapping);
                    if thread == 0 {
                        turn.wait();
                    }
                }
            });
            gpu.context.synchronize().expect("the device continues");
            profile.step();
        }
    });
    // Compares each row.
    let name = "the_command_line_reads_the_times_of_scopes_that_overlap_on_a_stream";
    let events = kept_events(&trace, name);
    let is_beside = |annotation: &&Value| track_name(&events, annotation).contains("overlapping");
    let annotations = of_category(&events, "gpu_user_annotation");
    assert!(annotations.iter().any(is_beside), "they overlap");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    trace.export_chrome_trace(&path).expect("room");
    let (own, read) = (trace.key_averages(), read_back(&path).key_averages());
    let [own_self, read_self] = [&own, &read].map(|averages| averages.self_cuda_time_total_ns);
    let (own_self, read_self) = (own_self.unwrap_or(0.0), read_self.unwrap_or(0.0));
    assert!(own_self > 0.0);
    assert!((own_self - read_self).abs() <= 1000.0, "{own}\n{read}");
    assert!(
        read.row("spin_ns").is_none(),
        "kernels are in the times of scopes"
    );
}

/// Two multiplications of matrices as cuBLAS names them, with tensor cores and without, and a kernel of a program.
const KERNELS: [(&str, u32, u32); 3] = [
    (
        "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
        216,
        256,
    ),
    ("ampere_sgemm_128x64_tn", 27, 128),
    ("scale", 1, 32),
];

#[test(on = driver().kernels())]
fn kernels_say_how_much_of_the_device_they_fill() {
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let entries = KERNELS.map(|(name, ..)| format!(".visible .entry {name}() {{ ret; }}\n"));
    let ptx = format!(
        ".version 7.0\n.target sm_75\n.address_size 64\n{}",
        entries.concat()
    );
    let module = gpu
        .context
        .load_module(Ptx::from_src(ptx))
        .expect("the PTX is right");
    let trace = traced(|profile| {
        for _ in 0..3 {
            let _batch = scope!("filled: batch", stream = &stream);
            for (name, blocks, threads) in KERNELS {
                let kernel = module.load_function(name).expect("the PTX has the kernel");
                let shape = LaunchConfig {
                    grid_dim: (blocks, 1, 1),
                    block_dim: (threads, 1, 1),
                    shared_mem_bytes: 0,
                };
                // SAFETY: the kernel takes nothing.
                let launched = unsafe { stream.launch_builder(&kernel).launch(shape) };
                launched.expect("the launch succeeds");
            }
            gpu.context.synchronize().expect("the device continues");
            profile.step();
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    trace.export_chrome_trace(&path).expect("room");
    let text = std::fs::read_to_string(&path).expect("a file");
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let device = &whole["deviceProperties"][0];
    let property = |key: &str| {
        device[key]
            .as_f64()
            .unwrap_or_else(|| panic!("no {key}: {device}"))
    };
    for key in [
        "totalGlobalMem",
        "computeMajor",
        "maxThreadsPerBlock",
        "regsPerMultiprocessor",
    ] {
        assert!(property(key) > 0.0, "{key}");
    }
    let events = kept_events(&trace, "kernels_say_how_much_of_the_device_they_fill");
    for (name, blocks, threads) in KERNELS {
        let kernels = of_category(&events, "kernel").into_iter();
        let kernels: Vec<&Value> = kernels.filter(|kernel| kernel["name"] == name).collect();
        assert_eq!(kernels.len(), 3, "{name}");
        let blocks = f64::from(blocks) / property("numSms");
        let warps = blocks * f64::from(threads) / property("warpSize");
        // So few blocks all run at once.
        let occupancy = blocks * f64::from(threads) / property("maxThreadsPerMultiprocessor");
        for kernel in kernels {
            let args = &kernel["args"];
            let number = |key: &str| {
                args[key]
                    .as_f64()
                    .unwrap_or_else(|| panic!("no {key}: {args}"))
            };
            assert!((number("blocks per SM") - blocks).abs() < 1e-9, "{args}");
            assert!((number("warps per SM") - warps).abs() < 1e-9, "{args}");
            let shown = number("est. achieved occupancy %");
            assert!((shown - occupancy * 100.0).abs() <= 0.5, "{args}");
        }
    }
}
