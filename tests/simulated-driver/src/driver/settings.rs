//! What a script can set, with the values that hold before it does.

use std::collections::{BTreeMap, BTreeSet};

/// One simulated device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceSettings {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// By the number of the driver's attribute; what is not here is 0.
    pub(crate) attributes: BTreeMap<i32, i32>,
}

impl DeviceSettings {
    /// Those that programs ask for: a device of compute capability 8.0 with memory pools.
    const ATTRIBUTES: [(i32, i32); 20] = [
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
        (83, 1),         // managed memory
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

/// What the whole driver does.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) devices: Vec<DeviceSettings>,
    /// As `cuDriverGetVersion` tells it.
    pub(crate) driver_version: i32,
    /// Entry points that `cuGetProcAddress` does not know.
    pub(crate) hidden: BTreeSet<String>,
    /// Lengths of kernels by name, before what their PTX says.
    pub(crate) kernels: BTreeMap<String, u64>,
    /// Nanoseconds of a kernel that says nothing about its length.
    pub(crate) default_kernel_ns: u64,
    /// Nanoseconds from a call that queues work to the earliest start of that work.
    pub(crate) launch_latency_ns: u64,
    /// How much work may wait for the devices, over all of them, before calls that hand over more wait; `None` for any.
    pub(crate) launch_queue: Option<usize>,
    /// Nanoseconds of a copy or fill of no bytes.
    pub(crate) copy_ns: u64,
    /// Bytes that a copy or fill moves in a microsecond.
    pub(crate) copy_bytes_per_us: u64,
    /// The step of the time that an event holds, in nanoseconds.
    pub(crate) event_resolution_ns: u64,
    /// How much faster than the host's the devices' clocks run, in parts per million.
    pub(crate) clock_drift_ppm: f64,
    /// Whether calls that name an event or a stream need a current context.
    pub(crate) current_context_required: bool,
    /// Whether threads without a current context get that of device 0, as in a program that set it
    /// everywhere.
    pub(crate) current_context_everywhere: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            devices: vec![DeviceSettings::new(0)],
            driver_version: crate::driver::NEWEST,
            hidden: BTreeSet::new(),
            kernels: BTreeMap::new(),
            default_kernel_ns: 10_000,
            launch_latency_ns: 0,
            launch_queue: None,
            copy_ns: 1_000,
            copy_bytes_per_us: 16_000,
            event_resolution_ns: 1,
            clock_drift_ppm: 0.0,
            current_context_required: false,
            current_context_everywhere: false,
        }
    }
}

impl Settings {
    /// Nanoseconds that a copy or fill of `bytes` takes.
    pub(crate) fn copy_time(&self, bytes: usize) -> u64 {
        self.copy_ns + (bytes as u64).saturating_mul(1_000) / self.copy_bytes_per_us.max(1)
    }
}
