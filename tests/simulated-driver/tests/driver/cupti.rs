//! The simulated CUPTI loses, changes and misorders what a script says, and notices what its client must not do.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use crate::cupti_client::{Cupti, KERNEL, LAUNCH, MEMCPY, OVERHEAD, Record};
use crate::support::{Driver, NON_BLOCKING};
use profiler_simulated_driver::CuptiReport;

/// Returns a driver, its CUPTI, and a stream with a kernel of 10 µs.
fn ready<const N: usize>(script: &str) -> (Driver, Cupti<N>, usize, usize) {
    let driver = Driver::ready();
    driver.run(script).expect("a right script");
    let cupti = Cupti::<N>::new(&driver);
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    (driver, cupti, stream, kernel)
}

fn launch(driver: &Driver, kernel: usize, stream: usize, launches: u64) {
    for _ in 0..launches {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    driver
        .advance(launches * 10_000)
        .expect("the clock is virtual");
}

/// Returns the text of every misuse.
fn misuses(driver: &Driver) -> Vec<String> {
    let misuses = driver.report().misuses.into_iter();
    misuses.map(|misuse| misuse.what).collect()
}

/// A count of the report.
type Count = fn(&CuptiReport) -> u64;

/// What happens to the second record of three, what the client is told, and the count of the report. A kernel is told by
/// its number, `+` for a name of its own, and `-` for one without times.
const RECORDS: [(&str, &[&str], Count); 8] = [
    ("drop", &["0", "2"], |cupti| cupti.records_dropped),
    ("lose", &["0", "2"], |cupti| cupti.records_lost),
    ("untimed", &["0", "1-", "2"], |cupti| cupti.records_untimed),
    ("after-unknown", &["0"], |cupti| cupti.records_unknown),
    ("after-overhead", &["0", "overhead", "1", "2"], |_| 1),
    ("correlation 4711", &["0", "4711", "2"], |_| 1),
    ("previous", &["0", "0", "2"], |_| 1),
    ("other-name", &["0", "1+", "2"], |_| 1),
];

#[test]
fn each_fault_of_a_record_reaches_the_client() {
    for (fault, told, count) in RECORDS {
        let (driver, cupti, stream, kernel) = ready::<0>(&format!("cupti record nth 2 {fault}"));
        cupti.record(&[KERNEL], &[4_096; 2]);
        launch(&driver, kernel, stream, 3);
        let report = driver.report();
        let kernels: Vec<_> = report.kernels().map(|kernel| kernel.correlation).collect();
        let tell = |record: &Record| {
            if record.kind() == OVERHEAD {
                return "overhead".to_owned();
            }
            let correlation = record.word(92);
            let launch = kernels.iter().position(|known| *known == Some(correlation));
            let number = launch.map_or(correlation.to_string(), |launch| launch.to_string());
            let timed = if record.long(24) > 0 { "" } else { "-" };
            let named = if record.name() == "work_10us" {
                ""
            } else {
                "+"
            };
            number + timed + named
        };
        let records: Vec<String> = cupti.flushed(0).iter().map(tell).collect();
        assert_eq!(records, told, "{fault}");
        let dropped = usize::from(fault == "drop");
        assert_eq!([cupti.dropped(), cupti.dropped()], [dropped, 0], "{fault}");
        assert_eq!(count(&driver.report().cupti), 1, "{fault}");
        driver.run("cupti clear-faults").expect("a right script");
        launch(&driver, kernel, stream, 1);
        assert_eq!(cupti.flushed(0).len(), 1, "{fault}");
    }
}

#[test]
fn a_client_is_refused_beside_another_and_by_a_fault() {
    let (driver, cupti, ..) = ready::<1>("");
    let first = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.subscribe(), Err(39));
    assert_eq!(cupti.cuptiUnsubscribe(first), 0);
    driver
        .run("cupti holder another tool")
        .expect("a right script");
    assert_eq!(cupti.subscribe(), Err(39));
    driver
        .run("cupti holder none; fault cuptiSubscribe nth 1 return 15")
        .expect("a right script");
    assert_eq!(cupti.subscribe(), Err(15));
    let second = cupti.subscribe().expect("the fault is over");
    assert_ne!(first, second);
    assert_eq!(cupti.cuptiEnableCallback(1, first, 1, LAUNCH), 1);
    assert_eq!(misuses(&driver), ["no such subscriber"]);
    assert_eq!(driver.report().calls_of("cuptiSubscribe"), 5);
}

