//! Joins the records of devices with the calls that launched them, and sorts both into windows.
//!
//! A record may come after its window has been delivered: the device had not finished, or the launch came late. It belongs
//! to no other window, so it counts as late in the next one of the session.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use profiler_host::diagnostics;
use profiler_report::GpuWorkKind;

use super::clock_line::ClockLine;
use super::device_times::DeviceTime;
use super::window::WindowSpec;
use super::window_builder::WindowBuilder;
use super::windows::{FilledWindow, Windows};
use super::work_builder::WorkBuilder;
use super::work_progress::WorkProgress;
use crate::cuda::{self, GpuRecord, Launch, Ready, WorkActivity, WorkLoss, WorkLosses};

/// The most records that wait for their launches. A launch is in its queue once the call has returned, so nearly all
/// records find theirs.
const MAX_UNMATCHED: usize = 1 << 16;
/// The most launches that are remembered.
const MAX_KNOWN: usize = 1 << 18;
/// The most windows that are remembered after their delivery.
const MAX_DELIVERED: usize = 16;

/// A launch that was sorted into its windows.
#[derive(Clone, Copy, Debug)]
struct SortedLaunch {
    /// Ticks of the clock.
    start: u64,
    thread: u64,
    /// The correlation of its outermost call, by which the windows know it.
    correlation: u32,
    /// The number of its stream in the [`WorkProgress`].
    stream: u32,
    /// `true` once a record of its work has come. That of a graph has several.
    has_record: bool,
}

/// A window that was delivered.
#[derive(Debug)]
struct Delivered {
    spec: WindowSpec,
    /// When it was open, in nanoseconds since the Unix epoch.
    open: Range<i64>,
}

/// The losses that the windows of a session have counted, and those that the next one counts.
#[derive(Debug)]
struct SessionLosses {
    /// The losses of the process that its windows have counted.
    counted: WorkLosses,
    /// Launches and records that came after their windows had been delivered.
    late: u64,
    /// `true` once its last window has been delivered: no window counts what is late.
    has_ended: bool,
}

#[derive(Debug, Default)]
pub(super) struct WorkJoiner {
    /// The names of kernels by their numbers.
    names: Vec<Arc<str>>,
    /// Launches by both correlations: those of windows that have not been delivered, and of `delivered`.
    known: HashMap<u32, SortedLaunch>,
    /// `true` if launches were forgotten in this round, because there were too many.
    has_made_room: bool,
    /// Records whose launches are not known, or not known yet.
    unmatched: Vec<WorkActivity>,
    /// The windows at the last call.
    windows: Vec<u64>,
    progress: WorkProgress,
    /// Windows of `sessions`, the oldest first.
    delivered: VecDeque<Delivered>,
    sessions: HashMap<u64, SessionLosses>,
}

impl WorkJoiner {
    /// Sorts what is ready into windows.
    pub(super) fn sort(&mut self, ready: Ready, windows: &mut Windows) {
        self.names.extend(ready.names);
        self.forget_before(windows);
        self.has_made_room = false;
        let mut into = |at: u64, add: &mut dyn FnMut(&WindowSpec, &mut WindowBuilder)| {
            for window in windows.at(at) {
                let (spec, builder) = window.parts();
                if spec.has_launch(at) {
                    add(spec, builder);
                }
            }
        };
        for launch in ready.launches {
            if !self.remember(&launch) {
                // Without it, its records are not found to belong to it either.
                cuda::lose_work(WorkLoss::LaunchQueueFull, 1);
                continue;
            }
            if launch.is_part {
                continue;
            }
            self.progress.called(&launch);
            into(launch.start, &mut |spec, builder| {
                builder.work.add_launch(spec, launch);
            });
            self.count_late(|delivered| delivered.spec.has_launch(launch.start));
        }
        for activity in mem::take(&mut self.unmatched) {
            if !self.add_to_launch(&activity, &mut into) {
                self.unmatched.push(activity);
            }
        }
        for activity in ready.activities {
            if self.add_to_launch(&activity, &mut into) {
                continue;
            }
            if let Some((start, _)) = activity.span() {
                self.count_late(|delivered| delivered.open.contains(&start));
            }
            // Without a window, it ran before any that may open from now on.
            if self.windows.is_empty() {
                continue;
            }
            if self.unmatched.len() < MAX_UNMATCHED {
                self.unmatched.push(activity);
            } else {
                cuda::lose_work(WorkLoss::QueueFull, 1);
            }
        }
    }

