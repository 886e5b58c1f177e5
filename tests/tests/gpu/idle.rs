//! The running summary says which function keeps a device waiting, without a session.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::thread;
use std::time::Duration;

use profiler_runtime::report::SampledIdle;
use profiler_runtime::{builder, scope, summary};
use profiler_tests::gpu::{Gpu, driver, settle, started};

const PAUSE: Duration = Duration::from_millis(20);

/// Returns the account of the only device.
fn account() -> Option<SampledIdle> {
    let mut devices = summary().gpu_idle;
    assert!(devices.len() <= 1, "{devices:?}");
    devices.pop()
}

fn is_charged(idle: &SampledIdle, name: &str) -> bool {
    idle.charges.iter().any(|charge| charge.name == name)
}

#[test(on = driver().script("clock real"))]
fn a_function_that_keeps_a_device_waiting_is_named_and_one_of_another_thread_is_not() {
    let (_profiler, gpu, stream) = started();
    static ENDS: AtomicBool = AtomicBool::new(false);
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
    let idle = loop {
        step();
        settle();
        if let Some(idle) = account().filter(|idle| is_charged(idle, "load")) {
            break idle;
        }
    };
    ENDS.store(true, Release);
    other.join().expect("it does not panic");
    let load = idle.charges.iter().find(|charge| charge.name == "load");
    let load = load.expect("it was found");
    assert!(load.samples >= 10 && load.idle_samples > 0, "{load:?}");
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
        let _forward = scope!("forward", stream = &stream);
        gpu.spin(&stream, 100_000);
    }
    stream.synchronize().expect("nothing failed");
    settle();
    assert_eq!(account(), None);
}

#[test(on = driver().env("PROFILER_GPU_IDLE", "1"))]
fn the_environment_overrides_the_program() {
    let _profiler = builder().gpu_idle(false).init().expect("set up");
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    // The sampler begins its account when its thread runs.
    while account().is_none() {
        {
            let _forward = scope!("forward", stream = &stream);
            gpu.spin(&stream, 100_000);
        }
        stream.synchronize().expect("nothing failed");
        settle();
    }
}
