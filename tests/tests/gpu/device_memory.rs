//! With `profile_memory` each scope has what it took and gave back on the device, to the byte; asking for it spoils
//! no capture, and where there is nothing to ask there is nothing.

use std::sync::Arc;
use std::thread;

use crate::raw::{self, Driver, made};
use profiler_runtime::session::{Event, MemoryUse};
use profiler_runtime::{Profile, Trace, init, scope};
use profiler_tests::gpu;
use profiler_tests::gpu::{driver, simulator, started, tell};
use profiler_tests::measuring;

const MIB: usize = 1 << 20;

fn ready() -> Driver {
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    assert_eq!(driver.cuCtxSetCurrent(driver.primary(0)), 0);
    driver
}

fn traced(f: impl FnOnce()) -> Arc<Trace> {
    let builder = Profile::builder().profile_memory(true);
    let ((), trace) = builder.run(|_| f());
    trace.expect("a window")
}

fn memory(trace: &Trace, name: &str) -> MemoryUse {
    let event = trace.events().find(|event| event.name() == name);
    let memory = event.and_then(Event::memory);
    memory.unwrap_or_else(|| panic!("{name} has its memory"))
}

fn net(trace: &Trace, name: &str) -> Option<i64> {
    memory(trace, name).device_net
}

#[test(on = driver())]
fn scopes_have_the_device_memory_that_they_allocated_and_freed() {
    let _profiler = init().expect("set up");
    let driver = ready();
    let stream = driver.stream(raw::NON_BLOCKING);
    let alloc = |size: usize| made(|address| driver.cuMemAlloc_v2(address, size));
    let before = alloc(7 * MIB);
    let trace = traced(|| {
        let _outer = scope!("device: outer");
        let first = alloc(MIB);
        {
            let _inner = scope!("device: inner");
            let second = alloc(2 * MIB);
            assert_eq!(driver.cuMemFree_v2(first), 0);
            {
                let _pooled = scope!("device: pooled");
                let third = made(|address| driver.cuMemAllocAsync(address, 3 * MIB, stream));
                assert_eq!(driver.cuMemFreeAsync(third, stream), 0);
                let _fourth: usize =
                    made(|address| driver.cuMemAllocAsync(address, 5 * MIB, stream));
                // Memory that a stream frees is available when the device has executed the call.
                assert_eq!(driver.cuStreamSynchronize(stream), 0);
            }
            let _ = second;
        }
        {
            let _frees = scope!("device: frees");
            assert_eq!(driver.cuMemFree_v2(before), 0);
        }
        drop(scope!("device: nothing"));
    });
    let mib = |count: i64| Some(count << 20);
    assert_eq!(net(&trace, "device: pooled"), mib(5));
    assert_eq!(net(&trace, "device: inner"), mib(6));
    assert_eq!(net(&trace, "device: frees"), mib(-7));
    assert_eq!(net(&trace, "device: nothing"), mib(0));
    assert_eq!(net(&trace, "device: outer"), mib(0));
    let total = |name| memory(&trace, name).device_total.expect("it is known");
    assert_eq!(
        total("device: inner") - total("device: nothing"),
        7 * MIB as u64
    );
    assert_eq!(total("device: outer"), 7 * MIB as u64);
    assert!(
        memory(&trace, "device: inner").device_reserved
            >= memory(&trace, "device: inner").device_total
    );
}

#[test(on = driver().script("clock virtual"))]
fn queries_of_device_memory_are_not_part_of_a_gpu_time() {
    let (_profiler, gpu, stream) = started();
    let slow = "fault cuMemGetInfo_v2 always delay 5ms";
    tell(slow);
    let trace = traced(|| {
        let _scope = scope!("asked: around", stream = &stream);
        gpu.spin(&stream, 1_000_000);
    });
    tell("clear-faults");
    let mut events = trace.events();
    let event = events.find(|event| event.name() == "asked: around");
    let span = event.and_then(Event::gpu).expect("a GPU time");
    gpu::exact(span.ns, 1_000_000.0);
}

#[test(on = driver().script("devices 2"))]
fn each_scope_has_the_memory_of_its_own_device() {
    let _profiler = init().expect("set up");
    let driver = ready();
    let second = driver.primary(1);
    let trace = traced(|| {
        let other = thread::spawn(move || {
            assert_eq!(driver.cuCtxSetCurrent(second), 0);
            let _scope = scope!("devices: second");
            let _: usize = made(|address| driver.cuMemAlloc_v2(address, 3 * MIB));
        });
        other.join().expect("it does not panic");
        let without = thread::spawn(|| drop(scope!("devices: no context")));
        without.join().expect("it does not panic");
        drop(scope!("devices: first"));
    });
    assert_eq!(net(&trace, "devices: second"), Some(3 << 20));
    assert_eq!(
        memory(&trace, "devices: second").device_total,
        Some(3 * MIB as u64)
    );
    assert_eq!(net(&trace, "devices: first"), Some(0));
    assert_eq!(memory(&trace, "devices: first").device_total, Some(0));
    let without = memory(&trace, "devices: no context");
    assert_eq!(
        (
            without.device_net,
            without.device_total,
            without.device_reserved
        ),
        (None, None, None)
    );
}

#[test(on = driver())]
fn queries_of_device_memory_do_not_invalidate_a_capture() {
    const GLOBAL: u32 = 0;

    let _profiler = init().expect("set up");
    let driver = ready();
    let (stream, spin) = (driver.stream(raw::NON_BLOCKING), driver.kernel("spin_ns"));
    let trace = traced(|| {
        assert_eq!(driver.cuStreamBeginCapture_v2(stream, GLOBAL), 0);
        {
            let _scope = scope!("capture: inside");
            assert_eq!(driver.spin(spin, 1000, stream), 0);
        }
        let beside = thread::spawn(move || {
            let context = driver.primary(0);
            assert_eq!(driver.cuCtxSetCurrent(context), 0);
            drop(scope!("capture: beside"));
        });
        beside.join().expect("it does not panic");
        let graph: usize = made(|graph| driver.cuStreamEndCapture(stream, graph));
        assert_eq!(driver.cuGraphDestroy(graph), 0);
    });
    for name in ["capture: inside", "capture: beside"] {
        assert_eq!(net(&trace, name), Some(0), "{name}");
    }
}

#[test(on = driver().script("hide cuMemGetInfo; hide cuMemGetInfo_v2"))]
fn device_memory_that_the_driver_refuses_to_report_is_left_out() {
    let _profiler = init().expect("set up");
    let driver = ready();
    tell("fault cuMemGetInfo_v2 always return 999");
    let trace = traced(|| {
        let _scope = scope!("untold");
        let _: usize = made(|address| driver.cuMemAlloc_v2(address, MIB));
    });
    assert_eq!(net(&trace, "untold"), None);
    tell("clear-faults");
}

#[test]
fn without_a_driver_there_is_no_device_memory() {
    if !measuring() || gpu::is_child() || std::env::var_os("PROFILER_CUDA_LIBRARY").is_some() {
        return;
    }
    let trace = traced(|| drop(scope!("no driver")));
    let memory = memory(&trace, "no driver");
    assert_eq!((memory.device_net, memory.device_total), (None, None));
}
