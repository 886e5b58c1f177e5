//! Streams and their captures.

use crate::driver::code::{CudaResult, INVALID_VALUE, NOT_READY};
use crate::driver::entry::entry_points;
use crate::driver::ffi::{HostFunction, InOut, Out};
use crate::driver::state::{DriverState, LockedState};
use crate::driver::task::{Task, TaskDuration};
use crate::driver::thread;
use crate::report::ActivityKind;

entry_points! {
    cuStreamCreate(stream: Out<usize>, flags: u32) since 2_000 => |m| {
        stream.set(m.create_stream(flags, 0)?)
    };
    cuStreamCreateWithPriority(stream: Out<usize>, flags: u32, priority: i32) since 5_050 => |m| {
        stream.set(m.create_stream(flags, priority)?)
    };
    cuStreamDestroy_v2(stream: usize) since 4_000 => |m| m.destroy_stream(stream);
    cuStreamQuery(stream: usize) since 2_000, UNSAFE_IN_CAPTURE => |m| {
        let work = m.unfinished_work(stream)?;
        if m.is_over(&work) { Ok(()) } else { Err(NOT_READY) }
    };
    cuStreamSynchronize(stream: usize) since 2_000, WAITS, UNSAFE_IN_CAPTURE => |m| {
        synchronize(m, stream)
    };
    cuStreamWaitEvent(stream: usize, event: usize, flags: u32) since 3_020 => |m| {
        m.stream_waits(stream, event, flags)
    };
    cuStreamGetCtx(stream: usize, context: Out<usize>) since 9_020 => |m| {
        context.set(context_of(m, stream)?)
    };
    cuStreamGetCtx_v2(stream: usize, context: Out<usize>, green: Out<usize>) since 12_050 => |m| {
        green.set_if_wanted(0);
        context.set(context_of(m, stream)?)
    };
    cuStreamGetDevice(stream: usize, device: Out<i32>) since 12_080 => |m| {
        let key = m.stream_key(stream)?;
        device.set(i32::try_from(m.place(key)?.device).unwrap_or(i32::MAX))
    };
    cuStreamGetId(stream: usize, id: Out<u64>) since 12_000 => |m| {
        let key = m.stream_key(stream)?;
        id.set(m.stream(key)?.id)
    };
    cuStreamGetFlags(stream: usize, flags: Out<u32>) since 5_050 => |m| {
        let key = m.stream_key(stream)?;
        flags.set(m.stream(key)?.flags())
    };
    cuStreamGetPriority(stream: usize, priority: Out<i32>) since 5_050 => |m| {
        let key = m.stream_key(stream)?;
        priority.set(m.stream(key)?.priority)
    };
    cuStreamAddCallback(
        stream: usize,
        function: Option<extern "C" fn(usize, u32, usize)>,
        data: usize,
        flags: u32,
    ) since 5_000, QUEUES => |m| {
        let (Some(function), 0) = (function, flags) else { return Err(INVALID_VALUE) };
        let call = HostFunction::Callback { function, stream, data };
        let key = m.stream_key(stream)?;
        m.check_not_capturing(key)?;
        m.enqueue(key, Task::new(ActivityKind::HostFunction, TaskDuration::Host(call))).map(drop)
    };
    cuStreamAttachMemAsync(stream: usize, _address: usize, _bytes: usize, _flags: u32)
        since 6_000 => |m| m.stream_key(stream).map(drop);
    cuStreamBeginCapture_v2(stream: usize, mode: u32) since 10_010 => |m| {
        m.begin_capture(stream, mode)
    };
    cuStreamEndCapture(stream: usize, graph: Out<usize>) since 10_000 => |m| {
        let ended = m.end_capture(stream);
        graph.set(ended.unwrap_or(0))?;
        ended.map(drop)
    };
    cuStreamIsCapturing(stream: usize, status: Out<u32>) since 10_000 => |m| {
        status.set(m.capture_status(stream)?.0 as u32)
    };
    cuStreamGetCaptureInfo(stream: usize, status: Out<u32>, id: Out<u64>) since 10_010 => |m| {
        capture_info(m, stream, &status, &id)
    };
    cuStreamGetCaptureInfo_v2(
        stream: usize,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<usize>,
        _dependencies: usize,
        count: Out<usize>,
    ) since 11_030 => |m| {
        graph.set_if_wanted(0);
        count.set_if_wanted(0);
        capture_info(m, stream, &status, &id)
    };
    cuStreamGetCaptureInfo_v3(
        stream: usize,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<usize>,
        _dependencies: usize,
        _edges: usize,
        count: Out<usize>,
    ) since 12_030 => |m| {
        graph.set_if_wanted(0);
        count.set_if_wanted(0);
        capture_info(m, stream, &status, &id)
    };
    cuThreadExchangeStreamCaptureMode(mode: InOut<u32>) since 10_010 => |_| {
        match mode.get()? {
            wanted @ 0..=2 => mode.set(thread::exchange_capture_mode(wanted)),
            _ => Err(INVALID_VALUE),
        }
    };
}

fn context_of(state: &mut DriverState, stream: usize) -> CudaResult<usize> {
    let key = state.stream_key(stream)?;
    let context = state.stream(key)?.context;
    Ok(state.context(context)?.handle)
}

fn synchronize(state: &mut LockedState, stream: usize) -> CudaResult {
    let work = state.unfinished_work(stream)?;
    let key = state.stream_key(stream)?;
    let context = state.stream(key)?.context;
    state.wait_for(&work);
    state.usable(context)
}

fn capture_info(
    state: &mut DriverState,
    stream: usize,
    status: &Out<u32>,
    id: &Out<u64>,
) -> CudaResult {
    let (found, capture) = state.capture_status(stream)?;
    status.set(found as u32)?;
    id.set_if_wanted(capture);
    Ok(())
}
