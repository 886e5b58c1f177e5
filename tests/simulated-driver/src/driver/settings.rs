//! The settings that a script can change, and their defaults.

use std::collections::{BTreeMap, BTreeSet};

/// The bytes that a copy or fill transfers per microsecond.
const BYTES_PER_US: u64 = 16_000;

/// One simulated device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceSettings {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// The values of attributes by their number. An attribute that is missing here is 0.
    pub(crate) attributes: BTreeMap<i32, i32>,
}

impl DeviceSettings {
    /// The attributes that programs query: those of a device of compute capability 8.0 with memory
    /// pools.
    const ATTRIBUTES: [(i32, i32); 25] = [
        (1, 1024),       // threads per block
        (2, 1024),       // x of a block
        (3, 1024),       // y of a block
        (4, 64),         // z of a block
        (5, i32::MAX),   // x of a grid
        (6, 65_535),     // y of a grid
        (7, 65_535),     // z of a grid
        (8, 49_152),     // shared memory of a block
        (9, 65_536),     // constant memory
        (10, 32),        // threads of a warp
        (12, 65_536),    // registers of a block
        (13, 1_410_000), // clock, kHz
        (16, 108),       // multiprocessors
        (31, 1),         // concurrent kernels
        (39, 2_048),     // threads of a multiprocessor
        (41, 1),         // unified addressing
        (75, 8),         // compute capability, major
        (76, 0),         // compute capability, minor
        (81, 167_936),   // shared memory of a multiprocessor
        (82, 65_536),    // registers of a multiprocessor
        (83, 1),         // managed memory
        (97, 166_912),   // shared memory of a block that asks for more
        (106, 32),       // blocks of a multiprocessor
        (111, 1_024),    // shared memory of a block that the driver keeps
        (115, 1),        // memory pools
    ];

    pub(crate) fn new(ordinal: usize) -> Self {
        Self {
            name: format!("Simulated Device {ordinal}"),
            bytes: 16 << 30,
            attributes: Self::ATTRIBUTES.into_iter().collect(),
        }
    }
}

/// The settings of the driver.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) devices: Vec<DeviceSettings>,
    /// The value that `cuDriverGetVersion` returns.
    pub(crate) driver_version: i32,
    /// Entry points that `cuGetProcAddress` does not find.
    pub(crate) hidden: BTreeSet<String>,
    /// Durations of kernels by name, in nanoseconds. They override the PTX.
    pub(crate) kernels: BTreeMap<String, u64>,
    /// The duration of a kernel that specifies none, in nanoseconds.
    pub(crate) default_kernel_ns: u64,
    /// How many operations may be queued or running on all devices before calls that queue more
    /// wait. `None` is unlimited.
    pub(crate) launch_queue: Option<usize>,
    /// The duration of a copy or fill of no bytes, in nanoseconds.
    pub(crate) copy_ns: u64,
    /// How much faster the devices' clocks run than the host's, in parts per million.
    pub(crate) clock_drift_ppm: f64,
    /// `true` if calls with an event or a stream need a current context.
    pub(crate) current_context_required: bool,
    /// `true` if the context of device 0 is current on every thread that has no other, as in a
    /// program that sets it everywhere.
    pub(crate) current_context_everywhere: bool,
    /// The sensors that NVML reads.
    pub(crate) nvml: super::nvml::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            devices: vec![DeviceSettings::new(0)],
            driver_version: crate::driver::NEWEST,
            hidden: BTreeSet::new(),
            kernels: BTreeMap::new(),
            default_kernel_ns: 10_000,
            launch_queue: None,
            copy_ns: 1_000,
            clock_drift_ppm: 0.0,
            current_context_required: false,
            current_context_everywhere: false,
            nvml: super::nvml::Settings::default(),
        }
    }
}

impl Settings {
    /// Returns the nanoseconds that a copy or fill of `bytes` takes.
    pub(crate) fn copy_time(&self, bytes: usize) -> u64 {
        self.copy_ns + (bytes as u64).saturating_mul(1_000) / BYTES_PER_US
    }
}
