//! Time: each variant against what it cannot do without, in the same rounds.

use bench_harness::{Spread, Variant, measure as run};
use serde::{Deserialize, Serialize};

use crate::subjects::BATCH;
use crate::variants::Subject;

/// One variant, in nanoseconds per measured call.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cost {
    pub(crate) name: String,
    pub(crate) all: Spread,
    /// Beyond the two records; none for what is not ours.
    pub(crate) beyond_records: Option<Spread>,
    /// Beyond all calls of the driver, the records and the questions: what is our own.
    pub(crate) ours: Option<Spread>,
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
            ours: subject.compared.and_then(|with| beyond(with.driver)),
        }
    });
    costs.collect()
}
