//! Memory: allocation, copies and fills.

use crate::driver::code::CudaResult;
use crate::driver::entry::entry_points;
use crate::driver::ffi::{Array, Out};
use crate::driver::memory::{AllocationKind, Direction};
use crate::driver::policy;
use crate::driver::state::LockedState;
use crate::driver::stream::Queued;
use crate::driver::task::Join;

entry_points! {
    cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) since 3_020 => |m| {
        m.usable_current()?;
        let device = m.current_device()?;
        let all = m.devices[device].settings.bytes;
        let left = all.saturating_sub(m.memory.in_use(device));
        free.set(usize::try_from(left).unwrap_or(usize::MAX))?;
        total.set(usize::try_from(all).unwrap_or(usize::MAX))
    };
    cuMemAlloc_v2(address: Out<usize>, bytes: usize) since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| {
        address.set(m.allocate(bytes, AllocationKind::Device)?)
    };
    cuMemAllocManaged(address: Out<usize>, bytes: usize, _flags: u32)
        since 6_000, WAITS, UNSAFE_IN_CAPTURE => |m| address.set(m.allocate(bytes, AllocationKind::Managed)?);
    cuMemHostAlloc(address: Out<usize>, bytes: usize, _flags: u32)
        since 2_020, WAITS, UNSAFE_IN_CAPTURE => |m| address.set(m.allocate(bytes, AllocationKind::Host)?);
    cuMemAllocHost_v2(address: Out<usize>, bytes: usize)
        since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| address.set(m.allocate(bytes, AllocationKind::Host)?);
    cuMemHostRegister_v2(address: usize, bytes: usize, _flags: u32)
        since 6_050, WAITS, UNSAFE_IN_CAPTURE => |m| m.register(address, bytes);
    cuMemHostUnregister(address: usize) since 4_000, WAITS, UNSAFE_IN_CAPTURE => |m| free(m, address);
    cuMemHostGetDevicePointer_v2(device: Out<usize>, host: usize, _flags: u32) since 3_020 => |m| {
        m.usable_current()?;
        device.set(host)
    };
    cuMemFree_v2(address: usize) since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| free(m, address);
    cuMemFreeHost(address: usize) since 2_000, WAITS, UNSAFE_IN_CAPTURE => |m| free(m, address);
    cuMemAllocAsync(address: Out<usize>, bytes: usize, stream: usize) since 11_020, QUEUES => |m| {
        address.set(m.allocate_async(bytes, stream)?)
    };
    cuMemFreeAsync(address: usize, stream: usize) since 11_020, QUEUES => |m| m.free_async(address, stream);

    cuMemcpy(to: usize, from: usize, bytes: usize) since 4_000, WAITS, UNSAFE_IN_CAPTURE => |m| {
        copy(m, to, from, bytes, Direction::Either)
    };
    cuMemcpyHtoD_v2(to: usize, from: usize, bytes: usize)
        since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| copy(m, to, from, bytes, Direction::HostToDevice);
    cuMemcpyDtoH_v2(to: usize, from: usize, bytes: usize)
        since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| copy(m, to, from, bytes, Direction::DeviceToHost);
    cuMemcpyDtoD_v2(to: usize, from: usize, bytes: usize)
        since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| {
        copy(m, to, from, bytes, Direction::DeviceToDevice)
    };
    cuMemcpyAsync(to: usize, from: usize, bytes: usize, stream: usize) since 4_000, QUEUES => |m| {
        copy_async(m, to, from, bytes, Direction::Either, stream)
    };
    cuMemcpyHtoDAsync_v2(to: usize, from: usize, bytes: usize, stream: usize) since 3_020, QUEUES => |m| {
        copy_async(m, to, from, bytes, Direction::HostToDevice, stream)
    };
    cuMemcpyDtoHAsync_v2(to: usize, from: usize, bytes: usize, stream: usize) since 3_020, QUEUES => |m| {
        copy_async(m, to, from, bytes, Direction::DeviceToHost, stream)
    };
    cuMemcpyDtoDAsync_v2(to: usize, from: usize, bytes: usize, stream: usize) since 3_020, QUEUES => |m| {
        copy_async(m, to, from, bytes, Direction::DeviceToDevice, stream)
    };
    cuMemcpyPeerAsync(
        to: usize, to_context: usize, from: usize, from_context: usize,
        bytes: usize, stream: usize,
    ) since 4_000, QUEUES => |m| {
        m.peers = Some([peer(m, from_context)?, peer(m, to_context)?]);
        let copied = copy_async(m, to, from, bytes, Direction::DeviceToDevice, stream);
        m.peers = None;
        copied
    };
    cuMemcpyBatchAsync(
        to: Array<usize>, from: Array<usize>, bytes: Array<usize>, count: usize,
        _attributes: usize, _firsts: usize, _attribute_count: usize, _failed: Out<usize>, stream: usize,
    ) since 12_080, QUEUES => |m| {
        (0..count).try_for_each(|index| {
            let [to, from, bytes] = [&to, &from, &bytes].map(|list| list.element(index).get());
            copy_async(m, to?, from?, bytes?, Direction::Either, stream)
        })
    };

    cuMemsetD8_v2(to: usize, value: u8, count: usize) since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| {
        fill(m, to, u32::from(value), 1, count)
    };
    cuMemsetD16_v2(to: usize, value: u16, count: usize)
        since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| fill(m, to, u32::from(value), 2, count);
    cuMemsetD32_v2(to: usize, value: u32, count: usize)
        since 3_020, WAITS, UNSAFE_IN_CAPTURE => |m| fill(m, to, value, 4, count);
    cuMemsetD8Async(to: usize, value: u8, count: usize, stream: usize) since 3_020, QUEUES => |m| {
        m.fill(to, u32::from(value), 1, count, stream).map(drop)
    };
    cuMemsetD16Async(to: usize, value: u16, count: usize, stream: usize) since 3_020, QUEUES => |m| {
        m.fill(to, u32::from(value), 2, count, stream).map(drop)
    };
    cuMemsetD32Async(to: usize, value: u32, count: usize, stream: usize) since 3_020, QUEUES => |m| {
        m.fill(to, value, 4, count, stream).map(drop)
    };
}

