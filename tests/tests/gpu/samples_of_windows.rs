//! A window ends with a sample, so it has the energy of its last part.

use std::thread::sleep;
use std::time::Duration;

use profiler_runtime::{Profile, scope, summary};
use profiler_tests::gpu::{Held, OnDriver, finish, settle, started};

use crate::support::samples::{gpu, next_sample, sampled, wait};

fn fine_steps() -> OnDriver {
    sampled()
        .script("clock real; nvml energy-step 10ms")
        .env("PROFILER_GPU_SAMPLES", "1h")
}

#[test(on = fine_steps())]
fn a_window_that_is_shorter_than_the_interval_has_its_energy() {
    const KERNEL_S: f64 = 1.5;
    let (_profiler, device, stream) = started();
    let run = |name: &'static str| {
        let _scope = scope!(name, stream = &stream);
        device.spin(&stream, 1_500_000_000);
    };
    {
        let _scope = scope!("first", stream = &stream);
        device.spin(&stream, 1_000);
    }
    settle();
    wait(|| !summary().gpus.is_empty());
    let samples = || summary().gpus[0].samples;
    let before = samples();
    let session = Profile::builder().gpu_samples(Duration::from_secs(3_600));
    let ((), trace) = session.run(|_| {
        // The one at the beginning.
        wait(|| samples() > before);
        run("work");
        stream.synchronize().expect("nothing failed");
    });
    let averages = trace.expect("a window").key_averages();
    let row = averages.row("work").expect("it ran");
    let energy = row.energy.expect("it has an energy");
    // 250 W. A busy phase begins and ends within some 10 ms of a sample.
    let joules = energy.joules.unwrap_or(0.0);
    let window = averages.gpus[0].energy_j.unwrap_or(0.0);
    assert!(
        joules > 0.0 && joules <= 250.0 * KERNEL_S + 5.0,
        "{energy:?}"
    );
    assert!(joules <= window + 1e-3, "{energy:?} of {window} J");
    assert!(
        gpu(0).energy_j.is_some_and(|all| all >= window),
        "{:?}",
        gpu(0)
    );
}

fn without_an_interval() -> OnDriver {
    sampled().set_up(|command| _ = command.env_remove("PROFILER_GPU_SAMPLES"))
}

#[test(on = without_an_interval()
    .script("clock real; fault nvmlInitWithFlags always delay 600ms")
    .warnings(0))]
fn a_window_waits_while_nvml_opens_the_devices() {
    let (_profiler, _device, stream) = started();
    let record = || {
        let session = Profile::builder().gpu_samples(Duration::from_millis(300));
        let ((), trace) = session.run(|_| {
            let _scope = scope!("work", stream = &stream);
            sleep(Duration::from_millis(350));
        });
        trace.expect("a window")
    };
    // When it closes, NVML has taken longer than a call that is given up.
    let trace = record();
    let notes = trace.key_averages().notes;
    assert_eq!((trace.gpu_samples().count(), &notes[..]), (1, &[][..]));
}

#[test(on = without_an_interval()
    .script("clock real; fault nvmlInitWithFlags always delay 600ms")
    .warnings(0))]
fn a_window_that_has_ended_long_before_nvml_has_devices_says_so() {
    let (_profiler, _device, stream) = started();
    let session = Profile::builder().gpu_samples(Duration::from_millis(100));
    let ((), trace) = session.run(|_| drop(scope!("work", stream = &stream)));
    let trace = trace.expect("a window");
    assert_eq!(trace.gpu_samples().count(), 0);
    let notes = trace.key_averages().notes;
    let is_said = |note: &String| note.contains("s to open the devices");
    assert!(notes.iter().any(is_said), "{notes:?}");
}

#[test(on = without_an_interval())]
fn a_window_says_if_nvml_does_not_open_the_devices() {
    let held = Held::call("nvmlInitWithFlags", 1);
    let (_profiler, _device, stream) = started();
    let session = Profile::builder().gpu_samples(Duration::from_millis(100));
    let ((), trace) = session.run(|_| {
        drop(scope!("work", stream = &stream));
        held.wait();
    });
    let trace = trace.expect("the window came although a call hangs");
    assert_eq!(trace.gpu_samples().count(), 0);
    let notes = trace.key_averages().notes;
    let is_said = |note: &String| note.contains("nvmlInit has not returned");
    assert!(notes.iter().any(is_said), "{notes:?}");
    // It hangs to the end of the process.
    std::mem::forget(held);
}

#[test(on = sampled())]
fn a_call_of_nvml_that_hangs_does_not_hold_a_window() {
    let (_profiler, device, stream) = started();
    {
        let _scope = scope!("first", stream = &stream);
        device.spin(&stream, 1_000);
    }
    finish(&stream);
    next_sample(0);
    let held = Held::call("nvmlDeviceGetPerformanceState", 1);
    held.wait();
    for _ in 0..2 {
        // It waits for the window, and fails if that does not come.
        let ((), trace) = Profile::builder().run(|_| {
            drop(scope!("work", stream = &stream));
            sleep(Duration::from_millis(1));
        });
        let trace = trace.expect("the window came although a call hangs");
        assert_eq!(
            trace.key_averages().row("work").map(|row| row.calls),
            Some(1)
        );
    }
    // It hangs to the end of the process.
    std::mem::forget(held);
}
