//! The GPU time of a scope is what its work takes on the device: nested, one after the other, on several
//! streams, threads and devices. That of futures has a file of its own.

#[path = "support/gpu.rs"]
mod gpu;

use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};

use cudarc::driver::CudaStream;
use gpu::{Gpu, cuda, exact, is_here, name_of, row, settle, simulator};
use profiler_runtime::{init, measure_execution_time, scope, summary};

#[test]
fn nested_scopes_on_one_stream() {
    if !is_here("nested_scopes_on_one_stream", "") {
        return;
    }
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    for _ in 0..3 {
        let _outer = scope!("outer", stream = &stream);
        gpu.spin(&stream, 10_000);
        for _ in 0..2 {
            let _inner = scope!("inner", stream = &stream);
            gpu.spin(&stream, 40_000);
        }
    }
    stream.synchronize().expect("nothing failed");
    settle();
    let (outer, inner) = (cuda("outer"), cuda("inner"));
    assert_eq!((outer.calls, inner.calls), (3, 6));
    exact(outer.total_ns, 270_000.0);
    exact(outer.self_ns, 30_000.0);
    exact(inner.total_ns, 240_000.0);
    exact(inner.self_ns, 240_000.0);
    exact(inner.max_ns, 40_000.0);
    assert_eq!(row("outer").without_cuda, 0);
    let health = summary().cuda;
    assert_eq!((health.in_flight, health.lost.len()), (0, 0));
}

#[test]
fn scopes_one_after_the_other() {
    if !is_here("scopes_one_after_the_other", "") {
        return;
    }
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    // 1, 2 … 100 microseconds, with idle time in between; the order is not that of their lengths.
    for place in 0..100_u64 {
        let _scope = scope!("one", stream = &stream);
        gpu.spin(&stream, (place * 37 % 100 + 1) * 1_000);
        drop(_scope);
        gpu.spin(&stream, 7_000_000);
        stream.synchronize().expect("nothing failed");
        simulator().advance(1_000_000).expect("the clock is virtual");
    }
    settle();
    let one = cuda("one");
    let error = summary().percentile_error;
    assert_eq!(one.calls, 100);
    exact(one.total_ns, 5_050_000.0);
    exact(one.self_ns, 5_050_000.0);
    exact(one.mean_ns, 50_500.0);
    exact(one.min_ns, 1_000.0);
    exact(one.max_ns, 100_000.0);
    // Of 1 … n: the root of (n² - 1) / 12.
    exact(one.std_ns, 1_000.0 * (9_999.0_f64 / 12.0).sqrt());
    for (told, microseconds) in [(one.p50_ns, 50.0), (one.p95_ns, 95.0), (one.p99_ns, 99.0)] {
        // The quantile may be that of either neighbour.
        let (low, high) = ((microseconds - 1.0) * 1e3, (microseconds + 1.0) * 1e3);
        assert!((low * (1.0 - error)..=high * (1.0 + error)).contains(&told), "{told}");
    }
}

#[test]
fn children_on_other_streams_are_told_apart() {
    if !is_here("children_on_other_streams_are_told_apart", "") {
        return;
    }
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (main, left, right) = (gpu.stream(), gpu.stream(), gpu.stream());
    for _ in 0..5 {
        let _step = scope!("step", stream = &main);
        gpu.spin(&main, 100_000);
        {
            let _left = scope!("left", stream = &left);
            gpu.spin(&left, 70_000);
            // Back on the first stream: a part of the step, and apart from what it stands in.
            let _back = scope!("back", stream = &main);
            gpu.spin(&main, 30_000);
        }
        let _right = scope!("right", stream = &right);
        gpu.spin(&right, 50_000);
    }
    gpu.context.synchronize().expect("nothing failed");
    settle();
    let (step, left, back, right) = (cuda("step"), cuda("left"), cuda("back"), cuda("right"));
    exact(step.total_ns, 650_000.0);
    exact(step.self_ns, 500_000.0);
    exact(step.elsewhere_ns, 600_000.0);
    exact(left.total_ns, 350_000.0);
    exact(left.self_ns, 350_000.0);
    exact(left.elsewhere_ns, 150_000.0);
    exact(back.total_ns, 150_000.0);
    exact(right.total_ns, 250_000.0);
    exact(right.elsewhere_ns, 0.0);
    for (times, stream) in [(&step, &main), (&left, &left_of(&left, &[&left])), (&right, &right_of())] {
        let _ = (times, stream);
    }
}
