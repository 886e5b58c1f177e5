//! The simulated CUPTI refuses, loses and misorders as a script says, and notices what its client must not do.

use std::ffi::CStr;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use crate::cupti_client::{Cupti, KERNEL, LAUNCH, MEMCPY, OVERHEAD, Record};
use crate::support::{Driver, NON_BLOCKING, installed, made};
use profiler_simulated_driver::{Installation, Simulator};

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
    driver
        .report()
        .misuses
        .into_iter()
        .map(|misuse| misuse.what)
        .collect()
}

fn correlations(records: &[Record]) -> Vec<u32> {
    records.iter().map(|record| record.word(92)).collect()
}

#[test]
fn a_second_client_is_refused() {
    let (driver, cupti, ..) = ready::<5>("");
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
    assert_eq!(cupti.cuptiEnableDomain(1, first, 1), 1);
    assert_eq!(misuses(&driver), ["no such subscriber"]);
    assert_eq!(driver.report().calls_of("cuptiSubscribe"), 5);
}

#[test]
fn a_newer_release_tells_the_name_of_the_other_tool() {
    #[repr(C)]
    struct Parameters {
        size: usize,
        name: *const u8,
        old_name: *mut u8,
        old_name_size: usize,
    }
    type Subscribe = extern "C" fn(*mut usize, usize, usize, *const Parameters) -> u32;
    let folder = tempfile::tempdir().expect("a folder");
    let old = Simulator::open(&installed(folder.path()).library()).expect("the driver loads");
    // SAFETY: the library has no such function, or one of this type.
    let missing = unsafe { old.library().get::<Subscribe>(b"cuptiSubscribe_v2") };
    assert!(missing.is_err(), "CUDA 12.8 does not have it");
    let folder = tempfile::tempdir().expect("a folder");
    let new = Installation::new(folder.path())
        .cupti_release("13.0")
        .create()
        .expect("a driver was built");
    let simulator = Simulator::open(&new.library()).expect("the driver loads");
    simulator.run(new.script()).expect("a right script");
    simulator
        .run("cupti holder nsys profile")
        .expect("a right script");
    let mut name = [1_u8; 64];
    let parameters = Parameters {
        size: 32,
        name: c"a test".as_ptr().cast(),
        old_name: name.as_mut_ptr(),
        old_name_size: name.len(),
    };
    // SAFETY: as above.
    let subscribe = *unsafe { simulator.library().get::<Subscribe>(b"cuptiSubscribe_v2") }
        .expect("13.0 has it");
    assert_eq!(subscribe(&mut 0, 0, 0, &raw const parameters), 39);
    assert_eq!(CStr::from_bytes_until_nul(&name), Ok(c"nsys profile"));
    let driver = Driver::of(simulator);
    assert_eq!(
        made::<u32>(|version| Cupti::<6>::new(&driver).cuptiGetVersion(version)),
        130_001
    );
}

#[test]
fn records_have_the_size_of_their_release() {
    for (release, size) in [
        ("11.8", 200),
        ("12.0", 208),
        ("12.9", 208),
        ("13.0", 216),
        ("13.5", 248),
    ] {
        let (driver, cupti, stream, kernel) = ready::<7>(&format!("cupti release {release}"));
        cupti.record(&[KERNEL], &[4_096]);
        launch(&driver, kernel, stream, 2);
        let records = cupti.flushed(0);
        let sizes: Vec<usize> = records.iter().map(|record| record.bytes.len()).collect();
        assert_eq!(sizes, [size; 2], "{release}");
        assert_eq!(records[1].name(), "work_10us");
    }
}

#[test]
fn a_record_has_the_number_of_the_one_before_or_another_name() {
    let (driver, cupti, stream, kernel) =
        ready::<8>("cupti record nth 2 previous; cupti record nth 3 other-name");
    cupti.record(&[KERNEL], &[4_096]);
    launch(&driver, kernel, stream, 3);
    let shared = cupti.shared;
    assert_eq!(cupti.cuptiActivityFlushAll(0), 0);
    let records = std::mem::take(&mut *shared.records.lock().expect("no panic"));
    let truth: Vec<u32> = driver
        .report()
        .kernels()
        .filter_map(|kernel| kernel.correlation)
        .collect();
    assert_eq!(correlations(&records), [truth[0], truth[0], truth[2]]);
    let names: Vec<String> = records.iter().map(Record::name).collect();
    assert_eq!(names, ["work_10us", "work_10us", "other_kernel"]);
}