#[test]
fn a_kind_takes_seconds_to_enable_on_request() {
    let (driver, cupti, ..) = ready::<2>("fault cuptiActivityEnable nth 1 delay 6s");
    let begin = driver.now();
    cupti.record(&[KERNEL, MEMCPY], &[]);
    assert_eq!(driver.now() - begin, 6_000_000_000);
    assert_eq!(cupti.cuptiActivityEnable(4_711), 21);
    assert_eq!(driver.report().cupti.kinds_enabled, [1, 10]);
}

#[test]
fn an_attribute_is_refused_if_it_is_unknown_or_too_small() {
    let (_, cupti, ..) = ready::<2>("");
    for (attribute, code) in [(9, 0), (0, 10), (77, 1)] {
        let told = cupti.cuptiActivitySetAttribute(attribute, &mut 1, [0_u8].as_ptr());
        assert_eq!(told, code, "{attribute}");
    }
}

#[test]
fn callbacks_run_on_another_thread_and_after_the_end_on_request() {
    let (driver, cupti, stream, kernel) = ready::<3>("");
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.cuptiEnableCallback(1, handle, 1, LAUNCH), 0);
    // Whether the client has unsubscribed, how many callbacks run, and whether they run on the thread of the launch.
    for (faults, is_over, callbacks, here) in [
        ("normal", false, 2, true),
        ("foreign", false, 2, false),
        ("after-unsubscribe", true, 2, true),
        ("normal", true, 0, true),
    ] {
        driver
            .run(&format!("cupti callbacks {faults}"))
            .expect("a right script");
        if faults == "after-unsubscribe" {
            assert_eq!(cupti.cuptiUnsubscribe(handle), 0);
        }
        assert_eq!(driver.launch(kernel, stream), 0);
        let calls = cupti.calls();
        assert_eq!(calls.len(), callbacks, "{faults}, {is_over}");
        let this = thread::current().id();
        assert!(calls.iter().all(|call| (call.thread == this) == here));
    }
    assert_eq!(misuses(&driver), [""; 0]);
}

#[test]
fn records_arrive_before_the_exit_callback_or_never_on_request() {
    let (driver, cupti, stream, kernel) = ready::<4>("cupti early-records on");
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.cuptiEnableCallback(1, handle, 1, LAUNCH), 0);
    cupti.record(&[KERNEL], &[4_096; 3]);
    assert_eq!(driver.launch(kernel, stream), 0);
    let calls = cupti.calls();
    let seen: Vec<_> = calls.iter().map(|call| (call.site, call.records)).collect();
    assert_eq!(seen, [(0, 0), (1, 1)]);
    driver
        .run("cupti early-records off; cupti keep-buffers 1")
        .expect("a right script");
    launch(&driver, kernel, stream, 2);
    assert_eq!(cupti.flushed(0).len(), 1, "that which came early");
    launch(&driver, kernel, stream, 1);
    assert_eq!(cupti.flushed(0).len(), 1);
    let report = driver.report().cupti;
    assert_eq!((report.buffers_kept, report.buffers_returned), (1, 2));
}

