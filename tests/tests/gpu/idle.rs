//! The running summary says which function keeps a device waiting, without a session.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::time::{Duration, Instant};
use std::{fs, thread};

use profiler_runtime::report::{SampledCharge, SampledIdle};
use profiler_runtime::{builder, pause, scope, set_enabled, summary};
use profiler_tests::gpu::{Gpu, driver, settle, started, tell};

const PAUSE: Duration = Duration::from_millis(20);
/// Far more steps than any machine needs.
const MOST_STEPS: usize = 5_000;

/// Returns the account of the only device.
fn account() -> Option<SampledIdle> {
    let mut devices = summary().gpu_idle;
    assert!(devices.len() <= 1, "{devices:?}");
    devices.pop()
}

fn charge_of<'i>(idle: &'i SampledIdle, name: &str) -> Option<&'i SampledCharge> {
    idle.charges.iter().find(|charge| charge.name == name)
}

fn is_charged(idle: &SampledIdle, name: &str) -> bool {
    charge_of(idle, name).is_some()
}

/// Returns `true` if the thread that samples runs.
fn has_sampler() -> bool {
    let threads = fs::read_dir("/proc/self/task").expect("it is Linux");
    let is_sampler = |thread: fs::DirEntry| {
        let name = fs::read_to_string(thread.path().join("comm"));
        // A thread may end meanwhile.
        name.is_ok_and(|name| name.trim_end() == "profiler-idle")
    };
    threads.filter_map(Result::ok).any(is_sampler)
}

#[test(on = driver().script("clock real"))]
fn a_function_that_keeps_a_device_waiting_is_named_and_one_of_another_thread_is_not() {
    static ENDS: AtomicBool = AtomicBool::new(false);

    let (_profiler, gpu, stream) = started();
    let other = thread::spawn(|| {
        while !ENDS.load(Acquire) {
            let _other = scope!("other");
            thread::sleep(PAUSE);
        }
    });
    let step = || {
        {
            let _load = scope!("load");
            thread::sleep(PAUSE);
        }
        {
            let _forward = scope!("forward", stream = &stream);
            gpu.spin(&stream, 2_000_000);
        }
        stream.synchronize().expect("nothing failed");
    };
    // However rarely the sampler gets a processor, it has ten samples at some time.
    let mut charged = (0..MOST_STEPS).filter_map(|_| {
        step();
        settle();
        // It sleeps, and may have to wait for a processor when it wakes up.
        let is_off = |charge: &SampledCharge| charge.off_processor_samples > 0;
        let of_load = |idle: &SampledIdle| charge_of(idle, "load").is_some_and(is_off);
        account().filter(of_load)
    });
    let idle = charged.next();
    ENDS.store(true, Release);
    other.join().expect("it does not panic");
    let idle = idle.expect("`load` keeps the device waiting for most of the time");
    let load = charge_of(&idle, "load").expect("it was found");
    assert!(load.samples >= 10 && load.idle_samples > 0, "{load:?}");
    assert!(load.off_processor_samples <= load.asked_samples, "{load:?}");
    assert!(load.asked_samples <= load.idle_samples, "{load:?}");
    assert!(load.idle_ns > 0.0 && load.error_ns > 0.0, "{load:?}");
    assert!(
        !is_charged(&idle, "other"),
        "it has launched nothing: {idle:?}"
    );
    let charged: f64 = idle.charges.iter().map(|charge| charge.idle_ns).sum();
    let parts = charged + idle.outside_ns + idle.not_sampled_ns + idle.launched_ns;
    assert!((parts - idle.idle_ns).abs() < 1.0, "{idle:?}");
    assert_eq!((idle.device, idle.unplaced), (Some(0), 0));
    assert!(
        summary()
            .to_json()
            .contains("\"name\":\"load\",\"idle_ns\":")
    );
}

#[test(on = driver())]
fn the_account_can_be_turned_off() {
    let _profiler = builder().gpu_idle(false).init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    for _ in 0..20 {
        {
            let _forward = scope!("forward", stream = &stream);
            gpu.spin(&stream, 100_000);
        }
        stream.synchronize().expect("nothing failed");
        settle();
        // A thread has its name a moment after it was started.
        thread::sleep(PAUSE);
        assert!(!has_sampler());
        assert_eq!(account(), None);
    }
}

