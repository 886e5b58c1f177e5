//! The quantities that sensors read, and the reasons for lower clocks.

use std::fmt;

/// A quantity that a sample may have a reading of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GpuQuantity {
    /// The share of the device's last sampling period in which at least one kernel ran, in percent.
    Utilization,
    /// The share of the device's last sampling period in which its memory was read or written, in percent.
    MemoryUtilization,
    /// Memory in use by all processes and the system, in bytes.
    MemoryUsed,
    /// Power in watts: on most devices since Ampere the mean of one second, on others the value of the moment.
    Power,
    /// Power of the moment in watts.
    PowerInstant,
    /// Energy since the sample before, in joules.
    Energy,
    /// Temperature of the chip in degrees Celsius.
    Temperature,
    /// Clock of the multiprocessors in MHz.
    SmClock,
    /// Clock of the memory in MHz.
    MemoryClock,
    /// Bytes sent over `PCIe` since the sample before.
    PcieSent,
    /// Bytes received over `PCIe` since the sample before.
    PcieReceived,
    /// Bytes sent over `NVLink` since the sample before.
    NvlinkSent,
    /// Bytes received over `NVLink` since the sample before.
    NvlinkReceived,
    /// The performance state: 0 is the fastest, 15 the slowest.
    PerformanceState,
}

impl GpuQuantity {
    /// All quantities.
    pub const ALL: [Self; 14] = [
        Self::Utilization,
        Self::MemoryUtilization,
        Self::MemoryUsed,
        Self::Power,
        Self::PowerInstant,
        Self::Energy,
        Self::Temperature,
        Self::SmClock,
        Self::MemoryClock,
        Self::PcieSent,
        Self::PcieReceived,
        Self::NvlinkSent,
        Self::NvlinkReceived,
        Self::PerformanceState,
    ];

    /// Returns its name with its unit, for fields and tags: `power_w`, `memory_used_bytes`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Utilization => "utilization_percent",
            Self::MemoryUtilization => "memory_utilization_percent",
            Self::MemoryUsed => "memory_used_bytes",
            Self::Power => "power_w",
            Self::PowerInstant => "power_instant_w",
            Self::Energy => "energy_j",
            Self::Temperature => "temperature_c",
            Self::SmClock => "sm_clock_mhz",
            Self::MemoryClock => "memory_clock_mhz",
            Self::PcieSent => "pcie_sent_bytes",
            Self::PcieReceived => "pcie_received_bytes",
            Self::NvlinkSent => "nvlink_sent_bytes",
            Self::NvlinkReceived => "nvlink_received_bytes",
            Self::PerformanceState => "performance_state",
        }
    }

    /// Returns `true` for a quantity that adds up over samples, such as energy, and `false` for a level, such as power.
    #[must_use]
    pub const fn adds_up(self) -> bool {
        matches!(
            self,
            Self::Energy
                | Self::PcieSent
                | Self::PcieReceived
                | Self::NvlinkSent
                | Self::NvlinkReceived
        )
    }
}

/// One value or none for each quantity.
#[derive(Clone, Copy, PartialEq)]
pub struct GpuReadings([Option<f64>; GpuQuantity::ALL.len()]);

impl GpuReadings {
    /// No readings.
    #[doc(hidden)]
    pub const NONE: Self = Self([None; GpuQuantity::ALL.len()]);

    /// Returns the reading of a quantity; `None` if the device or the driver has none.
    #[must_use]
    pub fn get(&self, quantity: GpuQuantity) -> Option<f64> {
        self.0.get(quantity as usize).copied().flatten()
    }

    /// Returns the quantities that have a reading.
    pub fn iter(&self) -> impl Iterator<Item = (GpuQuantity, f64)> {
        let quantities = GpuQuantity::ALL.into_iter();
        quantities.filter_map(|quantity| Some((quantity, self.get(quantity)?)))
    }

    /// Sets or removes a reading.
    #[doc(hidden)]
    pub fn set(&mut self, quantity: GpuQuantity, value: Option<f64>) {
        if let Some(reading) = self.0.get_mut(quantity as usize) {
            *reading = value;
        }
    }

