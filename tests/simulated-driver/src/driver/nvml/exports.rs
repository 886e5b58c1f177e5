//! The exported functions of NVML.
#![allow(non_snake_case, reason = "the names are NVML's")]

use std::ffi::c_char;

use super::entry::{
    INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, NvmlResult, nvml_functions,
};
use super::load::{self, busy_ns};
use crate::driver::code::CudaResult;
use crate::driver::ffi::{Array, Out, Text, compared};
use crate::driver::state::DriverState;

/// The handle of the first device of CUDA. Handles of others follow.
const HANDLE: usize = 0x4e56_4d4c_0000;
const MAX_SM_MHZ: u32 = 1_410;
const MEMORY_MHZ: u32 = 1_593;
const POWER_LIMIT_WATTS: u32 = 400;

/// `nvmlUtilization_t`.
#[repr(C)]
struct Utilization {
    gpu: u32,
    memory: u32,
}

/// `nvmlMemory_t`.
#[repr(C)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlFieldValue_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct FieldValue {
    field: u32,
    scope: u32,
    timestamp: i64,
    latency: i64,
    value_type: u32,
    code: u32,
    value: u64,
}

compared! {
    Utilization = nvmlUtilization_t {
        gpu = gpu,
        memory = memory,
    }
}

compared! {
    Memory = nvmlMemory_t {
        total = total,
        free = free,
        used = used,
    }
}

compared! {
    FieldValue = nvmlFieldValue_t {
        field = fieldId,
        scope = scopeId,
        timestamp = timestamp,
        latency = latencyUsec,
        value_type = valueType,
        code = nvmlReturn,
        value = value.ullVal,
    }
}

/// Returns the structures as they are declared here.
#[cfg(test)]
pub(crate) fn structures() -> Vec<header_check::Item> {
    [
        Utilization::declared(),
        Memory::declared(),
        FieldValue::declared(),
    ]
    .concat()
}

nvml_functions! {
    nvmlInitWithFlags(_flags: u32) => |_| Ok(());
    nvmlInit_v2() => |_| Ok(());
    nvmlShutdown() => |_| Ok(());
    nvmlDeviceGetCount_v2(count: Out<u32>) => |m| {
        put(count.set(u32::try_from(m.settings.devices.len()).unwrap_or(0)))
    };
    nvmlDeviceGetHandleByIndex_v2(index: u32, handle: Out<usize>) => |m| {
        let count = m.settings.devices.len();
        let index = index as usize;
        if index >= count {
            return Err(INVALID_ARGUMENT);
        }
        let device = if m.settings.nvml.is_reversed { count - 1 - index } else { index };
        put(handle.set(HANDLE + device))
    };
    nvmlDeviceGetHandleByUUID(uuid: Text, handle: Out<usize>) => |m| {
        let wanted = uuid.get().map_err(|_| INVALID_ARGUMENT)?;
        let count = m.settings.devices.len();
        let known = (0..count).find(|device| uuid_of(m, *device) == wanted);
        put(handle.set(HANDLE + known.ok_or(NOT_FOUND)?))
    };
    nvmlDeviceGetUUID(handle: usize, uuid: Out<c_char>, length: u32) => |m| {
        let device = device(m, handle)?;
        write(&uuid, &uuid_of(m, device), length)
    };
    nvmlDeviceGetName(handle: usize, name: Out<c_char>, length: u32) => |m| {
        let device = device(m, handle)?;
        write(&name, &m.settings.devices[device].name, length)
    };
    nvmlDeviceGetUtilizationRates(handle: usize, rates: Out<Utilization>) => |m| {
        let device = device(m, handle)?;
        if m.settings.nvml.of(device).is_mig {
            return Err(NOT_SUPPORTED);
        }
        let gpu = load::percent(m, device, false);
        put(rates.set(Utilization { gpu, memory: load::percent(m, device, true) }))
    };
    nvmlDeviceGetMemoryInfo(handle: usize, memory: Out<Memory>) => |m| {
        let device = device(m, handle)?;
        let (total, used) = (m.settings.devices[device].bytes, m.memory.in_use(device));
        put(memory.set(Memory { total, free: total.saturating_sub(used), used }))
    };
    nvmlDeviceGetPowerUsage(handle: usize, milliwatts: Out<u32>) => |m| {
        let device = device(m, handle)?;
        put(milliwatts.set(load::mean_milliwatts(m, device)))
    };
    nvmlDeviceGetEnforcedPowerLimit(handle: usize, milliwatts: Out<u32>) => |m| {
        device(m, handle)?;
        put(milliwatts.set(POWER_LIMIT_WATTS * 1_000))
    };
    nvmlDeviceGetTotalEnergyConsumption(handle: usize, millijoules: Out<u64>) => |m| {
        let device = device(m, handle)?;
        put(millijoules.set(load::millijoules(m, device)))
    };
    nvmlDeviceGetTemperature(handle: usize, _sensor: u32, celsius: Out<u32>) => |m| {
        let device = device(m, handle)?;
        put(celsius.set(m.settings.nvml.of(device).celsius))
    };
    nvmlDeviceGetClockInfo(handle: usize, clock: u32, mhz: Out<u32>) => |m| {
        let device = device(m, handle)?;
        put(mhz.set(match clock {
            0 | 1 => m.settings.nvml.of(device).sm_mhz,
            2 => MEMORY_MHZ,
            _ => return Err(NOT_SUPPORTED),
        }))
    };
    nvmlDeviceGetMaxClockInfo(handle: usize, clock: u32, mhz: Out<u32>) => |m| {
        device(m, handle)?;
        put(mhz.set(match clock {
            0 | 1 => MAX_SM_MHZ,
            2 => MEMORY_MHZ,
            _ => return Err(NOT_SUPPORTED),
        }))
    };
    nvmlDeviceGetCurrentClocksEventReasons(handle: usize, reasons: Out<u64>) => |m| {
        reasons_of(m, handle, &reasons)
    };
    nvmlDeviceGetCurrentClocksThrottleReasons(handle: usize, reasons: Out<u64>) => |m| {
        reasons_of(m, handle, &reasons)
    };
    nvmlDeviceGetPerformanceState(handle: usize, state: Out<u32>) => |m| {
        let device = device(m, handle)?;
        let now = m.clock.now();
        let is_busy = busy_ns(m, device, (now.saturating_sub(load::PERIOD_NS), now), false) > 0;
        put(state.set(if is_busy { 0 } else { 8 }))
    };
    nvmlDeviceGetComputeRunningProcesses_v3(handle: usize, count: Array<u32>, infos: usize) => |m| {
        let device = device(m, handle)?;
        let processes = m.settings.nvml.of(device).processes;
        put(count.element(0).set(processes))?;
        // Nothing asks for more than the number.
        let _ = infos;
        if processes == 0 { Ok(()) } else { Err(INSUFFICIENT_SIZE) }
    };
    nvmlDeviceGetMigMode(handle: usize, current: Out<u32>, pending: Out<u32>) => |m| {
        let device = device(m, handle)?;
        let is_mig = u32::from(m.settings.nvml.of(device).is_mig);
        put(current.set(is_mig))?;
        put(pending.set(is_mig))
    };
    nvmlDeviceGetFieldValues(handle: usize, count: i32, values: Array<FieldValue>) => |m| {
        let device = device(m, handle)?;
        for index in 0..usize::try_from(count).map_err(|_| INVALID_ARGUMENT)? {
            let element = values.element(index);
            let asked = element.get().map_err(|_| INVALID_ARGUMENT)?;
            put(element.set(answer(m, device, asked)))?;
        }
        Ok(())
    };
}

