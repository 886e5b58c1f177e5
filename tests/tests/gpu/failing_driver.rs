//! Each call of the profiler's may fail, on its first, second or hundredth use, with any code: the program and
//! its results are as without the profiler, and each scope has its exact GPU time or is counted as without one.

use std::sync::OnceLock;

use crate::raw::{NON_BLOCKING, made};
use crate::support::failing::{Program, on};
use profiler_runtime::cuda::{CudaLoss, Stream, status};
use profiler_runtime::{MeasureFuture, init, measure_execution_time, scope, summary};
use profiler_tests::gpu::{OnDriver, Ran, cuda, driver, exact, row, settle, simulator, tell, told};
use profiler_tests::poll::run;

/// The functions that the profiler calls repeatedly.
const OFTEN: [&str; 18] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuGetErrorName",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxGetId",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuEventElapsedTime",
];

/// The functions that it calls once for each context, and once for each that is not the primary one of its device.
const ONCE: [&str; 5] = [
    "cuCtxGetDevice",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRetain",
    "cuStreamCreate",
    "cuDevicePrimaryCtxRelease_v2",
];

const USES: [u32; 3] = [1, 2, 100];

/// The uses of a function that is called once for each context which fail by an action. Whatever a refusal says, it
/// may come on the hundredth use; the others only need to be understood.
fn uses_for(action: &str) -> &'static [u32] {
    if ["return 1", "return 999"].contains(&action) {
        &USES
    } else {
        &USES[..2]
    }
}

/// Devices of two contexts each, so that each of these is called as often as the last use says.
fn devices_for(entry: &str, uses: &[u32]) -> i32 {
    match (uses.len() < USES.len(), entry == ONCE[4]) {
        (true, _) => 3,
        (false, true) => 101,
        (false, false) => 51,
    }
}

