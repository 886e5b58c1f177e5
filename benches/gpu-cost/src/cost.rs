//! The time of each variant, compared with its unavoidable part in the same rounds.

use bench_harness::{Spread, Variant, measure as run};
use serde::{Deserialize, Serialize};

use crate::subjects::BATCH;
use crate::variants::Subject;

/// The cost of one variant, in nanoseconds per measured call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) name: String,
    pub(crate) all: Spread,
    /// The time beyond the two records; `None` for a variant without the profiler.
    pub(crate) beyond_records: Option<Spread>,
    /// The time beyond all driver calls (records and queries): the profiler's own time.
    pub(crate) profiled: Option<Spread>,
}

pub(crate) fn measure(subjects: &[Subject], rounds: usize) -> Vec<Cost> {
    let variants: Vec<Variant> = subjects.iter().map(|subject| subject.variant).collect();
    let samples = run(&variants, 1, rounds, BATCH);
    let of = |name: &str| {
        let at = subjects
            .iter()
            .position(|subject| subject.variant.name == name);
        at.map(|at| &samples[at])
    };
    let costs = subjects.iter().zip(&samples).map(|(subject, samples)| {
        let beyond = |base: &str| Some(samples.added_to(of(base)?, 1));
        Cost {
            name: subject.variant.name.to_owned(),
            all: samples.spread(),
            beyond_records: subject.compared.and_then(|with| beyond(with.records)),
            profiled: subject.compared.and_then(|with| beyond(with.driver)),
        }
    });
    costs.collect()
}
