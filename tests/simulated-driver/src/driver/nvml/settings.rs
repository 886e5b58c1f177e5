//! The commands of a script that begin with `nvml`, and what they set.

use std::collections::{BTreeMap, BTreeSet};

use crate::driver::script::{duration, number};
use crate::driver::state::LockedState;

/// The settings of the simulated NVML.
#[derive(Debug)]
pub(crate) struct Settings {
    /// `true` if the devices are listed from the last to the first.
    pub(super) is_reversed: bool,
    /// The step of the energy counters in nanoseconds.
    pub(super) step_ns: u64,
    /// Fields that no device has.
    pub(super) absent_fields: BTreeSet<u32>,
    /// Fields whose values are too large by these factors.
    pub(super) scaled_fields: BTreeMap<u32, u64>,
    devices: BTreeMap<usize, Sensors>,
}

/// The sensors of a device that do not follow from its work.
#[derive(Clone, Debug)]
pub(super) struct Sensors {
    pub(super) idle_watts: u32,
    pub(super) busy_watts: u32,
    pub(super) celsius: u32,
    pub(super) reasons: u64,
    pub(super) processes: u32,
    pub(super) is_mig: bool,
    pub(super) sm_mhz: u32,
    /// Bytes that `PCIe` and `NVLink` have sent and received.
    pub(super) links: [u64; 4],
    /// Millijoules by which the energy counter went back.
    pub(super) lost_millijoules: u64,
}

impl Sensors {
    const NEW: Self = Self {
        idle_watts: 50,
        busy_watts: 200,
        celsius: 40,
        reasons: 0,
        processes: 1,
        is_mig: false,
        sm_mhz: 1_410,
        links: [0; 4],
        lost_millijoules: 0,
    };
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            is_reversed: false,
            step_ns: 100_000_000,
            absent_fields: BTreeSet::new(),
            scaled_fields: BTreeMap::new(),
            devices: BTreeMap::new(),
        }
    }
}

impl Settings {
    pub(super) fn of(&self, device: usize) -> Sensors {
        self.devices.get(&device).cloned().unwrap_or(Sensors::NEW)
    }
}

/// Runs a command, without its first word.
pub(crate) fn command(words: &[&str]) -> Result<(), String> {
    let mut state = LockedState::new();
    let settings = &mut state.settings.nvml;
    match words {
        ["order", "reversed"] => settings.is_reversed = true,
        ["order", "cuda"] => settings.is_reversed = false,
        ["energy-step", time] => settings.step_ns = duration(time)?.max(1),
        ["without-field", field] => {
            settings.absent_fields.insert(number(field)?);
        }
        ["field", field, "times", factor] => {
            let (field, factor) = (number(field)?, number(factor)?);
            settings.scaled_fields.insert(field, factor);
        }
        ["device", device, words @ ..] => {
            let sensors = settings
                .devices
                .entry(number(device)?)
                .or_insert(Sensors::NEW);
            set(sensors, words)?;
        }
        _ => return Err("no such command; see the README of simulated-driver".to_owned()),
    }
    Ok(())
}

fn set(sensors: &mut Sensors, words: &[&str]) -> Result<(), String> {
    match words {
        ["watts", idle, busy] => {
            (sensors.idle_watts, sensors.busy_watts) = (number(idle)?, number(busy)?);
        }
        ["temperature", celsius] => sensors.celsius = number(celsius)?,
        ["throttle", reasons] => sensors.reasons = number(reasons)?,
        ["processes", processes] => sensors.processes = number(processes)?,
        ["mig", "on"] => sensors.is_mig = true,
        ["mig", "off"] => sensors.is_mig = false,
        ["sm-clock", mhz] => sensors.sm_mhz = number(mhz)?,
        ["links", sent, received, nvlink_sent, nvlink_received] => {
            let bytes = [sent, received, nvlink_sent, nvlink_received];
            for (link, bytes) in sensors.links.iter_mut().zip(bytes) {
                *link = number(bytes)?;
            }
        }
        ["lose-energy", millijoules] => sensors.lost_millijoules += number::<u64>(millijoules)?,
        _ => {
            return Err(
                "a device has `watts IDLE BUSY`, `temperature`, `throttle`, `processes`, `mig`, `sm-clock`, `links` and \
                 `lose-energy`"
                    .to_owned(),
            );
        }
    }
    Ok(())
}