fn put(done: CudaResult) -> NvmlResult {
    done.map_err(|_| INVALID_ARGUMENT)
}

fn write(out: &Out<c_char>, text: &str, length: u32) -> NvmlResult {
    if length as usize <= text.len() {
        return Err(INSUFFICIENT_SIZE);
    }
    put(out.set_text(text, i32::try_from(length).unwrap_or(i32::MAX)))
}

/// Returns the number in CUDA of the device with a handle.
fn device(state: &DriverState, handle: usize) -> NvmlResult<usize> {
    let device = handle.checked_sub(HANDLE).ok_or(INVALID_ARGUMENT)?;
    if device < state.settings.devices.len() {
        Ok(device)
    } else {
        Err(INVALID_ARGUMENT)
    }
}

/// Returns the UUID that CUDA has too. For a device with MIG, CUDA has that of the part that the program uses.
fn uuid_of(state: &DriverState, device: usize) -> String {
    let mut bytes = crate::driver::uuid(device);
    if state.settings.nvml.of(device).is_mig {
        bytes[0] ^= 0xff;
    }
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    format!("GPU-{}", groups.join("-"))
}

fn reasons_of(state: &DriverState, handle: usize, reasons: &Out<u64>) -> NvmlResult {
    let device = device(state, handle)?;
    put(reasons.set(state.settings.nvml.of(device).reasons))
}

fn answer(state: &DriverState, device: usize, asked: FieldValue) -> FieldValue {
    const U32: u32 = 1;
    const U64: u32 = 3;
    let links = state.settings.nvml.of(device).links;
    let narrow = |value: u64| value & u64::from(u32::MAX);
    let found = match asked.field {
        83 => Some((U64, load::millijoules(state, device))),
        185 => Some((U32, load::mean_milliwatts(state, device).into())),
        186 => Some((U32, load::milliwatts_now(state, device).into())),
        197 => Some((U32, narrow(links[0]))),
        198 => Some((U32, narrow(links[1]))),
        138 => Some((U64, links[2] / 1024)),
        139 => Some((U64, links[3] / 1024)),
        _ => None,
    };
    let found = found.filter(|_| !state.settings.nvml.absent_fields.contains(&asked.field));
    let at = if asked.field == 83 {
        load::last_step(state)
    } else {
        state.clock.now()
    };
    let (value_type, value) = found.unwrap_or((0, 0));
    let factor = state.settings.nvml.scaled_fields.get(&asked.field);
    let value = value.saturating_mul(*factor.unwrap_or(&1));
    FieldValue {
        timestamp: load::unix_us(state, at),
        latency: 0,
        value_type,
        code: if found.is_some() { 0 } else { NOT_SUPPORTED },
        value,
        ..asked
    }
}
