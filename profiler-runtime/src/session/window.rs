//! Windows: when they are open, and which records belong to them.

use std::sync::Arc;

use super::record::ThreadInfo;
use super::ring::Lost;
use super::{Activity, SessionOptions};
use crate::clock::WallAnchor;
use crate::cuda::nvml::ClosingSample;
use crate::cuda::{Recording, WorkLosses};

/// Changes of activities that are remembered for one window.
const MAX_TOGGLES: usize = 4096;

/// The extent of a window: when it is open, and which records belong to it.
#[derive(Clone, Debug)]
pub(super) struct WindowSpec {
    pub(super) id: u64,
    pub(super) session: u64,
    pub(super) cycle: u64,
    /// Windows of the session that were not recorded, between this one and the one before.
    pub(super) skipped: u64,
    pub(super) capacity: usize,
    pub(super) options: SessionOptions,
    /// Ticks of the clock.
    pub(super) opened: u64,
    /// Ticks of the clock; set when the window closes.
    pub(super) closed: Option<u64>,
    /// The activities that are recorded, each entry from its time on, in order.
    pub(super) toggles: Vec<(u64, SessionOptions)>,
    pub(super) first: WallAnchor,
    /// Losses up to the moment it opened.
    pub(super) lost_before: Lost,
    /// `true` if a warm-up came before it.
    pub(super) had_warmup: bool,
    /// Launches and records of the devices that were lost up to that moment.
    pub(super) lost_work_before: WorkLosses,
    /// Losses up to the moment it closed. The window that follows it without a gap has the same in `lost_before`, so that
    /// each loss is counted in one of them.
    pub(super) lost_after: Lost,
    /// The sample that was asked for when it closed.
    pub(super) closing_sample: Option<ClosingSample>,
}

/// The state of a session when its window closed.
#[derive(Clone, Debug)]
pub(super) struct WindowClose {
    pub(super) cut_short: bool,
    pub(super) step_num: u64,
    pub(super) steps: Vec<StepRecord>,
    pub(super) metadata: Vec<(String, String)>,
    pub(super) last: WallAnchor,
    /// The period in which CUPTI recorded when the window closed.
    pub(super) recording: Option<Recording>,
    /// Why measuring was off when the window closed, if it was.
    pub(super) why_off: Option<&'static str>,
}

/// A step, with the thread that ended it.
#[derive(Clone, Debug)]
pub(super) struct StepRecord {
    pub(super) number: u64,
    pub(super) thread: Option<Arc<ThreadInfo>>,
    pub(super) start: u64,
    pub(super) end: u64,
}

impl WindowSpec {
    /// Returns `true` if a scope lies inside the window. A scope that begins at the moment the window closes belongs to
    /// the next one.
    pub(super) fn contains(&self, start: u64, end: u64) -> bool {
        let closed = self.closed.unwrap_or(u64::MAX);
        start >= self.opened && start < closed && end <= closed
    }

    /// Returns `true` if a scope with this end may lie inside the window.
    pub(super) fn may_contain(&self, end: u64) -> bool {
        end >= self.opened && end <= self.closed.unwrap_or(u64::MAX)
    }

    /// Returns `true` if any activity was recorded for scopes that began at `at`.
    pub(super) fn records_any(&self, at: u64) -> bool {
        self.records(Activity::Cpu, at) || self.records(Activity::Cuda, at)
    }

    /// Changes the recorded activities from `at` on. Returns `false` after too many changes; then everything is
    /// recorded.
    pub(super) fn toggle(&mut self, at: u64, options: SessionOptions) -> bool {
        if self
            .toggles
            .last()
            .is_some_and(|(_, last)| *last == options)
        {
            return true;
        }
        let is_possible = self.toggles.len() < MAX_TOGGLES;
        if is_possible {
            self.toggles.push((at, options));
        } else if self.toggles.len() == MAX_TOGGLES {
            self.toggles.push((at, self.options));
        }
        is_possible
    }

    /// Returns `true` if an activity was recorded for scopes that began at `at`.
    pub(super) fn records(&self, activity: Activity, at: u64) -> bool {
        let since = self.toggles.partition_point(|(since, _)| *since <= at);
        let options = since
            .checked_sub(1)
            .and_then(|place| self.toggles.get(place));
        options
            .map_or(self.options, |(_, options)| *options)
            .has(activity)
    }

    /// Returns `true` if the window has kernels, where CUPTI records them.
    pub(super) fn has_kernels(&self) -> bool {
        self.options.has_kernels()
    }

    /// Returns `true` if a call of CUDA that began at this time, in ticks, belongs to the window.
    pub(super) fn has_launch(&self, at: u64) -> bool {
        let closed = self.closed.unwrap_or(u64::MAX);
        let is_inside = (self.opened..closed).contains(&at);
        self.has_kernels() && is_inside && self.records(Activity::Cuda, at)
    }
}
