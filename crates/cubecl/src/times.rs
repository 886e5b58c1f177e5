//! Times of kernels that CubeCL measures itself, for programs without CUPTI.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use cubecl_environment::future::block_on;
use cubecl_runtime::config::{TypeNameFormatLevel, type_name_format};
use cubecl_runtime::logging::{ProfileDuration, TimingMethod};
use profiler_host::diagnostics::warn_once;
use profiler_runtime::Handle;

use crate::counts::LOST_TIMES;

/// How many times wait to be read. A thread that launches never waits for this queue.
const UNREAD: usize = 4_096;

/// A time that the device may not have reached yet.
pub(crate) struct Unread {
    asker: Handle,
    kernel: &'static str,
    profile: ProfileDuration,
}

/// Starts the thread that reads times. Returns where to send them, or `None` if there is no thread.
pub(crate) fn start() -> Option<SyncSender<Unread>> {
    let (send, receive) = sync_channel(UNREAD);
    let thread = thread::Builder::new().name("profiler-cubecl".to_owned());
    // CubeCL tells a time as its distance from one before it.
    let since = Instant::now();
    match thread.spawn(move || read_all(&receive, since)) {
        Ok(_) => Some(send),
        Err(error) => {
            warn_once(&format!(
                "kernels of CubeCL have no times, since no thread can be started to read them: {error}"
            ));
            None
        }
    }
}

/// Sends a time to be read.
pub(crate) fn queue(
    times: &SyncSender<Unread>,
    asker: Handle,
    kernel: &'static str,
    profile: ProfileDuration,
) {
    // Others than those of a device include the call.
    if asker.is_none() || profile.timing_method() != TimingMethod::Device {
        return;
    }
    let unread = Unread {
        asker,
        kernel,
        profile,
    };
    if times.try_send(unread).is_err() {
        LOST_TIMES.add(1);
    }
}

/// Reports a time that has just been read.
pub(crate) fn report_ended(asker: &Handle, kernel: &'static str, duration: Duration) {
    let end = Instant::now();
    if let Some(start) = end.checked_sub(duration) {
        asker.report_device_time(&short(kernel), start, end);
    }
}

fn read_all(times: &Receiver<Unread>, since: Instant) {
    for time in times {
        let Some(ticks) = block_on(time.profile.resolve()) else {
            continue;
        };
        let start = since + ticks.start_duration_since(since);
        let end = since + ticks.end_duration_since(since);
        time.asker
            .report_device_time(&short(time.kernel), start, end);
    }
}

/// Returns the last part of a kernel's path, as CubeCL's own profiling log has it.
fn short(kernel: &str) -> String {
    type_name_format(kernel, TypeNameFormatLevel::Short)
}
