//! The allocations of the calling thread.

use bench_harness::memory::allocations_of_this_thread;
use serde::{Deserialize, Serialize};

use crate::subjects::BATCH;
use crate::variants::Subject;

const BATCHES: u64 = 100;

/// The allocations during the calls of one variant.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Allocations {
    pub(crate) name: String,
    pub(crate) calls: u64,
    /// The allocations of the calling thread during the calls.
    pub(crate) blocks: u64,
}

pub(crate) fn measure(subjects: &[Subject]) -> Vec<Allocations> {
    let profiled = subjects.iter().filter(|subject| subject.compared.is_some());
    profiled
        .map(|Subject { variant, .. }| {
            let mut blocks = 0;
            for _ in 0..BATCHES {
                (variant.before)();
                let before = allocations_of_this_thread();
                (variant.run)(BATCH);
                blocks += allocations_of_this_thread() - before;
                (variant.after)();
            }
            Allocations {
                name: variant.name.to_owned(),
                calls: BATCHES * BATCH,
                blocks,
            }
        })
        .collect()
}