#[test(on = driver().script("clock real"))]
fn a_gpu_time_around_one_on_another_stream_is_not_busy() {
    let (_profiler, gpu, stream) = started();
    let other = gpu.stream();
    let mut accounts = (0..MOST_STEPS).filter_map(|_| {
        {
            let _outer = scope!("outer", stream = &stream);
            gpu.spin(&stream, 20_000_000);
            let _inner = scope!("inner", stream = &other);
            gpu.spin(&other, 1_000_000);
        }
        stream.synchronize().expect("nothing failed");
        other.synchronize().expect("nothing failed");
        settle();
        account()
    });
    let idle = accounts.next().expect("there are GPU times");
    assert!(idle.host_paced_ns > idle.busy_ns, "{idle:?}");
}

#[test(on = driver().env("PROFILER_GPU_IDLE", "1"))]
fn the_environment_overrides_the_program() {
    let _profiler = builder().gpu_idle(false).init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    // The account begins when the first GPU time is read, and has the next one; the sampler starts.
    let is_on = (0..MOST_STEPS).any(|_| {
        {
            let _forward = scope!("forward", stream = &stream);
            gpu.spin(&stream, 100_000);
        }
        stream.synchronize().expect("nothing failed");
        settle();
        account().is_some() && has_sampler()
    });
    assert!(is_on);
}

/// Runs `between` after one GPU time and before another one. Returns the account, how long `between` says that nothing was known,
/// and how long all of it took.
fn account_around(between: impl FnOnce(&dyn Fn()) -> Duration) -> (SampledIdle, [f64; 2]) {
    let (_profiler, gpu, stream) = started();
    let forward = || {
        {
            let _forward = scope!("forward", stream = &stream);
            gpu.spin(&stream, 2_000_000);
        }
        stream.synchronize().expect("nothing failed");
        settle();
    };
    // The account begins with the first one.
    forward();
    let begin = Instant::now();
    forward();
    let inside = between(&forward);
    forward();
    let whole = begin.elapsed();
    let ns = |time: Duration| time.as_nanos() as f64;
    let account = account().expect("two GPU times were read");
    (account, [ns(inside), ns(whole)])
}

/// Returns how long ten of these take.
fn ten(forward: &dyn Fn()) -> Duration {
    let begin = Instant::now();
    (0..10).for_each(|_| forward());
    begin.elapsed()
}

/// Asserts that the account does not know this part of a time, and takes none of it for idle.
#[track_caller]
fn assert_unknown((account, [inside, whole]): &(SampledIdle, [f64; 2])) {
    // A thread that is off the processor between a reading of the test and one of the account adds to one of the two alone.
    let margin = inside / 4.0;
    assert!(
        account.unknown_ns >= inside - margin,
        "{inside}: {account:?}"
    );
    assert!(
        account.idle_ns <= whole - inside + margin,
        "{whole}: {account:?}"
    );
    let line = account.line();
    assert!(line.is_none_or(|line| line.contains("it is not known")));
    let json = summary().to_json();
    assert!(
        json.contains("\"unknown_ns\":") && !json.contains("\"unknown_ns\":0,"),
        "{json}"
    );
}

#[test(on = driver().script("clock real"))]
fn while_measuring_is_off_the_device_is_not_known_to_be_idle() {
    let account = account_around(|forward| {
        set_enabled(false);
        let took = ten(forward);
        set_enabled(true);
        took
    });
    assert_unknown(&account);
}

#[test(on = driver().script("clock real"))]
fn during_a_pause_the_device_is_not_known_to_be_idle() {
    let account = account_around(|forward| pause(|| ten(forward)));
    assert_unknown(&account);
}

#[test(on = driver().script("clock real"))]
fn while_gpu_times_are_lost_the_device_is_not_known_to_be_idle() {
    let account = account_around(|forward| {
        tell("fault cuEventRecord always return 1");
        let took = ten(forward);
        tell("clear-faults");
        took
    });
    assert!(!summary().cuda.lost.is_empty());
    assert_unknown(&account);
}
