//! Captures are invalidated by the calls that invalidate them on a real driver, which the tests of the profiler see.

use std::thread;

use crate::support::{Driver, NON_BLOCKING, PER_THREAD, made};

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;

fn elsewhere(call: impl FnOnce() -> u32 + Send) -> u32 {
    thread::scope(|scope| scope.spawn(call).join().expect("no panic"))
}

/// A call with the stream that captures.
type Call<'a> = &'a dyn Fn(usize) -> u32;

#[test]
fn each_call_that_a_capture_does_not_allow_is_refused_and_may_invalidate_it() {
    let driver = Driver::ready();
    let kernel = driver.kernel("work_10us");
    let context: usize = made(|context| driver.cuCtxGetCurrent(context));
    let [event, outside] = [(); 2].map(|()| driver.recorded(0));
    let query: Call = &|_| driver.cuEventQuery(outside);
    let query_elsewhere: Call = &|_| elsewhere(|| driver.cuEventQuery(outside));
    let relaxed_elsewhere: Call = &|_| {
        elsewhere(|| {
            let mut mode = RELAXED;
            assert_eq!(driver.cuThreadExchangeStreamCaptureMode(&raw mut mode), 0);
            assert_eq!(mode, GLOBAL);
            driver.cuEventQuery(outside)
        })
    };
    let record: Call = &|_| driver.cuEventRecord(event, 0);
    let record_elsewhere: Call = &|_| {
        elsewhere(|| {
            assert_eq!(driver.cuCtxSetCurrent(context), 0);
            driver.cuEventRecord(event, 0)
        })
    };
    let query_captured: Call = &|stream| {
        assert_eq!(driver.cuEventRecord(event, stream), 0);
        let code = driver.cuEventQuery(event);
        assert_eq!(driver.cuEventElapsedTime(&mut 0.0, event, event), code);
        code
    };
    let all = [GLOBAL, THREAD_LOCAL, RELAXED].as_slice();
    let [global, local, relaxed] = [&all[..1], &all[1..2], &all[2..]];
    // The modes of the capture, the flags of its stream, the call, its code, and that of the end of the capture.
    let calls: [(&[u32], u32, Call, u32, u32); 18] = [
        (global, NON_BLOCKING, query_elsewhere, 900, 901),
        (global, NON_BLOCKING, relaxed_elsewhere, 0, 0),
        (&all[1..], NON_BLOCKING, query_elsewhere, 0, 0),
        (&all[..2], NON_BLOCKING, query, 900, 901),
        (relaxed, NON_BLOCKING, query, 0, 0),
        (relaxed, NON_BLOCKING, query_captured, 907, 901),
        // Work in the legacy stream would wait for a blocking stream. A question does not, according to the manual.
        (all, 0, record, 906, 901),
        (all, 0, record_elsewhere, 906, 901),
        (relaxed, 0, &|_| driver.launch(kernel, 0), 906, 901),
        (
            relaxed,
            0,
            &|_| driver.cuStreamIsCapturing(0, &mut 0),
            906,
            0,
        ),
        (relaxed, NON_BLOCKING, &|_| driver.launch(kernel, 0), 0, 0),
        (all, 0, &|_| driver.cuEventRecord(outside, PER_THREAD), 0, 0),
        (
            relaxed,
            0,
            &|_| driver.cuStreamBeginCapture_v2(0, RELAXED),
            900,
            0,
        ),
        (
            relaxed,
            0,
            &|stream| driver.cuStreamBeginCapture_v2(stream, RELAXED),
            401,
            0,
        ),
        (relaxed, 0, &|stream| driver.cuStreamQuery(stream), 900, 901),
        (relaxed, 0, &|_| driver.cuCtxSynchronize(), 900, 901),
        (
            local,
            NON_BLOCKING,
            &|stream| elsewhere(|| driver.cuStreamEndCapture(stream, &mut 0)),
            908,
            0,
        ),
        (
            global,
            NON_BLOCKING,
            &|stream| driver.cuStreamWaitEvent(stream, outside, 0),
            905,
            901,
        ),
    ];
    let mut invalidated = 0;
    for (case, (modes, flags, call, code, end)) in calls.into_iter().enumerate() {
        for mode in modes {
            let stream = driver.stream(flags);
            assert_eq!(driver.cuStreamBeginCapture_v2(stream, *mode), 0);
            assert_eq!(call(stream), code, "{case}, {mode}");
            let status: u32 = made(|status| driver.cuStreamIsCapturing(stream, status));
            assert_eq!(status, if end == 901 { 2 } else { 1 }, "{case}, {mode}");
            let mut graph = 7;
            let ended = driver.cuStreamEndCapture(stream, &raw mut graph);
            assert_eq!((ended, graph == 0), (end, end != 0), "{case}, {mode}");
            invalidated += u64::from(end == 901);
            assert_eq!(driver.report().captures_invalidated, invalidated, "{case}");
            assert_eq!(driver.cuEventRecord(event, 0), 0, "the capture is over");
        }
    }
}

#[test]
fn what_needs_a_capture_is_refused_without_one() {
    let driver = Driver::ready();
    let (stream, event) = (driver.stream(0), driver.event());
    assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), 401);
    assert_eq!(driver.cuEventRecordWithFlags(event, stream, 1), 1);
}

#[test]
fn captures_do_not_mix() {
    let driver = Driver::ready();
    let event = driver.event();
    let [first, second] = [(); 2].map(|()| driver.stream(NON_BLOCKING));
    for stream in [first, second] {
        assert_eq!(driver.cuStreamBeginCapture_v2(stream, RELAXED), 0);
    }
    assert_eq!(driver.cuEventRecord(event, first), 0);
    assert_eq!(driver.cuStreamWaitEvent(second, event, 0), 902);
    let ends = [first, second].map(|stream| driver.cuStreamEndCapture(stream, &mut 0));
    assert_eq!(ends, [901; 2]);
}

#[test]
fn a_fork_that_is_not_joined_is_an_error() {
    let driver = Driver::ready();
    let (kernel, event) = (driver.kernel("work_10us"), driver.event());
    let [stream, other] = [(); 2].map(|()| driver.stream(NON_BLOCKING));
    for (is_joined, code) in [(true, 0), (false, 904)] {
        assert_eq!(driver.cuStreamBeginCapture_v2(stream, GLOBAL), 0);
        assert_eq!(driver.cuEventRecord(event, stream), 0);
        assert_eq!(driver.cuStreamWaitEvent(other, event, 0), 0);
        assert_eq!(driver.launch(kernel, other), 0);
        if is_joined {
            assert_eq!(driver.cuEventRecord(event, other), 0);
            assert_eq!(driver.cuStreamWaitEvent(stream, event, 0), 0);
        }
        assert_eq!(driver.cuStreamEndCapture(stream, &mut 0), code);
    }
}