#[test]
fn a_forced_flush_delivers_what_has_not_ended() {
    let (driver, cupti, stream, kernel) = ready::<5>("");
    cupti.record(&[KERNEL], &[4_096; 4]);
    launch(&driver, kernel, stream, 1);
    for fault in ["clear-faults", "fault cuLaunchKernel nth 1 stall"] {
        driver.run(fault).expect("a right script");
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    assert_eq!(cupti.flushed(0).len(), 1);
    let records = cupti.flushed(1);
    let times = records
        .iter()
        .map(|record| (record.long(16) > 0, record.long(24)));
    assert_eq!(times.collect::<Vec<_>>(), [(true, 0); 2]);
    driver.run("clear-faults; release").expect("a right script");
    driver.advance(1_000_000).expect("the clock is virtual");
    assert_eq!(cupti.flushed(1).len(), 0, "no record arrives twice");
    let report = driver.report().cupti;
    assert_eq!((report.records_incomplete, report.forced_flushes), (2, 2));
}

#[test]
fn full_buffers_return_on_a_thread_of_the_library() {
    let (driver, cupti, stream, kernel) = ready::<6>("");
    // Four records each.
    cupti.record(&[KERNEL], &[1_024; 6]);
    launch(&driver, kernel, stream, 17);
    while driver.report().cupti.buffers_returned < 4 {
        thread::yield_now();
    }
    let arrived = cupti.shared.records.lock().expect("no panic").clone();
    assert_eq!(arrived.len(), 16);
    let here = thread::current().id();
    assert!(arrived.iter().all(|record| record.thread != here));
    assert_eq!(cupti.flushed(0).len(), 17);
    let report = driver.report().cupti;
    assert_eq!((report.buffers_requested, report.buffers_held), (5, 0));
}

#[test]
fn a_client_without_buffers_loses_records() {
    for (release, expected) in [
        ("12.8", &["this version crashes if it gets no buffer"][..]),
        ("12.9", &[]),
    ] {
        let (driver, cupti, stream, kernel) = ready::<7>(&format!("cupti release {release}"));
        cupti.record(&[KERNEL], &[]);
        launch(&driver, kernel, stream, 3);
        assert_eq!((cupti.flushed(0).len(), cupti.dropped()), (0, 3));
        let report = driver.report().cupti;
        assert_eq!((report.records_without_buffer, report.buffers_held), (3, 0));
        let mut misuses = misuses(&driver);
        misuses.dedup();
        assert_eq!(misuses, expected, "{release}");
    }
}

#[test]
fn what_a_client_must_not_do_is_reported() {
    let (driver, cupti, stream, kernel) = ready::<8>("");
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.cuptiEnableCallback(1, handle, 1, LAUNCH), 0);
    cupti.record(&[KERNEL], &[4_096]);
    cupti.shared.flush_inside.store(1, SeqCst);
    launch(&driver, kernel, stream, 1);
    assert_eq!(cupti.flushed(0).len(), 1);
    cupti.shared.flush_inside.store(0, SeqCst);
    cupti.shared.misalignment.store(4, SeqCst);
    cupti.hand_out(&[4_096]);
    launch(&driver, kernel, stream, 1);
    assert_eq!(cupti.flushed(0).len(), 1);
    cupti.shared.misalignment.store(0, SeqCst);
    cupti.hand_out(&[4_096]);
    assert_eq!(driver.launch(kernel, stream), 0);
    let buffer = cupti.shared.last_buffer.load(SeqCst) as *mut u64;
    // SAFETY: the client never frees a buffer.
    unsafe { buffer.write(0) };
    driver.advance(10_000).expect("the clock is virtual");
    assert_eq!(cupti.flushed(0).len(), 1);
    cupti.use_clock();
    cupti.use_clock();
    assert_eq!(cupti.cuptiFinalize(), 11);
    let expected = [
        "called from a callback",
        "called from a callback",
        // The function that takes the buffer has flushed too.
        "called from a callback",
        "a buffer begins at a multiple of 8",
        "a buffer was changed or freed before it was returned",
        "registered again",
        "crashes if",
    ];
    let misuses = misuses(&driver);
    assert_eq!(misuses.len(), expected.len(), "{misuses:?}");
    for (what, begin) in misuses.iter().zip(expected) {
        assert!(what.starts_with(begin), "{what}");
    }
}
