//! In the steady state a measured call makes two records, no call that can block and no event, and allocates
//! nothing; however long it lasts, it takes no more memory.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::raw::{Driver, NON_BLOCKING};
use profiler_runtime::cuda::Stream;
use profiler_runtime::{Handle, Profile, cuda, init, scope, summary};
use profiler_tests::allocator::{BYTES, allocations};
use profiler_tests::gpu::{
    self, Held, Ran, cupti_of_driver, driver, exact, row, settle, simulator,
};
use profiler_tests::stop;

/// A user's program that allocates nothing and calls the driver for its launches only.
struct Plain {
    driver: Driver,
    stream: usize,
    spin: usize,
    lent: Stream,
}

impl Plain {
    fn new() -> Self {
        let driver = Driver::of(simulator());
        assert_eq!(driver.cuInit(0), 0);
        let context = driver.primary(0);
        assert_eq!(driver.cuCtxSetCurrent(context), 0);
        let (stream, spin) = (driver.stream(NON_BLOCKING), driver.kernel("spin_ns"));
        // SAFETY: both exist to the end of the process.
        let lent = unsafe { Stream::from_raw(stream as *mut c_void, context as *mut c_void) };
        Self {
            driver,
            stream,
            spin,
            lent,
        }
    }

    /// A scope around another, and one on the default stream.
    fn step(&self) {
        {
            let _outer = scope!("outer", stream = &self.lent);
            let _inner = scope!("inner", stream = &self.lent);
            assert_eq!(self.driver.spin(self.spin, 1_000, self.stream), 0);
        }
        let _default = scope!("default");
    }

    fn finish(&self) {
        assert_eq!(self.driver.cuStreamSynchronize(self.stream), 0);
        assert_eq!(self.driver.cuStreamSynchronize(0), 0);
        settle();
    }
}

fn records_half_a_million(ran: &Ran) {
    assert!(ran.report.calls_of("cuEventRecord") >= 500_000);
}

#[test(on = driver().script("log off").legacy_stream().then(records_half_a_million))]
fn a_quarter_of_a_million_scopes_take_no_more_than_a_few() {
    const ROUNDS: usize = 250;
    const STEPS: usize = 334;
    const WARM_UP: usize = 10;

    let _profiler = init().expect("set up");
    let program = Plain::new();
    // Whenever the resolver finds more than half of the pairs in use, it makes more. Afterwards it never does, however late it
    // is: a quarter as many scopes are in flight. Those of the default stream, which is idle, may end at once.
    for _ in 0..WARM_UP {
        (0..4 * STEPS).for_each(|_| program.step());
        program.finish();
    }
    // Until it has made them, scopes may find none.
    let lost = ["outer", "inner", "default"].map(|name| row(name).without_cuda);
    let (bytes, pairs) = (BYTES.load(Relaxed), summary().cuda.pairs);
    let in_flight = 4 * 2 * STEPS..=4 * 3 * STEPS;
    let made = *in_flight.start()..=2 * in_flight.end() + 512;
    assert!(made.contains(&pairs), "{pairs}");
    let mut allocated = 0;
    for _ in 0..ROUNDS {
        let before = allocations();
        (0..STEPS).for_each(|_| program.step());
        allocated += allocations() - before;
        program.finish();
    }
    // Each time its calls have doubled, a cell moves its window of times to where they are, and may widen it.
    assert!(allocated <= 6, "measured calls allocate {allocated} times");
    let more = BYTES.load(Relaxed) - bytes;
    assert!(
        more < 1 << 18,
        "{more} bytes more than after the first rounds"
    );
    assert!(summary().cuda.pairs <= pairs, "{:?}", summary().cuda);
    for (name, lost) in ["outer", "inner", "default"].into_iter().zip(lost) {
        let calls = ((ROUNDS + 4 * WARM_UP) * STEPS) as u64;
        let counted = (row(name).calls, row(name).without_cuda);
        assert_eq!(counted, (calls, lost), "{name}");
        assert_eq!(gpu::cuda(name).calls, calls - lost, "{name}");
    }
    exact(gpu::cuda("inner").max_ns, 1_000.0);
    exact(gpu::cuda("outer").max_ns, 1_000.0);
}

#[test(on = driver().legacy_stream())]
fn a_measured_call_makes_two_records_and_no_call_that_can_block() {
    const STEPS: u64 = 50;

    let _profiler = init().expect("set up");
    let (program, simulator) = (Plain::new(), simulator());
    // The pool is made larger than what follows needs.
    for _ in 0..5 {
        (0..500).for_each(|_| program.step());
        program.finish();
    }
    // While the resolver hangs in the driver, all calls are those of this thread.
    let held = Held::call("cuEventQuery", 1);
    program.step();
    held.wait();
    let before = simulator.report().expect("a report").calls;
    let allocated = allocations();
    (0..STEPS).for_each(|_| program.step());
    assert_eq!(allocations(), allocated);
    let after = simulator.report().expect("a report").calls;
    let made: Vec<(&str, u64)> = after
        .iter()
        .map(|(call, count)| (call.as_str(), count - before.get(call).unwrap_or(&0)))
        .filter(|(_, count)| *count > 0)
        .collect();
    let expected = [
        // The default stream is that of the context that is current at both ends.
        ("cuCtxGetCurrent", 2 * STEPS),
        // Detects a reset of the device before each record.
        ("cuCtxGetId", 6 * STEPS),
        ("cuEventRecord", 6 * STEPS),
        // The program's own.
        ("cuLaunchKernel", STEPS),
        ("cuStreamIsCapturing", 6 * STEPS),
    ];
    assert_eq!(made, expected);
    drop(held);
    program.finish();
    assert_eq!(summary().cuda.lost, []);
}

