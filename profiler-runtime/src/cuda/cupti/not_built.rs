//! Stands in for [`recorder`](super::recorder) in builds without CUPTI: without its feature, and on WebAssembly.

use std::time::Duration;

use super::hook::LaunchHookState;
use super::status::KernelStatus;

/// The demand of the sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Demand {
    /// Nothing.
    #[default]
    Nothing,
    /// The records of windows that have closed.
    Rest,
    /// That it records, if that is possible.
    IfPossible,
    /// That it records, and a warning if that is not possible.
    Required,
}

/// The period in which CUPTI records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording {
    pub(crate) since: u64,
    pub(crate) idle_until: u64,
    pub(crate) other_clock: Option<f64>,
}

pub(crate) fn want_kernels(_demand: Demand) {}

pub(crate) fn is_beginning() -> bool {
    false
}

pub(crate) fn wait_until_ready(_timeout: Duration) {}

pub(crate) fn recording() -> Option<Recording> {
    None
}

/// Nothing is flushed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushed;

pub(crate) fn flushed() -> Flushed {
    Flushed
}

#[allow(clippy::unused_self, reason = "as with CUPTI")]
impl Flushed {
    pub(crate) fn is_final(self) -> bool {
        true
    }

    pub(crate) fn includes(self, _at: u64, _is_forced: bool) -> bool {
        true
    }
}

pub(crate) fn shut_down() {}

pub(super) fn launch_hook_state() -> LaunchHookState {
    LaunchHookState::Unused
}

pub(super) fn status() -> KernelStatus {
    KernelStatus::NotBuilt
}
