//! A total on the GPU counts each instant of a function on a stream once. A recursive call is part of another one only if that
//! has a time on its stream, in all reports.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::bind_stream;
use profiler_runtime::report::{CallTree, CallTreeOptions, EdgeTimes};
use profiler_runtime::{Profile, builder, scope, summary};
use profiler_tests::gpu::{Gpu, driver, exact, tell};

/// Returns the times of a function in a tree, and the sum of those of its pairs.
fn in_tree(tree: &CallTree, name: &str) -> [EdgeTimes; 2] {
    let functions = tree.functions();
    let function = functions.iter().find(|function| &*function.name == name);
    let of_function = function.and_then(|function| function.cuda);
    let edges = tree.edges().into_iter();
    let of_pairs = edges
        .filter(|edge| edge.callee == name)
        .filter_map(|edge| edge.cuda);
    let mut sum = EdgeTimes::default();
    for times in of_pairs {
        sum.total_ns += times.total_ns;
        sum.self_ns += times.self_ns;
    }
    [of_function.unwrap_or_default(), sum]
}

/// Runs a program, and compares total and self time of its function in all reports. Each pair of the function has the whole
/// total but for `nested`, which is inside another pair too.
#[track_caller]
fn check(program: impl Fn(&Gpu, [&Arc<CudaStream>; 2]), expected: (f64, f64), nested: f64) {
    check_with_window(program, expected, nested, expected.0);
}

/// [`check`], where windows have another total.
#[track_caller]
fn check_with_window(
    program: impl Fn(&Gpu, [&Arc<CudaStream>; 2]),
    expected: (f64, f64),
    nested: f64,
    in_window: f64,
) {
    let profiler = builder().callers(true).init();
    let _profiler = profiler.expect("set up");
    let gpu = Gpu::new(0);
    let streams = [gpu.stream(), gpu.stream()];
    let profile = Profile::builder().start().expect("started");
    program(&gpu, streams.each_ref());
    gpu.finish();
    let trace = profile.finish().expect("a trace");
    let (total, own) = expected;
    let summary = summary();
    let row = summary.row("again").expect("it was called");
    let of_row = row.cuda.expect("a GPU time");
    exact(of_row.total_ns, total);
    exact(of_row.self_ns, own);
    let averages = trace.key_averages();
    let of_window = averages.row("again").and_then(|row| row.cuda);
    let of_window = of_window.expect("a GPU time");
    exact(of_window.total_ns, in_window);
    exact(of_window.self_ns, own);
    let line = trace.timeline();
    let trees = [
        (summary.call_tree(), total),
        (line.call_tree(CallTreeOptions::new()), in_window),
    ];
    for (tree, total_in_tree) in trees {
        let [function, pairs] = in_tree(&tree, "again");
        exact(function.total_ns, total_in_tree);
        exact(function.self_ns, own);
        exact(pairs.total_ns, total + nested);
        exact(pairs.self_ns, own);
    }
}

#[test(on = driver())]
fn the_leaves_of_a_recursion_that_bind_a_stream_are_its_total() {
    fn again(gpu: &Gpu, stream: &Arc<CudaStream>, depth: u32) {
        let _scope = scope!("again");
        if depth == 0 {
            bind_stream(stream);
            gpu.spin(stream, 10_000);
            return;
        }
        again(gpu, stream, depth - 1);
        again(gpu, stream, depth - 1);
    }
    let program = |gpu: &Gpu, [stream, _]: [&Arc<CudaStream>; 2]| again(gpu, stream, 3);
    check(program, (80_000.0, 80_000.0), 0.0);
}

#[test(on = driver())]
fn a_call_inside_one_without_a_stream_counts() {
    let program = |gpu: &Gpu, [stream, _]: [&Arc<CudaStream>; 2]| {
        let _outer = scope!("again");
        let _inner = scope!("again", stream = stream);
        gpu.spin(stream, 10_000);
    };
    check(program, (10_000.0, 10_000.0), 0.0);
}

#[test(on = driver())]
fn a_call_inside_one_whose_time_is_lost_counts() {
    let program = |gpu: &Gpu, [stream, _]: [&Arc<CudaStream>; 2]| {
        tell("fault cuEventRecord nth 1 return 1");
        let _refused = scope!("again", stream = stream);
        tell("clear-faults");
        let lost = scope!("again", stream = stream);
        {
            let _inner = scope!("again", stream = stream);
            gpu.spin(stream, 10_000);
        }
        tell("fault cuEventRecord always return 1");
        drop(lost);
        tell("clear-faults");
    };
    check(program, (10_000.0, 10_000.0), 0.0);
}

#[test(on = driver())]
fn a_call_inside_one_whose_time_is_lost_is_part_of_the_one_around_that() {
    let program = |gpu: &Gpu, [stream, _]: [&Arc<CudaStream>; 2]| {
        let _outer = scope!("again", stream = stream);
        gpu.spin(stream, 5_000);
        let lost = scope!("again", stream = stream);
        {
            let _inner = scope!("again", stream = stream);
            gpu.spin(stream, 10_000);
        }
        tell("fault cuEventRecord always return 1");
        drop(lost);
        tell("clear-faults");
    };
    check(program, (15_000.0, 15_000.0), 10_000.0);
}

#[test(on = driver())]
fn a_call_on_another_stream_than_the_one_around_counts() {
    let program = |gpu: &Gpu, [stream, other]: [&Arc<CudaStream>; 2]| {
        let _outer = scope!("again", stream = stream);
        gpu.spin(stream, 5_000);
        {
            let _inner = scope!("again", stream = other);
            gpu.spin(other, 7_000);
            // On the stream of the outer one: only this call is a part of that.
            let _innermost = scope!("again", stream = stream);
            gpu.spin(stream, 3_000);
        }
    };
    // The call of the program, and the calls of the function by itself.
    check(program, (15_000.0, 15_000.0), 3_000.0);
}

#[test(on = driver())]
fn a_call_inside_another_one_on_its_stream_counts_once() {
    let program = |gpu: &Gpu, [stream, _]: [&Arc<CudaStream>; 2]| {
        let _outer = scope!("again", stream = stream);
        gpu.spin(stream, 5_000);
        let _between = scope!("between");
        let _inner = scope!("again", stream = stream);
        gpu.spin(stream, 10_000);
    };
    check(program, (15_000.0, 15_000.0), 10_000.0);
}

#[test(on = driver())]
fn segments_of_a_call_inside_those_of_another_one_count_once() {
    let program = |gpu: &Gpu, [stream, other]: [&Arc<CudaStream>; 2]| {
        let operation = |stream: &Arc<CudaStream>, ns: u64| {
            bind_stream(stream);
            gpu.spin(stream, ns);
        };
        let _outer = scope!("again");
        operation(stream, 5_000);
        {
            let _inner = scope!("again");
            operation(stream, 10_000);
            operation(other, 20_000);
            operation(stream, 1_000);
        }
        gpu.spin(stream, 2_000);
    };
    // A window does not know which times of the inner call were inside.
    check_with_window(program, (38_000.0, 38_000.0), 11_000.0, 49_000.0);
}