/// A driver whose calls are made to fail by the test.
fn failing(devices: i32) -> OnDriver {
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

/// Has each of these entry points fail by some actions. All events are destroyed, but for those in graphs that may be
/// launched again.
fn each_often(actions: &str, devices: i32) -> OnDriver {
    failing(devices).each(OFTEN, |driver, entry| {
        let driver = driver.cases([actions]);
        let is_in_graphs = *entry == "cuEventRecordWithFlags";
        if is_in_graphs {
            driver
        } else {
            driver.keeps(0)
        }
    })
}

fn something_failed(ran: &Ran) {
    assert!(ran.report.faults > 0, "{}", ran.told);
}

/// Lets each use of the told entry point fail, on a device of its own.
fn fail_on_each_use() {
    let told = told();
    let (entry, actions) = told
        .split_once(": ")
        .expect("an entry point and what happens");
    let _profiler = init().expect("set up");
    let simulator = simulator();
    let (mut device, mut wrong) = (0, Vec::new());
    for action in actions.split(", ") {
        for using in USES {
            let label = format!("{entry} nth {using} {action}");
            let mut program = Program::new(device, &label);
            if entry == "cuGetErrorName" {
                simulator
                    .run("fault cuEventQuery every 2 return 1")
                    .expect("it is right");
            }
            simulator
                .run(&format!("fault {label}"))
                .expect("it is right");
            let used = simulator.calls(entry).expect("it is one");
            let burst = if using == 100 { 70 } else { 3 };
            program.burst(burst);
            // Some steps more than it takes to come to that use, if anything comes to it.
            let (mut steps, mut after) = (0, 0);
            while after < 3 && steps < 105 {
                program.step();
                let _ = status();
                steps += 1;
                if entry == "cuEventRecordWithFlags" && program.failed == 0 {
                    program.capture();
                }
                after += u32::from(simulator.calls(entry) >= Some(used + u64::from(using)));
            }
            simulator.run("clear-faults").expect("it is right");
            let without = program.account(steps, burst.into(), &mut wrong);
            let is_refusal = ["return 1", "return 400", "return 12345"].contains(&action);
            if is_refusal && entry != "cuGetErrorName" && without > 1 {
                wrong.push(format!("{label}: one refusal costs {without} times"));
            }
            device += 1;
        }
    }
    let counted: u64 = summary().cuda.lost.iter().map(|(_, count)| count).sum();
    let rows: u64 = summary().rows.iter().map(|row| row.without_cuda).sum();
    assert_eq!(counted, rows, "each loss has a reason");
    assert_eq!(wrong, [""; 0]);
}

#[test(on = each_often("return 1, return 12345", 8).then(something_failed))]
fn a_call_that_is_refused_once_costs_one_time() {
    fail_on_each_use();
}

#[test(on = each_often("return 400, return 709", 8))]
fn events_are_not_leaked_if_calls_report_invalid_handles_or_destroyed_contexts() {
    fail_on_each_use();
}

#[test(on = driver().may_misuse(|call| call == "cuStreamIsCapturing"))]
fn a_scope_on_a_destroyed_stream_does_not_affect_scopes_of_its_context() {
    const SCOPES: u64 = 200;

    let _profiler = init().expect("set up");
    let mut program = Program::new(0, "beside");
    let good = on(program.stream, program.context);
    let destroyed = program.driver.stream(NON_BLOCKING);
    assert_eq!(program.driver.cuStreamDestroy_v2(destroyed), 0);
    let bad = on(destroyed, program.context);
    // Nothing is waited for: what one scope does to the context, the next ones meet.
    for _ in 0..SCOPES {
        drop(scope!("bad", stream = &bad));
        let _good = scope!("good", stream = &good);
        program.launch(program.stream, 1_000);
    }
    program.finish();
    settle();
    assert_eq!(cuda("good").calls, SCOPES, "{:?}", summary().cuda.lost);
    assert_eq!((cuda("bad").calls, row("bad").without_cuda), (0, SCOPES));
    assert_eq!(summary().cuda.lost, [(CudaLoss::InvalidHandle, SCOPES)]);
}

/// Scopes of each kind whose times are read: logged with their place, inside of another one, by a future, while the
/// end waits.
fn measure_each_way(program: &mut Program, stream: &Stream) {
    {
        let _logged = scope!("logged", stream = stream, log = |_, _, _| {});
        let _inner = scope!("inner", stream = stream);
        program.launch(program.stream, 2_000);
    }
    {
        let _waiting = scope!("waiting", stream = stream, sync);
        program.launch(program.stream, 2_000);
    }
    let launch = async { program.launch(program.stream, 2_000) };
    run(async {
        let future = launch
            .measure_execution_time("future")
            .stream(stream.clone());
        future.await;
    });
}

#[test(on = failing(1).keeps(0))]
fn a_time_that_cannot_be_is_rejected_and_counted() {
    const NAMES: [&str; 4] = ["logged", "inner", "waiting", "future"];
    const TIMES: [&str; 7] = ["NaN", "inf", "-inf", "-1", "-1e30", "1e30", "3.4e38"];
    const EACH: u64 = 5;

    let _profiler = init().expect("set up");
    let mut program = Program::new(0, "times");
    let stream = on(program.stream, program.context);
    let mut calls = 0;
    for which in ["always", "every 2", "every 3", "nth 1"] {
        for time in TIMES {
            let fault = format!("fault cuEventElapsedTime {which} time {time}");
            simulator().run(&fault).expect("it is right");
            for _ in 0..EACH {
                measure_each_way(&mut program, &stream);
            }
            program.finish();
            settle();
            tell("clear-faults");
            measure_each_way(&mut program, &stream);
            program.finish();
            settle();
            calls += EACH + 1;
        }
    }
    let mut without = 0;
    for name in NAMES {
        let (cuda, row) = (cuda(name), row(name));
        assert_eq!((row.calls, cuda.calls + row.without_cuda), (calls, calls));
        assert!(cuda.calls >= calls / (EACH + 1), "{name}");
        exact(cuda.min_ns, 2_000.0);
        exact(cuda.max_ns, 2_000.0);
        without += row.without_cuda;
    }
    assert_eq!(summary().cuda.lost, [(CudaLoss::ImpossibleTime, without)]);
    assert!(without >= 4 * EACH * TIMES.len() as u64);
    // Those of places and of what is around are rejected too, and cost no scope its length.
    assert!(summary().cuda.rejected_times > without);
}

/// The code 700 is said once, and so is 999, for each of our calls.
fn warnings_are_bounded(rans: &[Ran]) {
    let mut warned_of = 0;
    for ran in rans {
        let failures = ran.stderr.matches("a CUDA context has failed").count();
        assert!(failures <= 4, "{}: {}", ran.told, ran.stderr);
        warned_of += failures;
    }
    assert!(warned_of > 0, "no failure of a context was warned of");
}

fn contexts_fail() -> OnDriver {
    each_often("return 700, sticky 700, return 999", 12).keeps_events()
}

#[test(on = contexts_fail().compare(warnings_are_bounded))]
fn a_failed_context_causes_a_bounded_number_of_warnings() {
    fail_on_each_use();
}

/// Lets the told call fail on some of its uses while the program goes from device to device.
fn fail_on_some_devices() {
    let told = told();
    let (entry, action) = told
        .split_once(": ")
        .expect("an entry point and what happens");
    let _profiler = init().expect("set up");
    let simulator = simulator();
    let uses = uses_for(action);
    let mut programs: Vec<Program> = (0..devices_for(entry, uses))
        .map(|device| Program::new(device, &format!("device {device}")))
        .collect();
    for using in uses {
        simulator
            .run(&format!("fault {entry} nth {using} {action}"))
            .expect("it is right");
    }
    let mut wrong = Vec::new();
    for program in &mut programs {
        assert_eq!(program.driver.cuCtxSetCurrent(program.context), 0);
        program.burst(1);
        program.step();
    }
    let summary = summary();
    for program in &programs {
        program.account_in(&summary, 1, 1, &mut wrong);
    }
    assert_eq!(wrong, [""; 0]);
    let faults = simulator.report().expect("a report").faults;
    assert!(faults >= uses.len() as u64, "{told}: {faults}");
    simulator.run("clear-faults").expect("it is right");
}

fn each_once() -> OnDriver {
    let actions = [
        "return 1",
        "return 400",
        "sticky 700",
        "return 999",
        "return 12345",
    ];
    ONCE.into_iter()
        .flat_map(|entry| {
            let of_action = |action: &str| {
                let is_for_good = action.ends_with("700") || action.ends_with("999");
                let driver = failing(devices_for(entry, uses_for(action)));
                let driver = driver.cases([format!("{entry}: {action}")]);
                if is_for_good { driver } else { driver.keeps(0) }
            };
            actions.map(of_action).into_iter()
        })
        .reduce(OnDriver::and)
        .expect("there are some")
}

#[test(on = each_once())]
fn what_is_called_once_for_each_context_may_fail() {
    fail_on_some_devices();
}

fn each_at_the_end() -> OnDriver {
    let entries = [
        "cuEventDestroy_v2",
        "cuStreamDestroy_v2",
        "cuCtxSetCurrent",
        "cuCtxGetId",
    ];
    let uses = entries
        .into_iter()
        .flat_map(|entry| USES.map(|using| format!("{entry} nth {using}")));
    let cases = uses.flat_map(|using| {
        [1, 4, 400, 700, 999, 12_345].map(|code| format!("{using} return {code}"))
    });
    failing(2).cases(cases).then(|ran| {
        let is_refused = ran.told.starts_with("cuEventDestroy_v2");
        assert!(
            ran.report.alive.events <= 1 || !is_refused,
            "{}: but for the refused one",
            ran.told
        );
    })
}

#[test(on = each_at_the_end())]
fn what_is_called_at_the_end_may_fail() {
    let profiler = init().expect("set up");
    let mut programs: Vec<Program> = (0..2)
        .map(|device| Program::new(device, &format!("device {device}")))
        .collect();
    let mut wrong = Vec::new();
    for program in &mut programs {
        assert_eq!(program.driver.cuCtxSetCurrent(program.context), 0);
        program.burst(70);
        program.step();
        assert_eq!(program.account(1, 70, &mut wrong), 0);
    }
    assert_eq!(wrong, [""; 0]);
    simulator()
        .run(&format!("fault {}", told()))
        .expect("it is right");
    drop(profiler);
    for program in &mut programs {
        program.launch(program.stream, 1_000);
        program.finish();
    }
}

#[test(on = failing(1).keeps(0))]
fn a_driver_that_does_not_say_which_context_is_current_costs_counted_times() {
    let _profiler = init().expect("set up");
    let mut program = Program::new(0, "asked");
    for refused in [true, false, true] {
        let script = if refused {
            "fault cuCtxGetCurrent always return 1"
        } else {
            "clear-faults"
        };
        tell(script);
        for _ in 0..5 {
            let _scope = scope!("default");
            program.launch(0, 1_000);
        }
        tell("clear-faults");
        program.finish();
        settle();
    }
    assert_eq!((row("default").calls, cuda("default").calls), (15, 5));
    assert_eq!(row("default").without_cuda, 10);
}

fn names_no_other_call(ran: &Ran) {
    assert!(
        !ran.stderr.contains("warning: cuEventCreate returned"),
        "{}",
        ran.stderr
    );
}

#[test(on = failing(1).says(["warning: cuCtxGetCurrent returned"]).then(names_no_other_call))]
fn a_notice_names_the_call_that_failed() {
    let _profiler = init().expect("set up");
    let mut program = Program::new(0, "refused");
    tell("fault cuCtxGetCurrent always return 1");
    {
        // Its context is known, but not which one is current where its first events are made.
        let stream = on(program.stream, program.context);
        let _scope = scope!("refused", stream = &stream);
    }
    tell("clear-faults");
    program.finish();
    settle();
    assert_eq!(row("refused").without_cuda, 1);
}

/// The stream on which host functions measure, and its context.
static MEASURED_ON: OnceLock<[usize; 2]> = OnceLock::new();

/// Measures in a host function, unless `bypassed` is set.
extern "C" fn measure_in_a_host_function(bypassed: usize) {
    let [stream, context] = *MEASURED_ON.get().expect("the test has set it");
    for _ in 0..100 {
        if told() == "libtorch" {
            measured_without_a_stream();
        } else {
            measured(&on(stream, context), bypassed != 0);
        }
    }
}

#[measure_execution_time(name = "in a host function")]
fn measured_without_a_stream() {}

#[measure_execution_time(name = "in a host function", stream = stream, bypass = bypassed)]
fn measured(stream: &Stream, bypassed: bool) {
    // Stripped, nothing else uses them.
    let _ = (stream, bypassed);
}

fn run_in_host_functions(program: &mut Program, times: usize, bypassed: bool) {
    for _ in 0..times {
        let function = measure_in_a_host_function;
        let code = (program.driver).cuLaunchHostFunc(program.stream, function, bypassed.into());
        program.check(code);
        // More at once would fill the ring of the driver's thread.
        program.finish();
        settle();
    }
}

#[test(on = failing(1).says(["bypass = true"]).each(["legacy", "libtorch"], |driver, stream| {
    // The other warning is that no libtorch is loaded.
    let warnings = if *stream == "libtorch" { 2 } else { 1 };
    driver.env("PROFILER_CUDA_STREAM", stream).warnings(warnings)
}))]
fn host_functions_ask_a_driver_that_refuses_seldom() {
    let _profiler = init().expect("set up");
    let mut program = Program::new(0, "around");
    let _ = MEASURED_ON.set([program.stream, program.context]);
    run_in_host_functions(&mut program, 50, false);
    let measured = row("in a host function");
    assert_eq!((measured.calls, measured.without_cuda), (5_000, 5_000));
    let report = simulator().report().expect("a report");
    // After 64 scopes, 128 more, and so on; each time once or twice.
    let asked = report.host_function_calls;
    assert!((1..=16).contains(&asked), "{asked} calls in host functions");
    // The program's own threads are still measured.
    program.burst(1);
    program.step();
    let mut wrong = Vec::new();
    // The default stream of the driver is not that of libtorch.
    if told() != "libtorch" {
        assert_eq!((program.account(1, 1, &mut wrong), wrong), (0, vec![]));
    }
    let lost = summary().cuda.lost;
    assert_eq!(lost, [(CudaLoss::HostFunction, 5_000)]);
}

