//! `step()` and `stop()` return whatever the device, the driver and the handlers do: each test here would hang
//! otherwise, or be ended by the driver, which ends a program whose profiler waits for the device.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use profiler_runtime::session::ProfileBuilder;
use profiler_runtime::{Profile, Schedule, Trace, init, scope};
use profiler_tests::gpu::{Gpu, driver, exact, started, tell};
use profiler_tests::stop;

const PATIENCE: Duration = Duration::from_secs(60);

fn each_step() -> ProfileBuilder {
    Profile::builder().schedule(Schedule::new().active(1))
}

/// The scopes called `work` in a window: its cycle, the GPU times, how many were not read, how many were given up
/// because the handler was behind.
type Window = (u64, Vec<Option<f64>>, u64, u64);

fn window(trace: &Trace) -> Window {
    let work = trace.events().filter(|event| event.name() == "work");
    let times = work.map(|event| event.gpu().map(|span| span.ns));
    let missing = trace.truncation();
    (
        trace.cycle(),
        times.collect(),
        missing.unread,
        missing.handler_behind,
    )
}

fn told(sender: Sender<Window>) -> impl FnMut(&Trace) -> Result<(), mpsc::SendError<Window>> {
    move |trace| sender.send(window(trace))
}

/// All windows came, in order, and of each scope there is its time or a count.
fn check(windows: &Receiver<Window>, steps: u64, ns: f64) -> u64 {
    let windows: Vec<Window> = windows.try_iter().collect();
    let cycles: Vec<u64> = windows.iter().map(|(cycle, ..)| *cycle).collect();
    assert_eq!(cycles, (0..=steps).collect::<Vec<_>>());
    let mut all_unread = 0;
    for (cycle, times, unread, given_up) in &windows {
        let read = times.iter().flatten();
        read.clone().for_each(|time| exact(*time, ns));
        if *cycle < steps {
            assert_eq!(
                times.len() as u64 + given_up,
                1,
                "window {cycle}: {times:?}"
            );
        }
        assert_eq!(
            read.count() as u64 + unread,
            times.len() as u64,
            "window {cycle}"
        );
        all_unread += unread;
    }
    all_unread
}

#[test(measuring)]
fn handlers_may_block_for_as_long_as_they_like() {
    let (release, released) = mpsc::channel::<()>();
    let (sender, seen) = mpsc::channel();
    let blocked = each_step()
        .on_trace_ready(move |trace: &Trace| {
            let _ = released.recv();
            sender.send(trace.cycle())
        })
        .start()
        .expect("started");
    let free = each_step().start().expect("started");
    for _ in 0..1000 {
        drop(scope!("waiting: not at all"));
        blocked.step();
        free.step();
    }
    blocked.stop();
    // The handlers of another session are not behind these.
    stop(&free);
    assert!(seen.try_recv().is_err());
    assert!(!blocked.wait(Duration::from_millis(1)));
    drop(release);
    assert!(blocked.wait(PATIENCE));
    let cycles: Vec<u64> = seen.try_iter().collect();
    assert_eq!(cycles, (0..=1000).collect::<Vec<_>>());
}

#[test(on = driver())]
fn steps_do_not_wait_for_a_device_that_makes_no_progress() {
    const STEPS: u64 = 100;

    let (_profiler, gpu, stream) = started();
    let (sender, seen) = mpsc::channel();
    let profile = each_step()
        .on_trace_ready(told(sender))
        .start()
        .expect("started");
    // The clock of the device stands still: it reaches the first kernel only when the test advances it.
    for _ in 0..STEPS {
        let work = scope!("work", stream = &stream);
        gpu.spin(&stream, 10_000);
        drop(work);
        profile.step();
    }
    profile.stop();
    assert!(
        !profile.wait(Duration::from_millis(200)),
        "the last windows wait"
    );
    stream.synchronize().expect("nothing failed");
    assert!(profile.wait(PATIENCE));
    let unread = check(&seen, STEPS, 10_000.0);
    assert!(unread < STEPS, "the last of them waited: {unread}");
}

#[test(on = driver())]
fn steps_do_not_wait_for_a_driver_call_that_hangs() {
    const STEPS: u64 = 50;

    let (_profiler, gpu, stream) = started();
    tell("fault cuEventQuery from 1 hang");
    let (sender, seen) = mpsc::channel();
    let profile = each_step()
        .on_trace_ready(told(sender))
        .start()
        .expect("started");
    for _ in 0..STEPS {
        let work = scope!("work", stream = &stream);
        gpu.spin(&stream, 10_000);
        drop(work);
        stream.synchronize().expect("nothing failed");
        profile.step();
    }
    profile.stop();
    assert!(
        !profile.wait(Duration::from_millis(200)),
        "the last windows wait"
    );
    // Sessions come and go meanwhile.
    let ((), beside) = Profile::builder()
        .activities([profiler_runtime::Activity::Cpu])
        .run(|_| drop(scope!("beside", stream = &stream)));
    let beside = beside.expect("a window of CPU times");
    assert_eq!(
        beside
            .events()
            .filter(|event| event.name() == "beside")
            .count(),
        1
    );
    tell("clear-faults; release");
    assert!(profile.wait(PATIENCE));
    check(&seen, STEPS, 10_000.0);
}

#[test(on = driver())]
fn work_that_never_ends_costs_its_own_times_only() {
    let profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stalling, other) = (gpu.stream(), gpu.stream());
    tell("fault cuLaunchKernel nth 1 stall");
    let profile = Profile::builder().start().expect("started");
    for (stream, name) in [(&stalling, "stalls"), (&other, "work")] {
        let _scope = scope!(name, stream = stream);
        gpu.spin(stream, 10_000);
    }
    other.synchronize().expect("nothing failed");
    profile.stop();
    assert!(!profile.wait(Duration::from_millis(200)));
    drop(profile);
    // A program that ends now would have what there is: so has one whose guard goes.
    let (sender, seen) = mpsc::channel();
    let last = Profile::builder()
        .on_trace_ready(told(sender))
        .start()
        .expect("started");
    {
        let _stalls = scope!("work", stream = &stalling);
    }
    last.stop();
    drop(profiler);
    let (_, times, unread, _) = seen.try_recv().expect("it was handed over");
    assert_eq!((times, unread), (vec![None], 1));
    tell("release");
    stalling.synchronize().expect("nothing failed");
    profiler_runtime::flush(PATIENCE);
}
