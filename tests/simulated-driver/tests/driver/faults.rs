//! Each fault that a script can set happens when it says, and is returned or seen.

use std::thread;

use crate::support::{Driver, NON_BLOCKING, made};

/// A fault of a call that records an event, and what four calls return.
const CODES: [(&str, [u32; 4]); 5] = [
    ("always return 999", [999; 4]),
    ("nth 2 return 400", [0, 400, 0, 0]),
    ("every 2 return 4711", [0, 4_711, 0, 4_711]),
    ("from 3 return 2", [0, 0, 2, 2]),
    ("nth 2 sticky 700", [0, 700, 700, 700]),
];

#[test]
fn each_code_is_returned_by_the_calls_that_the_script_names() {
    for (fault, codes) in CODES {
        let driver = Driver::ready();
        let event = driver.recorded(0);
        driver
            .run(&format!("fault cuEventRecord {fault}"))
            .expect("a right script");
        assert_eq!(codes.map(|_| driver.cuEventRecord(event, 0)), codes);
        let report = driver.report();
        let recorded = codes.iter().filter(|code| **code == 0).count();
        assert_eq!(report.event_records().count(), 1 + recorded, "{fault}");
        let failed = codes.len() - recorded;
        let set = if fault.contains("sticky") { 1 } else { failed };
        assert_eq!(report.faults, set as u64, "{fault}");
        driver.run("clear-faults").expect("a right script");
        let code = driver.cuEventQuery(event);
        assert_eq!(code, if fault.contains("sticky") { 700 } else { 0 });
    }
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
fn a_fault_of_all_calls_is_over_after_a_reset() {
    let driver = Driver::ready();
    driver
        .run("fault * always return 999")
        .expect("a right script");
    assert_eq!((driver.cuCtxSynchronize(), driver.cuInit(0)), (999, 999));
    driver.run("reset").expect("a right script");
    assert_eq!(driver.cuCtxSynchronize(), 3, "not initialised");
    let report = driver.report();
    assert_eq!((report.alive.contexts, report.faults), (0, 0));
}

#[test]
fn a_sticky_error_is_that_of_one_context() {
    let driver = Driver::ready_after("clock virtual; devices 2");
    let (event, kernel) = (driver.recorded(0), driver.kernel("work_10us"));
    driver.run("sticky 0 700").expect("device 0 has a context");
    assert_eq!(
        [
            driver.cuEventQuery(event),
            driver.launch(kernel, 0),
            driver.cuCtxSynchronize(),
            driver.cuEventCreate(&mut 0, 0),
            driver.cuEventDestroy_v2(event),
        ],
        [700; 5]
    );
    assert_eq!(driver.report().alive.events, 0, "it is gone all the same");
    assert_eq!(driver.cuCtxSetCurrent(driver.primary(1)), 0);
    assert_eq!(driver.cuEventQuery(driver.recorded(0)), 0);
}

#[test]
fn work_that_fails_fails_its_context_when_it_ends() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    driver
        .run("fault cuLaunchKernel nth 2 fail 719")
        .expect("a right script");
    assert_eq!([(); 2].map(|()| driver.launch(kernel, stream)), [0; 2]);
    let event = driver.recorded(stream);
    driver.advance(19_999).expect("the clock is virtual");
    assert_eq!(driver.cuEventQuery(event), 600);
    assert_eq!(driver.cuStreamSynchronize(stream), 719);
    assert_eq!(driver.cuEventQuery(event), 719);
}

#[test]
fn work_that_stalls_delays_what_comes_after_it_until_it_is_released() {
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
    assert_eq!([event, last].map(|e| driver.cuEventQuery(e)), [600; 2]);
    assert_eq!(driver.report().unfinished, 5);
    driver.run("release").expect("a right script");
    let released = driver.now();
    assert_eq!(driver.cuEventSynchronize(last), 0);
    assert_eq!(driver.now() - released, 20_000);
}

#[test]
fn a_call_takes_longer_or_tells_another_time() {
    let driver = Driver::ready();
    let (start, end) = (driver.recorded(0), driver.recorded(0));
    driver
        .run(
            "fault cuEventQuery always delay 5us; fault cuEventElapsedTime nth 1 time NaN
            fault cuEventElapsedTime nth 2 time -1.5",
        )
        .expect("a right script");
    let before = driver.now();
    assert_eq!(driver.cuEventQuery(end), 0);
    assert_eq!(driver.now() - before, 5_000);
    let told = || made::<f32>(|ms| driver.cuEventElapsedTime(ms, start, end));
    assert!(told().is_nan());
    assert_eq!(
        (told().to_bits(), told() >= 0.0),
        ((-1.5_f32).to_bits(), true)
    );
}

#[test]
fn a_call_that_hangs_returns_when_it_is_released() {
    let driver = Driver::ready();
    let event = driver.event();
    driver
        .run("fault cuEventQuery nth 1 hang")
        .expect("a right script");
    let hung = thread::spawn(move || driver.cuEventQuery(event));
    while driver.calls("cuEventQuery") == Some(0) {
        thread::yield_now();
    }
    assert_eq!(driver.cuEventQuery(event), 0, "others do not hang");
    assert!(!hung.is_finished());
    // Once is enough, even if the call has not begun to wait.
    driver.run("clear-faults; release").expect("a right script");
    assert_eq!(hung.join().expect("no panic"), 0);
}

#[test]
fn a_driver_that_has_shut_down_returns_4() {
    let driver = Driver::ready();
    let event = driver.recorded(0);
    driver.run("shutdown").expect("a right script");
    let codes = [
        driver.cuEventQuery(event),
        driver.cuEventDestroy_v2(event),
        driver.cuInit(0),
    ];
    assert_eq!(codes, [4; 3]);
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
        ("clock virtual\nadvance soon", "`soon` is no duration"),
        ("clock virtual\nadvance 5h", "`5h` is no duration"),
        ("device 3 name A", "no such device"),
        ("cupti record nth 1 vanish", "what happens to the record"),
    ] {
        let refused = driver.run(script).expect_err("the script is wrong");
        assert!(refused.to_string().contains(reason), "{script}: {refused}");
    }
}
