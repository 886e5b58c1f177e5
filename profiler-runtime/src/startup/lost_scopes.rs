//! What the traces of `PROFILER_TRACE` lack, for a warning where the run ends: who opens a trace may not look for it there.

use std::collections::BTreeMap;

use profiler_host::sync::Lock;

use crate::session::Trace;

/// How many, by what follows the number in a sentence.
static LOST: Lock<BTreeMap<&'static str, u64>> = Lock::new(BTreeMap::new());

/// Adds what a trace lacks.
pub(super) fn note(trace: &Trace) {
    let scopes = trace.truncation().counted();
    let work = trace.lost_work().counted();
    let mut lost = LOST.lock();
    for (count, what) in scopes.into_iter().chain(work) {
        if count > 0 {
            *lost.entry(what).or_default() += count;
        }
    }
}

/// Returns a warning for each kind of what the traces lack.
pub(super) fn warnings() -> Vec<String> {
    let lost = LOST.lock();
    let warnings = lost.iter();
    warnings
        .map(|(what, count)| format!("PROFILER_TRACE: {count} {what}"))
        .collect()
}
