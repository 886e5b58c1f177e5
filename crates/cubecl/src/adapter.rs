//! The observer that CubeCL tells of its launches, on the threads that ask.

use std::cell::Cell;
use std::sync::mpsc::SyncSender;
use std::thread;

use cubecl_common::device_handle::DeviceHandle;
use cubecl_runtime::logging::{
    Duration, LaunchObserver, ProfileDuration, TimingMethod, TimingRequest,
};
use profiler_runtime::cuda::{LaunchHookState, launch_hook_state};
use profiler_runtime::{Handle, scope};

use crate::counts;
use crate::runner::{self, Runner};
use crate::times::{self, Unread};

pub(crate) struct Adapter {
    /// The runners of the devices that were named. None if the program has a launch hook of its own.
    pub(crate) runners: Box<[DeviceHandle<Runner>]>,
    /// Where unread times go, if there are to be any.
    pub(crate) times: Option<SyncSender<Unread>>,
}

impl LaunchObserver for Adapter {
    fn launched(&self, _kernel: &'static str) {
        if launch_hook_state() == LaunchHookState::Unused {
            return;
        }
        let asker = asker().id();
        let is_only = self.runners.len() == 1;
        if runner::is_here() {
            // A runner launches at once what it asks for. It must not wait for a place in the queue of another runner, which
            // may wait for one in the queue of this.
            runner::note(asker, is_only);
        } else {
            for runner in &self.runners {
                runner.submit(move |_| runner::note(asker, is_only));
            }
        }
        counts::warn();
    }

    fn timing(&self) -> TimingRequest {
        match self.times {
            Some(_) => TimingRequest::Deferred,
            None => TimingRequest::None,
        }
    }

    fn profiled(&self, kernel: &'static str, profile: ProfileDuration) {
        if let Some(times) = &self.times {
            times::queue(times, asker(), kernel, profile);
        }
    }

    fn timed(&self, kernel: &'static str, duration: Duration, method: TimingMethod) {
        // CubeCL's own profiling log has read the time. Others than those of a device include the call.
        if method == TimingMethod::Device && self.times.is_some() {
            times::report_ended(&asker(), kernel, duration);
        }
    }
}

/// Returns the handle of the scope that asks for a kernel on this thread.
fn asker() -> Handle {
    let asker = Handle::current();
    if asker.is_none() && is_fusing() {
        let _fused = scope!("fused by Burn");
        return Handle::current();
    }
    asker
}

/// Returns `true` on the threads on which Burn decides what to fuse. CubeCL names them.
fn is_fusing() -> bool {
    thread_local! {
        static IS_FUSING: Cell<Option<bool>> = const { Cell::new(None) };
    }
    IS_FUSING.get().unwrap_or_else(|| {
        let thread = thread::current();
        let is_fusing = thread.name().is_some_and(|name| name.starts_with("DSU-"));
        IS_FUSING.set(Some(is_fusing));
        is_fusing
    })
}
