//! Events.

use crate::driver::code::CudaResult;
use crate::driver::entry::entry_points;
use crate::driver::ffi::Out;
use crate::driver::state::LockedState;

entry_points! {
    cuEventCreate(event: Out<usize>, flags: u32) since 2_000 => |m| {
        event.set(m.create_event(flags)?)
    };
    cuEventRecord(event: usize, stream: usize) since 2_000, QUEUES => |m| m.record(event, stream, 0);
    cuEventRecordWithFlags(event: usize, stream: usize, flags: u32) since 11_010, QUEUES => |m| {
        m.record(event, stream, flags)
    };
    cuEventQuery(event: usize) since 2_000, UNSAFE_IN_CAPTURE => |m| m.query_event(event);
    cuEventSynchronize(event: usize) since 2_000, WAITS, UNSAFE_IN_CAPTURE => |m| {
        synchronize(m, event)
    };
    cuEventDestroy_v2(event: usize) since 4_000 => |m| m.destroy_event(event);
    cuEventElapsedTime(ms: Out<f32>, start: usize, end: usize)
        since 2_000, UNSAFE_IN_CAPTURE => |m| ms.set(m.elapsed(start, end)?);
    cuEventElapsedTime_v2(ms: Out<f32>, start: usize, end: usize)
        since 12_080, UNSAFE_IN_CAPTURE => |m| ms.set(m.elapsed(start, end)?);
}

fn synchronize(state: &mut LockedState, event: usize) -> CudaResult {
    let (end, context) = state.wait_for_event(event)?;
    state.wait_for(&end);
    state.usable(context)
}
