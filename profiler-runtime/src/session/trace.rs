//! A complete window, as handlers see it.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use profiler_host::sync::ReentrancyGuard;
use profiler_report::internal::GpuSamples;
use profiler_report::{GpuDevice, GpuSample};

use super::clock_line::ClockLine;
use super::processor::ProcessorSample;
use super::record::{LinkedScope, ScopeRecord, ThreadInfo};
use super::work::WindowWork;
use super::work_losses::LostWork;
use super::{Activity, SessionOptions};
use crate::cuda::GpuRecord;
use crate::name::Name;

/// The note on a window that was cut short.
pub(crate) const CUT_SHORT: &str = "the session ended before the window was complete: it has fewer steps than the schedule asks for";

/// The scopes that began and ended in one window of a session, with their CPU and GPU times.
///
/// Handlers get it by reference ([`ProfileBuilder::on_trace_ready`](crate::session::ProfileBuilder::on_trace_ready));
/// [`ProfileBuilder::run`](crate::session::ProfileBuilder::run) returns it in an `Arc`.
#[derive(Debug)]
pub struct Trace {
    /// Scopes and polls by thread and in the order in which they opened, then futures by their start.
    pub(crate) scopes: Vec<ScopeRecord>,
    /// For each record in `scopes`, its links to other records.
    pub(crate) nodes: Vec<LinkedScope>,
    /// GPU times of the scopes in this window.
    pub(crate) gpu: Vec<GpuRecord>,
    /// GPU times of graphs that were replayed while the window was open.
    pub(crate) replays: Vec<GpuRecord>,
    /// Kernels and other work on the devices, if CUPTI recorded it.
    pub(crate) work: WindowWork,
    /// Samples of the devices' sensors, and the energy of the names, if they were asked for.
    pub(crate) gpu_samples: GpuSamples,
    pub(crate) steps: Vec<Step>,
    /// Of each thread, its samples in the order of time, if kernels were recorded. Those of further threads are missing.
    pub(crate) processor: Vec<Vec<ProcessorSample>>,
    pub(crate) threads: Vec<Arc<ThreadInfo>>,
    pub(crate) names: Vec<&'static Name>,
    pub(crate) clock_line: ClockLine,
    pub(crate) meta: Meta,
}

/// A step: the time from one `step()` to the next.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) number: u64,
    /// The index of the thread that ended it.
    pub(crate) thread: u32,
    /// Ticks of the clock, as `end`.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Properties of a window.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    /// The number of windows that the session had before.
    pub(crate) cycle: u64,
    /// The number of the step at the end of the window.
    pub(crate) step_num: u64,
    /// Ticks of the clock, as `closed`.
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    pub(crate) options: SessionOptions,
    pub(crate) truncation: Truncation,
    pub(crate) no_cuda_reason: Option<String>,
    /// Why there are no scopes, if measuring was off when the window closed.
    pub(crate) why_off: Option<&'static str>,
    /// Pairs that the program added, in order.
    pub(crate) metadata: Vec<(String, String)>,
}

/// Scopes that are missing from a window, by reason, and windows that are missing before it; all zero if nothing is.
///
/// # Examples
///
/// ```
/// use profiler_runtime::session::Truncation;
///
/// assert!(Truncation::default().is_complete());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Truncation {
    /// Scopes that arrived after the window had reached its capacity.
    pub over_capacity: u64,
    /// Scopes that found the ring of their thread full, or whose thread was ending.
    pub ring_full: u64,
    /// Scopes whose GPU times had not been read when the window was delivered: the device had not reached their events,
    /// or the queue to the resolver was full.
    pub unread: u64,
    /// `true` if the session ended before the window was complete.
    pub cut_short: bool,
    /// Scopes that were dropped because handlers were too slow: of this window, and of earlier ones that were not
    /// delivered at all.
    pub handler_behind: u64,
    /// Scopes of earlier windows that arrived after those were delivered: more than a millisecond passed between the
    /// end of the scope and its arrival in the ring.
    pub late: u64,
    /// Scopes that could not be stored for lack of memory.
    pub no_memory: u64,
    /// Windows that were not recorded between this one and the one before, since 16,384 of the session waited to be put
    /// together. How many scopes they would have is not known.
    pub skipped_windows: u64,
}

