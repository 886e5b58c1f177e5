//! The part of a round that concerns one CUDA context.

use std::time::Duration;

use profiler_cuda_sys::driver::{Failed, Fault};
use profiler_log::Logger;
use profiler_report::CudaLoss;

use super::anchor::Anchor;
use super::captured::{CapturedScopes, ReplayedScope};
use super::completion::{self, Completion};
use super::gpu_record::{self, GpuRecord};
use super::queues::StreamQueues;
use crate::clock::{clock, now};
use crate::cuda::context::Context;
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::idle;
use crate::cuda::nvml::energy;

/// A pool that was not used for this long is trimmed to [`KEPT_PAIRS`] pairs.
const TRIM_AFTER_NS: f64 = 5e9;
const KEPT_PAIRS: usize = 48;
/// How often graphs that were not replayed lately are looked at, as far as [`captured`](super::captured) has it.
const POLL_GRAPHS: Duration = Duration::from_millis(200);

/// The resolver's state of one context in which something was measured.
pub(super) struct ContextState {
    context: &'static Context,
    /// Created when a start time on the host is first needed.
    anchor: Option<Anchor>,
    queues: StreamQueues,
    captured: CapturedScopes,
    /// When a scope of the context last arrived, in ticks.
    last_used: u64,
    /// How many scopes the last round has taken from the queues.
    freed: usize,
    /// `true` if the pool was trimmed since `last_used`.
    is_trimmed: bool,
    /// `true` if the last attempt to make the context current succeeded.
    is_current: bool,
    /// `true` if that attempt found that the driver itself has shut down.
    has_driver_ended: bool,
}

impl ContextState {
    pub(super) fn new(context: &'static Context) -> Self {
        Self {
            context,
            anchor: None,
            queues: StreamQueues::default(),
            captured: CapturedScopes::default(),
            last_used: 0,
            freed: 0,
            is_trimmed: false,
            is_current: false,
            has_driver_ended: false,
        }
    }

    /// Adds a finished scope that was measured with `pair`.
    pub(super) fn add(&mut self, mut measurement: Box<GpuMeasurement>, pair: Pair) {
        self.last_used = now();
        self.is_trimmed = false;
        if pair.is_graph {
            // The scope itself has no GPU time. Each replay of the graph has one.
            if gpu_record::are_wanted() {
                gpu_record::push(GpuRecord::lost(&measurement, CudaLoss::Captured));
            }
            // Each replay is logged, so the logger of the call must outlive the call.
            if let Some(request) = &mut measurement.log {
                request.logger = request.logger.take().map(Logger::into_shared);
            }
            self.captured.add(measurement, pair);
        } else {
            self.queues.push(measurement);
        }
    }

    /// Returns the number of scopes that wait for the device.
    pub(super) fn pending(&self) -> usize {
        self.queues.len()
    }

    /// Returns when the oldest waiting scope ended on the CPU, in ticks; `u64::MAX` if none waits.
    pub(super) fn oldest_end(&self) -> u64 {
        self.queues.oldest_end()
    }

    /// Returns the sequence number of the oldest waiting scope.
    pub(super) fn oldest_sequence(&self) -> Option<u64> {
        self.queues.oldest_sequence()
    }

    /// Returns how uncertain the begin of GPU times is, in nanoseconds.
    pub(super) fn uncertainty(&self) -> Option<f64> {
        self.anchor.as_ref().and_then(Anchor::uncertainty)
    }

    /// Returns `true` if scopes wait for the device, or replays are expected soon.
    pub(super) fn is_watched(&self) -> bool {
        !self.queues.is_empty() || self.captured.are_expected()
    }

    /// Returns `true` if most pairs of the context wait for the device, few are free although there may be no more, and the
    /// last round has freed few.
    pub(super) fn is_starved(&self) -> bool {
        let pairs = self.context.pairs();
        2 * self.pending() > pairs && 16 * self.freed <= pairs && self.context.is_exhausted()
    }

    /// Reads the events that the device has passed. Returns `true` if there were any.
    ///
    /// `check_suspects`: find out whether the context was destroyed if it is suspected. `read_all`: look for replays of
    /// all graphs.
    pub(super) fn poll(
        &mut self,
        completion: &mut Completion<impl EventApi>,
        check_suspects: bool,
        read_all: bool,
    ) -> bool {
        let pending = self.pending();
        let progress = self.read(completion, check_suspects, read_all);
        self.freed = pending.saturating_sub(self.pending());
        progress
    }

