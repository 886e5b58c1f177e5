//! Whatever call of the driver fails, and however: windows close in order, each comes once, and each scope with a
//! GPU's side has its exact time, the reason why there is none, or is counted as not read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use crate::raw::{self, made};
use crate::support::failing::{Program, SCOPES, on};
use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::{Profile, Schedule, Trace, init, scope, summary};
use profiler_tests::gpu;
use profiler_tests::gpu::{Held, OnDriver, Ran, driver, started, tell, told};
use profiler_tests::stop;
use profiler_tests::work;

const PATIENCE: Duration = Duration::from_secs(60);

/// The functions that the profiler calls while scopes open and close.
const ENTRIES: [&str; 19] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxGetId",
    "cuCtxGetDevice",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuStreamCreate",
    "cuThreadExchangeStreamCaptureMode",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuMemGetInfo_v2",
    "cuDeviceGetDefaultMemPool",
    "cuMemPoolGetAttribute",
];

const USES: [&str; 3] = ["nth 1", "nth 2", "nth 100"];

/// The outcome of the GPU's side of a scope.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Timed(f64),
    Lost(CudaLoss),
    Neither,
}

struct Window {
    cycle: u64,
    scopes: Vec<(String, Outcome)>,
    unread: u64,
    given_up: u64,
}

fn window(trace: &Trace) -> Window {
    let scopes = trace.events().map(|event| {
        let outcome = match (event.gpu(), event.gpu_loss()) {
            (Some(span), None) => Outcome::Timed(span.ns),
            (None, Some(loss)) => Outcome::Lost(loss),
            (None, None) => Outcome::Neither,
            (Some(_), Some(_)) => panic!("{event:?} has a time and none"),
        };
        (event.name().to_owned(), outcome)
    });
    let missing = trace.truncation();
    assert_eq!((missing.over_capacity, missing.ring_full), (0, 0));
    Window {
        cycle: trace.cycle(),
        scopes: scopes.collect(),
        unread: missing.unread,
        given_up: missing.handler_behind,
    }
}

/// A session of windows of one step each, with all there is to ask the driver for.
fn session() -> (Profile, Receiver<Window>) {
    let (sender, windows) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .profile_memory(true)
        .with_stack(true)
        .on_trace_ready(move |trace: &Trace| {
            sender.send(window(trace)).map_err(|_| "nobody listens")
        })
        .start()
        .expect("started");
    (profile, windows)
}

/// Ends the session, and holds its windows against the summary.
fn check(profile: &Profile, windows: &Receiver<Window>, steps: u64, wrong: &mut Vec<String>) {
    stop(profile);
    let windows: Vec<Window> = windows.try_iter().collect();
    let cycles: Vec<u64> = windows.iter().map(|window| window.cycle).collect();
    assert_eq!(cycles, (0..=steps).collect::<Vec<_>>());
    let mut seen: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for window in &windows {
        let mut neither = 0;
        assert_eq!(window.given_up, 0, "each step waited");
        for (name, outcome) in &window.scopes {
            let counts = seen.entry(name).or_default();
            match outcome {
                Outcome::Timed(ns) => {
                    counts[0] += 1;
                    let expected = SCOPES
                        .iter()
                        .find(|(scope, _)| name.ends_with(&format!(": {scope}")));
                    // A driver that is late between the events of a scope is in its time.
                    let is_late = name.contains("delay") && *ns < 3e6;
                    if !is_late && expected.is_none_or(|(_, expected)| (ns - expected).abs() >= 0.5)
                    {
                        wrong.push(format!("{name}: {ns} ns"));
                    }
                }
                Outcome::Lost(_) => counts[1] += 1,
                Outcome::Neither => {
                    counts[2] += 1;
                    neither += 1;
                }
            }
        }
        if window.unread != neither {
            let (cycle, unread) = (window.cycle, window.unread);
            wrong.push(format!(
                "window {cycle}: {neither} without a word, {unread} of them counted"
            ));
        }
    }
    assert!(
        seen.values().any(|[timed, ..]| *timed > 0),
        "some scopes have a GPU time"
    );
    // The windows hold everything that the summary has counted.
    for row in &summary().rows {
        let [timed, lost, neither] = seen.get(&*row.name).copied().unwrap_or_default();
        let cuda = row.cuda.as_ref().map_or(0, |cuda| cuda.calls);
        let is_captured = row.name.ends_with(": captured");
        let is_same = timed == cuda && lost + neither == row.without_cuda || is_captured;
        if timed + lost + neither != row.calls || !is_same {
            wrong.push(format!(
                "{}: {} calls, {cuda} timed, {} without; in windows {timed} timed, {lost} lost, {neither} neither",
                row.name, row.calls, row.without_cuda
            ));
        }
    }
}

