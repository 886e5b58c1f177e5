//! Where the system gives no more threads, the profiler has none of its own: calls and CPU times are exact all the same,
//! what is missing is counted and said once, and a session is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::report::DropReason;
use profiler_runtime::session::ProfileError;
use profiler_runtime::{Profile, flush, scope, summary};
use profiler_tests::gpu;
use profiler_tests::gpu::{Gpu, OnDriver, driver, row, started};

const CALLS: u64 = 20;

/// Runs a test where no thread finds room for its stack, as std chooses the size of it.
fn without_threads(backend: &str) -> OnDriver {
    driver()
        .legacy_stream()
        .env("RUST_MIN_STACK", (1_u64 << 46).to_string())
        .env("PROFILER_BACKEND", backend)
        .cases([backend])
        .keeps_events()
        .then(|ran| assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr))
}

const NO_COLLECTOR: &str =
    "profiler: warning: the profiler's thread profiler-log cannot be started";
const NO_RESOLVER: &str =
    "profiler: warning: the profiler's thread profiler-cuda cannot be started";

/// The thread that reads GPU times has entries on their way, too.
fn without_either() -> OnDriver {
    let cpu = without_threads("cpu").says_once(NO_COLLECTOR);
    cpu.and(without_threads("cuda").says_once(NO_RESOLVER))
}

#[test(on = without_either())]
fn entries_are_counted_as_dropped() {
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
}

#[test(on = without_threads("cuda").says_once(NO_RESOLVER))]
fn gpu_times_are_counted_as_lost() {
    let (_profiler, gpu, stream) = started();
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
}

#[test(on = without_threads("cuda"))]
fn a_session_is_refused() {
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
}
