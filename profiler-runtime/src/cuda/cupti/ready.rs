//! Launches and activities that are ready, on their way to the windows.

use std::mem;
use std::sync::Arc;

use profiler_host::sync::Lock;

use super::activity::WorkActivity;
use super::launch::Launch;

/// Launches and activities that no window has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    pub(crate) launches: Vec<Launch>,
    pub(crate) activities: Vec<WorkActivity>,
    /// The names of kernels as they were written, by their number, that are new since the last call.
    pub(crate) names: Vec<Arc<str>>,
}

static READY: Lock<Ready> = Lock::new(Ready {
    launches: Vec::new(),
    activities: Vec::new(),
    names: Vec::new(),
});

/// The most launches, and the most activities, that may wait. The windows' thread takes them a hundred times a second.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
pub(super) const MAX_WAITING: usize = 1 << 20;

/// Takes what is ready.
pub(crate) fn take_work() -> Ready {
    mem::take(&mut *READY.lock())
}

/// Changes what is ready.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
pub(super) fn with_ready<T>(f: impl FnOnce(&mut Ready) -> T) -> T {
    f(&mut READY.lock())
}