#[test]
fn records_are_dropped_lost_untimed_and_renumbered() {
    let (driver, cupti, stream, kernel) = ready::<8>(
        "cupti record nth 1 drop; cupti record nth 2 lose; cupti record nth 3 untimed
        cupti record nth 4 after-overhead; cupti record nth 5 correlation 4711",
    );
    cupti.record(&[KERNEL], &[4_096]);
    launch(&driver, kernel, stream, 6);
    let shared = cupti.shared;
    assert_eq!(cupti.cuptiActivityFlushAll(0), 0);
    let records = std::mem::take(&mut *shared.records.lock().expect("no panic"));
    let told: Vec<(u32, bool)> = records
        .iter()
        .map(|record| (record.kind(), record.long(24) == 0))
        .collect();
    assert_eq!(
        told,
        [
            (10, true),
            (OVERHEAD, false),
            (10, false),
            (10, false),
            (10, false)
        ]
    );
    let truth: Vec<Option<u32>> = driver
        .report()
        .kernels()
        .map(|kernel| kernel.correlation)
        .collect();
    assert_eq!(correlations(&records[4..]), [truth[5].expect("traced")]);
    assert_eq!(correlations(&records[3..4]), [4_711]);
    assert_eq!(
        (cupti.dropped(), cupti.dropped()),
        (1, 0),
        "the count starts anew when it is read"
    );
    let report = driver.report().cupti;
    let counts = (
        report.records_dropped,
        report.records_lost,
        report.records_untimed,
        report.records_written,
    );
    assert_eq!(counts, (1, 1, 1, 5));
}

#[test]
fn a_record_of_an_unknown_kind_hides_those_after_it() {
    let (driver, cupti, stream, kernel) = ready::<24>("cupti record nth 2 after-unknown");
    cupti.record(&[KERNEL], &[4_096]);
    launch(&driver, kernel, stream, 3);
    assert_eq!(cupti.flushed(0).len(), 1);
    let report = driver.report().cupti;
    assert_eq!((report.records_unknown, report.records_written), (1, 4));
}

#[test]
fn a_forced_flush_delivers_what_has_not_ended() {
    let (driver, cupti, stream, kernel) = ready::<9>("");
    cupti.record(&[KERNEL], &[4_096; 4]);
    launch(&driver, kernel, stream, 1);
    assert_eq!(driver.launch(kernel, stream), 0);
    driver
        .run("fault cuLaunchKernel nth 1 stall")
        .expect("a right script");
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(cupti.flushed(0).len(), 1);
    let records = cupti.flushed(1);
    assert!(
        records
            .iter()
            .all(|record| record.long(16) > 0 && record.long(24) == 0)
    );
    assert_eq!(records.len(), 2);
    driver.run("clear-faults; release").expect("a right script");
    driver.advance(1_000_000).expect("the clock is virtual");
    assert_eq!(cupti.flushed(1).len(), 0, "no record arrives twice");
    assert_eq!(driver.report().cupti.records_incomplete, 2);
}

#[test]
fn a_client_without_buffers_loses_records() {
    for (release, is_misuse) in [("12.8", true), ("12.9", false)] {
        let (driver, cupti, stream, kernel) = ready::<10>(&format!("cupti release {release}"));
        cupti.record(&[KERNEL], &[]);
        launch(&driver, kernel, stream, 3);
        assert_eq!(cupti.flushed(0).len(), 0);
        assert_eq!(cupti.dropped(), 3);
        let report = driver.report();
        assert_eq!(
            (
                report.cupti.records_without_buffer,
                report.cupti.buffers_held
            ),
            (3, 0)
        );
        assert_eq!(
            !report.misuses.is_empty(),
            is_misuse,
            "{release}: {:?}",
            report.misuses
        );
    }
}

