//! Loggers get the GPU time of a name that has one, else the CPU's: which of the two is settled with its first
//! call, and what has no such time leaves a gap instead of a value of the other clock.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::support::captures::{begin, end};
use cudarc::driver::CudaStream;
use cudarc::driver::sys::CUgraphInstantiate_flags;
use profiler_runtime::report::{DropReason, TimeSource};
use profiler_runtime::{TracingLogger, init, scope, summary};
use profiler_tests::gpu::{
    Gpu, cuda, driver, exact, finish, on_a_thread, on_threads, row, settle, simulator, started,
};
use profiler_tests::kept::Kept;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// A call that takes `ns` nanoseconds on the GPU.
fn call(gpu: &Gpu, stream: &CudaStream, name: &str, ns: u64, log: &Arc<Kept>) {
    let _scope = scope!(name, stream = stream, log = log.clone());
    gpu.spin(stream, ns);
}

/// One that has none, since it is captured; as a replay it would.
fn captured_call(gpu: &Gpu, stream: &Arc<CudaStream>, name: &str, log: &Arc<Kept>) {
    begin(stream);
    call(gpu, stream, name, 1_000, log);
    let graph = stream.end_capture(CUgraphInstantiate_flags(0));
    drop(graph.expect("the capture is valid"));
}

fn dropped(reason: DropReason) -> u64 {
    let dropped = summary().dropped;
    dropped
        .iter()
        .find(|(of, _)| *of == reason)
        .map_or(0, |(_, count)| *count)
}

#[test(on = driver())]
fn a_name_with_gpu_times_is_logged_by_them() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    let values = Arc::new(Mutex::new(Vec::new()));
    for microseconds in 1..=20 {
        call(&gpu, &stream, "kept", microseconds * 1_000, &kept);
        let values = Arc::clone(&values);
        let closure = move |tag: &str, ms: f64, step: u64| {
            values
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((tag.to_owned(), ms, step));
        };
        let _scope = scope!("closure", stream = &stream, log = closure);
        gpu.spin(&stream, microseconds * 2_000);
    }
    finish(&stream);
    let kept = kept.of("kept");
    assert_eq!(kept.len(), 20);
    for (got, microseconds) in kept.iter().zip(1..) {
        exact(got.value * 1e6, 1e3 * f64::from(microseconds));
        assert_eq!(got.cuda.map(|cuda| cuda.ms), Some(got.value));
        assert!(got.cpu_ms > 0.0);
    }
    let values = values.lock().unwrap_or_else(PoisonError::into_inner);
    for ((tag, ms, step), microseconds) in values.iter().zip(1_u32..) {
        assert_eq!(
            (tag.as_str(), *step),
            ("closure/cuda_ms", u64::from(microseconds) - 1)
        );
        exact(ms * 1e6, 2e3 * f64::from(microseconds));
    }
    assert_eq!(values.len(), 20);
    assert_eq!(
        [row("kept").source, row("closure").source],
        [TimeSource::Cuda; 2]
    );
}

#[test(on = driver())]
fn calls_without_a_gpu_time_leave_a_gap() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    for place in 0..12 {
        if place % 4 == 2 {
            captured_call(&gpu, &stream, "gaps", &kept);
        } else {
            call(&gpu, &stream, "gaps", 5_000, &kept);
        }
    }
    // One whose very first call has none is a name of the GPU all the same: it was on a stream.
    captured_call(&gpu, &stream, "first is missing", &kept);
    call(&gpu, &stream, "first is missing", 6_000, &kept);
    finish(&stream);
    assert_eq!(kept.steps("gaps"), [0, 1, 3, 4, 5, 7, 8, 9, 11]);
    assert_eq!(kept.steps("first is missing"), [1]);
    for got in kept.all() {
        assert_eq!(got.cuda.map(|cuda| cuda.ms), Some(got.value));
    }
    assert_eq!(
        (dropped(DropReason::NoCudaTime), summary().delivered),
        (4, 10)
    );
    assert_eq!((cuda("gaps").calls, row("gaps").without_cuda), (9, 3));
    assert!(
        summary()
            .to_string()
            .contains("4 log entries dropped: no GPU time"),
        "{}",
        summary()
    );
}

#[test(on = driver())]
fn a_name_that_began_on_the_cpu_stays_there() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    let on_cpu = |kept: Arc<Kept>| {
        let plain = || drop(scope!("began on the cpu", log = kept.clone()));
        on_a_thread(plain);
    };
    (0..3).for_each(|_| on_cpu(kept.clone()));
    settle();
    assert_eq!(row("began on the cpu").source, TimeSource::Cpu);
    (0..3).for_each(|_| call(&gpu, &stream, "began on the cpu", 5_000_000_000, &kept));
    finish(&stream);
    on_cpu(kept.clone());
    settle();
    let got = kept.of("began on the cpu");
    assert_eq!(kept.steps("began on the cpu"), [0, 1, 2, 3, 4, 5, 6]);
    let with_cuda: Vec<bool> = got.iter().map(|got| got.cuda.is_some()).collect();
    assert_eq!(with_cuda, [false, false, false, true, true, true, false]);
    for got in got {
        // Never the five seconds of the device.
        assert_eq!(got.value.to_bits(), got.cpu_ms.to_bits());
    }
    assert_eq!(row("began on the cpu").source, TimeSource::Cpu);
    exact(cuda("began on the cpu").total_ns, 15e9);
    assert_eq!(summary().dropped, []);
}

