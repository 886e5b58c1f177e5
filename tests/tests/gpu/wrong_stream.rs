//! A name that is measured on the default stream while its work runs on others is pointed out, once and with
//! what to write; one whose time is its own is left in peace.

use profiler_runtime::{init, scope, summary};
use profiler_tests::gpu::{Gpu, cuda, driver, finish, settle, started};
use profiler_tests::work;

/// The warnings that speak of a name.
fn warnings_of(name: &str) -> usize {
    let notices = summary().notices;
    notices
        .iter()
        .filter(|notice| notice.contains(&format!("`{name}`")))
        .count()
}

/// The lines of the table that speak of a name and of no GPU time.
fn notes_of(name: &str) -> usize {
    let table = summary().to_string();
    let notes = table
        .lines()
        .filter(|line| line.starts_with("almost no GPU time"));
    notes.filter(|line| line.contains(name)).count()
}

/// A call that is measured on the default stream, and launches on another one.
fn forward(gpu: &Gpu, stream: &cudarc::driver::CudaStream) {
    let _forward = scope!("forward");
    for _ in 0..2 {
        let _layer = scope!("layer", stream = stream);
        gpu.spin(stream, 50_000);
    }
}

#[test(on = driver()
    .legacy_stream()
    .says_once("`forward` launches on other streams")
    .says(["write `stream = …`"]))]
fn calls_that_are_read_one_by_one() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..100 {
        forward(&gpu, &stream);
        finish(&stream);
    }
    assert_eq!((warnings_of("forward"), warnings_of("layer")), (1, 0));
    assert_eq!((notes_of("forward"), notes_of("layer")), (1, 0));
    assert!(cuda("forward").idle_stream && !cuda("layer").idle_stream);
}

#[test(on = driver().legacy_stream())]
fn calls_that_are_read_many_at_once() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..4 {
        (0..100).for_each(|_| forward(&gpu, &stream));
        finish(&stream);
    }
    assert_eq!((warnings_of("forward"), warnings_of("layer")), (1, 0));
    assert_eq!(notes_of("forward"), 1);
}

#[test(on = driver().script("clock real").legacy_stream())]
fn calls_that_work_on_the_processor_meanwhile() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..100 {
        {
            // The default stream passes both events at once, and its time is what the processor takes.
            let _forward = scope!("forward");
            let _layer = scope!("layer", stream = &stream);
            work(100);
            gpu.spin(&stream, 2_000_000);
        }
        stream.synchronize().expect("nothing failed");
    }
    settle();
    assert!(cuda("forward").min_ns >= 100_000.0);
    assert_eq!((warnings_of("forward"), warnings_of("layer")), (1, 0));
}

#[test(on = driver().legacy_stream())]
fn calls_on_their_right_stream_cause_no_warning() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, default) = (gpu.stream(), gpu.context.default_stream());
    // All of it is far longer than any machine takes to launch it: what is shorter may be nothing.
    for round in 0..200 {
        {
            // Its own work is on the default stream; some of it is elsewhere.
            let _works = scope!("works");
            gpu.spin(&default, 2_000_000);
            let _part = scope!("part", stream = &stream);
            gpu.spin(&stream, 5_000_000);
        }
        {
            // The program named its stream, and knows why.
            let _named = scope!("named", stream = &gpu.context);
            let _part = scope!("part", stream = &stream);
            gpu.spin(&stream, 5_000_000);
        }
        {
            // A scope that is idle now and then.
            let _now_and_then = scope!("now and then");
            if round % 2 == 0 {
                gpu.spin(&default, 3_000_000);
            }
            let _part = scope!("part", stream = &stream);
            gpu.spin(&stream, 5_000_000);
        }
        gpu.context.synchronize().expect("nothing failed");
        if round % 10 == 0 {
            settle();
        }
    }
    settle();
    for name in ["works", "named", "now and then", "part"] {
        assert_eq!(
            (warnings_of(name), notes_of(name)),
            (0, 0),
            "{name}\n{}",
            summary()
        );
    }
}

#[test(on = driver().legacy_stream())]
fn a_name_that_launches_nothing_is_noted_and_not_warned_of() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    for _ in 0..100 {
        let _idle = scope!("idle");
    }
    gpu.finish();
    assert_eq!(
        (warnings_of("idle"), notes_of("idle")),
        (0, 1),
        "{}",
        summary()
    );
}
