//! What a program must not do is in the report, by which the tests of the profiler see it.

use std::sync::Mutex;

use crate::support::{Driver, NON_BLOCKING, made};

#[test]
fn each_use_of_a_wrong_handle_is_refused_and_reported() {
    let driver = Driver::ready_after("clock virtual; devices 2");
    let primary: usize = made(|context| driver.cuCtxGetCurrent(context));
    let (kernel, stream) = (driver.kernel("work_10us"), driver.stream(NON_BLOCKING));
    let [event, destroyed] = [(); 2].map(|()| driver.recorded(stream));
    assert_eq!(driver.cuEventDestroy_v2(destroyed), 0);
    let memory: usize = made(|address| driver.cuMemAllocAsync(address, 16, 0));
    let gone: usize = made(|context| driver.cuCtxCreate_v2(context, 0, 0));
    let (gone_event, gone_stream) = (driver.recorded(0), driver.stream(0));
    assert_eq!(driver.cuCtxDestroy_v2(gone), 0);
    let other = driver.primary(1);
    assert_eq!(driver.cuCtxSetCurrent(other), 0);
    let foreign = driver.recorded(0);
    let calls: [(&str, u32, &mut dyn FnMut() -> u32); 14] = [
        ("no event", 400, &mut || driver.cuEventQuery(7)),
        ("a destroyed event", 400, &mut || {
            driver.cuEventQuery(destroyed)
        }),
        ("twice", 400, &mut || driver.cuEventDestroy_v2(destroyed)),
        ("another kind", 400, &mut || driver.cuEventQuery(stream)),
        ("a gone event", 709, &mut || driver.cuEventQuery(gone_event)),
        ("a gone stream", 709, &mut || {
            driver.cuStreamQuery(gone_stream)
        }),
        ("gone, destroyed", 709, &mut || {
            driver.cuEventDestroy_v2(gone_event)
        }),
        ("record elsewhere", 400, &mut || {
            driver.cuEventRecord(event, 0)
        }),
        ("launch elsewhere", 400, &mut || driver.launch(kernel, 0)),
        ("times of two contexts", 400, &mut || {
            driver.cuEventElapsedTime(&mut 0.0, event, foreign)
        }),
        ("the same, reversed", 400, &mut || {
            driver.cuEventElapsedTime(&mut 0.0, foreign, event)
        }),
        ("a default stream", 400, &mut || {
            driver.cuStreamDestroy_v2(0)
        }),
        ("a primary context", 201, &mut || {
            driver.cuCtxDestroy_v2(primary)
        }),
        ("no allocation", 1, &mut || {
            driver.cuMemFreeAsync(memory + 4, 0)
        }),
    ];
    for (number, (what, code, call)) in calls.into_iter().enumerate() {
        assert_eq!(call(), code, "{what}");
        let misuses = driver.report().misuses;
        assert_eq!(misuses.len(), number + 1, "{what}: {misuses:?}");
    }
    let report = driver.report();
    assert_eq!(
        (report.alive.events, report.events_lost_with_context),
        (2, 1)
    );
    assert_eq!(report.misuses[0].call, "cuEventQuery");
}

#[test]
fn a_graph_that_records_a_destroyed_event_is_reported() {
    let driver = Driver::ready();
    let (stream, event) = (driver.stream(NON_BLOCKING), driver.event());
    assert_eq!(driver.cuStreamBeginCapture_v2(stream, 0), 0);
    assert_eq!(driver.cuEventRecordWithFlags(event, stream, 1), 0);
    let graph: usize = made(|graph| driver.cuStreamEndCapture(stream, graph));
    let exec: usize = made(|exec| driver.cuGraphInstantiateWithFlags(exec, graph, 0));
    assert_eq!(driver.cuGraphLaunch(exec, stream), 0);
    assert_eq!(driver.report().misuses, []);
    assert_eq!(driver.cuEventDestroy_v2(event), 0);
    assert_eq!(driver.cuGraphLaunch(exec, stream), 0);
    assert_eq!(driver.report().misuses.len(), 1);
}