#[test(on = driver())]
fn a_name_of_the_gpu_drops_what_ran_without_a_context() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    call(&gpu, &stream, "both", 7_000, &kept);
    finish(&stream);
    on_a_thread(|| drop(scope!("both", log = kept.clone())));
    settle();
    call(&gpu, &stream, "both", 8_000, &kept);
    finish(&stream);
    let values: Vec<f64> = kept.of("both").iter().map(|got| got.value * 1e6).collect();
    assert_eq!(values.len(), 2, "{values:?}");
    exact(values[0], 7_000.0);
    exact(values[1], 8_000.0);
    assert_eq!(dropped(DropReason::NoCudaTime), 1);
    assert_eq!(kept.steps("both"), [0, 2]);
}

#[test(on = driver())]
fn steps_are_gap_free_across_threads() {
    const THREADS: usize = 6;
    const CALLS: usize = 200;
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (streams, kept) = ([(); THREADS].map(|()| gpu.stream()), Arc::<Kept>::default());
    on_threads(&streams, |stream| {
        for place in 0..CALLS {
            call(&gpu, stream, "steps", 1_000, &kept);
            if place % 50 == 0 {
                simulator()
                    .advance(1_000_000)
                    .expect("the clock is virtual");
            }
        }
    });
    gpu.finish();
    let expected: Vec<u64> = (0..(THREADS * CALLS) as u64).collect();
    assert_eq!(kept.steps("steps"), expected);
    assert_eq!(summary().dropped, []);
}

/// The fields of events.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Fields>>>);

#[derive(Debug, Default)]
struct Fields(Vec<(&'static str, f64)>);

impl<S: tracing::Subscriber> Layer<S> for Events {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.0.iter().any(|(name, _)| *name == "cpu_ms") {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(fields);
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.push((field.name(), value));
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

#[test(on = driver())]
fn the_tracing_logger_has_both_times() {
    let events = Events::default();
    let subscriber = tracing_subscriber::registry().with(events.clone());
    tracing::subscriber::set_global_default(subscriber).expect("the first");
    let (_profiler, gpu, stream) = started();
    for microseconds in 1..=3 {
        let _scope = scope!("traced", stream = &stream, log = TracingLogger);
        gpu.spin(&stream, microseconds * 10_000);
    }
    finish(&stream);
    let events = events.0.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(events.len(), 3);
    for (event, tens) in events.iter().zip(1..) {
        let field = |name| {
            event
                .0
                .iter()
                .find(|(field, _)| *field == name)
                .expect(name)
                .1
        };
        exact(field("cuda_ms") * 1e6, 1e4 * f64::from(tens));
        assert!(field("cpu_ms") > 0.0);
    }
}

#[test(on = driver().script("clock real").scripts(["", "clock-drift-ppm 90"]))]
fn gpu_times_begin_where_they_are_said_to() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    // The first times are read before the time line is known.
    call(&gpu, &stream, "warm up", 100_000, &kept);
    finish(&stream);
    for _ in 0..50 {
        call(&gpu, &stream, "placed", 200_000, &kept);
        std::thread::sleep(Duration::from_millis(20));
    }
    finish(&stream);
    let simulator = simulator();
    let report = simulator.report().expect("a report");
    let on_stream = report
        .event_records()
        .filter(|record| record.stream == stream.cu_stream() as u64);
    // Of each scope the first, and none of the one before.
    let begins: Vec<u64> = on_stream
        .map(|record| record.end)
        .step_by(2)
        .skip(1)
        .collect();
    // The driver's clock and the wall's, tied as closely as can be.
    let tie = |_| {
        let (before, now, after) = (SystemTime::now(), simulator.now(), SystemTime::now());
        (
            after.duration_since(before).unwrap_or_default(),
            before,
            now,
        )
    };
    let (width, before, now) = (0..1_000).map(tie).min().expect("a thousand");
    let placed = kept.of("placed");
    assert_eq!((placed.len(), begins.len()), (50, 50));
    for (got, begin) in placed.iter().zip(begins) {
        let cuda = got.cuda.expect("it has a GPU time");
        let (said, known_to) = (
            cuda.start.expect("placed"),
            cuda.uncertainty_ns.expect("known"),
        );
        let truth = before - Duration::from_nanos(now - begin);
        let error = said
            .duration_since(truth)
            .unwrap_or_else(|error| error.duration());
        let known_to = Duration::from_secs_f64(known_to / 1e9) + Duration::from_nanos(1);
        assert!(
            error <= known_to + width,
            "{error:?} off, and known to {known_to:?}: {got:?}"
        );
    }
}

#[test(on = driver().keeps_events())]
fn each_replay_is_logged_as_a_step_of_its_own() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, kept) = (gpu.stream(), Arc::<Kept>::default());
    begin(&stream);
    {
        let _scope = scope!("replayed", stream = &stream, log = kept.clone(), cuda_graph);
        gpu.spin(&stream, 30_000);
    }
    let graph = end(&stream);
    for _ in 0..5 {
        graph.launch().expect("nothing failed");
        finish(&stream);
    }
    let got = kept.of("replayed");
    assert_eq!(got.len(), 5, "{got:?}");
    for pair in got.windows(2) {
        assert_eq!(pair[1].step, pair[0].step + 1);
    }
    for got in got {
        exact(got.value * 1e6, 30_000.0);
    }
    assert_eq!(summary().dropped, []);
}
