//! Devices and their primary contexts.

use std::ffi::c_char;

use crate::driver::code::{CudaResult, INVALID_VALUE};
use crate::driver::entry::entry_points;
use crate::driver::ffi::Out;
use crate::driver::state::DriverState;

/// The number of attributes that exist.
const ATTRIBUTES: std::ops::RangeInclusive<i32> = 1..=200;

entry_points! {
    cuDeviceGetCount(count: Out<i32>) since 2_000 => |m| {
        count.set(i32::try_from(m.devices.len()).unwrap_or(i32::MAX))
    };
    cuDeviceGet(device: Out<i32>, ordinal: i32) since 2_000 => |m| {
        m.device(ordinal)?;
        device.set(ordinal)
    };
    cuDeviceGetName(name: Out<c_char>, length: i32, device: i32) since 2_000 => |m| {
        name.set_text(&m.device(device)?.settings.name, length)
    };
    cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) since 9_020 => |m| set_uuid(m, &uuid, device);
    cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) since 11_040 => |m| {
        set_uuid(m, &uuid, device)
    };
    cuDeviceGetAttribute(value: Out<i32>, attribute: u32, device: i32) since 2_000 => |m| {
        let attribute = i32::try_from(attribute).map_err(|_| INVALID_VALUE)?;
        if !ATTRIBUTES.contains(&attribute) {
            return Err(INVALID_VALUE);
        }
        let attributes = &m.device(device)?.settings.attributes;
        value.set(attributes.get(&attribute).copied().unwrap_or(0))
    };
    cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) since 3_020 => |m| {
        bytes.set(usize::try_from(m.device(device)?.settings.bytes).unwrap_or(usize::MAX))
    };
    cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) since 2_000 => |m| {
        let attributes = &m.device(device)?.settings.attributes;
        major.set(attributes.get(&75).copied().unwrap_or(0))?;
        minor.set(attributes.get(&76).copied().unwrap_or(0))
    };
    cuDeviceGetPCIBusId(id: Out<c_char>, length: i32, device: i32) since 4_010 => |m| {
        m.device(device)?;
        id.set_text(&format!("0000:{:02x}:00.0", device + 1), length)
    };
    cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) since 4_000 => |m| {
        m.device(device)?;
        m.device(peer)?;
        can.set(i32::from(device != peer))
    };
    cuDevicePrimaryCtxRetain(context: Out<usize>, device: i32) since 7_000 => |m| {
        context.set(m.retain_primary(device)?)
    };
    cuDevicePrimaryCtxRelease(device: i32) since 7_000, WAITS => |m| m.release_primary(device);
    cuDevicePrimaryCtxRelease_v2(device: i32) since 11_000, WAITS => |m| m.release_primary(device);
    cuDevicePrimaryCtxReset(device: i32) since 7_000, WAITS => |m| m.reset_primary(device);
    cuDevicePrimaryCtxReset_v2(device: i32) since 11_000, WAITS => |m| m.reset_primary(device);
    cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, active: Out<i32>) since 7_000 => |m| {
        let (set, is_active) = m.primary_state(device)?;
        flags.set(set)?;
        active.set(i32::from(is_active))
    };
    cuDevicePrimaryCtxSetFlags(device: i32, flags: u32) since 7_000 => |m| {
        m.set_primary_flags(device, flags)
    };
    cuDevicePrimaryCtxSetFlags_v2(device: i32, flags: u32) since 11_000 => |m| {
        m.set_primary_flags(device, flags)
    };
}

fn set_uuid(state: &mut DriverState, uuid: &Out<[u8; 16]>, device: i32) -> CudaResult {
    state.device(device)?;
    uuid.set(crate::driver::uuid(usize::try_from(device).unwrap_or(0)))
}
