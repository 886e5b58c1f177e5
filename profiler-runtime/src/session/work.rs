//! The work that ran on the devices while a window was open, as CUPTI recorded it.

use std::sync::Arc;

use profiler_report::internal::StreamKey;
use profiler_report::{GpuWork, GpuWorkKind};

use super::record::NONE;
use super::work_losses::LostWork;

/// The kernels, copies, fills and waits of a window, and the calls that launched them.
#[derive(Debug, Default)]
pub(crate) struct WindowWork {
    /// `true` if CUPTI recorded during the window.
    pub(crate) is_recorded: bool,
    /// The times in which it did not, in their order, while work may have run.
    pub(crate) gaps: Vec<WorkGap>,
    /// In the order of their starts.
    pub(crate) work: Vec<WorkRecord>,
    /// In the order of their starts.
    pub(crate) launches: Vec<LaunchRecord>,
    /// Times of devices that the program reported, in the order of their starts.
    pub(crate) reported: Vec<ReportedTime>,
    /// The names of kernels, demangled, and of calls of CUDA, such as `cuLaunchKernel`.
    pub(crate) names: Vec<Arc<str>>,
    /// The missing work, by reason.
    pub(crate) lost: LostWork,
    /// Why nothing was recorded although the session asked for it.
    pub(crate) missing: Option<String>,
    /// Notes for readers of the records, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// A time in which work was not recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkGap {
    /// When it began and ended, in ticks.
    pub(crate) span: (u64, u64),
    pub(crate) reason: GapReason,
}

/// Why work was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapReason {
    /// CUPTI was starting.
    Starting,
    /// CUPTI was starting, and had not finished by the end of the warm-up.
    StartingAfterWarmup,
    /// The program had turned the collection off.
    Off,
}

impl GapReason {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "CUPTI was starting; record a step of warm-up",
            Self::StartingAfterWarmup => "CUPTI was starting; record more steps of warm-up",
            Self::Off => "collection of `Activity::Cuda` was turned off",
        }
    }
}

/// A kernel, a copy, a fill or a wait.
#[derive(Clone, Debug)]
pub(crate) struct WorkRecord {
    /// The index of its name in [`WindowWork::names`].
    pub(crate) name: u32,
    /// When it began and ended, in nanoseconds since the Unix epoch. `None` if the device had no space for the times.
    pub(crate) span: Option<(i64, i64)>,
    /// The index of the call that launched it in [`WindowWork::launches`]; [`NONE`] if that is not known.
    pub(crate) launch: u32,
    /// The stream that the program launched it on, if that is known.
    pub(crate) stream_key: Option<StreamKey>,
    pub(crate) details: GpuWork,
}

/// A time of a device that something else has measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedTime {
    /// When it began and ended, in nanoseconds since the Unix epoch.
    pub(crate) span: (i64, i64),
    /// The index of its name in [`WindowWork::names`].
    pub(crate) name: u32,
    /// The index of its scope in [`Trace::scopes`](super::Trace).
    pub(crate) scope: u32,
}

/// A call of CUDA that launched work.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRecord {
    /// The index of its name in [`WindowWork::names`].
    pub(crate) name: u32,
    /// The index of its thread in [`Trace::threads`](super::Trace); [`NONE`] if no scope of the window ran on it.
    pub(crate) thread: u32,
    /// When it began and ended, in nanoseconds since the Unix epoch.
    pub(crate) span: (i64, i64),
    /// The index of the innermost scope around it in [`Trace::scopes`](super::Trace); [`NONE`] if no scope of the window
    /// was open. For a call inside a poll this is the future. A handle or the launch hook may name one of another thread.
    pub(crate) scope: u32,
    /// Since when its thread worked for a scope that a handle or the launch hook named, in nanoseconds since the Unix epoch.
    pub(crate) since: Option<i64>,
    pub(crate) correlation: u32,
}

impl WindowWork {
    /// Returns the call that launched some work.
    pub(crate) fn launch_of(&self, work: &WorkRecord) -> Option<&LaunchRecord> {
        self.launches.get(work.launch as usize)
    }

    /// Returns the index of the scope that launched some work, among the records of the window.
    pub(crate) fn scope_of(&self, work: &WorkRecord) -> Option<usize> {
        let scope = self.launch_of(work)?.scope;
        (scope != NONE).then_some(scope as usize)
    }

    /// Returns the kernels, copies and fills whose times are known: what a stream executes. Waits are left out.
    pub(crate) fn on_streams(&self) -> impl Iterator<Item = &WorkRecord> {
        self.work.iter().filter(|work| {
            let is_wait = matches!(work.details.kind, GpuWorkKind::Synchronization(_));
            work.span.is_some() && !is_wait
        })
    }

    /// Returns `true` if the time of some work is known, and the scope that asked for it.
    pub(crate) fn has_times_of_scopes(&self) -> bool {
        !self.reported.is_empty() || self.on_streams().any(|work| self.scope_of(work).is_some())
    }

    /// Returns the name of a kernel or a call.
    pub(crate) fn name(&self, index: u32) -> &str {
        self.names
            .get(index as usize)
            .map_or("(unknown)", |name| name)
    }
}
