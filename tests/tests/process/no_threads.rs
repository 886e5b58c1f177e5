//! Where the system gives no more threads, the profiler has none of its own: calls and CPU times are exact all the same,
//! what is missing is counted and said once, and a session is refused.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::report::DropReason;
use profiler_runtime::session::ProfileError;
use profiler_runtime::{Profile, flush, init, scope, summary};
use profiler_tests::gpu;
use profiler_tests::gpu::{Gpu, Ran, is_child, on_the_driver_with, row};
use profiler_tests::measuring;

const CALLS: u64 = 20;

/// Runs a test where no thread finds room for its stack, as std chooses the size of it.
fn without_threads(backend: &str) -> Ran {
    let ran = on_the_driver_with("", |command: &mut Command| {
        gpu::legacy_stream(command);
        command
            .env("RUST_MIN_STACK", (1_u64 << 46).to_string())
            .env("PROFILER_BACKEND", backend);
    });
    assert_eq!(ran.report.misuses, []);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran
}

/// How often it was said that a thread is missing.
fn said(ran: &Ran, thread: &str) -> usize {
    let refused = format!("profiler: warning: the profiler's thread {thread} cannot be started");
    ran.stderr.matches(&refused).count()
}

#[test]
fn entries_are_counted_as_dropped() {
    if !measuring() {
        return;
    }
    if is_child() {
        let _gpu = Gpu::new(0);
        std::thread::Builder::new()
            .spawn(|| {})
            .expect_err("there is no thread");
        let logged = Arc::new(AtomicU64::new(0));
        for _ in 0..CALLS {
            let logged = Arc::clone(&logged);
            let _scope = scope!(
                "logged",
                log = move |_: &str, _: f64, _: u64| _ = logged.fetch_add(1, Relaxed)
            );
        }
        let report = flush(Duration::from_secs(1));
        assert_eq!(
            (report.delivered, report.dropped, report.left),
            (0, CALLS, 0)
        );
        assert_eq!(logged.load(Relaxed), 0);
        assert_eq!(row("logged").calls, CALLS);
        assert_eq!(summary().dropped, [(DropReason::NoCollector, CALLS)]);
        return;
    }
    // The thread that reads GPU times has entries on their way, too.
    for (backend, thread) in [("cpu", "profiler-collector"), ("cuda", "profiler-cuda")] {
        let ran = without_threads(backend);
        assert_eq!(said(&ran, thread), 1, "{}", ran.stderr);
    }
}

#[test]
fn gpu_times_are_counted_as_lost() {
    if !measuring() {
        return;
    }
    if is_child() {
        let _profiler = init().expect("set up");
        let gpu = Gpu::new(0);
        let stream = gpu.stream();
        for _ in 0..CALLS {
            let _scope = scope!("on the device", stream = &stream);
            gpu.spin(&stream, 1_000);
        }
        stream.synchronize().expect("nothing failed");
        assert_eq!(flush(Duration::from_secs(1)).unread, 0);
        let row = row("on the device");
        assert_eq!((row.calls, row.without_cuda), (CALLS, CALLS));
        assert!(row.cuda.is_none());
        let lost: u64 = summary().cuda.lost.iter().map(|(_, calls)| calls).sum();
        assert_eq!(lost, CALLS);
        assert_eq!(gpu::lost(CudaLoss::NoResolver), CALLS);
        return;
    }
    let ran = without_threads("cuda");
    assert_eq!(said(&ran, "profiler-cuda"), 1, "{}", ran.stderr);
}

#[test]
fn a_session_is_refused() {
    if !measuring() {
        return;
    }
    if is_child() {
        let _gpu = Gpu::new(0);
        for _ in 0..2 {
            let refused = Profile::builder().start().expect_err("there is no thread");
            assert!(
                matches!(refused, ProfileError::NoThread { .. }),
                "{refused}"
            );
        }
        {
            let _scope = scope!("unrecorded");
        }
        assert_eq!(row("unrecorded").calls, 1);
        return;
    }
    without_threads("cuda");
}