static ANNOUNCED: AtomicUsize = AtomicUsize::new(0);

#[test(on = driver().script("clock real").set_up(cupti_of_driver))]
fn a_launch_for_another_scope_allocates_nothing() {
    const STEPS: usize = 100;

    let _profiler = init().expect("set up");
    let program = Plain::new();
    let profile = Profile::builder().kernels(true).start().expect("started");
    let asker = {
        let _asks = scope!("asks");
        Handle::current()
    };
    let id = asker.id();
    assert!(cuda::set_launch_hook(move |launch| {
        ANNOUNCED.fetch_add(1, Relaxed);
        launch.kernel().and(id)
    }));
    let launch = || assert_eq!(program.driver.spin(program.spin, 1_000, program.stream), 0);
    let step = || {
        // For whom the hook says, then for the entered handle's.
        launch();
        let _asker = asker.enter();
        launch();
    };
    (0..STEPS).for_each(|_| step());
    let allocated = allocations();
    (0..STEPS).for_each(|_| step());
    assert_eq!(allocations(), allocated);
    assert_eq!(ANNOUNCED.load(Relaxed), 4 * STEPS);
    program.finish();
    stop(&profile);
    let trace = profile.trace().expect("a trace");
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
    let averages = trace.key_averages();
    let kernels = averages.kernels();
    let scopes = kernels.scopes.iter();
    let launches: Vec<_> = scopes
        .map(|scope| (scope.scope.as_deref(), scope.launches))
        .collect();
    assert_eq!(launches, [(Some("asks"), Some(4 * STEPS as u64))]);
}

const QUEUED: u64 = 500;

fn some_launches_waited(ran: &Ran) {
    let blocked = ran.report.blocked_calls;
    assert!(blocked > QUEUED / 4, "{blocked}");
}

#[test(on = driver().script("launch-queue 16").then(some_launches_waited))]
fn a_full_launch_queue_leaves_times_right() {
    let _profiler = init().expect("set up");
    let program = Plain::new();
    for _ in 0..QUEUED {
        program.step();
    }
    program.finish();
    for name in ["outer", "inner"] {
        let calls = (gpu::cuda(name).calls, row(name).without_cuda);
        assert_eq!(calls, (QUEUED, 0), "{name}");
    }
    exact(gpu::cuda("inner").min_ns, 1_000.0);
    exact(gpu::cuda("inner").max_ns, 1_000.0);
}

#[test(on = driver().script("clock real; fault cuEventRecord always delay 1ms"))]
fn records_that_take_long_are_counted() {
    let _profiler = init().expect("set up");
    let program = Plain::new();
    // A record that waits for a place in the queue; one scope in 64 is looked at.
    for _ in 0..22 {
        program.step();
    }
    let records = summary().cuda.records;
    assert!((2..=4).contains(&records.timed), "{records:?}");
    assert_eq!(records.long, records.timed);
    assert!(records.longest_ns >= 1e6, "{records:?}");
    let table = summary().to_string();
    assert!(table.contains("took longer than 0.1 ms"), "{table}");
    let json = summary().to_json();
    assert!(json.contains("\"records\":{\"timed\":"), "{json}");
    program.finish();
}

#[test(on = driver().env("PROFILER_GPU_IDLE", "0"))]
fn lengths_alone_take_no_stream() {
    let _profiler = init().expect("set up");
    let program = Plain::new();
    let made = || simulator().calls("cuStreamCreate").expect("it is one");
    let before = made();
    (0..10).for_each(|_| program.step());
    program.finish();
    assert_eq!((gpu::cuda("outer").calls, made() - before), (10, 0));
    assert_eq!(summary().cuda.uncertainty_ns, None);
    // A logger receives their places on the time line.
    drop(scope!("logged", stream = &program.lent, log = |_, _, _| {}));
    program.finish();
    assert_eq!((gpu::cuda("logged").calls, made() - before), (1, 1));
    assert!(summary().cuda.uncertainty_ns.is_some());
}

#[test(on = driver())]
fn a_pool_grows_by_doubling_and_shrinks_when_it_is_idle() {
    let _profiler = init().expect("set up");
    let program = Plain::new();
    let mut sizes = Vec::new();
    for in_flight in [10, 50, 100, 200, 400] {
        for _ in 0..4 {
            (0..in_flight).for_each(|_| program.step());
            program.finish();
        }
        sizes.push(summary().cuda.pairs);
    }
    assert!(sizes.is_sorted(), "{sizes:?}");
    let most = sizes[4];
    assert!(
        (1_200..=4_096).contains(&most),
        "1200 are in flight at once: {sizes:?}"
    );
    assert!(summary().cuda.high_water <= most);
    // Nothing happens for a while: but for what each thread has at hand, few are left.
    let start = Instant::now();
    while summary().cuda.pairs > 64 + 16 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(summary().cuda.pairs <= 64 + 16, "{:?}", summary().cuda);
    let alive = simulator().report().expect("a report").alive.events;
    // Two more place GPU times on the time line.
    assert_eq!(
        alive,
        2 * summary().cuda.pairs as u64 + 2,
        "the others were destroyed"
    );
    program.step();
    program.finish();
    assert_eq!(summary().cuda.lost, []);
}
