//! Contexts, and the context stack of each thread.

use crate::driver::code::{CudaResult, INVALID_VALUE};
use crate::driver::entry::entry_points;
use crate::driver::ffi::Out;
use crate::driver::state::LockedState;
use crate::driver::thread;

entry_points! {
    cuCtxCreate_v2(context: Out<usize>, flags: u32, device: i32) since 3_020 => |m| {
        context.set(m.create_context(device, flags)?)
    };
    cuCtxCreate_v3(context: Out<usize>, _parameters: usize, _count: i32, flags: u32, device: i32)
        since 11_040 => |m| context.set(m.create_context(device, flags)?);
    cuCtxCreate_v4(context: Out<usize>, _parameters: usize, flags: u32, device: i32)
        since 12_050 => |m| context.set(m.create_context(device, flags)?);
    cuCtxDestroy_v2(context: usize) since 4_000, WAITS => |m| m.destroy_context(context);
    cuCtxGetCurrent(context: Out<usize>) since 4_000 => |m| context.set(m.current_or_given()?);
    cuCtxSetCurrent(context: usize) since 4_000 => |m| {
        if context != 0 {
            m.context_key(context)?;
        }
        thread::set_current(context);
        Ok(())
    };
    cuCtxPushCurrent_v2(context: usize) since 4_000 => |m| {
        m.context_key(context)?;
        thread::push(context)
    };
    cuCtxPopCurrent_v2(context: Out<usize>) since 4_000 => |_| {
        context.set_if_wanted(thread::pop()?);
        Ok(())
    };
    cuCtxGetDevice(device: Out<i32>) since 2_000 => |m| {
        device.set(i32::try_from(m.current_device()?).unwrap_or(i32::MAX))
    };
    cuCtxGetId(context: usize, id: Out<u64>) since 12_000 => |m| {
        let key = if context == 0 { m.current()? } else { m.context_key(context)? };
        id.set(m.context(key)?.id)
    };
    cuCtxGetFlags(flags: Out<u32>) since 7_000 => |m| {
        let key = m.current()?;
        flags.set(m.context(key)?.flags)
    };
    cuCtxSetFlags(flags: u32) since 12_010 => |m| {
        let key = m.current()?;
        m.context(key)?.flags = flags;
        Ok(())
    };
    cuCtxGetApiVersion(context: usize, version: Out<u32>) since 3_020 => |m| {
        if context == 0 { m.current()? } else { m.context_key(context)? };
        version.set(3_020)
    };
    cuCtxSynchronize() since 2_000, WAITS, UNSAFE_IN_CAPTURE => synchronize;
    cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) since 5_050 => |m| {
        m.current()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    };
    cuCtxSetLimit(limit: u32, value: usize) since 3_010 => |m| {
        let key = m.usable_current()?;
        m.context(key)?.limits.insert(limit, value);
        Ok(())
    };
    cuCtxGetLimit(value: Out<usize>, limit: u32) since 3_010 => |m| {
        let key = m.usable_current()?;
        value.set(m.context(key)?.limits.get(&limit).copied().unwrap_or(1_024))
    };
    cuCtxSetCacheConfig(config: u32) since 3_020 => |m| {
        let key = m.usable_current()?;
        m.context(key)?.cache = config;
        Ok(())
    };
    cuCtxGetCacheConfig(config: Out<u32>) since 3_020 => |m| {
        let key = m.usable_current()?;
        config.set(m.context(key)?.cache)
    };
    cuCtxEnablePeerAccess(peer: usize, flags: u32) since 4_000 => |m| {
        m.usable_current()?;
        m.context_key(peer)?;
        if flags == 0 { Ok(()) } else { Err(INVALID_VALUE) }
    };
}

fn synchronize(state: &mut LockedState) -> CudaResult {
    let key = state.usable_current()?;
    state.check_no_capturing_stream(key)?;
    let all = state.all_work(key)?;
    state.wait_for(&all);
    state.usable(key)
}
