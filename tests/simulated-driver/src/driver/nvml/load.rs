//! Load, power and energy of a device, from the work that it has run.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::driver::clock::ClockMode;
use crate::driver::state::DriverState;
use crate::report::ActivityKind;

/// The time at which a clock that is not real shows zero, in microseconds since the Unix epoch.
const EPOCH_US: u64 = 1_700_000_000_000_000;

/// The period of utilization and mean power, in nanoseconds.
pub(super) const PERIOD_NS: u64 = 1_000_000_000;

/// Returns how many nanoseconds between two times a device was busy: with any work, or with memory alone.
pub(super) fn busy_ns(
    state: &DriverState,
    device: usize,
    (from, to): (u64, u64),
    memory_only: bool,
) -> u64 {
    let is_work = |kind| match kind {
        ActivityKind::Kernel => !memory_only,
        ActivityKind::Copy | ActivityKind::Fill => true,
        _ => false,
    };
    let activities = state.log.activities.iter();
    let mut spans: Vec<(u64, u64)> = activities
        .filter(|activity| activity.device == device as u64 && is_work(activity.kind))
        .map(|activity| (activity.start.max(from), activity.end.min(to)))
        .filter(|(start, end)| start < end)
        .collect();
    spans.sort_unstable();
    let mut until = from;
    let mut busy = 0;
    for (start, end) in spans {
        let start = start.max(until);
        busy += end.saturating_sub(start);
        until = until.max(end);
    }
    busy
}

/// Returns the time of the last step of the energy counter.
pub(super) fn last_step(state: &DriverState) -> u64 {
    let now = state.clock.now();
    now - now % state.settings.nvml.step_ns
}

/// Returns a time in microseconds since the Unix epoch: that of the host, if the clock is real.
pub(super) fn unix_us(state: &DriverState, at: u64) -> i64 {
    let microseconds = if state.clock.pace() == ClockMode::Real {
        let host = SystemTime::now().duration_since(UNIX_EPOCH);
        let host = host.map_or(0, |host| u64::try_from(host.as_micros()).unwrap_or(0));
        host.saturating_sub(state.clock.now().saturating_sub(at) / 1_000)
    } else {
        EPOCH_US + at / 1_000
    };
    i64::try_from(microseconds).unwrap_or(0)
}

/// Returns the energy counter in millijoules.
pub(super) fn millijoules(state: &DriverState, device: usize) -> u64 {
    let sensors = state.settings.nvml.of(device);
    let at = last_step(state);
    let busy = busy_ns(state, device, (0, at), false);
    let nanojoules = u128::from(at) * u128::from(sensors.idle_watts)
        + u128::from(busy) * u128::from(sensors.busy_watts);
    let millijoules = u64::try_from(nanojoules / 1_000_000).unwrap_or(u64::MAX);
    millijoules.saturating_sub(sensors.lost_millijoules)
}

/// Returns the mean power of the last period in milliwatts.
pub(super) fn mean_milliwatts(state: &DriverState, device: usize) -> u32 {
    let now = state.clock.now();
    let from = now.saturating_sub(PERIOD_NS);
    let busy = busy_ns(state, device, (from, now), false);
    let sensors = state.settings.nvml.of(device);
    let busy_milliwatts = u64::from(sensors.busy_watts) * 1_000 * busy / (now - from).max(1);
    u32::try_from(u64::from(sensors.idle_watts) * 1_000 + busy_milliwatts).unwrap_or(u32::MAX)
}

/// Returns the power of the moment in milliwatts.
pub(super) fn milliwatts_now(state: &DriverState, device: usize) -> u32 {
    let now = state.clock.now();
    let is_busy = busy_ns(state, device, (now, now + 1), false) > 0;
    let sensors = state.settings.nvml.of(device);
    1_000 * (sensors.idle_watts + if is_busy { sensors.busy_watts } else { 0 })
}

/// Returns the busy share of the last period in percent.
pub(super) fn percent(state: &DriverState, device: usize, memory_only: bool) -> u32 {
    let now = state.clock.now();
    let from = now.saturating_sub(PERIOD_NS);
    let busy = busy_ns(state, device, (from, now), memory_only);
    u32::try_from(busy * 100 / (now - from).max(1)).unwrap_or(100)
}
