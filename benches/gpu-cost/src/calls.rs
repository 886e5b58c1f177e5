//! The number of driver calls per measured call.

use std::collections::BTreeMap;

use profiler_simulated_driver::SimulatorError;
use serde::{Deserialize, Serialize};

use crate::gpu::Gpu;
use crate::variants::Subject;

/// Few enough that the resolver, which calls the driver too, runs during some of the batches only.
const CALLS: u64 = 48;
const BATCHES: usize = 200;

/// The calls of each entry point per measured call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DriverCalls {
    pub(crate) name: String,
    pub(crate) per_call: BTreeMap<String, f64>,
}

pub(crate) fn measure(subjects: &[Subject]) -> Result<Vec<DriverCalls>, SimulatorError> {
    let profiled = subjects.iter().filter(|subject| subject.compared.is_some());
    profiled.map(of).collect()
}

/// The minimum over all batches, which excludes the calls that the resolver made during a batch.
fn of(subject: &Subject) -> Result<DriverCalls, SimulatorError> {
    let variant = &subject.variant;
    let mut least: Option<BTreeMap<String, u64>> = None;
    for _ in 0..BATCHES {
        (variant.before)();
        let before = Gpu::here().simulator.report()?.calls;
        (variant.run)(CALLS);
        let after = Gpu::here().simulator.report()?.calls;
        (variant.after)();
        let made = after.into_iter().map(|(entry, calls)| {
            let earlier = before.get(&entry).copied().unwrap_or(0);
            (entry, calls - earlier)
        });
        let known = least.take();
        least = Some(
            made.map(|(entry, calls)| {
                let known = known
                    .as_ref()
                    .map(|known| known.get(&entry).copied().unwrap_or(0));
                let least = known.map_or(calls, |known| known.min(calls));
                (entry, least)
            })
            .collect(),
        );
    }
    let least = least.unwrap_or_default();
    Ok(DriverCalls {
        name: variant.name.to_owned(),
        per_call: least
            .into_iter()
            .filter(|(_, calls)| *calls > 0)
            .map(|(entry, calls)| (entry, calls as f64 / CALLS as f64))
            .collect(),
    })
}
