//! Events hold times, report if they have none, and fail if their context failed or ended.

use crate::support::{Driver, NON_BLOCKING, made};

#[test]
fn two_events_measure_the_work_between_them() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("spin_ns"));
    let (outer, inner) = (driver.recorded(stream), driver.recorded(stream));
    assert_eq!(driver.spin(kernel, 12_345, stream), 0);
    let inner_end = driver.recorded(stream);
    assert_eq!(driver.spin(kernel, 55, stream), 0);
    let outer_end = driver.recorded(stream);
    assert_eq!(driver.cuEventQuery(inner_end), 600);
    assert_eq!(driver.cuEventSynchronize(outer_end), 0);
    assert!((driver.ns(inner, inner_end) - 12_345.0).abs() < 0.5);
    assert!((driver.ns(outer, outer_end) - 12_400.0).abs() < 0.5);
    assert!(
        (driver.ns(outer_end, outer) + 12_400.0).abs() < 0.5,
        "reversed is negative"
    );
    assert_eq!(driver.report().unread_records, 0);
}

#[test]
fn an_event_without_a_time_is_an_error() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let (never, past) = (driver.event(), driver.recorded(stream));
    let untimed: usize = made(|event| driver.cuEventCreate(event, 2));
    assert_eq!(driver.cuEventRecord(untimed, stream), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    let pending = driver.recorded(stream);
    let mut ms = 0.0;
    assert_eq!(driver.cuEventElapsedTime(&raw mut ms, past, never), 400);
    assert_eq!(driver.cuEventElapsedTime(&raw mut ms, past, untimed), 400);
    assert_eq!(driver.cuEventElapsedTime(&raw mut ms, past, pending), 600);
    assert_eq!(
        driver.cuEventQuery(never),
        0,
        "never recorded counts as complete"
    );
    assert_eq!(driver.cuEventCreate(&mut 0, 64), 1);
}

#[test]
fn an_event_cannot_be_recorded_in_a_stream_of_another_context() {
    let driver = Driver::ready();
    let (event, stream) = (driver.event(), driver.stream(NON_BLOCKING));
    let other: usize = made(|context| driver.cuCtxCreate_v2(context, 0, 0));
    assert_eq!(driver.cuEventRecord(event, 0), 400);
    assert_eq!(
        driver.cuEventRecord(event, stream),
        0,
        "the stream's own context counts"
    );
    let foreign = driver.recorded(0);
    assert_eq!(driver.cuEventElapsedTime(&mut 0.0, event, foreign), 400);
    assert_eq!(driver.report().misuses.len(), 2);
    assert_eq!(driver.cuCtxDestroy_v2(other), 0);
}

#[test]
fn events_are_destroyed_with_their_context() {
    let driver = Driver::ready();
    let own: usize = made(|context| driver.cuCtxCreate_v2(context, 0, 0));
    let (event, stream) = (driver.recorded(0), driver.stream(0));
    assert_eq!(driver.cuCtxDestroy_v2(own), 0);
    assert_eq!(driver.cuEventQuery(event), 709);
    assert_eq!(driver.cuEventDestroy_v2(event), 709);
    assert_eq!(driver.cuStreamQuery(stream), 709);
    let report = driver.report();
    assert_eq!(
        (report.alive.events, report.events_lost_with_context),
        (0, 1)
    );
    assert_eq!(report.misuses.len(), 3);
}

#[test]
fn a_reset_primary_context_has_the_handle_of_the_old_one_but_not_its_events() {
    let driver = Driver::ready();
    let context: usize = made(|context| driver.cuCtxGetCurrent(context));
    let (event, id): (_, u64) = (
        driver.recorded(0),
        made(|id| driver.cuCtxGetId(context, id)),
    );
    assert_eq!(driver.cuDevicePrimaryCtxReset_v2(0), 0);
    assert_eq!(driver.primary(0), context);
    assert_ne!(made::<u64>(|id| driver.cuCtxGetId(context, id)), id);
    assert_eq!(driver.cuEventQuery(event), 709);
    let fresh = driver.recorded(0);
    assert_eq!(driver.cuEventQuery(fresh), 0);
}

#[test]
fn the_last_release_of_a_primary_context_ends_it() {
    let driver = Driver::ready();
    let event = driver.event();
    driver.primary(0);
    assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_eq!(driver.cuEventQuery(event), 0);
    assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_eq!(driver.cuEventQuery(event), 709);
    assert_eq!(
        driver.cuEventCreate(&mut 0, 0),
        709,
        "the current context is gone"
    );
    assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), 201);
    assert_eq!(driver.report().alive.contexts, 0);
}

#[test]
fn a_thread_without_a_context_uses_streams_but_creates_no_events() {
    let driver = Driver::ready();
    let (event, stream) = (driver.event(), driver.stream(NON_BLOCKING));
    let alone = move || {
        assert_eq!(driver.cuEventCreate(&mut 0, 0), 201);
        assert_eq!(driver.cuEventRecord(event, 0), 201);
        [
            driver.cuEventRecord(event, stream),
            driver.cuEventQuery(event),
            driver.cuStreamIsCapturing(stream, &mut 0),
            driver.cuStreamGetCtx(stream, &mut 0),
        ]
    };
    assert_eq!(std::thread::spawn(alone).join().expect("no panic"), [0; 4]);
    driver
        .run("current-context required")
        .expect("a right script");
    assert_eq!(
        std::thread::spawn(alone).join().expect("no panic"),
        [201; 4]
    );
}

#[test]
fn device_clocks_have_a_resolution_and_drift() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("spin_ns"));
    driver
        .run("event-resolution 500ns; clock-drift-ppm 100")
        .expect("a right script");
    let start = driver.recorded(stream);
    assert_eq!(driver.spin(kernel, 10_000_000, stream), 0);
    let end = driver.recorded(stream);
    assert_eq!(driver.cuEventSynchronize(end), 0);
    let ns = driver.ns(start, end);
    assert!((ns - 10_001_000.0).abs() <= 501.0, "{ns}");
}

#[test]
fn a_time_that_was_not_read_before_the_next_record_is_counted() {
    let driver = Driver::ready();
    let (start, end) = (driver.recorded(0), driver.recorded(0));
    driver.ns(start, end);
    assert_eq!(
        (driver.cuEventRecord(start, 0), driver.cuEventRecord(end, 0)),
        (0, 0)
    );
    assert_eq!(driver.report().unread_records, 0);
    assert_eq!(driver.cuEventRecord(end, 0), 0);
    assert_eq!(driver.report().unread_records, 1);
}
