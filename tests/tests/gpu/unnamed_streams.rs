//! An event goes only into a stream that the program or its user has named: by an argument, as the current stream of
//! a thread or a future, as the default stream of the process, by `PROFILER_CUDA_STREAM`, or by binding it. A scope without
//! a stream is not slowed down, invalidates no capture, calls no driver, and is noted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::support::captures::{MODES, end, nodes, spoiled};
use cudarc::driver::{CudaStream, result};
use profiler_runtime::cuda::{
    clear_default_stream, default_stream, set_default_stream, with_stream,
};
use profiler_runtime::{MeasureFuture, init, scope, summary};
use profiler_tests::gpu::{
    Gpu, OnDriver, Ran, cuda, driver, exact, finish, name_of, on_a_thread, on_threads, row, settle,
    simulator, started, told,
};
use profiler_tests::poll::run;
use profiler_tests::work;

/// A stream as `cudaStreamCreate` makes them, which waits for the legacy default stream and is waited for.
fn blocking(gpu: &Gpu) -> Arc<CudaStream> {
    gpu.context.bind_to_thread().expect("nothing failed");
    let stream = result::stream::create(result::stream::StreamKind::Default).expect("a stream");
    // SAFETY: the stream is of this context, and is not destroyed before the program ends.
    unsafe { gpu.context.wrap_borrowed_stream(stream) }
}

/// Has scopes that name no stream be measured on each of these.
fn each_stream<const N: usize>(streams: [&str; N]) -> OnDriver {
    driver().each(streams, |driver, stream| match *stream {
        "unmeasured" => driver.env("PROFILER_ENABLED", "0"),
        stream => driver.env("PROFILER_CUDA_STREAM", stream),
    })
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// The first line of the table that begins so.
fn note(begin: &str) -> String {
    let table = summary().to_string();
    let mut lines = table.lines();
    lines
        .find(|line| line.starts_with(begin))
        .unwrap_or_default()
        .to_owned()
}

const NOTE: &str = "no GPU time, since no stream is named: ";

#[test(on = each_stream(["none", "per-thread", "legacy", "unmeasured"]))]
fn independent_streams_stay_independent() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let streams = [(); 4].map(|()| blocking(&gpu));
    let begun = simulator().now();
    for launch in 0..200 {
        let _scope = scope!("launches");
        gpu.spin(&streams[launch % 4], 500_000);
    }
    gpu.context.synchronize().expect("nothing failed");
    let took = simulator().now() - begun;
    let expected = match told().as_str() {
        "legacy" => 200 * 500_000,
        _ => 50 * 500_000,
    };
    assert_eq!(took, expected, "nanoseconds of the device's, {}", told());
    settle();
}

#[test(on = driver().script("log off"))]
fn captures_beside_a_measuring_thread_are_valid() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = blocking(&gpu);
    let (is_over, measured) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        // Also where an assertion fails: the scope waits for its threads.
        let _over = OnDrop(|| is_over.store(true, Relaxed));
        threads.spawn(|| {
            gpu.context.bind_to_thread().expect("nothing failed");
            while !is_over.load(Relaxed) {
                let _scope = scope!("elsewhere");
                measured.fetch_add(1, Relaxed);
            }
        });
        for mode in MODES {
            for _ in 0..400 {
                let before = measured.load(Relaxed);
                stream.begin_capture(mode).expect("it may capture");
                gpu.spin(&stream, 1_000);
                // The other thread measures at least one whole call within the capture.
                while measured.load(Relaxed) < before + 2 {
                    std::thread::yield_now();
                }
                assert_eq!(nodes(&end(&stream)), 1);
            }
        }
    });
    assert_eq!(spoiled(), 0);
    let calls = simulator().report().expect("a report").calls;
    assert!(!calls.contains_key("cuEventRecord"), "{calls:?}");
}

/// Returns the calls between two reports.
fn called(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let difference = after.iter().map(|(name, calls)| {
        let before = before.get(name).copied().unwrap_or_default();
        (name.clone(), calls - before)
    });
    difference.filter(|(_, calls)| *calls > 0).collect()
}