    /// Combines two sets of readings; a quantity that one of them lacks comes from the other.
    pub(super) fn combine(&self, other: &Self, f: impl Fn(GpuQuantity, f64, f64) -> f64) -> Self {
        let mut combined = Self::NONE;
        for quantity in GpuQuantity::ALL {
            let value = match (self.get(quantity), other.get(quantity)) {
                (Some(first), Some(second)) => Some(f(quantity, first, second)),
                (first, second) => first.or(second),
            };
            combined.set(quantity, value);
        }
        combined
    }
}

impl Default for GpuReadings {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for GpuReadings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.iter().map(|(quantity, value)| (quantity.key(), value));
        f.debug_map().entries(entries).finish()
    }
}

/// The reasons why a device's clocks are lower than they could be, as NVML numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThrottleReasons(u64);

impl ThrottleReasons {
    /// The device is idle.
    pub const IDLE: Self = Self(1);
    /// The clocks are set by an application.
    pub const APPLICATION_CLOCKS: Self = Self(2);
    /// The power limit of the driver.
    pub const POWER_CAP: Self = Self(4);
    /// The hardware halves the clocks, or more: heat, the power brake, or a power supply that is too weak.
    pub const HARDWARE_SLOWDOWN: Self = Self(8);
    /// Clocks that follow those of other devices.
    pub const SYNC_BOOST: Self = Self(0x10);
    /// The driver lowers the clocks because of heat.
    pub const SOFTWARE_THERMAL: Self = Self(0x20);
    /// The hardware lowers the clocks because of heat.
    pub const HARDWARE_THERMAL: Self = Self(0x40);
    /// An external signal, such as one of the power supply.
    pub const POWER_BRAKE: Self = Self(0x80);
    /// The clocks are set for a display.
    pub const DISPLAY_CLOCKS: Self = Self(0x100);
    /// A limit of the board.
    pub const BOARD_LIMIT: Self = Self(0x200);
    /// A rule that keeps the device reliable.
    pub const RELIABILITY: Self = Self(0x400);

    /// All reasons that have a name, with their names.
    pub const NAMED: [(Self, &'static str); 11] = [
        (Self::IDLE, "idle"),
        (Self::APPLICATION_CLOCKS, "application clocks"),
        (Self::POWER_CAP, "power cap"),
        (Self::HARDWARE_SLOWDOWN, "hardware slowdown"),
        (Self::SYNC_BOOST, "sync boost"),
        (Self::SOFTWARE_THERMAL, "software thermal slowdown"),
        (Self::HARDWARE_THERMAL, "hardware thermal slowdown"),
        (Self::POWER_BRAKE, "power brake"),
        (Self::DISPLAY_CLOCKS, "display clocks"),
        (Self::BOARD_LIMIT, "board limit"),
        (Self::RELIABILITY, "reliability"),
    ];

    /// The reasons that hold back clocks which work could use: all but an idle device and clocks that were chosen.
    pub const HOLD_BACK: Self = Self(4 | 8 | 0x10 | 0x20 | 0x40 | 0x80 | 0x200 | 0x400);

    /// Returns the reasons with these bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns `true` if any of the other reasons applies.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns `true` if the clocks are held back: by power, heat or other devices.
    #[must_use]
    pub const fn holds_back(self) -> bool {
        self.intersects(Self::HOLD_BACK)
    }

    /// Returns the names of the reasons, in the order of their bits.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let named = Self::NAMED.into_iter();
        named.filter_map(move |(reason, name)| self.intersects(reason).then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_names_in_the_order_of_their_bits() {
        let reasons = ThrottleReasons::from_bits(0x44 | 1);
        let names: Vec<&str> = reasons.names().collect();
        assert_eq!(names, ["idle", "power cap", "hardware thermal slowdown"]);
        assert!(reasons.holds_back() && !ThrottleReasons::IDLE.holds_back());
        let newest = ThrottleReasons::from_bits(0x600);
        assert_eq!(
            newest.names().collect::<Vec<_>>(),
            ["board limit", "reliability"]
        );
        assert!(newest.holds_back());
    }

    #[test]
    fn the_order_of_the_quantities_is_that_of_their_places() {
        for (place, quantity) in GpuQuantity::ALL.into_iter().enumerate() {
            assert_eq!(quantity as usize, place);
        }
    }
}