/// Returns the device and the number of a context.
fn peer(state: &mut LockedState, context: usize) -> CudaResult<(u32, u32)> {
    let key = state.context_key(context)?;
    let context = state.context(key)?;
    let number = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    Ok((number(context.device as u64), number(context.id)))
}

/// Frees memory, for which a driver waits until the context has no work left.
fn free(state: &mut LockedState, address: usize) -> CudaResult {
    let context = state.usable_current()?;
    let all = state.all_work(context)?;
    state.wait_for(&all);
    state.free(address)
}

/// Copies in the legacy default stream, and waits for the copy.
fn copy(
    m: &mut LockedState,
    to: usize,
    from: usize,
    bytes: usize,
    direction: Direction,
) -> CudaResult {
    let context = m.usable_current()?;
    m.copy(to, from, bytes, direction, 0)?;
    wait_for_stream(m, 0)?;
    m.usable(context)
}

fn copy_async(
    m: &mut LockedState,
    to: usize,
    from: usize,
    bytes: usize,
    direction: Direction,
    stream: usize,
) -> CudaResult {
    if let Some(end) = m.copy(to, from, bytes, direction, stream)? {
        policy::check_implicit_waiting(m.call);
        m.wait_for(&end);
    }
    Ok(())
}

fn fill(m: &mut LockedState, to: usize, pattern: u32, width: usize, count: usize) -> CudaResult {
    match m.fill(to, pattern, width, count, 0)? {
        Queued::Runs(point) => m.wait_for(&Join::from(point)),
        Queued::Captured => {}
    }
    Ok(())
}

fn wait_for_stream(state: &mut LockedState, stream: usize) -> CudaResult {
    let work = state.unfinished_work(stream)?;
    state.wait_for(&work);
    Ok(())
}