#[test]
fn buffers_never_return_on_request() {
    let (driver, cupti, stream, kernel) = ready::<11>("cupti keep-buffers 1");
    cupti.record(&[KERNEL], &[4_096; 2]);
    launch(&driver, kernel, stream, 2);
    assert_eq!(cupti.flushed(0).len(), 0);
    launch(&driver, kernel, stream, 1);
    assert_eq!(cupti.flushed(0).len(), 1);
    let report = driver.report().cupti;
    assert_eq!(
        (
            report.buffers_kept,
            report.buffers_returned,
            report.buffers_held
        ),
        (1, 1, 1)
    );
}

#[test]
fn records_arrive_before_the_exit_callback_on_request() {
    let (driver, cupti, stream, kernel) = ready::<12>("cupti early-records on");
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.cuptiEnableCallback(1, handle, 1, LAUNCH), 0);
    cupti.record(&[KERNEL], &[4_096; 2]);
    assert_eq!(driver.launch(kernel, stream), 0);
    let seen: Vec<(u32, usize)> = cupti
        .calls()
        .iter()
        .map(|call| (call.site, call.records))
        .collect();
    assert_eq!(seen, [(0, 0), (1, 1)]);
}

#[test]
fn callbacks_run_on_another_thread_and_after_the_end_on_request() {
    let (driver, cupti, stream, kernel) = ready::<13>("cupti callbacks foreign");
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.cuptiEnableCallback(1, handle, 1, LAUNCH), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    let calls = cupti.calls();
    assert_eq!(calls.len(), 2);
    assert!(
        calls
            .iter()
            .all(|call| call.thread != std::thread::current().id())
    );
    driver
        .run("cupti callbacks after-unsubscribe")
        .expect("a right script");
    assert_eq!(cupti.cuptiUnsubscribe(handle), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    let calls = cupti.calls();
    assert_eq!(calls.len(), 2);
    assert!(
        calls
            .iter()
            .all(|call| call.thread == std::thread::current().id())
    );
    driver
        .run("cupti callbacks normal")
        .expect("a right script");
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(cupti.calls(), []);
}

#[test]
fn a_kind_takes_seconds_to_enable_on_request() {
    let (driver, cupti, ..) = ready::<14>("fault cuptiActivityEnable nth 1 delay 6s");
    let begin = driver.now();
    cupti.record(&[KERNEL, MEMCPY], &[]);
    assert_eq!(driver.now() - begin, 6_000_000_000);
    assert_eq!(cupti.cuptiActivityEnable(4_711), 21);
    assert_eq!(driver.report().cupti.kinds_enabled, [1, 10]);
}

#[test]
fn a_flush_from_inside_a_callback_is_a_misuse() {
    let (driver, cupti, stream, kernel) = ready::<15>("");
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.cuptiEnableCallback(1, handle, 1, LAUNCH), 0);
    cupti.record(&[KERNEL], &[4_096]);
    cupti.shared.flush_inside.store(1, SeqCst);
    launch(&driver, kernel, stream, 1);
    assert_eq!(misuses(&driver).len(), 2, "both callbacks flushed");
    assert_eq!(cupti.flushed(0).len(), 1);
    assert_eq!(
        misuses(&driver).len(),
        3,
        "and so did the end of the buffer"
    );
    assert!(
        misuses(&driver)
            .iter()
            .all(|what| what.starts_with("called from a callback"))
    );
}

#[test]
fn bad_buffers_second_clocks_and_finalization_are_misuses() {
    let (driver, cupti, stream, kernel) = ready::<16>("");
    cupti.shared.misalignment.store(4, SeqCst);
    cupti.record(&[KERNEL], &[4_096]);
    launch(&driver, kernel, stream, 1);
    assert_eq!(cupti.flushed(0).len(), 1);
    cupti.use_clock();
    cupti.use_clock();
    assert_eq!(cupti.cuptiFinalize(), 11);
    let expected = [
        "a buffer begins at a multiple of 8",
        "registered again",
        "crashes if",
    ];
    let misuses = misuses(&driver);
    assert_eq!(misuses.len(), expected.len(), "{misuses:?}");
    assert!(
        misuses
            .iter()
            .zip(expected)
            .all(|(what, begin)| what.starts_with(begin)),
        "{misuses:?}"
    );
}

