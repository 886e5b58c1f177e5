//! The demand of all sessions for CUPTI.

use std::time::Duration;

use profiler_host::sync::Lock;

use super::SessionOptions;
use crate::cuda::{self, Demand};

/// How long the start of a session waits for CUPTI if a window opens at once: a session that asks for kernels, and one
/// that takes them if they are possible.
const PATIENCE: [Duration; 2] = [Duration::from_secs(10), Duration::from_millis(250)];

#[derive(Default)]
struct Wants {
    recorders: Demand,
    /// `true` if a window that has kernels is open, or closed and not delivered.
    has_windows: bool,
}

static WANTS: Lock<Wants> = Lock::new(Wants {
    recorders: Demand::Nothing,
    has_windows: false,
});

/// Sets what the sessions that record want.
pub(super) fn recorders_want(demand: Demand) {
    change(|wants| wants.recorders = demand);
}

/// Sets whether some window may wait for records.
pub(super) fn windows_want(has_windows: bool) {
    change(|wants| wants.has_windows = has_windows);
}

/// Repeats what the sessions want, in case the program has begun to use CUDA.
pub(super) fn repeat() {
    change(|_| ());
}

fn change(change: impl FnOnce(&mut Wants)) {
    let mut wants = WANTS.lock();
    change(&mut wants);
    let rest = if wants.has_windows {
        Demand::Rest
    } else {
        Demand::Nothing
    };
    // With the lock held, so that of two changes at once the later one takes effect.
    cuda::want_kernels(wants.recorders.max(rest));
}

/// Waits until CUPTI records, for a session that records from now on. The session of the environment begins inside of a
/// measured call, which waits only if kernels are required.
pub(super) fn wait_until_ready(options: SessionOptions, is_environment: bool) {
    if let Some(patience) = patience(options.demand(), is_environment) {
        cuda::wait_until_ready(patience);
    }
}

fn patience(demand: Demand, is_environment: bool) -> Option<Duration> {
    let [required, possible] = PATIENCE;
    match demand {
        Demand::Required => Some(required),
        Demand::IfPossible if !is_environment => Some(possible),
        Demand::IfPossible | Demand::Nothing | Demand::Rest => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_measured_call_waits_only_for_kernels_that_are_required() {
        for (demand, waits) in [
            (Demand::Nothing, [false, false]),
            (Demand::IfPossible, [true, false]),
            (Demand::Required, [true, true]),
        ] {
            let found = [false, true].map(|environment| patience(demand, environment).is_some());
            assert_eq!(found, waits, "{demand:?}");
        }
    }
}