    /// Adds times that the program reported to all windows that may have their scopes, and the number of those that were too
    /// many to what is lost.
    pub(super) fn sort_reported(
        &mut self,
        (times, dropped): (Vec<DeviceTime>, u64),
        windows: &mut Windows,
    ) {
        for time in &times {
            for window in windows.all_mut() {
                let (spec, builder) = window.parts();
                if spec.options.cuda {
                    builder.work.add_reported(spec, time);
                }
            }
            self.count_late(|delivered| delivered.open.contains(&time.span.0));
        }
        if dropped > 0 {
            cuda::lose_work(WorkLoss::QueueFull, dropped);
        }
    }

    /// Adds a record to the windows of its launch. Returns `false` if the launch is not known.
    fn add_to_launch(
        &mut self,
        activity: &WorkActivity,
        into: &mut impl FnMut(u64, &mut dyn FnMut(&WindowSpec, &mut WindowBuilder)),
    ) -> bool {
        let Some(known) = self.known.get_mut(&activity.details.correlation) else {
            return false;
        };
        known.has_record = true;
        let SortedLaunch {
            start,
            thread,
            correlation,
            stream,
            ..
        } = *known;
        // A wait of a stream for an event has a record at once.
        let is_wait = matches!(activity.details.kind, GpuWorkKind::Synchronization(_));
        if !is_wait && !activity.is_incomplete() {
            self.progress.recorded(stream, thread, start);
        }
        into(start, &mut |spec, builder| {
            builder.work.add_activity(spec, correlation, *activity);
        });
        self.count_late(|delivered| delivered.spec.has_launch(start));
        true
    }

    /// Counts a launch or a record for the sessions that it came too late for.
    fn count_late(&mut self, is_of: impl Fn(&Delivered) -> bool) {
        for delivered in self.delivered.iter().filter(|delivered| is_of(delivered)) {
            if let Some(session) = self.sessions.get_mut(&delivered.spec.session) {
                session.late += 1;
            }
        }
    }

    /// Remembers a launch. Returns `false` if there are too many, or memory is short.
    fn remember(&mut self, launch: &Launch) -> bool {
        let [correlation, inner] = launch.correlations;
        let has_room = self.known.len() + 2 <= MAX_KNOWN || self.make_room();
        if !has_room || self.known.try_reserve(2).is_err() {
            return false;
        }
        let known = SortedLaunch {
            start: launch.start,
            thread: launch.thread,
            correlation,
            stream: self.progress.stream_of(launch),
            has_record: false,
        };
        self.known.insert(inner, known);
        if !launch.is_part {
            self.known.insert(correlation, known);
        }
        true
    }

    /// Forgets launches whose records have come. Those of graphs may have more, which then stand outside of all scopes.
    fn make_room(&mut self) -> bool {
        if !mem::replace(&mut self.has_made_room, true) {
            self.known.retain(|_, known| !known.has_record);
        }
        self.known.len() + 2 <= MAX_KNOWN
    }

    /// Notes GPU times that have been read.
    pub(super) fn read(&mut self, gpu: &[GpuRecord]) {
        for gpu in gpu {
            self.progress.timed(gpu);
        }
    }

    /// Returns `true` if all launches of a window have a record, or have none that a flush does not give which begins now.
    pub(super) fn is_settled(&self, work: &WorkBuilder) -> bool {
        if work.is_waiting() || work.unsure().len() == 0 {
            return !work.is_waiting();
        }
        let is_recording = cuda::recording().is_some();
        let look = self.progress.look();
        let progress = &self.progress;
        work.unsure().all(|launch| {
            look.has_finished(launch) && (!is_recording || progress.is_passed(launch))
        })
    }

