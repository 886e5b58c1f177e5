//! The simulated CUPTI tells its client of each driver call, and when the devices did what.

use crate::cupti_client::{
    Cupti, DRIVER, GRAPH_LAUNCH, KERNEL, LAUNCH, MEMCPY, MEMSET, SYNCHRONIZATION,
};
use crate::support::{Driver, NON_BLOCKING, made};

#[test]
fn a_launch_calls_back_before_and_after_itself() {
    let driver = Driver::ready();
    let cupti = Cupti::<0>::new(&driver);
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(cupti.cuptiEnableCallback(1, handle, 1, LAUNCH), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(driver.launch(kernel, 0), 0);
    let calls = cupti.calls();
    let sites: Vec<_> = calls
        .iter()
        .map(|call| (call.site, call.correlation, call.stream))
        .collect();
    let first = calls[0].correlation;
    assert_eq!(
        sites,
        [
            (0, first, stream),
            (1, first, stream),
            (0, first + 1, 0),
            (1, first + 1, 0)
        ]
    );
    for call in &calls {
        assert_eq!(call.function, "cuLaunchKernel");
        assert_eq!(call.symbol.as_deref(), Some("work_10us"));
        assert_eq!(call.data, u64::from(call.correlation) + 1_000);
        assert_eq!(call.thread, std::thread::current().id());
    }
    let report = driver.report();
    let told: Vec<_> = report.kernels().map(|kernel| kernel.correlation).collect();
    assert_eq!(told, [None, Some(first), Some(first + 1)]);
    assert!(
        report
            .kernels()
            .all(|kernel| kernel.context == u64::from(calls[0].context_id))
    );
    assert_eq!(cupti.cuptiUnsubscribe(handle), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(cupti.calls(), []);
    assert_eq!(driver.report().misuses, []);
}

#[test]
fn kernels_have_records_with_the_times_of_the_device() {
    let driver = Driver::ready();
    let cupti = Cupti::<1>::new(&driver);
    cupti.use_clock();
    cupti.record(&[KERNEL], &[1 << 16, 1 << 16]);
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let begin = driver.now();
    for _ in 0..3 {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    assert_eq!(cupti.flushed(0).len(), 0, "none has ended");
    driver.advance(20_000).expect("the clock is virtual");
    let mut records = cupti.flushed(0);
    assert_eq!(records.len(), 2);
    driver.advance(10_000).expect("the clock is virtual");
    records.extend(cupti.flushed(0));
    let report = driver.report();
    let id: u64 = made(|id| driver.cuStreamGetId(stream, id));
    for (record, truth) in records.iter().zip(report.kernels()) {
        assert_eq!((record.kind(), record.bytes.len()), (10, 208));
        assert_eq!(record.name(), "work_10us");
        assert_eq!(record.long(16), 7_000_000_000_000 + truth.start - begin);
        assert_eq!(record.long(24), 7_000_000_000_000 + truth.end - begin);
        assert_eq!(u64::from(record.word(40)), truth.device);
        assert_eq!(u64::from(record.word(44)), truth.context);
        assert_eq!(u64::from(record.word(48)), id);
        assert_eq!(Some(record.word(92)), truth.correlation);
    }
    assert_eq!(records.len(), 3);
    assert_eq!((cupti.dropped(), report.misuses.len()), (0, 0));
}

#[test]
fn copies_fills_waits_and_calls_have_records() {
    let driver = Driver::ready();
    let cupti = Cupti::<2>::new(&driver);
    cupti.record(
        &[KERNEL, MEMCPY, MEMSET, SYNCHRONIZATION, DRIVER],
        &[1 << 16],
    );
    assert_eq!(cupti.cuptiSetThreadIdType(1), 0);
    let stream = driver.stream(NON_BLOCKING);
    let memory: usize = made(|address| driver.cuMemAlloc_v2(address, 4_096));
    let host = [7_u8; 4_096];
    assert_eq!(
        driver.cuMemcpyHtoDAsync_v2(memory, host.as_ptr(), 4_096, stream),
        0
    );
    assert_eq!(driver.cuMemsetD32_v2(memory, 9, 16), 0);
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    let records = cupti.flushed(0);
    let of = |kind: u32| records.iter().filter(move |record| record.kind() == kind);
    let copy = of(1).next().expect("a copy");
    assert_eq!(copy.bytes.len(), 96);
    assert_eq!(
        copy.bytes[4..8],
        [1, 1, 3, 1],
        "to the device, pageable, asynchronous"
    );
    assert_eq!(
        (copy.long(8), copy.long(24) - copy.long(16)),
        (4_096, 1_256)
    );
    let fill = of(2).next().expect("a fill");
    assert_eq!(
        (fill.word(4), fill.long(8), fill.half(48), fill.half(50)),
        (9, 64, 0, 3)
    );
    let wait = of(38).next().expect("a wait");
    assert_eq!(wait.word(4), 3);
    let called: Vec<u32> = of(4).map(|call| call.word(4)).collect();
    assert_eq!(called, [124, 243, 277, 251, 126]);
    let call = of(4)
        .find(|call| call.word(4) == 277)
        .expect("the call of the copy");
    assert_eq!(call.word(32), copy.word(44));
    assert_eq!(call.word(24), std::process::id());
}

#[test]
fn each_node_of_a_graph_has_a_record_with_the_number_of_the_launch() {
    let driver = Driver::ready();
    let cupti = Cupti::<3>::new(&driver);
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    assert_eq!(driver.cuStreamBeginCapture_v2(stream, 0), 0);
    assert_eq!(
        (driver.launch(kernel, stream), driver.launch(kernel, stream)),
        (0, 0)
    );
    let graph: usize = made(|graph| driver.cuStreamEndCapture(stream, graph));
    let exec: usize = made(|exec| driver.cuGraphInstantiateWithFlags(exec, graph, 0));
    let handle = cupti.subscribe().expect("no other tool has subscribed");
    assert_eq!(cupti.cuptiEnableDomain(1, handle, 1), 0);
    cupti.record(&[KERNEL], &[1 << 16, 1 << 16]);
    for _ in 0..2 {
        assert_eq!(driver.cuGraphLaunch(exec, stream), 0);
    }
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    let launches: Vec<u32> = cupti
        .calls()
        .iter()
        .filter(|call| call.callback == GRAPH_LAUNCH && call.site == 0)
        .map(|call| call.correlation)
        .collect();
    let records = cupti.flushed(0);
    let told: Vec<(u32, u32, u64)> = records
        .iter()
        .map(|record| (record.word(92), record.word(156), record.long(144) & 0xffff))
        .collect();
    assert_eq!(
        told,
        [
            (launches[0], 1, 1),
            (launches[0], 1, 2),
            (launches[1], 1, 1),
            (launches[1], 1, 2)
        ]
    );
}

#[test]
fn full_buffers_return_on_a_thread_of_the_library() {
    let driver = Driver::ready();
    let cupti = Cupti::<4>::new(&driver);
    // Four records each.
    cupti.record(&[KERNEL], &[1_024; 6]);
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    for _ in 0..17 {
        assert_eq!(driver.launch(kernel, stream), 0);
    }
    driver.advance(1_000_000).expect("the clock is virtual");
    while driver.report().cupti.buffers_returned < 4 {
        std::thread::yield_now();
    }
    let arrived = cupti.shared.records.lock().expect("no panic").clone();
    assert_eq!(arrived.len(), 16);
    assert!(
        arrived
            .iter()
            .all(|record| record.thread != std::thread::current().id())
    );
    assert_eq!(cupti.flushed(0).len(), 17);
    let report = driver.report().cupti;
    assert_eq!(
        (
            report.buffers_requested,
            report.buffers_returned,
            report.buffers_held
        ),
        (5, 5, 0)
    );
}
