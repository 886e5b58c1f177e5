//! A program written with cudarc runs on the simulated driver as on a real one.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::support::{PTX, again, installed, is_child};
use cudarc::driver::sys::{
    CUevent_flags, CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode, CUstreamCaptureStatus,
};
use cudarc::driver::{CudaContext, CudaEvent, CudaFunction, CudaStream, DriverError};
use cudarc::driver::{LaunchConfig, PushKernelArg, result};
use cudarc::nvrtc::Ptx;
use profiler_simulated_driver::{Report, Simulator};

const TIMED: Option<CUevent_flags> = Some(CUevent_flags::CU_EVENT_DEFAULT);
const ONE: LaunchConfig = LaunchConfig {
    grid_dim: (1, 1, 1),
    block_dim: (1, 1, 1),
    shared_mem_bytes: 0,
};

type Outcome = Result<(), DriverError>;

/// Runs the test called `name` again with a driver with a virtual clock. Returns its report.
fn on_the_driver(name: &str) -> Report {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    let script = format!(
        "clock virtual\ndevices 2\nreport-at-exit {}",
        path.display()
    );
    let output = again(module_path!(), name, &installed(folder.path()), &script)
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Report::read(&path).expect("a report")
}

fn context() -> Arc<CudaContext> {
    CudaContext::new(0).expect("a context")
}

fn kernel(context: &Arc<CudaContext>, name: &str) -> CudaFunction {
    let module = context
        .load_module(Ptx::from_src(PTX))
        .expect("the PTX is right");
    module.load_function(name).expect("the PTX has the kernel")
}

fn spin(stream: &CudaStream, kernel: &CudaFunction, ns: u64) {
    // SAFETY: the kernel takes one number.
    let launched = unsafe { stream.launch_builder(kernel).arg(&ns).launch(ONE) };
    launched.expect("the launch succeeds");
}

fn elapsed_ns(start: &CudaEvent, end: &CudaEvent) -> f64 {
    (f64::from(start.elapsed_ms(end).expect("both are recorded")) * 1e6).round()
}

fn exact(ns: f64, expected: u32) {
    assert!(
        (ns - f64::from(expected)).abs() < 0.5,
        "{ns} instead of {expected}"
    );
}

#[test]
fn streams_kernels_and_events_keep_time() {
    if !is_child() {
        let report = on_the_driver("streams_kernels_and_events_keep_time");
        let lengths: Vec<u64> = report
            .kernels()
            .map(|kernel| kernel.end - kernel.start)
            .collect();
        assert_eq!(lengths, [250_000, 40_000, 40_000]);
        assert_eq!(
            (
                report.alive.events,
                report.alive.streams,
                report.alive.contexts
            ),
            (0, 0, 0)
        );
        assert_eq!(report.misuses, []);
        return;
    }
    let context = context();
    let (first, second) = (
        context.new_stream().expect("a"),
        context.new_stream().expect("b"),
    );
    let spins = kernel(&context, "spin_ns");
    let start = first.record_event(TIMED).expect("an event");
    spin(&first, &spins, 250_000);
    let end = first.record_event(TIMED).expect("an event");
    assert!(start.is_complete() && !end.is_complete());
    let apart = second.record_event(TIMED).expect("an event");
    spin(&second, &spins, 40_000);
    second.wait(&end).expect("a wait");
    spin(&second, &spins, 40_000);
    let last = second.record_event(TIMED).expect("an event");
    exact(elapsed_ns(&start, &end), 250_000);
    exact(elapsed_ns(&apart, &last), 290_000);
    context.synchronize().expect("nothing failed");
}

#[test]
fn memory_is_copied_to_the_device_and_back() -> Outcome {
    if !is_child() {
        let report = on_the_driver("memory_is_copied_to_the_device_and_back");
        assert_eq!(
            (report.alive.allocations, report.bytes, report.misuses.len()),
            (0, 0, 0)
        );
        assert_eq!(report.created.allocations, 3);
        return Ok(());
    }
    let context = context();
    let (stream, other) = (context.new_stream()?, context.new_stream()?);
    let sent: Vec<f32> = (0_u8..100).map(f32::from).collect();
    let there = stream.clone_htod(&sent)?;
    let mut copied = other.alloc_zeros::<f32>(100)?;
    other.memcpy_dtod(&there, &mut copied)?;
    assert_eq!(other.clone_dtoh(&copied)?, sent);
    let zeros = stream.alloc_zeros::<u8>(7)?;
    assert_eq!(stream.clone_dtoh(&zeros)?, [0; 7]);
    let (free, total) = context.mem_get_info()?;
    assert_eq!(total - free, 807);
    Ok(())
}

