//! The table of NVML's functions, filled by name from the library.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::code::Code;
use super::field::FieldValue;
use crate::cuda::ffi::table::function_table;

/// A handle of a device, valid until the process ends: NVML is never shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Handle(pub(super) *mut c_void);

/// `nvmlUtilization_t`: percents of the last sampling period.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Utilization {
    pub(super) gpu: c_uint,
    pub(super) memory: c_uint,
}

/// `nvmlMemory_t`: bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Memory {
    pub(super) total: u64,
    pub(super) free: u64,
    pub(super) used: u64,
}

/// `nvmlTemperature_v1_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Temperature {
    pub(super) version: c_uint,
    pub(super) sensor: c_uint,
    pub(super) celsius: c_int,
}

function_table! {
    /// NVML's functions, with the types of `nvml.h` since CUDA 11 and integers for its enums.
    pub(super) struct Table: extern "C" fn -> Code;
    required {
        init = c"nvmlInit_v2": fn();
        count = c"nvmlDeviceGetCount_v2": fn(*mut c_uint);
        handle = c"nvmlDeviceGetHandleByIndex_v2": fn(c_uint, *mut Handle);
        uuid = c"nvmlDeviceGetUUID": fn(Handle, *mut c_char, c_uint);
    }
    optional {
        init_with_flags = c"nvmlInitWithFlags": fn(c_uint);
        name = c"nvmlDeviceGetName": fn(Handle, *mut c_char, c_uint);
        utilization = c"nvmlDeviceGetUtilizationRates": fn(Handle, *mut Utilization);
        memory = c"nvmlDeviceGetMemoryInfo": fn(Handle, *mut Memory);
        power = c"nvmlDeviceGetPowerUsage": fn(Handle, *mut c_uint);
        power_limit = c"nvmlDeviceGetEnforcedPowerLimit": fn(Handle, *mut c_uint);
        energy = c"nvmlDeviceGetTotalEnergyConsumption": fn(Handle, *mut u64);
        /// Deprecated since CUDA 13, and still in the library.
        temperature = c"nvmlDeviceGetTemperature": fn(Handle, c_uint, *mut c_uint);
        temperature_v = c"nvmlDeviceGetTemperatureV": fn(Handle, *mut Temperature);
        clock = c"nvmlDeviceGetClockInfo": fn(Handle, c_uint, *mut c_uint);
        max_clock = c"nvmlDeviceGetMaxClockInfo": fn(Handle, c_uint, *mut c_uint);
        event_reasons = c"nvmlDeviceGetCurrentClocksEventReasons": fn(Handle, *mut u64);
        /// The former name of `event_reasons`, up to CUDA 12.1.
        throttle_reasons = c"nvmlDeviceGetCurrentClocksThrottleReasons": fn(Handle, *mut u64);
        fields = c"nvmlDeviceGetFieldValues": fn(Handle, c_int, *mut FieldValue);
        performance_state = c"nvmlDeviceGetPerformanceState": fn(Handle, *mut c_uint);
        processes = c"nvmlDeviceGetComputeRunningProcesses_v3": fn(Handle, *mut c_uint, *mut c_void);
        mig_mode = c"nvmlDeviceGetMigMode": fn(Handle, *mut c_uint, *mut c_uint);
    }
}
