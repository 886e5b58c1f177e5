//! Shares out the energy of devices among rows.

use std::collections::HashMap;

use super::why_not_shared;
use crate::Energy;
use crate::gpu_sample::{DeviceSamples, EnergySource};
use crate::row::Row;

/// A share of less GPU time than this many steps of the energy counter says nothing.
const LEAST_STEPS: f64 = 10.0;

/// The energy of a name on all devices.
#[derive(Clone, Copy, Debug, Default)]
struct OfName {
    joules: f64,
    self_ns: f64,
    /// The longest step of the counters of its devices.
    step_ns: f64,
    /// `true` if it ran on a device whose energy is not shared out.
    is_refused: bool,
}

/// Sets the energy of rows. `text_of` returns the name with a number.
pub fn fill<'n>(
    rows: &mut [Row],
    devices: &[DeviceSamples],
    text_of: impl Fn(u32) -> Option<&'n str>,
) {
    let names = by_name(devices, text_of);
    if names.is_empty() {
        return;
    }
    // Rows that are grouped further have a part of their name's energy each.
    let mut self_ns = HashMap::<String, f64>::new();
    for row in rows.iter() {
        *self_ns.entry(row.name.clone()).or_default() += own(row);
    }
    for row in rows {
        let Some(name) = names.get(&*row.name).filter(|name| !name.is_refused) else {
            continue;
        };
        let all = self_ns.get(&row.name).copied().unwrap_or_default();
        let part = if all > 0.0 { own(row) / all } else { 1.0 };
        let gpu_self_ns = name.self_ns * part;
        // Sums of parts are rounded: exactly ten steps may be a little less.
        let is_enough = gpu_self_ns.round() >= LEAST_STEPS * name.step_ns;
        row.energy = (gpu_self_ns > 0.0).then(|| Energy {
            joules: is_enough.then_some(name.joules * part),
            gpu_self_ns,
        });
    }
}

/// Returns the GPU self time of a row.
fn own(row: &Row) -> f64 {
    row.cuda.map_or(0.0, |cuda| cuda.self_ns)
}

fn by_name<'n>(
    devices: &[DeviceSamples],
    text_of: impl Fn(u32) -> Option<&'n str>,
) -> HashMap<&'n str, OfName> {
    let mut names = HashMap::<&str, OfName>::new();
    for DeviceSamples { device, energy, .. } in devices {
        let is_refused = energy.source == EnergySource::None || why_not_shared(device).is_some();
        for share in &energy.names {
            let Some(text) = text_of(share.name) else {
                continue;
            };
            let name = names.entry(text).or_default();
            name.joules += share.joules;
            name.self_ns += share.self_ns;
            name.step_ns = name.step_ns.max(energy.step_ns);
            name.is_refused |= is_refused;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu_sample::{DeviceEnergy, GpuDevice, NameEnergy};
    use crate::times::Times;

    const NAMES: [&str; 2] = ["forward", "backward"];

    /// A device with a counter step of 100 ms. Shares are the name, joules and seconds.
    fn device(shares: &[(u32, f64, f64)]) -> DeviceSamples {
        let names = shares.iter().map(|(name, joules, seconds)| NameEnergy {
            name: *name,
            joules: *joules,
            self_ns: seconds * 1e9,
        });
        DeviceSamples {
            energy: DeviceEnergy {
                source: EnergySource::Counter,
                names: names.collect(),
                step_ns: 1e8,
                ..DeviceEnergy::default()
            },
            ..DeviceSamples::default()
        }
    }

    fn row(name: &str, self_s: f64) -> Row {
        Row {
            name: name.to_owned(),
            cuda: Some(Times {
                self_ns: self_s * 1e9,
                ..Times::default()
            }),
            ..Row::default()
        }
    }

    /// The energy of a row as tables show it.
    #[derive(Debug, PartialEq)]
    enum Shown {
        Joules(f64),
        TooLittle,
        None,
    }
    use Shown::{Joules, TooLittle};

    fn shown(rows: &mut [Row], devices: &[DeviceSamples]) -> Vec<Shown> {
        fill(rows, devices, |id| NAMES.get(id as usize).copied());
        let energy = rows.iter().map(|row| row.energy);
        let shown = |energy: Energy| energy.joules.map_or(TooLittle, Joules);
        energy
            .map(|energy| energy.map_or(Shown::None, shown))
            .collect()
    }

    #[test]
    fn the_energy_of_a_name_is_that_of_all_its_devices() {
        let devices = [
            device(&[(0, 100.0, 2.0)]),
            device(&[(0, 40.0, 1.0), (1, 60.0, 1.0)]),
        ];
        let mut rows = [row("forward", 3.0), row("backward", 1.0), row("load", 0.0)];
        let expected = [Joules(140.0), Joules(60.0), Shown::None];
        assert_eq!(shown(&mut rows, &devices), expected);
        assert_eq!(
            rows[0].energy.and_then(|energy| energy.watts()),
            Some(140.0 / 3.0)
        );
    }

    #[test]
    fn less_than_ten_steps_have_no_share() {
        let devices = [device(&[(0, 100.0, 1.0), (1, 99.0, 0.999)])];
        let mut rows = [row("forward", 1.0), row("backward", 0.999)];
        assert_eq!(shown(&mut rows, &devices), [Joules(100.0), TooLittle]);
        // Ten steps, as a sum of rounded parts.
        let devices = [device(&[(0, 100.0, 0.999_999_999_999_999_9)])];
        assert_eq!(shown(&mut rows[..1], &devices), [Joules(100.0)]);
    }

    #[test]
    fn rows_with_one_name_share_its_energy() {
        let devices = [device(&[(0, 100.0, 40.0)])];
        let mut rows = [
            row("forward", 10.0),
            row("forward", 30.0),
            row("forward", 0.0),
        ];
        let expected = [Joules(25.0), Joules(75.0), Shown::None];
        assert_eq!(shown(&mut rows, &devices), expected);
    }

    #[test]
    fn on_a_device_that_others_use_no_name_has_an_energy() {
        let shared = |change: fn(&mut GpuDevice)| {
            let mut device = device(&[(0, 100.0, 40.0)]);
            change(&mut device.device);
            device
        };
        let others = shared(|device| device.compute_processes = Some(2));
        let mig = shared(|device| device.is_mig = true);
        let alone = shared(|device| device.compute_processes = Some(1));
        for (devices, expected) in [
            (vec![others], Shown::None),
            (vec![mig.clone()], Shown::None),
            (vec![alone.clone()], Joules(100.0)),
            (vec![alone, mig], Shown::None),
        ] {
            assert_eq!(shown(&mut [row("forward", 40.0)], &devices), [expected]);
        }
    }

    #[test]
    fn power_is_energy_by_gpu_time() {
        let energy = |joules, gpu_self_ns| Energy {
            joules,
            gpu_self_ns,
        };
        assert_eq!(energy(Some(150.0), 0.5e9).watts(), Some(300.0));
        assert_eq!(energy(None, 0.5e9).watts(), None);
        assert_eq!(energy(Some(150.0), 0.0).watts(), None);
    }
}
