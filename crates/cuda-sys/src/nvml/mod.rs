//! NVML, the library behind `nvidia-smi`: its functions, found by name at run time.

mod code;
pub mod field;
pub mod reason;

use std::ffi::{c_char, c_int, c_uint, c_void};

pub use self::code::Code;
use self::field::FieldValue;
use crate::declare::{c_struct, constants};
use crate::table::function_table;

/// The library's name.
#[cfg(not(windows))]
pub const LIBRARY_NAME: &str = "libnvidia-ml.so.1";
/// The library's name. It is in the system's folder, where the driver installs it.
#[cfg(windows)]
pub const LIBRARY_NAME: &str = "nvml.dll";

constants! {
    /// For `nvmlInitWithFlags`: do not open the devices, so that a program that only looks does not keep them awake.
    pub const NO_ATTACH: c_uint = NVML_INIT_FLAG_NO_ATTACH(2);
    /// The sensor of the chip.
    pub const CHIP_SENSOR: c_uint = NVML_TEMPERATURE_GPU(0);
    /// The clock of the multiprocessors.
    pub const SM_CLOCK: c_uint = NVML_CLOCK_SM(1);
    /// The clock of the memory.
    pub const MEMORY_CLOCK: c_uint = NVML_CLOCK_MEM(2);
    /// The length of a UUID, with the terminating zero. Names are no longer.
    pub const TEXT_LENGTH: usize = NVML_DEVICE_UUID_V2_BUFFER_SIZE(96);
}

/// A handle of a device, valid until the process ends: NVML is never shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Handle(pub *mut c_void);

c_struct! {
    /// `nvmlUtilization_t`: percents of the last sampling period.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Utilization = nvmlUtilization_t {
        /// In which a kernel ran.
        pub gpu = gpu: c_uint,
        /// In which the device read or wrote memory.
        pub memory = memory: c_uint,
    }
}

c_struct! {
    /// `nvmlMemory_t`: bytes.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Memory = nvmlMemory_t {
        /// All memory.
        pub total = total: u64,
        /// What is free.
        pub free = free: u64,
        /// What is in use.
        pub used = used: u64,
    }
}

c_struct! {
    /// `nvmlTemperature_v1_t`.
    #[derive(Clone, Copy, Debug)]
    pub struct Temperature = nvmlTemperature_v1_t {
        /// The size of the structure in the lower 24 bits, and 1 above.
        pub version = version: c_uint,
        /// The sensor: see [`CHIP_SENSOR`].
        pub sensor = sensorType: c_uint,
        /// The temperature in degrees Celsius.
        pub celsius = temperature: c_int,
    }
}

function_table! {
    /// NVML's functions, with the types of `nvml.h` since CUDA 11 and integers for its enums.
    pub struct Table: extern "C" fn -> Code;
    required {
        init = nvmlInit_v2: fn();
        count = nvmlDeviceGetCount_v2: fn(*mut c_uint);
        handle = nvmlDeviceGetHandleByIndex_v2: fn(c_uint, *mut Handle);
        uuid = nvmlDeviceGetUUID: fn(Handle, *mut c_char, c_uint);
    }
    optional {
        init_with_flags = nvmlInitWithFlags: fn(c_uint);
        name = nvmlDeviceGetName: fn(Handle, *mut c_char, c_uint);
        utilization = nvmlDeviceGetUtilizationRates: fn(Handle, *mut Utilization);
        memory = nvmlDeviceGetMemoryInfo: fn(Handle, *mut Memory);
        power = nvmlDeviceGetPowerUsage: fn(Handle, *mut c_uint);
        power_limit = nvmlDeviceGetEnforcedPowerLimit: fn(Handle, *mut c_uint);
        energy = nvmlDeviceGetTotalEnergyConsumption: fn(Handle, *mut u64);
        /// Deprecated since CUDA 13, and still in the library.
        temperature = nvmlDeviceGetTemperature: fn(Handle, c_uint, *mut c_uint);
        temperature_v = nvmlDeviceGetTemperatureV: fn(Handle, *mut Temperature);
        clock = nvmlDeviceGetClockInfo: fn(Handle, c_uint, *mut c_uint);
        max_clock = nvmlDeviceGetMaxClockInfo: fn(Handle, c_uint, *mut c_uint);
        event_reasons = nvmlDeviceGetCurrentClocksEventReasons: fn(Handle, *mut u64);
        /// The former name of `event_reasons`, up to CUDA 12.1.
        throttle_reasons = nvmlDeviceGetCurrentClocksThrottleReasons: fn(Handle, *mut u64);
        fields = nvmlDeviceGetFieldValues: fn(Handle, c_int, *mut FieldValue);
        performance_state = nvmlDeviceGetPerformanceState: fn(Handle, *mut c_uint);
        processes = nvmlDeviceGetComputeRunningProcesses_v3: fn(Handle, *mut c_uint, *mut c_void);
        mig_mode = nvmlDeviceGetMigMode: fn(Handle, *mut c_uint, *mut c_uint);
    }
}
