//! What the resolver does in a round: takes what was measured, reads the events that the device has passed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::thread;

use super::anchor::Anchor;
use super::gpu_record;
use super::graphs::Graphs;
use super::queues::{Pending, StreamQueues};
use super::report;
use super::sink::Sink;
use super::totals;
use crate::clock::{clock, now};
use crate::cuda::context;
use crate::cuda::context::Context;
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::{Failed, Fault};
use crate::cuda::ffi::driver::Driver;
use crate::cuda::loss::CudaLoss;
use crate::cuda::resolver;
use crate::cuda::thread::ring;

/// Idle for this long, a pool keeps no more than [`KEPT_PAIRS`].
const IDLE_NS: f64 = 5e9;
const KEPT_PAIRS: usize = 48;

pub(crate) struct Reading {
    batch: Vec<Box<GpuMeasurement>>,
    /// Items that are being filed: the part of the batch whose order is known.
    whole: VecDeque<Box<GpuMeasurement>>,
    drained: u64,
    /// Whether the last round took what stood in the rings.
    has_taken: bool,
    contexts: BTreeMap<u32, InUse>,
    sink: Sink,
}

/// A context that something was measured in.
struct InUse {
    context: &'static Context,
    anchor: Option<Anchor>,
    queues: StreamQueues,
    graphs: Graphs,
    last_used: u64,
    /// Whether its pool has been made small since.
    is_shrunk: bool,
    /// Whether it could be made current when it was last asked whether it is gone.
    is_current: bool,
    /// Whether the driver itself had ended then.
    is_over: bool,
}

impl Reading {
    pub(crate) fn new(driver: &'static Driver) -> Self {
        Self {
            batch: Vec::new(),
            whole: VecDeque::new(),
            drained: 0,
            has_taken: false,
            contexts: BTreeMap::new(),
            sink: Sink::new(driver),
        }
    }

    /// True where anything was taken or read. Where somebody waits for all there is, nothing is left for later.
    pub(crate) fn round(&mut self, is_asked: bool) -> bool {
        // Loggers that keep it waiting make it take no more.
        self.has_taken = self.sink.outbox.send();
        let mut progress = self.has_taken && self.take();
        resolver::set_pending(self.pending());
        let suspicion = resolver::take_suspicion();
        if suspicion {
            // Also those of which nothing came this far.
            for context in context::all()
                .into_iter()
                .filter(|context| context.is_suspect())
            {
                let new = || InUse::new(context);
                self.contexts.entry(context.index).or_insert_with(new);
            }
        }
        for in_use in self.contexts.values_mut() {
            progress |= in_use.visit(&mut self.sink, suspicion, is_asked);
        }
        if suspicion {
            // Those that are gone have begun another life by now.
            for context in context::all() {
                context.set_suspect(false);
            }
        }
        self.sink.outbox.send();
        resolver::set_pending(self.pending());
        progress
    }

    /// Whether the last round took what stood in the rings.
    pub(crate) fn has_taken(&self) -> bool {
        self.has_taken
    }

    /// Items that left the rings so far.
    pub(crate) fn drained(&self) -> u64 {
        self.drained
    }

    fn pending(&self) -> usize {
        self.contexts
            .values()
            .map(|in_use| in_use.queues.len())
            .sum()
    }

    /// Whether there is anything to be looked at again and again.
    pub(crate) fn is_watching(&self) -> bool {
        self.contexts.values().any(InUse::is_followed)
    }

    /// When the first scope ended that is not read yet, in ticks.
    pub(crate) fn first_end(&self) -> u64 {
        let pending = self
            .contexts
            .values()
            .map(|in_use| in_use.queues.first_end());
        let here = self.batch.iter().map(|item| item.span.end);
        pending.chain(here).min().unwrap_or(u64::MAX)
    }

    /// The number of the first item that is not read yet.
    pub(crate) fn oldest_pending(&self) -> u64 {
        let oldest = self
            .contexts
            .values()
            .filter_map(|in_use| in_use.queues.oldest());
        oldest.min().unwrap_or(u64::MAX)
    }

    /// Whether all that was read is on its way to the loggers.
    pub(crate) fn is_delivered(&self) -> bool {
        self.sink.outbox.is_empty()
    }

    /// How well places are known, over all contexts.
    pub(crate) fn uncertainty(&self) -> Option<f64> {
        let anchors = self
            .contexts
            .values()
            .filter_map(|in_use| in_use.anchor.as_ref());
        anchors.filter_map(Anchor::uncertainty).reduce(f64::max)
    }