    /// Adds what ran in a window and has no launch to it: it was launched before CUPTI recorded calls, or the launch was
    /// lost. Adds what was lost since the session's last window. Called before the window is delivered.
    pub(super) fn deliver(&mut self, spec: &WindowSpec, builder: &mut WindowBuilder) {
        if !spec.has_kernels() {
            return;
        }
        builder.work.set_names(&self.names);
        if builder.work.unsure().len() > 0 {
            let look = self.progress.look();
            builder
                .work
                .have_no_record(|launch| look.has_finished(launch));
        }
        let now = WorkLosses::now();
        let session = self
            .sessions
            .entry(spec.session)
            .or_insert_with(|| SessionLosses {
                counted: spec.lost_work_before,
                late: 0,
                has_ended: false,
            });
        builder.work.lost.add_counted(now.since(session.counted));
        builder.work.lost.late += mem::take(&mut session.late);
        session.counted = now;
        let line = ClockLine::through(spec.first, spec.first);
        let open = line.unix_ns(spec.opened)..line.unix_ns(spec.closed.unwrap_or(u64::MAX));
        for activity in &self.unmatched {
            // Without times, it belongs to the first window that is delivered.
            let start = activity.span().map(|(start, _)| start);
            if start.is_none_or(|start| open.contains(&start)) {
                builder.work.add_without_launch(spec, *activity);
            }
        }
        self.unmatched.retain(|activity| activity.span().is_some());
        if self.delivered.len() == MAX_DELIVERED {
            self.delivered.pop_front();
        }
        let spec = spec.clone();
        self.delivered.push_back(Delivered { spec, open });
    }

    /// Notes that the last window of a session has been delivered.
    pub(super) fn end(&mut self, session: u64) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.has_ended = true;
        }
    }

    /// Warns if work came after the last window of its session, and forgets these sessions if no more can come. Returns
    /// `true` if some are left.
    pub(super) fn settle_ended(&mut self, is_final: bool) -> bool {
        let ended = || self.sessions.values().filter(|session| session.has_ended);
        if ended().any(|session| session.late > 0) {
            diagnostics::warn_once(
                "kernels or copies came after the last window of their session had been delivered, which lacks them: have \
                 the device finish before the session stops",
            );
        }
        if is_final {
            self.sessions.retain(|_, session| !session.has_ended);
            let sessions = &self.sessions;
            self.delivered
                .retain(|delivered| sessions.contains_key(&delivered.spec.session));
        }
        self.sessions.values().any(|session| session.has_ended)
    }

    /// Frees memory. Called while nothing is recorded and no window is open or waits.
    pub(super) fn free(&mut self) {
        (self.known, self.unmatched) = (HashMap::new(), Vec::new());
        self.progress = WorkProgress::default();
    }

    /// Forgets what is older than all windows, if these have changed.
    fn forget_before(&mut self, windows: &Windows) {
        let specs = || windows.all().map(FilledWindow::spec);
        let with_kernels = || specs().filter(|spec| spec.has_kernels());
        let ids = || with_kernels().map(|spec| spec.id);
        if ids().eq(self.windows.iter().copied()) {
            return;
        }
        self.windows = ids().collect();
        let open = with_kernels().map(|spec| spec.opened);
        let delivered = self.delivered.iter().map(|window| window.spec.opened);
        let oldest = open.chain(delivered).min();
        self.known
            .retain(|_, known| oldest.is_some_and(|oldest| known.start >= oldest));
        let oldest = with_kernels().min_by_key(|spec| spec.opened);
        let Some(oldest) = oldest else {
            self.unmatched = Vec::new();
            return;
        };
        let opened = ClockLine::through(oldest.first, oldest.first).unix_ns(oldest.opened);
        self.unmatched
            .retain(|activity| activity.span().is_none_or(|(start, _)| start >= opened));
    }
}

#[cfg(test)]
pub(super) mod tests;