#[test(on = driver())]
fn functions_without_a_stream_make_no_calls_of_the_driver() {
    let _profiler = init().expect("set up");
    let _gpu = Gpu::new(0);
    let calls = || simulator().report().expect("a report").calls;
    let measure = || {
        let _plain = scope!("plain");
        let _logged = scope!("logged", log = |_: &str, _: f64, _: u64| {});
        let _waiting = scope!("waiting", sync);
        run(async {}.measure_execution_time("future"));
    };
    let before = calls();
    measure();
    let known = calls();
    // Once for the thread, and never again.
    assert_eq!(called(&before, &known), [("cuCtxGetCurrent".to_owned(), 1)]);
    (0..1_000).for_each(|_| measure());
    assert_eq!(called(&known, &calls()), []);
    settle();
    for name in ["plain", "logged", "waiting", "future"] {
        let row = row(name);
        assert_eq!((row.calls, row.without_stream), (1_001, 1_001), "{name}");
        assert_eq!((row.without_cuda, row.cuda.is_none()), (0, true), "{name}");
    }
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver())]
fn a_future_that_makes_the_first_context_is_logged_as_any_other() {
    const CALLS: u64 = 3;

    let _profiler = init().expect("set up");
    let entries = Arc::new(AtomicU64::new(0));
    let mut gpu: Option<Gpu> = None;
    for _ in 0..CALLS {
        let counted = Arc::clone(&entries);
        let work = async {
            let gpu = gpu.get_or_insert_with(|| Gpu::new(0));
            gpu.context.bind_to_thread().expect("nothing failed");
            // The profiler finds the driver here, if not before: the first call began without one.
            let stream = gpu.stream();
            with_stream(&stream, || ());
        };
        let measured = work.measure_execution_time("whole program");
        run(measured.log(move |_: &str, _: f64, _: u64| {
            counted.fetch_add(1, Relaxed);
        }));
    }
    settle();
    assert_eq!(entries.load(Relaxed), CALLS);
    let row = row("whole program");
    assert_eq!((row.calls, row.without_stream), (CALLS, CALLS));
    assert_eq!((row.without_cuda, row.cuda.is_none()), (0, true));
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver())]
fn names_without_a_stream_are_noted_where_a_context_is_current() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..3 {
        let _unnamed = scope!("unnamed");
        let _named = scope!("named", stream = &stream);
        gpu.spin(&stream, 1_000);
    }
    on_a_thread(|| {
        // Asked after the first and the second call: a thread that has no context is not asked for every call.
        for _ in 0..3 {
            let _elsewhere = scope!("without a context");
        }
        // A long call makes the profiler ask again.
        let _makes = scope!("makes a context");
        gpu.context.bind_to_thread().expect("nothing failed");
        work(200);
    });
    finish(&stream);
    let without = |name: &str| row(name).without_stream;
    assert_eq!([without("unnamed"), without("named")], [3, 0]);
    assert_eq!(
        [without("without a context"), without("makes a context")],
        [0, 1]
    );
    let note = note(NOTE);
    for named in [
        "unnamed",
        "makes a context",
        "`stream = …`",
        "`cuda::with_stream`",
        "`cuda::set_default_stream`",
        "PROFILER_CUDA_STREAM=legacy or per-thread",
    ] {
        assert!(note.contains(named), "{named}: {note}");
    }
    assert!(
        !note.contains(" named,") && !note.contains("without a context"),
        "{note}"
    );
    assert!(summary().to_json().contains("\"without_stream\":3,"));
    let csv = summary().to_csv();
    let column = |line: &str| {
        let columns = csv.lines().next().expect("a header").split(',');
        let place = columns
            .clone()
            .position(|column| column == "without_stream");
        line.split(',')
            .nth(place.expect("it is there"))
            .map(str::to_owned)
    };
    let line = csv.lines().find(|line| line.starts_with("unnamed,"));
    assert_eq!(line.and_then(column).as_deref(), Some("3"));
}