    /// [`poll`](Self::poll), which counts what it frees.
    fn read(
        &mut self,
        completion: &mut Completion<impl EventApi>,
        check_suspects: bool,
        read_all: bool,
    ) -> bool {
        let is_recorded = gpu_record::are_wanted();
        // A replay belongs to the session window in which it is noticed, so a session needs it noticed at once.
        let read_all = read_all || is_recorded;
        // Needed even if no scope has ended: many open scopes bring the pool near its limit, where pairs must be handed
        // out one by one.
        self.context.balance_magazines();
        let is_busy = !self.queues.is_empty() || self.captured.are_due(read_all);
        let trim = self.is_trim_due();
        if !is_busy && !check_suspects && !trim && !self.context.has_failed() {
            return false;
        }
        let is_needed = is_busy || check_suspects && self.context.is_suspect();
        if !self.make_current(completion, is_needed) {
            return false;
        }
        self.prepare(completion.driver, is_recorded, trim);
        match self.queues.read(completion, self.anchor.as_ref()) {
            Ok(mut progress) => {
                progress |= self.poll_captured(completion, read_all);
                if trim {
                    self.trim(completion.driver);
                }
                progress
            }
            Err(fault) => {
                self.handle_fault(completion, fault);
                false
            }
        }
    }

    /// Makes the context current on this thread. If its events are gone, completes the waiting scopes without a time.
    /// Returns `false` if nothing can be read in this round.
    ///
    /// A context that is retained exists until the process ends. Any other may be destroyed by the program at any time,
    /// even between two calls of the resolver, and some drivers crash on events of a destroyed context. So it is touched
    /// only if that `is_needed`.
    fn make_current(
        &mut self,
        completion: &mut Completion<impl EventApi>,
        is_needed: bool,
    ) -> bool {
        let (is_retained, has_failed) = (self.context.is_retained(), self.context.has_failed());
        if has_failed && !is_retained {
            self.queues.lose_all(completion, CudaLoss::ContextFailed);
            self.captured.clear();
        }
        if !is_needed && !is_retained {
            self.is_trimmed = true;
            return false;
        }
        if self.is_gone(completion.driver) {
            self.end_epoch(completion);
            return false;
        }
        if has_failed {
            self.queues.lose_all(completion, CudaLoss::ContextFailed);
            return false;
        }
        if self.has_driver_ended {
            // The process exits, and the driver has shut down first. A flush must not wait for these scopes.
            self.queues.lose_all(completion, CudaLoss::ContextGone);
        }
        self.is_current
    }

    /// Prepares the current context for reading, and grows its pool.
    fn prepare(&mut self, driver: &impl EventApi, is_recorded: bool, trim: bool) {
        self.context.retain(driver);
        self.context.note_device(driver);
        // An anchor takes a stream in the context. Durations alone do not need it.
        let needs_anchor = is_recorded
            || energy::is_shared()
            || idle::is_on()
            || self.queues.wants_start_times()
            || !self.captured.is_empty();
        if needs_anchor && let Err(Failed { call, code }) = self.ensure_anchor(driver) {
            self.context.handle_error(driver, code, call);
        }
        // Before the events of the waiting scopes return to the pool: it is lowest now, as it is while the program
        // measures.
        if !trim {
            self.context.grow_if_low(driver);
        }
    }

    /// Creates the anchor, or renews it if it is too old.
    fn ensure_anchor(&mut self, driver: &impl EventApi) -> Result<(), Failed> {
        let anchor = match &mut self.anchor {
            Some(anchor) => anchor,
            none => none.insert(Anchor::new(driver)?),
        };
        if let Some(before) = anchor.renew_if_old(driver)? {
            self.captured.rebase(driver, before, anchor.event());
        }
        Ok(())
    }

    /// Reads replays of graphs. Returns `true` if more are expected at once.
    fn poll_captured(
        &mut self,
        completion: &mut Completion<impl EventApi>,
        read_all: bool,
    ) -> bool {
        if let Some(anchor) = self.anchor.as_ref().and_then(Anchor::event) {
            let driver = completion.driver;
            let complete = |replay: ReplayedScope<'_>| completion.replay(&replay);
            self.captured.poll(driver, anchor, read_all, complete);
        }
        self.captured.were_replayed_lately()
    }

