//! Each entry point fails, waits or hangs as a script says, and so does the work of a stream.

use std::thread;

use crate::support::{Driver, NON_BLOCKING, made};
use profiler_simulated_driver::Objects;

#[test]
fn a_call_returns_a_code_by_its_number() {
    let driver = Driver::ready();
    let stream = driver.stream(NON_BLOCKING);
    let event = driver.recorded(stream);
    driver
        .run("fault cuEventRecord nth 2 return 999")
        .expect("a right script");
    let codes: Vec<u32> = (0..4)
        .map(|_| driver.cuEventRecord(event, stream))
        .collect();
    assert_eq!(codes, [0, 999, 0, 0]);
    assert_eq!(
        driver.report().event_records().count(),
        4,
        "the failed call did nothing"
    );
    driver
        .run("clear-faults; fault cuEventRecord from 2 return 2")
        .expect("a right script");
    let codes: Vec<u32> = (0..3)
        .map(|_| driver.cuEventRecord(event, stream))
        .collect();
    assert_eq!(codes, [0, 2, 2]);
    assert_eq!(driver.report().faults, 3);
}

#[test]
fn a_call_can_fail_after_its_work() {
    let driver = Driver::ready();
    let event = driver.event();
    driver
        .run("fault cuEventDestroy_v2 always return 700 after")
        .expect("a right script");
    assert_eq!(driver.cuEventDestroy_v2(event), 700);
    assert_eq!(driver.report().alive.events, 0);
}

#[test]
fn unknown_codes_are_returned() {
    let driver = Driver::ready();
    driver
        .run("fault cuEventQuery always return 4711")
        .expect("a right script");
    assert_eq!(driver.cuEventQuery(driver.event()), 4711);
    let mut name = c"".as_ptr();
    assert_eq!(driver.cuGetErrorName(4711, &raw mut name), 1);
    assert!(name.is_null());
    assert_eq!(driver.cuGetErrorName(700, &raw mut name), 0);
    // SAFETY: the driver returned a static string.
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    assert_eq!(name, c"CUDA_ERROR_ILLEGAL_ADDRESS");
}

#[test]
fn a_fault_sets_the_time_between_events() {
    let driver = Driver::ready();
    let (start, end) = (driver.recorded(0), driver.recorded(0));
    driver
        .run("fault cuEventElapsedTime nth 1 time NaN; fault cuEventElapsedTime nth 2 time -1.5")
        .expect("a right script");
    let told = || made::<f32>(|ms| driver.cuEventElapsedTime(ms, start, end));
    assert!(told().is_nan());
    assert_eq!((told(), told() >= 0.0), (-1.5, true));
}

#[test]
fn a_sticky_error_fails_only_its_context() {
    let driver = Driver::ready_after("clock virtual; devices 2");
    let (first, event, kernel) = (
        driver.primary(0),
        driver.recorded(0),
        driver.kernel("work_10us"),
    );
    let second = driver.primary(1);
    driver
        .run("fault cuEventQuery nth 1 sticky 700")
        .expect("a right script");
    assert_eq!(driver.cuEventQuery(event), 700);
    assert_eq!(driver.cuEventRecord(event, 0), 700);
    assert_eq!(driver.launch(kernel, 0), 700);
    assert_eq!(driver.cuCtxSynchronize(), 700);
    assert_eq!(driver.cuEventCreate(&mut 0, 0), 700);
    assert_eq!(
        made::<usize>(|current| driver.cuCtxGetCurrent(current)),
        first
    );
    assert_eq!(driver.cuCtxSetCurrent(second), 0);
    let other = driver.recorded(0);
    assert_eq!(driver.cuEventQuery(other), 0);
    assert_eq!(driver.cuEventDestroy_v2(event), 700);
    assert_eq!(
        driver.report().alive.events,
        1,
        "what is destroyed is gone all the same"
    );
    driver.run("sticky 1 719").expect("device 1 has a context");
    assert_eq!(driver.cuEventQuery(other), 719);
}

#[test]
fn a_failing_kernel_fails_its_context_when_it_ends() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    driver
        .run("fault cuLaunchKernel nth 2 fail 719")
        .expect("a right script");
    assert_eq!(
        (driver.launch(kernel, stream), driver.launch(kernel, stream)),
        (0, 0)
    );
    let event = driver.recorded(stream);
    driver.advance(19_999).expect("the clock is virtual");
    assert_eq!(driver.cuEventQuery(event), 600);
    driver.advance(1).expect("the clock is virtual");
    assert_eq!(driver.cuEventQuery(event), 719);
}

