//! The calls of NVML by name, and how they are watched.

/// The calls that a sample makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as the functions are")]
pub enum Call {
    Utilization,
    Memory,
    PowerFields,
    Power,
    Energy,
    LinkFields,
    Temperature,
    SmClock,
    MemoryClock,
    Reasons,
    PerformanceState,
    // Not for each sample.
    Initialise,
    Devices,
    Match,
    Processes,
}

/// The calls of each sample.
pub(crate) const CALLS: usize = Call::PerformanceState as usize + 1;

impl Call {
    /// All calls.
    pub const ALL: [Self; CALLS + 4] = [
        Self::Utilization,
        Self::Memory,
        Self::PowerFields,
        Self::Power,
        Self::Energy,
        Self::LinkFields,
        Self::Temperature,
        Self::SmClock,
        Self::MemoryClock,
        Self::Reasons,
        Self::PerformanceState,
        Self::Initialise,
        Self::Devices,
        Self::Match,
        Self::Processes,
    ];

    /// Returns the function, and the reading that it is for.
    pub const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Utilization => ("nvmlDeviceGetUtilizationRates", "utilization"),
            Self::Memory => ("nvmlDeviceGetMemoryInfo", "memory in use"),
            Self::PowerFields => ("nvmlDeviceGetFieldValues", "power and energy"),
            Self::Power => ("nvmlDeviceGetPowerUsage", "power"),
            Self::Energy => ("nvmlDeviceGetTotalEnergyConsumption", "energy"),
            Self::LinkFields => ("nvmlDeviceGetFieldValues", "PCIe and NVLink"),
            Self::Temperature => ("nvmlDeviceGetTemperature", "temperature"),
            Self::SmClock => ("nvmlDeviceGetClockInfo", "clock of the multiprocessors"),
            Self::MemoryClock => ("nvmlDeviceGetClockInfo", "clock of the memory"),
            Self::Reasons => (
                "nvmlDeviceGetCurrentClocksEventReasons",
                "reasons for lower clocks",
            ),
            Self::PerformanceState => ("nvmlDeviceGetPerformanceState", "performance state"),
            Self::Initialise => ("nvmlInit", "NVML"),
            Self::Devices => ("a call of NVML that opens the devices", "devices"),
            Self::Match => ("cuDeviceGetUuid", "numbers of the devices"),
            Self::Processes => ("nvmlDeviceGetComputeRunningProcesses", "processes"),
        }
    }
}

/// Notified of each call, so that one that does not return is known by name.
pub trait Observer {
    /// Returns `false` if the call must not be made any more.
    fn begins(&self, call: Call) -> bool;
    /// The call has returned.
    fn ends(&self);
    /// Returns `true` if no call must be made any more.
    fn has_ended(&self) -> bool;
}

/// Notified of calls that nothing waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    fn begins(&self, _call: Call) -> bool {
        true
    }

    fn ends(&self) {}

    fn has_ended(&self) -> bool {
        false
    }
}
