//! Why a device does not run at its highest clocks: the bits that NVML returns.

use crate::declare::constants;

constants! {
    /// The device is idle.
    pub const IDLE: u64 = nvmlClocksThrottleReasonGpuIdle(0x1);
    /// The clocks are set by an application.
    pub const APPLICATION_CLOCKS: u64 = nvmlClocksThrottleReasonApplicationsClocksSetting(0x2);
    /// The power limit of the driver.
    pub const POWER_CAP: u64 = nvmlClocksThrottleReasonSwPowerCap(0x4);
    /// Heat, the power brake, or a weak power supply.
    pub const HARDWARE_SLOWDOWN: u64 = nvmlClocksThrottleReasonHwSlowdown(0x8);
    /// Clocks that follow those of other devices.
    pub const SYNC_BOOST: u64 = nvmlClocksThrottleReasonSyncBoost(0x10);
    /// Heat, found by the driver.
    pub const SOFTWARE_THERMAL: u64 = nvmlClocksThrottleReasonSwThermalSlowdown(0x20);
    /// Heat, found by the hardware.
    pub const HARDWARE_THERMAL: u64 = nvmlClocksThrottleReasonHwThermalSlowdown(0x40);
    /// An external signal, such as one of the power supply.
    pub const POWER_BRAKE: u64 = nvmlClocksThrottleReasonHwPowerBrakeSlowdown(0x80);
    /// The clocks are set for a display.
    pub const DISPLAY_CLOCKS: u64 = nvmlClocksThrottleReasonDisplayClockSetting(0x100);
    /// A limit of the board.
    pub const BOARD_LIMIT: u64 = nvmlClocksEventReasonBoardLimit(0x200);
    /// A rule that keeps the device reliable.
    pub const RELIABILITY: u64 = nvmlClocksEventReasonReliability(0x400);
    /// All of them.
    pub const ALL: u64 = nvmlClocksThrottleReasonAll(0x7ff);
}