#[test(on = failing(1))]
fn what_is_bypassed_in_a_host_function_does_not_call_the_driver() {
    let _profiler = init().expect("set up");
    let mut program = Program::new(0, "around");
    let _ = MEASURED_ON.set([program.stream, program.context]);
    program.burst(1);
    // A call would end the process.
    tell("host-function-calls abort");
    run_in_host_functions(&mut program, 50, true);
    assert_eq!(row("in a host function").calls, 0);
}

#[test(on = failing(1).keeps(0))]
fn a_thread_that_is_refused_once_measures_again() {
    let _profiler = init().expect("set up");
    let mut program = Program::new(0, "refused");
    tell("fault cuEventRecord nth 1 return 800");
    program.burst(200);
    let times = cuda("refused: burst");
    let without = row("refused: burst").without_cuda;
    assert_eq!((times.calls, without), (135, 65));
    assert_eq!(summary().cuda.lost, [(CudaLoss::HostFunction, 65)]);
}

#[test(on = failing(6).keeps(0))]
fn the_current_context_is_restored_if_setting_it_fails() {
    let _profiler = init().expect("set up");
    let mut wrong = Vec::new();
    for using in 1..=6 {
        let mut program = Program::new(using - 1, &format!("use {using}"));
        // The events for the other context are made in that one, on this thread. The code may be that of
        // an earlier failure although the context is current.
        let script = format!("fault cuCtxSetCurrent nth {using} return 1 after");
        tell(&script);
        program.step();
        let current: usize = made(|current| program.driver.cuCtxGetCurrent(current));
        if current != program.context {
            wrong.push(using);
        }
        tell("clear-faults");
    }
    assert_eq!(
        wrong, [0; 0],
        "uses after which another context was current"
    );
}