#[test]
fn a_buffer_that_the_client_uses_while_it_is_away_is_a_misuse() {
    let (driver, cupti, stream, kernel) = ready::<17>("");
    cupti.record(&[KERNEL], &[4_096]);
    assert_eq!(driver.launch(kernel, stream), 0);
    let buffer = cupti.shared.last_buffer.load(SeqCst) as *mut u64;
    // SAFETY: the client never frees a buffer.
    unsafe { buffer.write(0) };
    driver.advance(10_000).expect("the clock is virtual");
    assert_eq!(cupti.flushed(0).len(), 1);
    assert_eq!(
        misuses(&driver),
        ["a buffer was changed or freed before it was returned"]
    );
}

#[test]
fn a_clock_can_be_ignored_and_times_can_be_late() {
    let (driver, cupti, stream, kernel) = ready::<18>("cupti clock ignored; cupti clock-offset 1s");
    cupti.use_clock();
    let before = std::time::SystemTime::now();
    cupti.record(&[KERNEL], &[4_096]);
    launch(&driver, kernel, stream, 1);
    let records = cupti.flushed(0);
    let since = before
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a date after 1970");
    assert!(u128::from(records[0].long(16)) >= (since + Duration::from_secs(1)).as_nanos());
}

#[test]
fn overheads_have_records() {
    let (driver, cupti, stream, kernel) = ready::<19>("");
    cupti.record(&[KERNEL, OVERHEAD], &[4_096; 3]);
    launch(&driver, kernel, stream, 1);
    let kinds = |records: Vec<Record>| -> Vec<(u32, u32)> {
        let overheads = records.iter().filter(|record| record.kind() == OVERHEAD);
        overheads
            .map(|record| (record.word(4), record.word(40)))
            .collect()
    };
    assert_eq!(kinds(cupti.flushed(0)), [(7 << 16, 0)]);
    assert_eq!(kinds(cupti.flushed(0)), [(1 << 16, 0)], "the flush before");
}

#[test]
fn attributes_keep_their_sizes_and_values() {
    let (driver, cupti, ..) = ready::<20>("");
    let (mut size, mut flag) = (1_usize, [9_u8]);
    assert_eq!(
        cupti.cuptiActivityGetAttribute(9, &raw mut size, flag.as_mut_ptr()),
        0
    );
    assert_eq!((size, flag), (1, [1]), "a buffer per thread");
    assert_eq!(
        cupti.cuptiActivitySetAttribute(9, &raw mut size, [0_u8].as_ptr()),
        0
    );
    assert_eq!(
        cupti.cuptiActivityGetAttribute(9, &raw mut size, flag.as_mut_ptr()),
        0
    );
    assert_eq!(flag, [0]);
    assert_eq!(
        cupti.cuptiActivityGetAttribute(0, &raw mut size, flag.as_mut_ptr()),
        10,
        "a byte is too small"
    );
    driver.run("cupti release 12.0").expect("a right script");
    let older = Cupti::<21>::new(&driver);
    assert_eq!(
        older.cuptiActivitySetAttribute(77, &raw mut size, flag.as_ptr()),
        1
    );
}

#[test]
fn results_and_callbacks_have_names() {
    let (_, cupti, ..) = ready::<22>("");
    let text = |text: *const std::ffi::c_char| {
        // SAFETY: the library returns static strings.
        unsafe { CStr::from_ptr(text) }
    };
    let mut name = std::ptr::null();
    assert_eq!(cupti.cuptiGetResultString(39, &raw mut name), 0);
    assert_eq!(
        text(name),
        c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    );
    assert_eq!(cupti.cuptiGetCallbackName(1, 307, &raw mut name), 0);
    assert_eq!(text(name), c"cuLaunchKernel");
    assert_eq!(cupti.cuptiGetCallbackName(1, 0, &raw mut name), 0);
    assert_eq!(text(name), c"INVALID");
    assert_eq!(cupti.cuptiGetCallbackName(1, 9_999, &raw mut name), 1);
    assert_eq!(cupti.cuptiGetResultString(4_711, &raw mut name), 1);
    assert_eq!(text(name), c"<unknown>");
}