fn failing(devices: usize) -> OnDriver {
    driver()
        .script(&format!("devices {devices}; synchronise allow"))
        .legacy_stream()
        .env("PROFILER_BACKEND", "auto")
        .keeps_events()
        .then(|ran| {
            assert!(
                !ran.stderr.contains("panicked"),
                "{}: {}",
                ran.told,
                ran.stderr
            );
        })
}

/// Lets each use of the told entry point fail, on a device of its own, in windows.
fn fail_on_each_use() {
    let told = told();
    let (entry, actions) = told
        .split_once(": ")
        .expect("an entry point and what happens");
    let _profiler = init().expect("set up");
    let (profile, windows) = session();
    let (mut device, mut steps, mut wrong) = (0, 0, Vec::new());
    for action in actions.split(", ") {
        for using in USES {
            let label = format!("{entry} {using} {action}");
            let mut program = Program::new(device, &label);
            tell(&format!("fault {label}"));
            program.burst(if using == "nth 100" { 70 } else { 3 });
            for _ in 0..3 {
                program.step();
                if entry == "cuEventRecordWithFlags" && program.failed == 0 {
                    program.capture();
                }
                profile.step();
                steps += 1;
                assert!(profile.wait(PATIENCE), "{label}");
            }
            tell("clear-faults");
            device += 1;
        }
    }
    check(&profile, &windows, steps, &mut wrong);
    assert_eq!(wrong, [""; 0]);
}

/// Lets each of the entry points fail by these actions.
fn each(actions: &str) -> OnDriver {
    let devices = USES.len() * actions.split(", ").count();
    failing(devices).each(ENTRIES, |driver, _| driver.cases([actions]))
}

/// Those in graphs may be launched again.
fn leaves_no_event(ran: &Ran) {
    if !ran.told.starts_with("cuEventRecordWithFlags") {
        assert_eq!(ran.report.alive.events, 0, "{}", ran.told);
    }
}

#[test(on = each("return 1, return 400, return 709, return 12345, delay 1ms").then(leaves_no_event))]
fn calls_may_be_refused_or_be_late() {
    fail_on_each_use();
}

#[test(on = each("return 700, sticky 700, return 999"))]
fn contexts_may_fail_permanently() {
    fail_on_each_use();
}

#[test(on = failing(2))]
fn the_programs_own_work_may_fail_later() {
    let _profiler = init().expect("set up");
    let (profile, windows) = session();
    let mut failing = Program::new(0, "failing");
    let mut other = Program::new(1, "other");
    assert_eq!(failing.driver.cuCtxSetCurrent(failing.context), 0);
    failing.step();
    profile.step();
    tell("fault cuLaunchKernel nth 2 fail 719");
    let stream = on(failing.stream, failing.context);
    for _ in 0..20 {
        let _scope = scope!("fails: burst", stream = &stream);
        failing.launch(failing.stream, 500);
    }
    assert_eq!(
        failing.driver.cuStreamSynchronize(failing.stream),
        719,
        "as without us"
    );
    profile.step();
    assert!(profile.wait(PATIENCE));
    assert_eq!(other.driver.cuCtxSetCurrent(other.context), 0);
    other.step();
    profile.step();
    assert!(profile.wait(PATIENCE));
    let mut wrong = Vec::new();
    check(&profile, &windows, 3, &mut wrong);
    assert_eq!(wrong, [""; 0]);
}

/// The one question that has "it is destroyed" among its documented answers; and to end the stream of an open scope
/// breaks the promise that `from_raw` asks for: the driver may see it used once more.
fn sees_that_it_is_gone(call: &str) -> bool {
    ["cuCtxGetId", "cuStreamIsCapturing"].contains(&call)
}

#[test(on = driver()
    .script("devices 2; synchronise allow")
    .legacy_stream()
    .may_misuse(sees_that_it_is_gone))]
