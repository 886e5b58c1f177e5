//! A driver that hangs, goes away, or has a context fail costs GPU times, each of them counted; the program goes
//! on, and ends when it wants to.

#[path = "support/gpu.rs"]
mod gpu;

use std::time::{Duration, Instant};

use gpu::{
    Gpu, TOLD, cuda, exact, is_child, lost, on_the_driver, on_the_driver_with, row, settle,
    simulator, told,
};
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{flush, init, scope, summary};
use profiler_tests::measuring;

/// So many scopes of 10 us on a stream of the driver's.
fn measured(gpu: &Gpu, name: &str, scopes: usize) {
    let stream = gpu.stream();
    for _ in 0..scopes {
        let _scope = scope!(name, stream = &stream);
        gpu.spin(&stream, 10_000);
    }
    stream.synchronize().expect("nothing failed");
}

#[test]
fn a_flush_does_not_wait_for_a_call_that_hangs() {
    if !measuring() {
        return;
    }
    if is_child() {
        let _profiler = init().expect("set up");
        let gpu = Gpu::new(0);
        simulator()
            .run("fault cuEventQuery from 1 hang")
            .expect("it is right");
        measured(&gpu, "hangs", 10);
        let asked = Instant::now();
        let report = flush(Duration::from_millis(300));
        // Ten times as long would be another bug than a busy machine.
        assert!(
            asked.elapsed() < Duration::from_secs(3),
            "{:?}",
            asked.elapsed()
        );
        assert!(report.unread > 0, "{report:?}");
        let stuck = |notice: &String| notice.contains("not returned from a call");
        assert_eq!(
            summary().notices.iter().filter(|said| stuck(said)).count(),
            1
        );
        assert!(summary().cuda.in_flight > 0);
        // Measuring goes on meanwhile.
        measured(&gpu, "meanwhile", 10);
        assert_eq!(row("meanwhile").calls, 10);
        simulator()
            .run("clear-faults; release")
            .expect("it is right");
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
        return;
    }
    on_the_driver("a_flush_does_not_wait_for_a_call_that_hangs", "");
}

#[test]
fn a_program_ends_although_its_driver_hangs() {
    if !measuring() {
        return;
    }
    if is_child() {
        let profiler = (told() == "guard").then(|| init().expect("set up"));
        let gpu = Gpu::new(0);
        simulator()
            .run("fault cuEventQuery from 1 hang")
            .expect("it is right");
        measured(&gpu, "hangs", 10);
        if told() == "exit" {
            std::process::exit(0);
        }
        drop(profiler);
        return;
    }
    for end in ["guard", "return", "exit"] {
        let name = "a_program_ends_although_its_driver_hangs";
        let ran = on_the_driver_with(name, "", |command| _ = command.env(TOLD, end));
        assert_eq!(ran.warnings(), 1, "{end}: {}", ran.stderr);
    }
}

#[test]
fn work_that_never_ends_is_not_waited_for() {
    if !measuring() {
        return;
    }
    if is_child() {
        let _profiler = init().expect("set up");
        let gpu = Gpu::new(0);
        let (stalling, other) = (gpu.stream(), gpu.stream());
        simulator()
            .run("fault cuLaunchKernel nth 1 stall")
            .expect("it is right");
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
        let report = flush(Duration::from_millis(200));
        assert_eq!(report.unread, 5, "{report:?}");
        exact(cuda("other").total_ns, 50_000.0);
        assert_eq!(cuda("stalls").calls, 0);
        assert!(
            summary().notices.is_empty(),
            "the driver does not hang: {:?}",
            summary().notices
        );
        simulator().run("release").expect("it is right");
        stalling.synchronize().expect("nothing failed");
        settle();
        assert_eq!((cuda("stalls").calls, row("stalls").without_cuda), (5, 0));
        return;
    }
    on_the_driver("work_that_never_ends_is_not_waited_for", "");
}

#[test]
fn a_driver_that_is_gone_at_exit_is_no_error() {
    if !measuring() {
        return;
    }
    if is_child() {
        let profiler = (told() == "guard").then(|| init().expect("set up"));
        let gpu = Gpu::new(0);
        measured(&gpu, "last", 10);
        let stream = gpu.stream();
        let _open = scope!("open", stream = &stream);
        // Nothing of cudarc's is dropped: its destructors would find no driver.
        std::mem::forget((gpu, stream.clone()));
        if told() == "now" {
            simulator().run("shutdown").expect("it is right");
        }
        drop(profiler);
        std::process::exit(0);
    }
    for (end, script) in [
        ("guard", "shutdown at-exit"),
        ("exit", "shutdown at-exit"),
        ("now", ""),
    ] {
        let name = "a_driver_that_is_gone_at_exit_is_no_error";
        let ran = on_the_driver_with(name, script, |command| _ = command.env(TOLD, end));
        assert_eq!(ran.warnings(), 0, "{end}: {}", ran.stderr);
        assert_eq!(ran.report.misuses, []);
    }
}

#[test]
fn a_driver_that_goes_while_the_program_measures_is_no_error() {
    if !measuring() {
        return;
    }
    if is_child() {
        let profiler = init().expect("set up");
        let gpu = Gpu::new(0);
        measured(&gpu, "before", 10);
        settle();
        let stream = gpu.stream();
        {
            let _scope = scope!("across", stream = &stream);
            gpu.spin(&stream, 10_000);
            simulator().run("shutdown").expect("it is right");
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
    let name = "a_driver_that_goes_while_the_program_measures_is_no_error";
    let ran = on_the_driver_with(name, "", |_| {});
    assert_eq!(ran.warnings(), 0, "{}", ran.stderr);
}

#[test]
fn a_context_that_fails_takes_only_its_own_times_with_it() {
    if !measuring() {
        return;
    }
    if is_child() {
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
            simulator().run("sticky 0 700").expect("it is right");
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
        return;
    }
    let name = "a_context_that_fails_takes_only_its_own_times_with_it";
    let ran = on_the_driver_with(name, "devices 2", |_| {});
    assert_eq!(ran.warnings(), 1, "said once: {}", ran.stderr);
    assert!(
        ran.stderr.contains("CUDA_ERROR_ILLEGAL_ADDRESS"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.report.misuses, []);
}