#[test(on = failing(2).says_once("a CUDA context has failed").says(["719"]))]
fn an_error_of_the_programs_own_work_reaches_the_program() {
    let _profiler = init().expect("set up");
    let mut failing = Program::new(0, "failing");
    let mut other = Program::new(1, "other");
    assert_eq!(failing.driver.cuCtxSetCurrent(failing.context), 0);
    failing.step();
    tell("fault cuLaunchKernel nth 2 fail 719");
    let stream = on(failing.stream, failing.context);
    for _ in 0..20 {
        let _scope = scope!("fails", stream = &stream);
        failing.launch(failing.stream, 10_000);
    }
    assert_eq!(
        failing.driver.cuStreamSynchronize(failing.stream),
        719,
        "as without us"
    );
    for _ in 0..5 {
        let _scope = scope!("after", stream = &stream);
        assert_eq!(failing.driver.spin(failing.spin, 1, failing.stream), 719);
    }
    settle();
    assert_eq!(row("fails").calls, 20);
    assert_eq!(cuda("fails").calls + row("fails").without_cuda, 20);
    assert_eq!((cuda("after").calls, row("after").without_cuda), (0, 5));
    // Another context is still measured.
    assert_eq!(other.driver.cuCtxSetCurrent(other.context), 0);
    other.step();
    let mut wrong = Vec::new();
    assert_eq!(other.account(1, 0, &mut wrong), 0);
    assert_eq!(wrong, [""; 0]);
}