    fn take(&mut self) -> bool {
        ring::drain(&mut self.batch);
        let Some(last) = self.batch.iter().map(|item| item.span.end).max() else {
            return false;
        };
        // What a scope had inside on another thread may have come to a ring that was looked at before its own:
        // it is there now. What ended later has to wait, for it may be the same with that.
        ring::drain(&mut self.batch);
        // Each ring is in order already; among threads, the order of time comes next to that of the device.
        // What ends at once was opened last inside first. (The stable sort would allocate.)
        self.batch
            .sort_unstable_by_key(|item| (item.span.end, Reverse(item.scope.key)));
        let whole = self.batch.partition_point(|item| item.span.end <= last);
        self.whole.extend(self.batch.drain(..whole));
        while let Some(item) = self.whole.pop_front() {
            self.file(item);
        }
        true
    }

    fn file(&mut self, mut item: Box<GpuMeasurement>) {
        self.sink.at_hand = Some(item.scope.name);
        let number = self.drained;
        self.drained += 1;
        self.sink.outbox.number(&mut item);
        match (item.loss, item.pair) {
            (Some(loss), _) => self.sink.lose(item, loss),
            (None, Some(pair)) if pair.epoch == pair.context.epoch() => {
                self.meet(pair.context).add(item, pair, number);
                self.sink.at_hand = None;
            }
            // Its context went while it was on its way, and its events with it.
            (None, _) => self.sink.lose(item, CudaLoss::ContextGone),
        }
    }

    fn meet(&mut self, context: &'static Context) -> &mut InUse {
        let new = || InUse::new(context);
        let in_use = self.contexts.entry(context.index).or_insert_with(new);
        in_use.last_used = now();
        in_use.is_shrunk = false;
        in_use
    }

    /// Gives back all that was made, at the end of the program.
    pub(crate) fn close(&mut self) {
        let driver = self.sink.driver;
        // Also those of which nothing came this far.
        for context in context::all() {
            self.contexts
                .entry(context.index)
                .or_insert_with(|| InUse::new(context));
        }
        for in_use in self.contexts.values_mut() {
            in_use.close(driver);
        }
    }
}

impl Drop for Reading {
    /// Counts what goes with it where the thread panicked.
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let loss = CudaLoss::ThreadPanicked;
        if let Some(name) = self.sink.at_hand.take() {
            totals::count_without(name, loss);
        }
        for item in self.batch.drain(..).chain(self.whole.drain(..)) {
            resolver::lose_unread(item, loss);
        }
        for in_use in self.contexts.values_mut() {
            while let Some(item) = in_use.queues.take_any() {
                resolver::lose_unread(item, loss);
            }
        }
        resolver::set_pending(0);
    }
}

impl InUse {
    fn new(context: &'static Context) -> Self {
        Self {
            context,
            anchor: None,
            queues: StreamQueues::default(),
            graphs: Graphs::default(),
            last_used: 0,
            is_shrunk: false,
            is_current: false,
            is_over: false,
        }
    }

    fn add(&mut self, item: Box<GpuMeasurement>, pair: Pair, number: u64) {
        if pair.is_graph {
            // Its replays have GPU times, it has none.
            if gpu_record::are_wanted() {
                report::lost(&item, CudaLoss::Captured);
            }
            self.graphs.add(item, pair);
        } else {
            self.queues.push(Pending { item, pair, number });
        }
    }

    /// Whether there is anything to be read, or may be.
    fn is_busy(&self, is_asked: bool) -> bool {
        !self.queues.is_empty() || self.graphs.are_due(is_asked)
    }

    /// Whether it is to be looked after at the usual pace.
    fn is_followed(&self) -> bool {
        !self.queues.is_empty() || self.graphs.are_followed()
    }

    /// Whether its pool can be made smaller.
    fn is_idle(&self) -> bool {
        let unused = clock().nanoseconds(now().saturating_sub(self.last_used) as f64);
        !self.is_shrunk && unused > IDLE_NS
    }

