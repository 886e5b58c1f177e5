//! The GPU time of a scope is what its work takes on the device: one after the other, on several streams, threads and
//! devices. Nested and recursive scopes are among `random_programs`; futures have a file of their own.

use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};

use cudarc::driver::CudaStream;
use profiler_runtime::{init, scope, summary};
use profiler_tests::gpu::{
    Gpu, cuda, driver, exact, name_of, on_threads, row, settle, simulator, started,
};

#[test(on = driver())]
fn scopes_one_after_the_other() {
    let (_profiler, gpu, stream) = started();
    // 1, 2 … 100 microseconds, with idle time in between; the order is not that of their lengths.
    for place in 0..100_u64 {
        {
            let _scope = scope!("one", stream = &stream);
            gpu.spin(&stream, (place * 37 % 100 + 1) * 1_000);
        }
        gpu.spin(&stream, 7_000_000);
        stream.synchronize().expect("nothing failed");
        simulator()
            .advance(1_000_000)
            .expect("the clock is virtual");
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
        assert!(
            (low * (1.0 - error)..=high * (1.0 + error)).contains(&told),
            "{told}"
        );
    }
}

#[test(on = driver())]
fn children_on_other_streams_are_told_apart() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let [first, second, third] = [(); 3].map(|()| gpu.stream());
    for _ in 0..5 {
        let _step = scope!("step", stream = &first);
        gpu.spin(&first, 100_000);
        {
            let _copy = scope!("copy", stream = &second);
            gpu.spin(&second, 70_000);
            // Back on the first stream: a part of the step, and apart from what it stands in.
            let _back = scope!("back", stream = &first);
            gpu.spin(&first, 30_000);
        }
        let _reduce = scope!("reduce", stream = &third);
        gpu.spin(&third, 50_000);
    }
    gpu.finish();
    let (step, copy, back, reduce) = (cuda("step"), cuda("copy"), cuda("back"), cuda("reduce"));
    exact(step.total_ns, 650_000.0);
    exact(step.self_ns, 500_000.0);
    exact(step.other_streams_ns, 600_000.0);
    exact(copy.total_ns, 350_000.0);
    exact(copy.self_ns, 350_000.0);
    exact(copy.other_streams_ns, 150_000.0);
    exact(back.total_ns, 150_000.0);
    exact(back.self_ns, 150_000.0);
    exact(reduce.total_ns, 250_000.0);
    exact(reduce.other_streams_ns, 0.0);
    let streams = [step.streams, copy.streams, back.streams, reduce.streams];
    assert_eq!(
        streams,
        [&first, &second, &first, &third].map(|stream| vec![name_of(stream)])
    );
}

#[test(on = driver())]
fn threads_measure_on_a_stream_they_share_and_on_their_own() {
    const THREADS: usize = 8;
    const CALLS: u64 = 50;
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (shared, turn, start) = (gpu.stream(), Mutex::new(()), Barrier::new(THREADS));
    let streams = [(); THREADS].map(|()| gpu.stream());
    on_threads(streams.iter().zip(1..), |(own, microseconds)| {
        start.wait();
        for _ in 0..CALLS {
            let _own = scope!("own", stream = own);
            gpu.spin(own, 1_000 * microseconds);
            {
                let _turn = turn.lock();
                let _in_turn = scope!("in turn", stream = &shared);
                gpu.spin(&shared, 20_000);
            }
            let _crowd = scope!("crowd", stream = &shared);
            gpu.spin(&shared, 3_000);
        }
    });
    gpu.finish();
    let (own, in_turn, crowd) = (cuda("own"), cuda("in turn"), cuda("crowd"));
    let calls = THREADS as u64 * CALLS;
    assert_eq!([own.calls, in_turn.calls, crowd.calls], [calls; 3]);
    // 1 + … + 8 microseconds on each round.
    exact(own.total_ns, 36_000.0 * CALLS as f64);
    exact(own.self_ns, own.total_ns);
    exact(own.max_ns, 8_000.0);
    // Their stream also ran work that others submitted in between: no more than all of it, no less than their own.
    let all = 23_000.0 * calls as f64;
    assert!(in_turn.min_ns >= 19_999.5 && crowd.min_ns >= 2_999.5);
    assert!(in_turn.max_ns <= all && crowd.max_ns <= all);
    exact(own.other_streams_ns, in_turn.total_ns + crowd.total_ns);
    assert_eq!(in_turn.streams, [name_of(&shared)]);
    assert_eq!(own.streams.len(), THREADS);
}

