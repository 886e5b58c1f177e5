//! The work of one stream runs in order, and the default streams synchronize with other streams.

use std::thread;

use crate::support::{Driver, NON_BLOCKING, PER_THREAD, made};

/// Returns start and end of the kernels in launch order, relative to the start of the first.
fn spans(driver: &Driver) -> Vec<(u64, u64)> {
    let report = driver.report();
    let first = report
        .kernels()
        .map(|kernel| kernel.start)
        .min()
        .unwrap_or(0);
    report
        .kernels()
        .map(|kernel| (kernel.start - first, kernel.end - first))
        .collect()
}

#[test]
fn work_of_one_stream_runs_one_after_the_other() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    for _ in 0..3 {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    assert_eq!(
        spans(&driver),
        [(0, 10_000), (10_000, 20_000), (20_000, 30_000)]
    );
}

#[test]
fn work_of_two_streams_runs_at_the_same_time() {
    let driver = Driver::ready();
    let kernel = driver.kernel("work_10us");
    for _ in 0..2 {
        assert_eq!(driver.launch(kernel, driver.stream(NON_BLOCKING)), 0);
    }
    assert_eq!(spans(&driver), [(0, 10_000), (0, 10_000)]);
}

#[test]
fn the_legacy_stream_and_blocking_streams_wait_for_each_other() {
    let driver = Driver::ready();
    let (kernel, blocking) = (driver.kernel("work_10us"), driver.stream(0));
    for stream in [blocking, 0, blocking, driver.stream(0)] {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    assert_eq!(
        spans(&driver),
        [
            (0, 10_000),
            (10_000, 20_000),
            (20_000, 30_000),
            (20_000, 30_000)
        ]
    );
}

#[test]
fn events_in_the_legacy_stream_serialize_blocking_streams() {
    for (recorded_into, end) in [
        (None, 20_000),
        (Some(PER_THREAD), 20_000),
        (Some(0), 80_000),
    ] {
        let driver = Driver::ready();
        let kernel = driver.kernel("work_10us");
        let streams = [(); 4].map(|()| driver.stream(0));
        for stream in streams.into_iter().cycle().take(8) {
            recorded_into.map(|into| driver.recorded(into));
            assert_eq!(driver.launch(kernel, stream), 0);
            recorded_into.map(|into| driver.recorded(into));
        }
        let last = spans(&driver).into_iter().map(|(_, end)| end).max();
        assert_eq!(last, Some(end), "{recorded_into:?}");
    }
}

#[test]
fn the_legacy_stream_and_non_blocking_streams_are_independent() {
    let driver = Driver::ready();
    let kernel = driver.kernel("work_10us");
    for stream in [driver.stream(NON_BLOCKING), 0, driver.stream(NON_BLOCKING)] {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    assert_eq!(spans(&driver), [(0, 10_000); 3]);
}

#[test]
fn work_of_a_destroyed_stream_is_still_waited_for() {
    let driver = Driver::ready();
    let (kernel, stream) = (driver.kernel("work_10us"), driver.stream(0));
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(driver.cuStreamDestroy_v2(stream), 0);
    let before = driver.now();
    assert_eq!(driver.cuCtxSynchronize(), 0);
    assert_eq!(driver.now() - before, 10_000);
}

#[test]
fn each_thread_has_its_own_per_thread_stream() {
    let driver = Driver::ready();
    let kernel = driver.kernel("work_10us");
    let context: usize = made(|context| driver.cuCtxGetCurrent(context));
    assert_eq!(driver.launch(kernel, PER_THREAD), 0);
    let here: u64 = made(|id| driver.cuStreamGetId(PER_THREAD, id));
    let there = thread::spawn(move || {
        assert_eq!(driver.cuCtxSetCurrent(context), 0);
        assert_eq!(driver.launch(kernel, PER_THREAD), 0);
        assert_eq!(driver.launch(kernel, 0), 0);
        made(|id| driver.cuStreamGetId(PER_THREAD, id))
    });
    assert_ne!(there.join().expect("no panic"), here);
    assert_eq!(spans(&driver), [(0, 10_000), (0, 10_000), (10_000, 20_000)]);
    let report = driver.report();
    let kernels: Vec<_> = report.kernels().collect();
    assert_eq!((kernels[0].stream, kernels[1].stream), (2, 2));
    assert_ne!(kernels[0].thread, kernels[1].thread);
}

#[test]
fn a_stream_waits_for_an_event_of_another_stream() {
    let driver = Driver::ready();
    let (first, second) = (driver.stream(NON_BLOCKING), driver.stream(NON_BLOCKING));
    let kernel = driver.kernel("work_10us");
    assert_eq!(driver.launch(kernel, first), 0);
    let event = driver.recorded(first);
    assert_eq!(driver.launch(kernel, first), 0);
    assert_eq!(driver.cuStreamWaitEvent(second, event, 0), 0);
    assert_eq!(driver.launch(kernel, second), 0);
    assert_eq!(
        spans(&driver),
        [(0, 10_000), (10_000, 20_000), (10_000, 20_000)]
    );
}

#[test]
fn work_starts_no_earlier_than_it_is_launched() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    assert_eq!(driver.launch(kernel, stream), 0);
    driver.advance(50_000).expect("the clock is virtual");
    driver.run("launch-latency 5us").expect("a right script");
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(spans(&driver), [(0, 10_000), (55_000, 65_000)]);
}

#[test]
fn a_stream_query_reports_unfinished_work() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    assert_eq!(driver.cuStreamQuery(stream), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    driver.advance(9_999).expect("the clock is virtual");
    assert_eq!(driver.cuStreamQuery(stream), 600);
    driver.advance(1).expect("the clock is virtual");
    assert_eq!(driver.cuStreamQuery(stream), 0);
}

#[test]
fn each_device_and_context_has_its_own_streams() {
    let driver = Driver::ready_after("clock virtual; devices 2");
    let kernel = driver.kernel("work_10us");
    assert_eq!(driver.launch(kernel, 0), 0);
    let second = driver.primary(1);
    assert_eq!(driver.cuCtxSetCurrent(second), 0);
    assert_eq!(driver.launch(driver.kernel("work_10us"), 0), 0);
    assert_eq!(driver.launch(kernel, 0), 400, "a kernel of another context");
    assert_eq!(spans(&driver), [(0, 10_000), (0, 10_000)]);
    let report = driver.report();
    assert_eq!(
        report
            .kernels()
            .map(|kernel| kernel.device)
            .collect::<Vec<_>>(),
        [0, 1]
    );
    assert_eq!(report.misuses.len(), 1);
}

#[test]
fn a_waiting_call_takes_real_time_on_the_real_clock() {
    let driver = Driver::ready_after("clock real");
    let (stream, spin) = (driver.stream(NON_BLOCKING), driver.kernel("spin_ns"));
    let start = std::time::Instant::now();
    assert_eq!(driver.spin(spin, 3_000_000, stream), 0);
    assert_eq!(driver.cuStreamQuery(stream), 600);
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    assert!(start.elapsed().as_nanos() >= 3_000_000);
    assert_eq!(driver.cuStreamQuery(stream), 0);
}

#[test]
fn a_full_launch_queue_blocks_launches_and_records() {
    let driver = Driver::ready_after("clock virtual; launch-queue 4");
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let event = driver.event();
    let begin = driver.now();
    for _ in 0..4 {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    assert_eq!((driver.now(), driver.report().blocked_calls), (begin, 0));
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(driver.now() - begin, 10_000, "it waits for the first");
    assert_eq!(driver.cuEventRecord(event, stream), 0);
    assert_eq!(driver.now() - begin, 20_000, "and the record for the next");
    assert_eq!(driver.report().blocked_calls, 2);
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    assert_eq!(driver.now() - begin, 50_000);
    for _ in 0..4 {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    assert_eq!(driver.report().blocked_calls, 2, "all have ended");
}

#[test]
fn a_manual_clock_does_not_advance_for_a_waiting_call() {
    let driver = Driver::ready_after("clock manual");
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    assert_eq!(driver.launch(kernel, stream), 0);
    let begin = driver.now();
    let waiter = thread::spawn(move || {
        assert_eq!(driver.cuStreamSynchronize(stream), 0);
        driver.now()
    });
    while driver.calls("cuStreamSynchronize") == Some(0) {
        thread::yield_now();
    }
    assert_eq!(driver.now(), begin);
    driver.advance(4_000).expect("the clock is manual");
    driver.advance(6_000).expect("the clock is manual");
    assert_eq!(waiter.join().expect("no panic"), begin + 10_000);
}