#[test]
fn a_wait_for_a_failing_kernel_returns_the_error() {
    let driver = Driver::ready();
    driver
        .run("fault cuLaunchKernel nth 1 fail 700")
        .expect("a right script");
    assert_eq!(driver.launch(driver.kernel("work_10us"), 0), 0);
    assert_eq!(driver.cuStreamSynchronize(0), 700);
}

#[test]
fn a_call_takes_longer_on_request() {
    let driver = Driver::ready();
    driver
        .run("fault cuEventQuery always delay 5us")
        .expect("a right script");
    let before = driver.now();
    assert_eq!(driver.cuEventQuery(driver.event()), 0);
    assert_eq!(driver.now() - before, 5_000);
}

#[test]
fn a_hanging_call_returns_when_it_is_released() {
    let driver = Driver::ready();
    let event = driver.event();
    driver
        .run("fault cuEventQuery nth 1 hang")
        .expect("a right script");
    let hung = thread::spawn(move || driver.cuEventQuery(event));
    while driver.calls("cuEventQuery") == Some(0) {
        thread::yield_now();
    }
    assert_eq!(
        driver.cuEventQuery(event),
        0,
        "other calls return while one hangs"
    );
    assert!(!hung.is_finished());
    // Once is enough, even if the call has not begun to wait.
    driver.run("clear-faults; release").expect("a right script");
    assert_eq!(hung.join().expect("no panic"), 0);
}

#[test]
fn stalled_work_delays_all_later_work() {
    let driver = Driver::ready();
    let (stream, other) = (driver.stream(NON_BLOCKING), driver.stream(NON_BLOCKING));
    let kernel = driver.kernel("work_10us");
    driver
        .run("fault cuLaunchKernel nth 1 stall")
        .expect("a right script");
    assert_eq!(driver.launch(kernel, stream), 0);
    let event = driver.recorded(stream);
    assert_eq!(driver.cuStreamWaitEvent(other, event, 0), 0);
    assert_eq!(driver.launch(kernel, other), 0);
    let last = driver.recorded(other);
    driver.advance(1_000_000).expect("the clock is virtual");
    assert_eq!(
        (driver.cuEventQuery(event), driver.cuEventQuery(last)),
        (600, 600)
    );
    assert_eq!(driver.report().unfinished, 5);
    driver.run("release").expect("a right script");
    let released = driver.now();
    assert_eq!(driver.cuEventSynchronize(last), 0);
    assert_eq!(driver.now() - released, 20_000);
    assert!((driver.ns(event, last) - 10_000.0).abs() < 0.5);
    assert_eq!(driver.report().unfinished, 0);
}

#[test]
fn a_wrong_script_is_refused_with_a_reason() {
    let driver = Driver::untouched("");
    for (script, reason) in [
        ("nonsense", "no such command"),
        ("fault cuNothing always hang", "no entry point"),
        ("fault cuInit sometimes hang", "which calls"),
        ("fault cuInit always explode", "what happens"),
        ("advance 5ms", "the real clock"),
        (
            "clock virtual\nadvance soon",
            "`advance soon`: `soon` is no duration",
        ),
        ("device 3 memory 5", "no such device"),
    ] {
        let refusal = driver
            .run(script)
            .expect_err("the script is wrong")
            .to_string();
        assert!(refusal.contains(reason), "{script}: {refusal}");
    }
}

#[test]
fn a_reset_restores_the_state_after_loading() {
    let driver = Driver::ready_after("clock virtual; devices 2");
    driver.recorded(0);
    driver
        .run("fault * always return 999")
        .expect("a right script");
    assert_eq!(driver.cuCtxSynchronize(), 999);
    driver.run("reset").expect("a right script");
    assert_eq!(driver.cuCtxSynchronize(), 3, "not initialised");
    assert_eq!(driver.cuInit(0), 0);
    assert_eq!(made::<i32>(|count| driver.cuDeviceGetCount(count)), 1);
    assert_eq!(made::<usize>(|context| driver.cuCtxGetCurrent(context)), 0);
    let report = driver.report();
    assert_eq!(
        (report.alive, report.activities.len(), report.faults),
        (Objects::default(), 0, 0)
    );
    assert_eq!(report.calls_of("cuInit"), 1);
}