#[test(on = driver().script("devices 2"))]
fn scopes_on_two_devices() {
    let _profiler = init().expect("set up");
    let gpus = [Gpu::new(0), Gpu::new(1)];
    let streams = [gpus[0].stream(), gpus[1].stream()];
    for _ in 0..4 {
        let _first = scope!("first", stream = &streams[0]);
        gpus[0].spin(&streams[0], 25_000);
        let _second = scope!("second", stream = &streams[1]);
        gpus[1].spin(&streams[1], 60_000);
        let _both = scope!("both", stream = &gpus[0].context);
        gpus[0].spin(&gpus[0].context.default_stream(), 5_000);
    }
    let default = gpus[1].context.default_stream();
    {
        let _both = scope!("both", stream = default);
        gpus[1].spin(&gpus[1].context.default_stream(), 11_000);
    }
    for gpu in &gpus {
        gpu.context.synchronize().expect("nothing failed");
    }
    settle();
    let (first, second, both) = (cuda("first"), cuda("second"), cuda("both"));
    exact(first.total_ns, 100_000.0);
    exact(first.self_ns, 100_000.0);
    exact(first.other_streams_ns, 240_000.0);
    exact(second.total_ns, 240_000.0);
    exact(second.other_streams_ns, 20_000.0);
    assert_eq!(both.calls, 5);
    exact(both.total_ns, 31_000.0);
    assert_eq!(
        second.streams,
        [format!("{} of context 1", name_of(&streams[1]))]
    );
    assert_eq!(both.streams, ["default", "default of context 1"]);
}

/// Levels of scopes, each of which launches kernels of a length of its own.
const LEVELS: [&str; 5] = ["level 0", "level 1", "level 2", "level 3", "level 4"];

fn length_of(level: usize) -> u64 {
    (level as u64 + 2) * 1_000
}

/// Opens a scope that launches, and opens more of them, as `next` decides.
fn tree(gpu: &Gpu, stream: &CudaStream, level: usize, next: &mut impl FnMut() -> u64) {
    let _level = scope!(LEVELS[level], stream = stream);
    for _ in 0..next() % 4 {
        gpu.spin(stream, length_of(level));
        if level + 1 < LEVELS.len() && !next().is_multiple_of(3) {
            tree(gpu, stream, level + 1, next);
        }
    }
}

#[test(on = driver())]
fn all_times_are_those_that_the_device_took() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let streams = [(); 4].map(|()| [gpu.stream(), gpu.stream()]);
    on_threads(streams.iter().zip(0_u64..), |(streams, seed)| {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695);
            state >> 33
        };
        for _ in 0..100 {
            tree(&gpu, &streams[usize::from(next() % 2 == 0)], 0, &mut next);
        }
    });
    // Time passes here only: no stream stands still inside of a scope.
    gpu.finish();
    let mut truth = BTreeMap::<u64, f64>::new();
    let report = simulator().report().expect("a report");
    for kernel in report.kernels() {
        let length = kernel.end - kernel.start;
        *truth.entry(length).or_default() += length as f64;
    }
    // A name's kernels are its own time; with those of all levels below they are its total.
    let mut below = 0.0;
    for (level, name) in LEVELS.iter().enumerate().rev() {
        let own = truth[&length_of(level)];
        below += own;
        let (row, cuda) = (row(name), cuda(name));
        assert_eq!((cuda.calls, row.without_cuda), (row.calls, 0));
        near(cuda.self_ns, own, cuda.calls);
        near(cuda.total_ns, below, cuda.calls);
        exact(cuda.other_streams_ns, 0.0);
    }
}

/// Asserts a sum of `readings` readings, each of which is exact to half a nanosecond.
#[track_caller]
fn near(ns: f64, expected: f64, readings: u64) {
    assert!(
        (ns - expected).abs() <= 0.5 * readings as f64,
        "{ns} ns instead of {expected} ns"
    );
}