    /// Looks after the context; true where anything was read.
    fn visit(&mut self, sink: &mut Sink, suspicion: bool, is_asked: bool) -> bool {
        // A replay belongs to the window in which it is seen.
        let is_recorded = gpu_record::are_wanted();
        let is_asked = is_asked || is_recorded;
        let is_busy = self.is_busy(is_asked);
        // Also where nothing has ended yet: many scopes that are open bring the pool near its cap.
        self.context.balance_magazines();
        let idle = self.is_idle();
        let failed = self.context.has_failed();
        if !is_busy && !suspicion && !idle && !failed {
            return false;
        }
        // Whether a context is there, only one that is there may be asked. Where the program may have ended it, it is
        // asked no more than what is pending in it makes necessary.
        if failed && !self.context.is_retained() {
            self.queues.lose_all(sink, CudaLoss::ContextFailed);
            self.graphs.forget();
        }
        let is_needed = is_busy || suspicion && self.context.is_suspect();
        if !is_needed && !self.context.is_retained() {
            self.is_shrunk = true;
            return false;
        }
        if self.is_gone(sink.driver) {
            self.advance_epoch(sink);
            return false;
        }
        if failed {
            self.queues.lose_all(sink, CudaLoss::ContextFailed);
            return false;
        }
        // In another context nothing of this one is to be done.
        if !self.is_current {
            // At the end of a process the driver goes first: whoever waits for it would wait in vain.
            if self.is_over {
                self.queues.lose_all(sink, CudaLoss::ContextGone);
            }
            return false;
        }
        self.settle_in(sink.driver, is_recorded);
        // Before what is read goes back: what it would be then, it is not while the program measures.
        if !idle {
            self.context.grow_if_low(sink.driver);
        }
        let progress = match self.queues.read(sink, self.anchor.as_ref()) {
            Ok(progress) => progress,
            Err(fault) => {
                self.draw_consequences(sink, fault);
                return false;
            }
        };
        // Loggers that keep it waiting get no more.
        if let Some(anchor) = self.anchor.as_ref().and_then(Anchor::event)
            && sink.outbox.is_empty()
        {
            let outbox = &mut sink.outbox;
            let seen = |item: &GpuMeasurement, ns, own| outbox.replayed(item, ns, own);
            self.graphs.poll(sink.driver, anchor, is_asked, seen);
        }
        if idle {
            if sink.driver.has_context_ids() {
                self.context.shrink_to(sink.driver, KEPT_PAIRS);
            }
            self.queues.forget_empty();
            self.is_shrunk = true;
        }
        progress || self.graphs.are_replayed()
    }

    fn draw_consequences(&mut self, sink: &mut Sink, fault: Fault) {
        match fault {
            Fault::Sticky => self.queues.lose_all(sink, CudaLoss::ContextFailed),
            Fault::ContextGone if self.is_gone(sink.driver) => self.advance_epoch(sink),
            // One event was refused, and its scope has been given up.
            Fault::ContextGone => {}
            // The process is ending: nothing can be read any more.
            _ => self.queues.lose_all(sink, CudaLoss::ContextGone),
        }
    }

    /// The context was destroyed, and all that was in it.
    fn advance_epoch(&mut self, sink: &mut Sink) {
        self.context.advance_epoch();
        self.queues.lose_all(sink, CudaLoss::ContextGone);
        self.graphs.forget();
        *self = Self::new(self.context);
    }

    /// Whether the context has been destroyed since, or replaced. What is gone stays so: a single refusal is
    /// not believed.
    fn is_gone(&mut self, driver: &Driver) -> bool {
        self.seems_gone(driver) && self.seems_gone(driver)
    }

    fn seems_gone(&mut self, driver: &Driver) -> bool {
        let raw = self.context.raw;
        match self.context.has_other_id(driver) {
            Some(Ok(true)) => return true,
            Some(Err(code)) if code.fault() == Fault::ContextGone => return true,
            _ => {}
        }
        // One that has failed is not touched any more.
        if self.context.has_failed() {
            return false;
        }
        let code = driver.set_context(raw);
        self.is_current = code.is_ok();
        self.is_over = code.fault() == Fault::NoDriver;
        code.fault() == Fault::ContextGone
    }

    /// Makes itself at home in a context that is current now.
    fn settle_in(&mut self, driver: &Driver, is_recorded: bool) {
        self.context.retain(driver);
        self.context.note_device(driver);
        // To know where times stand takes a stream of our own in the context: not made for lengths alone.
        let is_wanted = is_recorded || self.queues.wants_places() || !self.graphs.is_empty();
        if is_wanted && let Err(Failed { call, code }) = self.renew_anchor(driver) {
            self.context.handle_error(driver, code, call);
        }
    }

    fn renew_anchor(&mut self, driver: &Driver) -> Result<(), Failed> {
        let anchor = match &mut self.anchor {
            Some(anchor) => anchor,
            none => none.insert(Anchor::new(driver)?),
        };
        if let Some(before) = anchor.renew_if_old(driver)? {
            self.graphs.move_to(driver, before, anchor.event());
        }
        Ok(())
    }

    fn close(&mut self, driver: &Driver) {
        // Not to be looked after any more, unless something is measured in it again.
        self.is_shrunk = true;
        // The program may have ended it, and to ask would be to use it: its events go with it. Where the driver does
        // not number contexts, the device may have been reset unseen, and to destroy an event that is gone crashes
        // some drivers: they stay in the pool, for what may still be measured.
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
        // Their events stay with what was captured; nobody looks at them any more.
        self.graphs.forget();
    }
}

#[cfg(test)]
mod tests;