#[test(on = driver().script("devices 2"))]
fn the_default_stream_of_the_process_is_that_of_all_threads_without_one() {
    let _profiler = init().expect("set up");
    let gpus = [Gpu::new(0), Gpu::new(1)];
    let [default, current, argument] = [(); 3].map(|()| gpus[0].stream());
    assert!(default_stream().is_none() && set_default_stream(&default).is_none());
    let bound = [None, Some(&gpus[0]), Some(&gpus[1])];
    on_threads(bound, |bound| {
        if let Some(gpu) = bound {
            gpu.context.bind_to_thread().expect("nothing failed");
        }
        let before = result::ctx::get_current().expect("nothing failed");
        {
            let _default = scope!("default");
            let _argument = scope!("argument", stream = &argument);
            with_stream(&current, || drop(scope!("current")));
        }
        let after = result::ctx::get_current().expect("nothing failed");
        assert_eq!(before, after, "the thread keeps its context");
    });
    {
        let _alone = scope!("alone");
        gpus[0].spin(&default, 7_000);
    }
    finish(&default);
    for (name, stream) in [
        ("default", &default),
        ("argument", &argument),
        ("current", &current),
    ] {
        assert_eq!(cuda(name).calls, 3, "{name}");
        assert_eq!(cuda(name).streams, [name_of(stream)], "{name}");
    }
    exact(cuda("alone").total_ns, 7_000.0);
    assert_eq!(summary().cuda.lost, []);
    assert_eq!(note(NOTE), "", "all have one");
    assert!(
        note("almost no GPU time on the default stream").contains("default"),
        "nothing was launched on it: {}",
        summary()
    );
}

#[test(on = driver())]
fn the_default_stream_may_change_while_scopes_are_open() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let [first, second] = [(); 2].map(|()| gpu.stream());
    let handles = [name_of(&first), name_of(&second)];
    for _ in 0..10 {
        set_default_stream(&first);
        set_default_stream(&second);
    }
    assert!(
        Arc::strong_count(&first) < 4 && Arc::strong_count(&second) < 4,
        "each is held once"
    );
    set_default_stream(&first);
    let weak = Arc::downgrade(&first);
    let on_first = scope!("first");
    gpu.spin(&first, 3_000);
    drop(first);
    let before = set_default_stream(&second).expect("the first");
    assert!(format!("{before:?}").contains(&handles[0]), "{before:?}");
    let on_second = scope!("second");
    gpu.spin(&second, 5_000);
    assert!(clear_default_stream().is_some() && clear_default_stream().is_none());
    drop(before);
    drop(scope!("none"));
    assert!(weak.upgrade().is_some(), "a scope is open on it");
    drop(on_second);
    drop(on_first);
    gpu.finish();
    exact(cuda("first").total_ns, 3_000.0);
    exact(cuda("second").total_ns, 5_000.0);
    assert_eq!(cuda("first").streams, handles[..1]);
    assert_eq!(cuda("second").streams, handles[1..]);
    assert_eq!((cuda("none").calls, row("none").without_stream), (0, 1));
    assert_eq!(summary().cuda.lost, []);
}

fn null_is_not_understood(ran: &Ran) {
    let is_null = ran.told == "null";
    assert_eq!(ran.warnings(), usize::from(is_null), "{}", ran.stderr);
    let said = "PROFILER_CUDA_STREAM=null is not understood: it takes `none`, `legacy`";
    assert_eq!(ran.stderr.contains(said), is_null, "{}", ran.stderr);
}

#[test(on = each_stream(["none", "legacy", "per-thread", "PER-THREAD", "null"])
    .then(null_is_not_understood))]
fn a_default_stream_of_the_drivers_is_taken_where_it_is_asked_for() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (legacy, per_thread) = (
        gpu.context.default_stream(),
        gpu.context.per_thread_stream(),
    );
    {
        let _scope = scope!("asked for");
        gpu.spin(&legacy, 3_000);
    }
    gpu.context.synchronize().expect("nothing failed");
    {
        let _scope = scope!("asked for");
        gpu.spin(&per_thread, 5_000);
    }
    gpu.context.synchronize().expect("nothing failed");
    // A named stream takes precedence.
    set_default_stream(&gpu.context);
    drop(scope!("named"));
    settle();
    assert_eq!(cuda("named").streams, ["default"]);
    let (times, without) = (cuda("asked for"), row("asked for").without_stream);
    match told().as_str() {
        "legacy" => {
            // It waits for the other one, which is a blocking one.
            exact(times.total_ns, 8_000.0);
            assert_eq!(
                (times.streams.as_slice(), without),
                (["default".to_owned()].as_slice(), 0)
            );
        }
        "none" | "null" => assert_eq!((times.calls, without), (0, 2)),
        _ => {
            exact(times.max_ns, 5_000.0);
            assert_eq!((times.calls, times.streams.len(), without), (2, 1, 0));
            assert!(
                times.streams[0].starts_with("per-thread default"),
                "{times:?}"
            );
        }
    }
}
