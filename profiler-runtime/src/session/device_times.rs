//! Times of devices that something else than the profiler measured, on their way to the windows.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use profiler_host::process::platform::{self, unix_ns};
use profiler_host::sync::Lock;

use super::registry::registry;

/// The most times that may wait. While there are any, the windows' thread takes them a hundred times a second.
const MAX_WAITING: usize = 1 << 16;

/// A time of a device.
#[derive(Clone, Debug)]
pub(super) struct DeviceTime {
    /// The id by which the record of its scope is named.
    pub(super) shared: u64,
    pub(super) name: Arc<str>,
    /// When it began and ended, in nanoseconds since the Unix epoch.
    pub(super) span: (i64, i64),
}

/// The times that wait, and how many were dropped since the last look.
static WAITING: Lock<(Vec<DeviceTime>, u64)> = Lock::new((Vec::new(), 0));

/// Adds a time for the windows that are open, or closed and not delivered. The caller is inside of the profiler.
pub(super) fn add(shared: u64, name: &str, (start, end): (Instant, Instant)) {
    if !registry().has_windows() {
        return;
    }
    let (now, wall) = (Instant::now(), unix_ns(platform::wall_time()));
    let at = |time: Instant| {
        let ns = |length: std::time::Duration| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX);
        match now.checked_duration_since(time) {
            Some(ago) => wall.saturating_sub(ns(ago)),
            None => wall.saturating_add(ns(time.saturating_duration_since(now))),
        }
    };
    let time = DeviceTime {
        shared,
        name: name.into(),
        span: (at(start), at(end)),
    };
    let mut waiting = WAITING.lock();
    let (times, dropped) = &mut *waiting;
    if times.len() < MAX_WAITING && times.try_reserve(1).is_ok() {
        times.push(time);
    } else {
        *dropped += 1;
    }
}

/// Takes the times that wait, and the number of those that were too many.
pub(super) fn take() -> (Vec<DeviceTime>, u64) {
    mem::take(&mut *WAITING.lock())
}