#[test]
fn captured_streams_become_graphs() -> Outcome {
    if !is_child() {
        let report = on_the_driver("captured_streams_become_graphs");
        assert_eq!(report.kernels().count(), 6);
        assert_eq!((report.alive.graphs, report.alive.graph_execs), (0, 0));
        return Ok(());
    }
    let context = context();
    let (stream, spins) = (context.new_stream()?, kernel(&context, "spin_ns"));
    stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL)?;
    assert_eq!(
        stream.capture_status()?,
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    let captured = stream.record_event(TIMED)?;
    spin(&stream, &spins, 10_000);
    spin(&stream, &spins, 20_000);
    let graph = stream
        .end_capture(CUgraphInstantiate_flags(0))?
        .expect("a graph");
    let start = stream.record_event(TIMED)?;
    graph.upload()?;
    (0..3).try_for_each(|_| graph.launch())?;
    let end = stream.record_event(TIMED)?;
    exact(elapsed_ns(&start, &end), 90_000);
    let refused = captured
        .try_is_complete()
        .expect_err("it was recorded in a capture");
    assert_eq!(refused.0, CUresult::CUDA_ERROR_CAPTURED_EVENT);
    Ok(())
}

#[test]
fn a_sticky_error_reaches_the_program() {
    if !is_child() {
        on_the_driver("a_sticky_error_reaches_the_program");
        return;
    }
    let (context, second) = (context(), CudaContext::new(1).expect("a second device"));
    let (stream, spins) = (
        context.new_stream().expect("a stream"),
        kernel(&context, "spin_ns"),
    );
    let driver = Simulator::open("libcuda.so.1".as_ref()).expect("cudarc loaded it");
    driver
        .run("fault cuLaunchKernel nth 2 fail 700")
        .expect("a right script");
    spin(&stream, &spins, 1_000);
    spin(&stream, &spins, 1_000);
    let failed = stream.synchronize().expect_err("the second kernel failed");
    assert_eq!(failed.0, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert!(stream.record_event(TIMED).is_err());
    assert!(second.default_stream().record_event(TIMED).is_ok());
}

#[test]
fn devices_and_contexts_have_properties() -> Outcome {
    if !is_child() {
        on_the_driver("devices_and_contexts_have_properties");
        return Ok(());
    }
    assert_eq!(CudaContext::device_count()?, 2);
    let (first, second) = (context(), CudaContext::new(1)?);
    assert_eq!(
        (first.name()?.as_str(), first.compute_capability()?),
        ("Simulated Device 0", (8, 0))
    );
    assert_ne!(first.uuid()?, second.uuid()?);
    assert!(first.has_async_alloc() && first.total_mem()? == 16 << 30);
    assert_eq!(
        CudaContext::new(2).expect_err("two devices").0,
        CUresult::CUDA_ERROR_INVALID_DEVICE
    );
    let mine = first.per_thread_stream().record_event(TIMED)?;
    let (there, spins) = (first.clone(), kernel(&first, "spin_ns"));
    std::thread::spawn(move || spin(&there.per_thread_stream(), &spins, 1_000_000))
        .join()
        .expect("no panic");
    assert!(first.per_thread_stream().record_event(TIMED)?.is_complete() && mine.is_complete());
    assert!(!first.default_stream().record_event(TIMED)?.is_complete());
    Ok(())
}

extern "C" fn tell(told: *mut c_void) {
    // SAFETY: the test passes a flag that lives until the stream has finished.
    unsafe { &*told.cast::<AtomicBool>() }.store(true, SeqCst);
}

#[test]
fn host_functions_are_called() -> Outcome {
    if !is_child() {
        on_the_driver("host_functions_are_called");
        return Ok(());
    }
    let (stream, told) = (context().new_stream()?, AtomicBool::new(false));
    let argument = (&raw const told).cast_mut().cast();
    // SAFETY: the stream exists, and the flag lives until the stream has finished.
    unsafe { result::stream::launch_host_function(stream.cu_stream(), tell, argument) }?;
    stream.synchronize()?;
    assert!(told.load(SeqCst));
    Ok(())
}
