//! A window that is complete: what its handler gets.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::event::{Event, GpuSpan};
use super::record::{RecordKind, ScopeRecord, ThreadInfo};
use super::timeline::Timeline;
use super::{Activity, Options};
use crate::cuda::GpuRecord;
use crate::name::Name;
use crate::sync::ReentrancyGuard;

/// What stands for no index.
pub(crate) const NONE: u32 = u32::MAX;

/// All that was recorded in one window of a session: the scopes that began and ended in it, with their CPU and
/// GPU times.
///
/// A handler gets it by reference ([`ProfileBuilder::on_trace_ready`](crate::ProfileBuilder::on_trace_ready)), the
/// closure form ([`ProfileBuilder::run`](crate::ProfileBuilder::run)) in an `Arc`.
#[derive(Debug)]
pub struct Trace {
    /// Scopes and polls by thread and in the order of opening, then futures by their start.
    pub(crate) scopes: Vec<ScopeRecord>,
    /// For each of them, what it has to do with others.
    pub(crate) nodes: Vec<Node>,
    /// GPU times, each of a scope of this window.
    pub(crate) gpu: Vec<GpuRecord>,
    /// GPU times of graphs that were replayed while the window was open.
    pub(crate) replays: Vec<GpuRecord>,
    pub(crate) steps: Vec<Step>,
    pub(crate) threads: Vec<Arc<ThreadInfo>>,
    pub(crate) names: Vec<&'static Name>,
    pub(crate) timeline: Timeline,
    pub(crate) meta: Meta,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// The scope directly around it, where that is in the window; a scope in a poll has the future.
    pub(crate) parent: u32,
    /// Its GPU time.
    pub(crate) gpu: u32,
    /// What it took without its children, in ticks.
    pub(crate) own: i64,
}

/// From one `step()` to the next.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "trace"),
    allow(dead_code, reason = "traces that are written show them")
)]
pub(crate) struct Step {
    pub(crate) number: u64,
    /// Where it is among the window's threads.
    pub(crate) thread: u32,
    /// In ticks.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// What there is to say about a window.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    /// How many windows the session had before.
    pub(crate) cycle: u64,
    /// The number of the step that the window ended with.
    pub(crate) step_num: u64,
    /// In ticks.
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    pub(crate) options: Options,
    pub(crate) truncation: Truncation,
    /// What the program has added, in order.
    pub(crate) metadata: Vec<(String, String)>,
}

/// What is missing from a window, in scopes; all zero for a complete one.
///
/// # Examples
///
/// ```
/// use profiler_runtime::Truncation;
///
/// assert!(Truncation::default().is_complete());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncation {
    /// Scopes that came after the window held as many as its capacity allows.
    pub over_capacity: u64,
    /// Scopes whose thread recorded faster than they were taken, or was ending and kept nothing any more.
    pub ring_full: u64,
    /// Scopes whose GPU times had not been read when the window was handed over: the device did not come to them in
    /// time, or there was no room for them on the way to where they are read.
    pub unread: u64,
    /// Whether the session ended before the window was complete.
    pub cut_short: bool,
    /// Scopes of a window that was emptied, since handlers were too slow for it to wait for them: of this one, and of
    /// those before it that were not handed over at all.
    pub handler_behind: u64,
    /// Scopes of windows before this one that came when theirs had been handed over: their threads took more than a
    /// millisecond from the scope's end to where it is kept.
    pub late: u64,
    /// Scopes that there was no memory for.
    pub no_memory: u64,
}

impl Truncation {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::default()
    }
}

/// What the profiler has taken for itself is not the program's to give back.
impl Drop for Trace {
    fn drop(&mut self) {
        let _busy = ReentrancyGuard::try_enter();
        let _ = (take(&mut self.scopes), take(&mut self.nodes));
        let _ = (take(&mut self.gpu), take(&mut self.replays));
        let _ = (take(&mut self.steps), take(&mut self.threads));
        let _ = (take(&mut self.names), take(&mut self.meta.metadata));
    }
}

impl Trace {
    /// The scopes of the window: by thread and in the order of opening, then futures.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let is_event = |index: &usize| !matches!(self.scopes[*index].kind, RecordKind::Poll { .. });
        (0..self.scopes.len())
            .filter(is_event)
            .map(|index| Event::new(self, index))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events().count()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events().next().is_none()
    }

    /// The number of the step that the window ended with, as `torch.profiler` counts in `step_num`: steps are
    /// counted from 0, and a handler that is called by the n-th `step()` sees n.
    #[must_use]
    pub fn step_num(&self) -> u64 {
        self.meta.step_num
    }

    /// How many windows the session had before this one.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.meta.cycle
    }

    /// What is missing.
    #[must_use]
    pub fn truncation(&self) -> Truncation {
        self.meta.truncation
    }

    /// Whether anything is missing.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        !self.meta.truncation.is_complete()
    }

    /// When the window opened.
    #[must_use]
    pub fn start(&self) -> SystemTime {
        let ns = self.timeline.unix_ns(self.meta.opened);
        let since = Duration::from_nanos(u64::try_from(ns).unwrap_or_default());
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }

    /// How long it was open.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let ticks = self.meta.closed.saturating_sub(self.meta.opened);
        Duration::from_secs_f64(self.timeline.ns(ticks.cast_signed()).max(0.0) / 1e9)
    }

    /// Whether an activity was recorded.
    #[must_use]
    pub fn has(&self, activity: Activity) -> bool {
        self.meta.options.has(activity)
    }

    /// What the program has added with [`Profile::add_metadata`](crate::Profile::add_metadata).
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.meta.metadata.iter();
        pairs.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// GPU times of CUDA graphs that were replayed in the window (`captured = true`), with their names, as far as the
    /// device had come to them when the window was handed over.
    pub fn replays(&self) -> impl Iterator<Item = (&str, GpuSpan)> {
        self.replays
            .iter()
            .map(|gpu| (self.name_of(gpu.name), GpuSpan::of(gpu)))
    }

    pub(crate) fn name_of(&self, id: u32) -> &'static str {
        self.names
            .get(id as usize)
            .map_or("(unknown)", |name| name.text.as_str())
    }

    /// The thread at a place among those of the window.
    pub(crate) fn thread(&self, index: u32) -> Option<&ThreadInfo> {
        self.threads.get(index as usize).map(|thread| &**thread)
    }
}
