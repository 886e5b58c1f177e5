//! Bindings to NVML, NVIDIA's library for sensors.

use std::ffi::{CString, c_char, c_int, c_void};
use std::fmt::Write;

use crate::device::Gpu;
use crate::libraries;
use crate::trouble::Trouble;

/// The variable that names the library.
pub(crate) const VARIABLE: &str = "PROFILER_NVML_LIBRARY";

/// `NVML_ERROR_FUNCTION_NOT_FOUND`.
pub(crate) const NO_FUNCTION: u32 = 13;

macro_rules! functions {
    ($($name:ident = $symbol:literal($($argument:ident: $type:ty),*);)*) => {
        /// The functions. One that the library lacks returns 13, as NVML does if the driver lacks it.
        pub(crate) struct Nvml {
            pub(crate) path: String,
            $($name: Option<unsafe extern "C" fn($($type),*) -> u32>,)*
        }

        impl Nvml {
            /// Loads and initializes the library.
            pub(crate) fn open() -> Result<Self, Trouble> {
                let found = libraries::open_or_named(VARIABLE, &["libnvidia-ml.so.1"], "nvml");
                let (library, path) = found.map_err(Trouble::Skip)?;
                let nvml = Self {
                    // SAFETY: NVML exports the functions with these types (nvml.h).
                    $($name: unsafe { library.get($symbol) }.ok().map(|function| *function),)*
                    path,
                };
                match nvml.init() {
                    0 => Ok(nvml),
                    code => Err(Trouble::Skip(format!("nvmlInit returned {code}"))),
                }
            }

            $(pub(crate) fn $name(&self, $($argument: $type),*) -> u32 {
                // SAFETY: the suite passes devices that NVML returned, and pointers to its stacks.
                self.$name.map_or(NO_FUNCTION, |function| unsafe { function($($argument),*) })
            })*

            /// Returns the functions as they are declared here.
            #[cfg(test)]
            pub(crate) fn declared() -> Vec<header_check::Item> {
                let text = |symbol| String::from_utf8_lossy(symbol).into_owned();
                vec![$(
                    header_check::Item::function::<unsafe extern "C" fn($($type),*) -> u32>(
                        &text($symbol),
                    )
                ),*]
            }
        }
    };
}

functions! {
    init = b"nvmlInit_v2"();
    device_by_index = b"nvmlDeviceGetHandleByIndex_v2"(index: u32, device: *mut usize);
    device_by_uuid = b"nvmlDeviceGetHandleByUUID"(uuid: *const c_char, device: *mut usize);
    energy = b"nvmlDeviceGetTotalEnergyConsumption"(device: usize, millijoules: *mut u64);
    power = b"nvmlDeviceGetPowerUsage"(device: usize, milliwatts: *mut u32);
    temperature = b"nvmlDeviceGetTemperature"(device: usize, sensor: u32, degrees: *mut u32);
    clock = b"nvmlDeviceGetClockInfo"(device: usize, kind: u32, megahertz: *mut u32);
    utilization = b"nvmlDeviceGetUtilizationRates"(device: usize, percent: *mut [u32; 2]);
    memory = b"nvmlDeviceGetMemoryInfo"(device: usize, bytes: *mut [u64; 3]);
    reasons = b"nvmlDeviceGetCurrentClocksThrottleReasons"(device: usize, bits: *mut u64);
    performance_state = b"nvmlDeviceGetPerformanceState"(device: usize, state: *mut u32);
    fields = b"nvmlDeviceGetFieldValues"(device: usize, count: c_int, values: *mut FieldValue);
    mig_mode = b"nvmlDeviceGetMigMode"(device: usize, current: *mut u32, pending: *mut u32);
    compute_processes = b"nvmlDeviceGetComputeRunningProcesses_v3"(device: usize, count: *mut u32, processes: *mut c_void);
    compute_processes_of_470 = b"nvmlDeviceGetComputeRunningProcesses_v2"(device: usize, count: *mut u32, processes: *mut c_void);
    mps_processes = b"nvmlDeviceGetMPSComputeRunningProcesses_v3"(device: usize, count: *mut u32, processes: *mut c_void);
}

/// Power of the moment in milliwatts.
pub(crate) const POWER_INSTANT: u32 = 186;
/// Bytes sent and received over `PCIe`, as 32 bits.
pub(crate) const PCIE: [u32; 2] = [197, 198];
/// KiB sent and received over `NVLink`.
pub(crate) const NVLINK: [u32; 2] = [138, 139];

/// `nvmlFieldValue_t`.
#[repr(C)]
pub(crate) struct FieldValue {
    field: u32,
    scope: u32,
    timestamp: i64,
    latency: i64,
    kind: u32,
    code: u32,
    value: [u8; 8],
}

#[cfg(test)]
impl header_check::Shape for FieldValue {
    fn shape() -> String {
        format!("s{}", size_of::<Self>())
    }
}

/// Returns the UUID with these bytes, as CUDA gives them, in NVML's notation.
pub(crate) fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (index, byte) in uuid.iter().enumerate() {
        if matches!(index, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Nvml {
    /// Loads NVML and finds the device under test.
    pub(crate) fn with_device(gpu: &Gpu) -> Result<(Self, usize), Trouble> {
        if gpu.simulated && std::env::var_os(VARIABLE).is_none() {
            return Err(Trouble::Skip(
                "NVML does not know a simulated device".to_owned(),
            ));
        }
        let nvml = Self::open()?;
        let device = nvml.device(gpu.uuid()?)?;
        Ok((nvml, device))
    }

    /// Returns the device with the bytes of this UUID, as CUDA gives them.
    pub(crate) fn device(&self, uuid: [u8; 16]) -> Result<usize, Trouble> {
        let text = uuid_text(uuid);
        let wanted = CString::new(&*text).unwrap_or_default();
        let mut device = 0;
        match self.device_by_uuid(wanted.as_ptr(), &raw mut device) {
            0 => Ok(device),
            code => Err(Trouble::Skip(format!(
                "NVML does not know the device under {text} (code {code}), as on a slice of MIG"
            ))),
        }
    }

    /// Returns the value of a field, for all links if it is one of links.
    pub(crate) fn field(&self, device: usize, field: u32) -> Option<f64> {
        let mut value = FieldValue {
            field,
            scope: u32::MAX,
            timestamp: 0,
            latency: 0,
            kind: 0,
            code: 0,
            value: [0; 8],
        };
        let code = self.fields(device, 1, &raw mut value);
        let [a, b, c, d, ..] = value.value;
        let number = match value.kind {
            0 => f64::from_ne_bytes(value.value),
            1 => f64::from(u32::from_ne_bytes([a, b, c, d])),
            _ => u64::from_ne_bytes(value.value) as f64,
        };
        (code == 0 && value.code == 0).then_some(number)
    }
}