#[test]
fn a_reset_primary_context_has_its_old_handle_and_none_of_its_events() {
    let driver = Driver::ready();
    let context: usize = made(|context| driver.cuCtxGetCurrent(context));
    let id = || made::<u64>(|id| driver.cuCtxGetId(context, id));
    let (event, before) = (driver.recorded(0), id());
    assert_eq!(driver.cuDevicePrimaryCtxReset_v2(0), 0);
    assert_eq!(driver.primary(0), context);
    assert_ne!(id(), before);
    assert_eq!(driver.cuEventQuery(event), 709);
    assert_eq!(driver.cuEventQuery(driver.recorded(0)), 0);
}

#[test]
fn the_last_release_of_a_primary_context_ends_it() {
    let driver = Driver::ready();
    let event = driver.event();
    driver.primary(0);
    for code in [0, 709] {
        assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), 0);
        assert_eq!(driver.cuEventQuery(event), code);
    }
    assert_eq!(driver.cuEventCreate(&mut 0, 0), 709);
    assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), 201);
    assert_eq!(driver.report().alive.contexts, 0);
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
    let codes = [never, untimed, pending, past]
        .map(|event| driver.cuEventElapsedTime(&mut 0.0, past, event));
    assert_eq!(codes, [400, 400, 600, 0]);
    assert_eq!(driver.cuEventQuery(never), 0, "counts as complete");
}

#[test]
fn a_time_that_was_not_read_before_the_next_record_is_counted() {
    let driver = Driver::ready();
    let (start, end) = (driver.recorded(0), driver.recorded(0));
    made::<f32>(|ms| driver.cuEventElapsedTime(ms, start, end));
    for (event, unread) in [(start, 0), (end, 0), (end, 1)] {
        assert_eq!(driver.cuEventRecord(event, 0), 0);
        assert_eq!(driver.report().unread_records, unread);
    }
}

#[test]
fn a_thread_without_a_context_uses_streams_unless_the_driver_wants_one() {
    let driver = Driver::ready();
    let (event, stream) = (driver.event(), driver.stream(NON_BLOCKING));
    for (script, code) in [("", 0), ("current-context required", 201)] {
        driver.run(script).expect("a right script");
        let codes = std::thread::spawn(move || {
            assert_eq!(driver.cuEventCreate(&mut 0, 0), 201);
            assert_eq!(driver.cuEventRecord(event, 0), 201);
            [
                driver.cuEventRecord(event, stream),
                driver.cuEventQuery(event),
                driver.cuStreamIsCapturing(stream, &mut 0),
                driver.cuStreamGetCtx(stream, &mut 0),
            ]
        });
        assert_eq!(codes.join().expect("no panic"), [code; 4], "{script}");
    }
}

/// The results of driver calls in a host function.
static ANSWERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

extern "C" fn call_the_driver(driver: usize) {
    let driver = driver as *const Driver;
    // SAFETY: the test waits for its stream before the driver is dropped.
    let driver = unsafe { &*driver };
    let answers = [
        driver.cuCtxGetCurrent(&mut 0),
        driver.cuStreamIsCapturing(0, &mut 0),
        driver.cuDriverGetVersion(&mut 0),
    ];
    ANSWERS.lock().expect("no panic").extend(answers);
}

#[test]
fn a_host_function_must_not_call_the_driver() {
    let driver = Driver::ready();
    let stream = driver.stream(NON_BLOCKING);
    // No context is current on the thread that runs host functions.
    for (script, answers) in [("refuse", [800, 800, 0]), ("allow", [0, 201, 0])] {
        driver
            .run(&format!("host-function-calls {script}"))
            .expect("a right script");
        let data = &raw const driver as usize;
        assert_eq!(driver.cuLaunchHostFunc(stream, call_the_driver, data), 0);
        assert_eq!(driver.cuStreamSynchronize(stream), 0);
        let answered = std::mem::take(&mut *ANSWERS.lock().expect("no panic"));
        assert_eq!(answered, answers);
        assert_eq!(driver.report().host_function_calls, 2);
    }
}