fn contexts_may_be_destroyed_or_reset_in_a_window() {
    let _profiler = init().expect("set up");
    let (profile, windows) = session();
    let driver = Program::new(0, "first").driver;
    let mut steps = 0;
    for end in ["destroyed", "reset"] {
        for _ in 0..3 {
            let context = if end == "destroyed" {
                made(|context| driver.cuCtxCreate_v2(context, 0, 0))
            } else {
                driver.primary(1)
            };
            assert_eq!(driver.cuCtxSetCurrent(context), 0);
            let (stream, spin) = (driver.stream(raw::NON_BLOCKING), driver.kernel("spin_ns"));
            let lent = on(stream, context);
            for _ in 0..5 {
                let _read = scope!(format!("{end}: burst"), stream = &lent);
                assert_eq!(driver.spin(spin, 500, stream), 0);
            }
            assert_eq!(driver.cuStreamSynchronize(stream), 0);
            profile.step();
            assert!(profile.wait(PATIENCE));
            for _ in 0..5 {
                let _lost = scope!(format!("{end}: burst"), stream = &lent);
                assert_eq!(driver.spin(spin, 500, stream), 0);
            }
            {
                let _across = scope!(format!("{end}: burst"), stream = &lent);
                assert_eq!(driver.spin(spin, 500, stream), 0);
                // If the context ended after the resolver has been told that it exists, the resolver would use
                // it: programs must flush first (see the guide).
                let resolver = Held::call("cuCtxGetId", 1);
                resolver.wait_or_idle();
                if end == "destroyed" {
                    assert_eq!(driver.cuCtxDestroy_v2(context), 0);
                } else {
                    assert_eq!(driver.cuDevicePrimaryCtxReset_v2(1), 0);
                }
            }
            profile.step();
            steps += 2;
            assert!(profile.wait(PATIENCE));
        }
    }
    let mut wrong = Vec::new();
    check(&profile, &windows, steps, &mut wrong);
    assert_eq!(wrong, [""; 0]);
}

fn small(driver: OnDriver, variable: &&str) -> OnDriver {
    let value = if *variable == "PROFILER_RING" {
        "16"
    } else {
        "8"
    };
    driver.env(variable, value)
}

#[test(on = driver().legacy_stream().each(["PROFILER_CUDA_EVENTS", "PROFILER_RING"], small))]
fn scopes_without_an_event_or_a_place_in_the_ring_are_counted() {
    let (_profiler, gpu, stream) = started();
    let (profile, windows) = session();
    // The device completes nothing in the meantime, and no thread drains the rings. The window holds no more scopes
    // than fit without GPU times.
    let hangs = "fault cuEventQuery from 1 hang";
    tell(hangs);
    for _ in 0..100 {
        let _scope = scope!("no room: burst", stream = &stream);
        gpu.spin(&stream, 500);
    }
    let goes_on = "clear-faults; release";
    tell(goes_on);
    stream.synchronize().expect("nothing failed");
    profile.step();
    assert!(profile.wait(PATIENCE));
    let mut wrong = Vec::new();
    check(&profile, &windows, 1, &mut wrong);
    assert_eq!(wrong, [""; 0]);
    assert!(gpu::row("no room: burst").without_cuda > 0);
}

#[test(on = driver())]
fn scopes_that_the_device_completed_are_never_counted_as_unread() {
    const STEPS: u32 = 100;

    let (_profiler, gpu, stream) = started();
    let (sender, windows) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            let mine = trace.events().filter(|event| event.name() == "passed");
            let timed = mine.filter(|event| event.gpu().is_some()).count();
            sender
                .send((timed, trace.truncation().unread))
                .map_err(|_| "nobody listens")
        })
        .start()
        .expect("started");
    let is_done = AtomicBool::new(false);
    let seen: Vec<(usize, u64)> = thread::scope(|threads| {
        // Records of other threads have to be sorted in at the same time.
        threads.spawn(|| {
            while !is_done.load(Relaxed) {
                drop(scope!("beside"));
            }
        });
        let seen = (0..STEPS).map(|step| {
            for _ in 0..3 {
                let _scope = scope!("passed", stream = &stream);
                gpu.spin(&stream, 500);
            }
            profile.step();
            // The device completes it while the resolver polls it.
            work(500 + u64::from(step * 37 % 3000));
            stream.synchronize().expect("nothing failed");
            assert!(profile.wait(PATIENCE));
            windows.try_recv().expect("a window")
        });
        let seen = seen.collect();
        is_done.store(true, Relaxed);
        seen
    });
    let wrong: Vec<_> = seen.iter().filter(|window| **window != (3, 0)).collect();
    assert!(wrong.is_empty(), "{} windows: {wrong:?}", wrong.len());
}
