//! Launches that have no record, and calls of the runtime that make several of the driver.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut, result};
use profiler_runtime::report::ScopeKernels;
use profiler_runtime::{Trace, init, scope};
use profiler_tests::gpu::{driver, simulator};

use crate::support::kernels::{Program, assert_scopes, found};

/// Larger than any copy or fill.
const BYTES: usize = 1 << 16;
/// CUPTI's numbers of two calls of the runtime.
const CUDA_MEMCPY: u32 = 31;
const CUDA_GRAPH_LAUNCH: u32 = 311;

/// Asserts that nothing is missing, and that the window did not wait for what never comes: then it would have asked for
/// incomplete records. The end asks for them in any case.
#[track_caller]
fn is_complete_at_once(trace: &Trace, windows: u64) {
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
    let report = simulator().report().expect("a report").cupti;
    assert!(report.forced_flushes <= windows, "{report:?}");
}

fn memory(stream: &Arc<CudaStream>) -> CudaSlice<u8> {
    // SAFETY: the device writes it, and nothing reads it.
    unsafe { stream.alloc(BYTES) }.expect("there is memory")
}

/// Copies no bytes, and fills none.
fn copy_and_fill_nothing(stream: &Arc<CudaStream>, memory: &mut CudaSlice<u8>) {
    let (address, _sync) = memory.device_ptr_mut(stream);
    let nothing: [u8; 0] = [];
    // SAFETY: no byte is read or written.
    unsafe {
        result::memcpy_htod_async(address, &nothing, stream.cu_stream()).expect("it is valid");
        result::memset_d8_async(address, 0, 0, stream.cu_stream()).expect("it is valid");
    }
}

#[test(on = driver().kernels())]
fn graphs_without_nodes_and_copies_of_no_bytes_are_not_missing() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let streams = [(); 2].map(|()| program.gpu.stream());
    let mut memory = memory(&streams[0]);
    let (empty, _) = program.capture(&streams[0], 0);
    let (graph, nodes) = program.capture(&streams[0], 2);
    let mut all = Vec::new();
    for windows in 1..=3 {
        let trace = program.record(|program| {
            // Not known to have finished by anything but the wait for the context.
            program.replay(&empty, &[], None);
            {
                let _scope = scope!("first", stream = &streams[0]);
                program.replay(&empty, &[], Some("first"));
                program.kernel(&streams[0], Some("first"));
                copy_and_fill_nothing(&streams[0], &mut memory);
                program.copy(&streams[0], &mut memory, Some("first"));
                program.fill(&streams[0], &mut memory, Some("first"));
                program.replay(&graph, &nodes, Some("first"));
                program.replay(&empty, &[], Some("first"));
            }
            let _scope = scope!("second");
            copy_and_fill_nothing(&streams[1], &mut memory);
            program.kernel(&streams[1], Some("second"));
            program.replay(&empty, &[], Some("second"));
        });
        is_complete_at_once(&trace, windows);
        all.extend(found(&trace));
    }
    assert_scopes(&all, &program);
}

#[test(on = driver().kernels().script("clock real\ncupti record-delay 20ms"))]
fn a_window_of_graphs_alone_has_the_records_that_come_late() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let (graph, nodes) = program.capture(&stream, 2);
    let trace = program.record(|program| {
        let _scope = scope!("graph", stream = &stream);
        program.replay(&graph, &nodes, Some("graph"));
    });
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
    let found = found(&trace);
    assert_eq!(found.len(), nodes.len());
    assert_scopes(&found, &program);
}

#[test(on = driver().kernels())]
fn an_empty_graph_that_ends_a_scope_has_finished_with_it() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let (empty, _) = program.capture(&stream, 0);
    let profile = profiler_runtime::Profile::builder();
    let profile = profile.kernels(true).start().expect("started");
    {
        let _scope = scope!("scope", stream = &stream);
        program.kernel(&stream, Some("scope"));
        program.replay(&empty, &[], Some("scope"));
    }
    profile.stop();
    // Only the GPU time of the scope tells: nothing waits before the session has stopped.
    program.gpu.context.synchronize().expect("nothing failed");
    assert!(profile.wait(std::time::Duration::from_secs(60)));
    let trace = profile.trace().expect("a trace");
    is_complete_at_once(&trace, 1);
    assert_scopes(&found(&trace), &program);
}

#[test(on = driver().kernels())]
fn a_call_that_waits_for_the_device_has_its_thread_and_its_scope() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let _scope = scope!("optimizer", stream = &stream);
        program.kernel(&stream, Some("optimizer"));
        stream.synchronize().expect("nothing failed");
    });
    let line = trace.timeline();
    let name = |index: u32| &*line.names[index as usize].text;
    let waits = line.launches.iter();
    let waits: Vec<_> = waits
        .filter(|call| name(call.name) == "cuStreamSynchronize")
        .map(|call| line.slices[call.parent.expect("a scope") as usize])
        .collect();
    let [scope] = &waits[..] else {
        panic!("one wait: {waits:?}")
    };
    assert_eq!(name(scope.name), "optimizer");
    let wait = line.launches.last().expect("the wait");
    assert_eq!(wait.track, scope.track);
    assert!(wait.start_ns >= scope.start_ns);
}

#[test(on = driver().kernels())]
fn a_call_of_the_runtime_that_makes_several_of_the_driver_is_one_launch() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let mut memory = memory(&stream);
    let (graph, nodes) = program.capture(&stream, 3);
    let runtime = |number: u32, scope: &'static str, inside: &mut dyn FnMut(&'static str)| {
        let _scope = scope!(scope, stream = &stream);
        let simulator = simulator();
        let begun = simulator.run(&format!("cupti runtime begin {number}"));
        begun.expect("no other call is open");
        inside(scope);
        simulator.run("cupti runtime end").expect("it began");
    };
    let trace = program.record(|program| {
        runtime(CUDA_MEMCPY, "copies", &mut |scope| {
            for _ in 0..5 {
                program.copy(&stream, &mut memory, Some(scope));
            }
            stream.synchronize().expect("nothing failed");
        });
        runtime(CUDA_GRAPH_LAUNCH, "upload and graph", &mut |scope| {
            program.copy(&stream, &mut memory, Some(scope));
            program.replay(&graph, &nodes, Some(scope));
        });
    });
    is_complete_at_once(&trace, 1);
    assert_scopes(&found(&trace), &program);
    let kernels = trace.key_averages().kernels();
    for scope in ["copies", "upload and graph"] {
        let found = kernels.scopes.iter();
        let mut found = found.filter(|found| found.scope.as_deref() == Some(scope));
        let per_call = found.next().and_then(ScopeKernels::launches_per_call);
        assert_eq!(per_call, Some(1.0), "{scope}");
    }
}