impl Truncation {
    /// Returns `true` if nothing is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the number for each reason, and the text that follows it in a sentence.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::session::Truncation;
    ///
    /// for (count, reason) in Truncation::default().counted() {
    ///     assert_eq!(count, 0, "{count} {reason}");
    /// }
    /// ```
    #[must_use]
    pub fn counted(&self) -> [(u64, &'static str); 7] {
        let Self {
            over_capacity,
            ring_full,
            unread,
            cut_short: _,
            handler_behind,
            late,
            no_memory,
            skipped_windows,
        } = *self;
        [
            (
                over_capacity,
                "scopes came after the window was full: raise its capacity (PROFILER_TRACE_CAPACITY, or `capacity` in the code), or record \
                 fewer steps",
            ),
            (
                ring_full,
                "scopes were lost, since the rings of their threads were full: raise PROFILER_RING, or measure fewer scopes",
            ),
            (
                unread,
                "GPU times were not read before the window was delivered: record fewer steps, or have the device finish before `step`",
            ),
            (
                handler_behind,
                "scopes were dropped with their windows, since handlers were too slow: record fewer windows, or have handlers do less",
            ),
            (
                late,
                "scopes of earlier windows came after these were delivered, and are in none",
            ),
            (
                no_memory,
                "scopes were lost for lack of memory: lower the capacity of windows, or record fewer steps",
            ),
            (
                skipped_windows,
                "windows before this one were not recorded, since thousands waited to be put together: record fewer \
                 windows, or longer ones",
            ),
        ]
    }
}

/// Frees the memory inside the profiler, so that it is not attributed to the program's scopes.
impl Drop for Trace {
    fn drop(&mut self) {
        let _busy = ReentrancyGuard::try_enter();
        let _ = (take(&mut self.scopes), take(&mut self.nodes));
        let _ = (take(&mut self.gpu), take(&mut self.replays));
        let _ = take(&mut self.work);
        let _ = (take(&mut self.steps), take(&mut self.processor));
        let _ = take(&mut self.threads);
        let _ = (take(&mut self.names), take(&mut self.meta.metadata));
    }
}

impl Trace {
    /// Returns the number of the step at the end of the window, as `torch.profiler` counts in `step_num`: steps count
    /// from 0, and a handler that is called because of the n-th `step()` sees n.
    #[must_use]
    pub fn step_num(&self) -> u64 {
        self.meta.step_num
    }

    /// Returns the number of windows that the session had before this one.
    #[must_use]
    pub fn cycle(&self) -> u64 {
        self.meta.cycle
    }

    /// Returns the scopes that are missing, by reason.
    #[must_use]
    pub fn truncation(&self) -> Truncation {
        self.meta.truncation
    }

    /// Returns `true` if anything is missing.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        !self.meta.truncation.is_complete()
    }

    /// Returns the time at which the window opened.
    #[must_use]
    pub fn start(&self) -> SystemTime {
        let ns = self.clock_line.unix_ns(self.meta.opened);
        let since = Duration::from_nanos(u64::try_from(ns).unwrap_or_default());
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }

    /// Returns how long the window was open.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let ticks = self.meta.closed.saturating_sub(self.meta.opened);
        Duration::from_secs_f64(self.clock_line.ns(ticks.cast_signed()).max(0.0) / 1e9)
    }

    /// Returns `true` if an activity was recorded.
    #[must_use]
    pub fn has(&self, activity: Activity) -> bool {
        self.meta.options.has(activity)
    }

    /// Returns why the window has no GPU times although its session was started with
    /// [`Activity::Cuda`](crate::Activity::Cuda) in [`activities`](crate::session::ProfileBuilder::activities), and what to
    /// do about it. Returns `None` if it has some, or no scopes, or if the session did not ask for them by name. Kernels of its
    /// scopes are GPU times too.
    #[must_use]
    pub fn no_cuda_reason(&self) -> Option<&str> {
        self.meta.no_cuda_reason.as_deref()
    }

    /// Returns `true` if CUPTI recorded kernels, copies, fills and waits while the window was open.
    #[must_use]
    pub fn has_kernels(&self) -> bool {
        self.work.is_recorded
    }

    /// Returns why the window has no kernels although its session asked for them, and what to do about it. Returns `None`
    /// if it has some, or if the program does not use CUDA and the session did not ask for them by
    /// [`kernels`](crate::session::ProfileBuilder::kernels).
    #[must_use]
    pub fn no_kernels_reason(&self) -> Option<&str> {
        self.work.missing.as_deref()
    }

    /// Returns the kernels and other work of devices that are missing, by reason.
    #[must_use]
    pub fn lost_work(&self) -> LostWork {
        self.work.lost
    }

    /// Returns what a reader of the window's kernels must know, one sentence each: that their record begins late, that
    /// they stand on a clock of their own, or that they contradict the GPU times of scopes.
    pub fn kernel_notes(&self) -> impl Iterator<Item = &str> {
        self.work.notes.iter().map(String::as_str)
    }

    /// Returns the pairs added with [`Profile::add_metadata`](crate::Profile::add_metadata).
    pub fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.meta.metadata.iter();
        pairs.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the devices whose sensors were read while the window was open, each with its samples: those between the
    /// ends of the window, and one on each side.
    pub fn gpu_samples(&self) -> impl Iterator<Item = (&GpuDevice, &[GpuSample])> {
        let devices = self.gpu_samples.devices.iter();
        devices.map(|device| (&device.device, device.samples.as_slice()))
    }

    pub(crate) fn name_of(&self, id: u32) -> &'static str {
        self.names
            .get(id as usize)
            .map_or("(unknown)", |name| name.text.as_str())
    }

    /// Returns the thread with this index.
    pub(crate) fn thread(&self, index: u32) -> Option<&ThreadInfo> {
        self.threads.get(index as usize).map(|thread| &**thread)
    }
}
