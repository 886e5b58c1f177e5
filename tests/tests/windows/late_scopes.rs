//! A scope whose thread was kept from handing it over until its window was gone is counted in the next one, or said
//! where there is none.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use profiler_runtime::{Profile, Schedule, Trace, init, scope, summary};
use profiler_tests::gpu::{Gpu, driver, simulator, tell};
use profiler_tests::stop;

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `meanwhile` while a thread has ended a scope and waits for the driver: it is let go after that.
fn held_up(gpu: &Gpu, meanwhile: impl FnOnce()) {
    let context = gpu.context.clone();
    // Asked for memory at both ends of the scope.
    let asked = || simulator().calls("cuMemGetInfo_v2").unwrap_or_default();
    let before = asked();
    tell("fault cuMemGetInfo_v2 nth 2 hang");
    let thread = thread::spawn(move || {
        context.bind_to_thread().expect("a context");
        drop(scope!("late"));
    });
    while asked() < before + 2 {
        thread::yield_now();
    }
    meanwhile();
    tell("clear-faults; release");
    thread.join().expect("it ends");
}

fn late(trace: &Trace) -> (u64, usize, u64, bool) {
    let held = trace.events().filter(|event| event.name() == "late");
    let missing = trace.truncation();
    (
        trace.cycle(),
        held.count(),
        missing.late,
        missing.is_complete(),
    )
}

#[test(on = driver())]
fn late_scopes_are_counted_in_the_next_window() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (sender, seen) = mpsc::channel();
    let profile = Profile::builder()
        .profile_memory(true)
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| sender.send(late(trace)))
        .start()
        .expect("started");
    held_up(&gpu, || {
        profile.step();
        assert!(profile.wait(PATIENCE));
    });
    profile.step();
    stop(&profile);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        [(0, 0, 0, true), (1, 0, 1, false), (2, 0, 0, true)]
    );
}

#[test(on = driver())]
fn late_scopes_without_a_next_window_are_counted_in_a_notice() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let profile = Profile::builder()
        .profile_memory(true)
        .start()
        .expect("started");
    held_up(&gpu, || {
        stop(&profile);
    });
    // Its window is complete when the rings were looked at after it.
    let ((), trace) = Profile::builder().run(|_| ());
    drop(trace.expect("a window"));
    let notices = summary().notices;
    let is_said = |notice: &String| notice.contains("had been handed over");
    assert!(notices.iter().any(is_said), "{notices:?}");
}
