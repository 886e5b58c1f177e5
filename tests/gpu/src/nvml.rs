//! Bindings to NVML, NVIDIA's library for sensors.

use std::ffi::{CString, c_char};
use std::fmt::Write;

use crate::libraries;
use crate::trouble::Trouble;

/// The variable that names the library.
pub(crate) const VARIABLE: &str = "PROFILER_NVML_LIBRARY";

macro_rules! functions {
    ($($name:ident = $symbol:literal($($argument:ident: $type:ty),*);)*) => {
        /// The functions.
        pub(crate) struct Nvml {
            pub(crate) path: String,
            $($name: unsafe extern "C" fn($($type),*) -> u32,)*
        }

        impl Nvml {
            /// Loads and initializes the library.
            pub(crate) fn open() -> Result<Self, Trouble> {
                let found = libraries::open_or_named(VARIABLE, &["libnvidia-ml.so.1"], "nvml");
                let (library, path) = found.map_err(Trouble::Skip)?;
                let nvml = Self {
                    // SAFETY: NVML exports the functions with these types (nvml.h).
                    $($name: *unsafe { library.get($symbol) }?,)*
                    path,
                };
                match nvml.init() {
                    0 => Ok(nvml),
                    code => Err(Trouble::Skip(format!("nvmlInit returned {code}"))),
                }
            }

            $(pub(crate) fn $name(&self, $($argument: $type),*) -> u32 {
                // SAFETY: the suite passes devices that NVML returned, and pointers to its stacks.
                unsafe { (self.$name)($($argument),*) }
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
}

impl Nvml {
    /// Returns the device with the bytes of this UUID, as CUDA gives them.
    pub(crate) fn device(&self, uuid: [u8; 16]) -> Result<usize, Trouble> {
        let mut text = String::from("GPU");
        for (index, byte) in uuid.iter().enumerate() {
            if matches!(index, 0 | 4 | 6 | 8 | 10) {
                text.push('-');
            }
            // Writing to a `String` cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        let text = CString::new(text).unwrap_or_default();
        let mut device = 0;
        match self.device_by_uuid(text.as_ptr(), &raw mut device) {
            0 => Ok(device),
            code => Err(Trouble::Skip(format!(
                "NVML does not know the device under {} (code {code}), as on a slice of MIG",
                text.to_string_lossy()
            ))),
        }
    }
}
