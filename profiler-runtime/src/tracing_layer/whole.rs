//! Spans that are measured from the first enter to the last exit, as futures are.
//!
//! The state of such a span is beside its entry among the open spans. Threads that have entered the span add to it; the
//! thread that closes it counts it as one call. Relaxed ordering suffices: whatever tells a thread that it may close the
//! span orders the exits of the others before that.

use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use super::sites::with_cell;
use crate::clock::elapsed;
use crate::collect;
use crate::local;
use crate::local::callers::{self, FutureCall};
use crate::log_record::LogRequest;
use crate::scope::{OpenScope, Part, should_log};
use crate::session;
use crate::stats::{Ending, StatCell};
use crate::switch::SiteDecision;

/// The span has been entered.
const BEGUN: u8 = 1;
/// No other scope of the name was open around the first enter.
const OUTERMOST: u8 = 2;
/// A panic ended a time that it was entered.
const PANICKED: u8 = 4;

/// The times of a span, in ticks.
#[derive(Debug)]
pub(super) struct WholeTimes {
    first_enter: AtomicU64,
    last_exit: AtomicU64,
    /// The sum of the times that it was entered.
    entered: AtomicI64,
    own: AtomicI64,
    /// The [`FutureCall`], if callers are counted.
    call: AtomicU64,
    flags: AtomicU8,
}

impl WholeTimes {
    pub(super) const fn new() -> Self {
        Self {
            first_enter: AtomicU64::new(0),
            last_exit: AtomicU64::new(0),
            entered: AtomicI64::new(0),
            own: AtomicI64::new(0),
            call: AtomicU64::new(FutureCall::NONE),
            flags: AtomicU8::new(0),
        }
    }

    pub(super) fn reset(&self) {
        self.last_exit.store(0, Relaxed);
        self.entered.store(0, Relaxed);
        self.own.store(0, Relaxed);
        self.call.store(FutureCall::NONE, Relaxed);
        self.flags.store(0, Relaxed);
    }

    /// Notes that a part of the span has opened.
    pub(super) fn begin(&self, open: &mut OpenScope, decision: SiteDecision, site: u32) {
        open.make_part();
        let is_first = self.flags.fetch_or(BEGUN, Relaxed) & BEGUN == 0;
        if is_first {
            self.first_enter.store(open.start(), Relaxed);
            if open.is_outermost() {
                self.flags.fetch_or(OUTERMOST, Relaxed);
            }
            with_cell(site, StatCell::begin_future);
        }
        if !decision.counts_callers() {
            return;
        }
        let Some((serial, outer)) = open.serials() else {
            return;
        };
        let call = self.call.load(Relaxed);
        if let Some(call) = FutureCall::from_raw(call) {
            callers::resumed(decision.id(), serial, outer, call);
        } else if is_first {
            let call = callers::opened(decision.id(), serial, outer);
            self.call
                .store(call.map_or(FutureCall::NONE, FutureCall::raw), Relaxed);
        }
    }

    /// Notes that a part of the span has closed.
    pub(super) fn end(&self, open: &OpenScope, part: &Part) {
        self.last_exit.fetch_max(part.end, Relaxed);
        self.entered.fetch_add(part.elapsed, Relaxed);
        self.own.fetch_add(part.own, Relaxed);
        if part.panicked {
            self.flags.fetch_or(PANICKED, Relaxed);
        }
        if self.call.load(Relaxed) != FutureCall::NONE
            && let Some((serial, _)) = open.serials()
        {
            callers::suspended(serial);
        }
    }

    /// Counts the span, which is closed and was exited.
    pub(super) fn count(&self, decision: SiteDecision, site: u32) {
        let (start, end) = (self.first_enter.load(Relaxed), self.last_exit.load(Relaxed));
        let (elapsed, own) = (elapsed(start, end), self.own.load(Relaxed));
        let flags = self.flags.load(Relaxed);
        let outermost = flags & OUTERMOST != 0;
        with_cell(site, |cell| {
            if cell.count(elapsed, own, outermost) {
                crate::name::maintain(cell);
            }
            cell.count_future(self.entered.load(Relaxed));
            if flags & PANICKED != 0 {
                cell.count_ending(Ending::Panicked);
            }
        });
        if decision.counts_callers() {
            let call = FutureCall::from_raw(self.call.load(Relaxed));
            callers::finished(decision.id(), call, (elapsed, own), outermost);
        }
        if decision.is_logged() && should_log(decision, 1) {
            let cell = local::cell(decision.id()).ok();
            collect::log(cell, decision.id(), (end, elapsed), LogRequest::new(1));
            if let Some(cell) = cell {
                local::give_back(cell);
            }
        }
        if decision.is_step() && outermost {
            session::environment::step();
        }
    }

    /// Ends a span that is closed and was never exited.
    pub(super) fn abandon(&self, site: u32) {
        if self.flags.load(Relaxed) & BEGUN != 0 {
            with_cell(site, |cell| cell.count_future(0));
        }
    }
}