    /// Acts on an error that concerns more than one event.
    fn handle_fault(&mut self, completion: &mut Completion<impl EventApi>, fault: Fault) {
        match fault {
            Fault::Sticky => self.queues.lose_all(completion, CudaLoss::ContextFailed),
            Fault::ContextGone if self.is_gone(completion.driver) => self.end_epoch(completion),
            // The driver refused one event, whose scope has been completed without a time. The context exists.
            Fault::ContextGone => {}
            // The driver has shut down.
            _ => self.queues.lose_all(completion, CudaLoss::ContextGone),
        }
    }

    /// Starts over: the context was destroyed, and its events with it.
    fn end_epoch(&mut self, completion: &mut Completion<impl EventApi>) {
        self.context.advance_epoch();
        self.queues.lose_all(completion, CudaLoss::ContextGone);
        self.captured.clear();
        *self = Self::new(self.context);
    }

    /// Returns `true` if the context was destroyed, or replaced by another one with the same handle.
    ///
    /// The driver is asked twice: a destroyed context stays destroyed, so a single refusal has another cause.
    fn is_gone(&mut self, driver: &impl EventApi) -> bool {
        self.seems_gone(driver) && self.seems_gone(driver)
    }

    fn seems_gone(&mut self, driver: &impl EventApi) -> bool {
        match self.context.has_other_id(driver) {
            Some(Ok(true)) => return true,
            Some(Err(code)) if code.fault() == Fault::ContextGone => return true,
            _ => {}
        }
        // A failed context is not made current any more.
        if self.context.has_failed() {
            return false;
        }
        let code = driver.set_context(self.context.raw);
        self.is_current = code.is_ok();
        self.has_driver_ended = code.fault() == Fault::NoDriver;
        code.fault() == Fault::ContextGone
    }

    /// Returns for how long nothing was measured, in nanoseconds.
    fn unused_ns(&self) -> f64 {
        clock().nanoseconds(now().saturating_sub(self.last_used) as f64)
    }

    /// Returns `true` if the pool should be trimmed now.
    fn is_trim_due(&self) -> bool {
        !self.is_trimmed && self.unused_ns() > TRIM_AFTER_NS
    }

    /// Returns when the context needs a round although nothing is measured: to trim its pool, or to look for the first replays
    /// of its graphs. `None` if it needs none.
    pub(super) fn next_task(&self) -> Option<Duration> {
        if !self.captured.is_empty() {
            return Some(POLL_GRAPHS);
        }
        let trim_in = (TRIM_AFTER_NS - self.unused_ns()).max(0.0) / 1e9;
        let trim_in = Duration::try_from_secs_f64(trim_in).unwrap_or_default();
        // A context that cannot be made current now is asked again.
        (!self.is_trimmed).then_some(trim_in.max(POLL_GRAPHS))
    }

    /// Gives back memory that was not used for a while.
    fn trim(&mut self, driver: &impl EventApi) {
        // Without context ids, a reset of the device goes unnoticed, and some drivers crash if an event is destroyed
        // that went with it.
        if driver.has_context_ids() {
            self.context.shrink_to(driver, KEPT_PAIRS);
        }
        self.queues.remove_empty();
        self.is_trimmed = true;
    }

    /// Destroys the events that no scope uses, and the anchor. The program is about to end.
    pub(super) fn destroy_events(&mut self, driver: &impl EventApi) {
        // Nothing is left to trim, unless something is measured again.
        self.is_trimmed = true;
        // Leave the events to the driver if the context may be gone: see `make_current` and `trim`. If scopes still
        // wait in it, the anchor is in use.
        if !self.context.is_retained()
            || !driver.has_context_ids()
            || self.context.has_failed()
            || !self.queues.is_empty()
            || self.is_gone(driver)
            || !self.is_current
        {
            return;
        }
        self.context.shrink_to(driver, 0);
        if let Some(anchor) = self.anchor.take() {
            anchor.destroy(driver);
        }
        // Events in graphs belong to the graphs.
        self.captured.clear();
    }

    /// Counts all waiting scopes as lost, without a call of the driver.
    pub(super) fn lose_unread(&mut self, loss: CudaLoss) {
        while let Some(measurement) = self.queues.pop_any() {
            completion::lose_unread(measurement, loss);
        }
    }
}
