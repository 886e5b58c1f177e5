//! Shares the energy of a device out to the names whose scopes ran on it.
//!
//! Nothing measures the energy of one kernel: counters advance in steps of some 100 ms. Over a run, each interval
//! between samples has an energy, and each name has GPU self time in that interval. A name gets the share of the energy
//! that its time has of the interval. If scopes overlap on several streams, their times may add up to more than the
//! interval, and they share all of it. The rest belongs to no measured scope.

use crate::gpu_sample::{DeviceEnergy, EnergySource, NameEnergy};
use crate::name;

/// The step of the energy counter on devices of the last generations, in nanoseconds.
const STEP_NS: f64 = 1e8;

/// GPU self times by name since the last interval that was shared out.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// By the number of the name.
    before: Vec<f64>,
    grown: Vec<(u32, f64)>,
}

impl Growth {
    /// Reads the GPU self times of all names on a device: `ordinal`, or all devices together. The first reading is where
    /// growth begins.
    pub(super) fn read(&mut self, ordinal: Option<u32>) {
        self.grown.clear();
        for name in name::all() {
            let own = name.cuda.self_time_on(ordinal);
            let place = name.id as usize;
            if self.before.len() <= place {
                self.before.resize(place + 1, 0.0);
            }
            let before = self.before.get(place).copied().unwrap_or(0.0);
            if own > before {
                self.grown.push((name.id, own - before));
            }
        }
    }

    /// Begins the next interval: what has grown belongs to the last one.
    pub(super) fn settle(&mut self) {
        for (name, grown) in self.grown.drain(..) {
            if let Some(before) = self.before.get_mut(name as usize) {
                *before += grown;
            }
        }
    }

    pub(super) fn grown(&self) -> &[(u32, f64)] {
        &self.grown
    }
}

/// Shares out the energy of one interval of `ns` nanoseconds.
pub(super) fn share(
    energy: &mut DeviceEnergy,
    source: EnergySource,
    joules: f64,
    ns: f64,
    grown: &[(u32, f64)],
) {
    let busy: f64 = grown.iter().map(|(_, grown)| grown).sum();
    let whole = ns.max(busy);
    // Not a number if both are zero.
    let per_ns = if whole > 0.0 { joules / whole } else { 0.0 };
    for (name, grown) in grown {
        let place = energy.names.binary_search_by_key(name, |known| known.name);
        let place = place.unwrap_or_else(|place| {
            let new = NameEnergy {
                name: *name,
                ..NameEnergy::default()
            };
            energy.names.insert(place, new);
            place
        });
        if let Some(share) = energy.names.get_mut(place) {
            share.joules += per_ns * grown;
            share.self_ns += grown;
        }
    }
    energy.source = source;
    energy.joules += joules;
    energy.unmeasured_joules += (joules - per_ns * busy).max(0.0);
    energy.intervals += 1;
    energy.covered_ns += ns;
    energy.step_ns = match source {
        EnergySource::Power => energy.covered_ns / energy.intervals as f64,
        EnergySource::Counter | EnergySource::None => STEP_NS,
    };
}

/// Returns the energy since `before`, which is an earlier state.
pub(super) fn since(now: &DeviceEnergy, before: &DeviceEnergy) -> DeviceEnergy {
    let names = now.names.iter().filter_map(|share| {
        let known = before
            .names
            .binary_search_by_key(&share.name, |known| known.name)
            .ok();
        let before = known.and_then(|place| before.names.get(place));
        let before = before.copied().unwrap_or_default();
        let self_ns = share.self_ns - before.self_ns;
        (self_ns > 0.0).then_some(NameEnergy {
            name: share.name,
            joules: share.joules - before.joules,
            self_ns,
        })
    });
    DeviceEnergy {
        source: now.source,
        joules: now.joules - before.joules,
        unmeasured_joules: now.unmeasured_joules - before.unmeasured_joules,
        names: names.collect(),
        intervals: now.intervals - before.intervals,
        covered_ns: now.covered_ns - before.covered_ns,
        step_ns: now.step_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The joules and the length of an interval, and the names whose time grew in it.
    type Interval<'i> = (f64, f64, &'i [(u32, f64)]);

    fn shared(intervals: &[Interval<'_>]) -> DeviceEnergy {
        let mut energy = DeviceEnergy::default();
        for (joules, ns, grown) in intervals {
            share(&mut energy, EnergySource::Counter, *joules, *ns, grown);
        }
        energy
    }

    fn joules(energy: &DeviceEnergy, name: u32) -> f64 {
        let known = energy.names.iter().find(|share| share.name == name);
        known.map_or(0.0, |share| share.joules)
    }

    #[test]
    fn energy_is_shared_by_time_and_the_rest_belongs_to_no_name() {
        let energy = shared(&[(100.0, 1e9, &[(7, 6e8), (3, 2e8)])]);
        assert_eq!((joules(&energy, 7), joules(&energy, 3)), (60.0, 20.0));
        assert!((energy.unmeasured_joules - 20.0).abs() < 1e-9);
        let ids: Vec<u32> = energy.names.iter().map(|share| share.name).collect();
        assert_eq!(ids, [3, 7]);
    }

    #[test]
    fn scopes_that_overlap_share_the_whole_interval() {
        let energy = shared(&[(90.0, 1e9, &[(1, 1e9), (2, 5e8)])]);
        assert!((joules(&energy, 1) - 60.0).abs() < 1e-9);
        assert!((joules(&energy, 2) - 30.0).abs() < 1e-9);
        assert!(energy.unmeasured_joules.abs() < 1e-9);
    }

    #[test]
    fn without_a_counter_the_step_is_the_mean_interval() {
        let mut energy = DeviceEnergy::default();
        for ns in [1e9, 3e9] {
            share(&mut energy, EnergySource::Power, 100.0, ns, &[]);
        }
        assert_eq!(
            (energy.step_ns, shared(&[(1.0, 1e9, &[])]).step_ns),
            (2e9, STEP_NS)
        );
    }

    #[test]
    fn an_idle_interval_belongs_to_no_name() {
        let energy = shared(&[(50.0, 1e9, &[]), (0.0, 0.0, &[])]);
        assert_eq!((energy.joules, energy.unmeasured_joules), (50.0, 50.0));
        assert_eq!(energy.intervals, 2);
    }

    #[test]
    fn the_energy_of_a_window_is_the_difference_of_two_states() {
        let before = shared(&[(100.0, 1e9, &[(1, 5e8)])]);
        let now = shared(&[(100.0, 1e9, &[(1, 5e8)]), (80.0, 1e9, &[(2, 2.5e8)])]);
        let window = since(&now, &before);
        assert!((joules(&window, 2) - 20.0).abs() < 1e-9);
        assert_eq!(
            (window.names.len(), window.joules, window.intervals),
            (1, 80.0, 1)
        );
    }
}
