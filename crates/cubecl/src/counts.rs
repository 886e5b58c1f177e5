//! Counts of launches whose asker is not known.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use profiler_host::diagnostics::warn_once;

/// Launches that were not as announced, since the process began: see [`counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Kernels that CubeCL has launched and that belong to no function, since nobody has announced them: they were asked for
    /// before the session, while another observer was installed, by more threads at the same moment than there are places for
    /// (64), or for a device that is not one of [`Observer::devices`](crate::Observer::devices); of these, on Linux.
    pub unknown: u64,
    /// Announced launches that had not happened when the next one on their stream was announced, or those of 64 streams after
    /// it: CubeCL has discarded them, or made them on another device or backend, or when kernels were not recorded. Counted when
    /// the next one happens, and not with several devices.
    pub never_launched: u64,
    /// Times of devices that were lost, since they came faster than they were read:
    /// [`Observer::device_times`](crate::Observer::device_times).
    pub lost_times: u64,
}

/// Returns how many launches were not as announced.
///
/// # Examples
///
/// ```
/// assert_eq!(profiler_cubecl::counts().unknown, 0);
/// ```
#[must_use]
pub fn counts() -> Counts {
    Counts {
        unknown: UNKNOWN.get() + OTHER_DEVICE.get(),
        never_launched: NEVER_LAUNCHED.get(),
        lost_times: LOST_TIMES.get(),
    }
}

/// A number that any thread counts up.
///
/// Nothing is read because of it, so all its orderings are relaxed.
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Launches on a known runner that nobody has announced.
pub(crate) static UNKNOWN: Count = Count(AtomicU64::new(0));
/// Launches on the runner of a device that was not named, where runners are known by their names.
pub(crate) static OTHER_DEVICE: Count = Count(AtomicU64::new(0));
pub(crate) static NEVER_LAUNCHED: Count = Count(AtomicU64::new(0));
pub(crate) static LOST_TIMES: Count = Count(AtomicU64::new(0));

/// Says once what the program can do about what was counted. The hook that counts must not: it neither locks nor allocates.
pub(crate) fn warn() {
    static HAS_WARNED: AtomicBool = AtomicBool::new(false);
    // The swap is made once: two threads must not both warn.
    let is_due = NEVER_LAUNCHED.get() + OTHER_DEVICE.get() > 0 && !HAS_WARNED.load(Relaxed);
    if !is_due || HAS_WARNED.swap(true, Relaxed) {
        return;
    }
    warn_once(if OTHER_DEVICE.get() > 0 {
        "kernels that CubeCL launches on a device belong to no function: name the devices that it uses, \
         `profiler_cubecl::Observer::new().devices([0, 1]).install()`"
    } else {
        "CubeCL has announced launches that were not seen to happen: it has discarded them, or made them elsewhere or after the \
         window. Other kernels are not affected, and `profiler_cubecl::counts()` has their number"
    });
}
