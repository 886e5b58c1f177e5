//! An open scope: what happens when one opens and closes.
//!
//! Opening and closing each have a fast way, which calls nothing, and a slow way, which does whatever
//! is out of the ordinary. The fast ways end in the slow ones, so that they have nothing to save.

use std::thread::panicking;

use crate::clock::{elapsed, has_counter, now, read_counter};
use crate::collect;
use crate::cuda::{self, Begun, CpuSpan, GpuOptions};
use crate::diagnostics::catch_own_panic;
use crate::local::{self, NoCell, ThreadState};
use crate::log::LogRequest;
use crate::name;
use crate::scope::builder::is_due;
use crate::session::{self, EndedScope, RecordEnding, Shapes};
use crate::stats::{Ending, StatCell};
use crate::switch::SiteDecision;

/// An open scope, with what its opening replaced in the thread's state.
pub(crate) struct OpenScope {
    cell: &'static StatCell,
    start: u64,
    /// The scope's number on its thread, and flags. A scope with a flag is never the innermost one by
    /// this number, and so closes the slow way.
    serial: u64,
    outer: u64,
    outer_children: i64,
}

/// A default logger wants this call.
const LOGGED: u64 = 1 << 63;
/// A panic was under way when the scope opened.
const UNWINDING: u64 = 1 << 62;
/// The thread had no cell when the scope opened, since it was ending or there was no memory: the number is that of the
/// name.
const OUTSIDE: u64 = 1 << 61;
/// Its start is not a reading of the counter.
const SYSTEM_CLOCK: u64 = 1 << 60;
/// It has a GPU time.
const CUDA: u64 = 1 << 59;
/// It was to have a GPU time on a stream of the current context, and none was current.
const NO_CONTEXT: u64 = 1 << 58;
/// A session records it.
const RECORDED: u64 = 1 << 57;
/// Its end is that of a step.
const STEP: u64 = 1 << 56;
/// No stream is named that it could be measured on.
const NO_STREAM: u64 = 1 << 55;
const FLAGS: u64 =
    LOGGED | UNWINDING | OUTSIDE | SYSTEM_CLOCK | CUDA | NO_CONTEXT | RECORDED | STEP | NO_STREAM;

/// What a call brings along beyond its name.
#[derive(Debug, Default)]
pub(crate) struct ScopeArgs {
    pub(crate) ask: Option<GpuOptions>,
    pub(crate) shapes: Shapes,
}

/// What counting a call came to.
struct Counted {
    /// The cell's buckets must be carried over.
    full: bool,
    /// No scope of the same name is around it.
    outermost: bool,
}

/// What closing a scope has measured.
pub(crate) struct ClosedScope {
    pub(crate) end: u64,
    pub(crate) elapsed: i64,
    /// Whether no scope of the same name was around it.
    outermost: bool,
    /// Whether a panic went through it.
    panicked: bool,
}

impl ClosedScope {
    pub(crate) fn new(end: u64, elapsed: i64, outermost: bool) -> Self {
        Self {
            end,
            elapsed,
            outermost,
            panicked: false,
        }
    }

    pub(crate) fn span(&self) -> CpuSpan {
        CpuSpan {
            end: self.end,
            elapsed: self.elapsed,
            outermost: self.outermost,
        }
    }
}

/// Stands for the cell of a thread that has none any more; never counts anything.
static NO_CELL: StatCell = StatCell::new();

impl OpenScope {
    /// Opens a scope where nothing is out of the ordinary; the clock is read last.
    #[inline(always)]
    pub(crate) fn fast(decision: SiteDecision) -> Option<Self> {
        local::with_state(|state| {
            // A decision with a flag is larger than any name whose cell is found here.
            let mut open = Self::push(state, state.cell(decision.raw())?);
            open.start = read_counter();
            Some(open)
        })
        .flatten()
    }

    /// Opens any scope, but not inside the profiler itself; the clock is read last.
    pub(crate) fn slow(decision: SiteDecision, every: u32, args: &mut ScopeArgs) -> Option<Self> {
        let logged = decision.is_logged() && is_due(decision, every);
        let mut open = match local::cell(decision.id()) {
            Ok(cell) => {
                if logged {
                    cell.every.set(every.into());
                }
                local::with_state(|state| Self::push(state, cell))?
            }
            Err(NoCell::Unavailable) => Self::outside(decision),
            Err(NoCell::Reentrant) => return None,
        };
        let wants_cuda = (decision.is_cuda() || args.ask.is_some()) && open.serial & OUTSIDE == 0;
        let is_recorded = decision.is_recorded();
        // Before the GPU's side is: whatever takes time here must not be between its two events.
        let counts_memory = is_recorded && open.serial & OUTSIDE == 0 && {
            let shapes = std::mem::take(&mut args.shapes);
            session::open(decision.id(), open.serial, open.outer, shapes)
        };
        let begun = wants_cuda.then(|| cuda::begin(open.serial, decision.id(), args.ask.as_mut()));
        if counts_memory {
            session::opened(open.serial);
        }
        let flags = [
            (begun == Some(Begun::Opened), CUDA),
            (begun == Some(Begun::NoContext), NO_CONTEXT),
            (begun == Some(Begun::NoStream), NO_STREAM),
            (logged, LOGGED),
            (panicking(), UNWINDING),
            (!has_counter(), SYSTEM_CLOCK),
            (is_recorded, RECORDED),
            (decision.is_step(), STEP),
        ];
        open.serial |= flags
            .iter()
            .filter(|(set, _)| *set)
            .fold(0, |flags, (_, flag)| flags | flag);
        open.start = now();
        Some(open)
    }

    #[inline(always)]
    fn push(state: &ThreadState, cell: &'static StatCell) -> Self {
        let serial = state.serial.get() + 1;
        state.serial.set(serial);
        let outer = state.top.replace(serial);
        cell.enter(serial);
        let outer_children = state.children.replace(0);
        Self {
            cell,
            start: 0,
            serial,
            outer,
            outer_children,
        }
    }

    /// On a thread whose cells are gone: the scope stands by itself.
    fn outside(decision: SiteDecision) -> Self {
        let serial = OUTSIDE | u64::from(decision.id());
        Self {
            cell: &NO_CELL,
            start: 0,
            serial,
            outer: 0,
            outer_children: 0,
        }
    }

    /// Counts the innermost scope and puts back the one around it.
    #[inline(always)]
    fn pop(&self, state: &ThreadState, elapsed: i64) -> Counted {
        let own = elapsed - state.children.get();
        state.top.set(self.outer);
        state.children.set(self.outer_children + elapsed);
        self.count(elapsed, own, self.cell.leave(self.serial()))
    }

    #[inline(always)]
    fn count(&self, elapsed: i64, own: i64, outermost: bool) -> Counted {
        Counted {
            full: self.cell.count(elapsed, own, outermost),
            outermost,
        }
    }

    /// The scope's number without flags.
    // The fast way could hand along the number that it has compared, and need not mask: two
    // instructions less, and 3 % slower in a side by side run.
    #[inline(always)]
    fn serial(&self) -> u64 {
        self.serial & !FLAGS
    }

    /// Closes any scope.
    fn close(&self, end: u64) -> ClosedScope {
        let elapsed = elapsed(self.start, end);
        let panicked = panicking() && self.serial & UNWINDING == 0;
        let outermost = if self.serial & OUTSIDE == 0 {
            self.close_inside(elapsed, panicked)
        } else {
            self.close_outside(elapsed, panicked);
            true
        };
        ClosedScope {
            panicked,
            ..ClosedScope::new(end, elapsed, outermost)
        }
    }

    /// True where no scope of the same name is around it.
    fn close_inside(&self, elapsed: i64, panicked: bool) -> bool {
        if local::has_ended() {
            // The thread has given the cell back. There is nothing around the scope any more.
            if let Some(name) = name::by_id(self.id()) {
                name.count_late(|cell| count_alone(cell, elapsed, panicked));
            }
            return true;
        }
        let serial = self.serial();
        let counted = local::with_state(|state| match state.top.get() {
            top if top == serial => self.pop(state, elapsed),
            top => {
                // Dropped before a younger guard, or the younger one was forgotten. The time is
                // exact; what the children took is not known any more: all counts as its own.
                self.cell.count_disordered();
                // One that was held from an earlier poll has nothing around it in this one.
                if serial < top && serial > state.floor.get() {
                    state.top.set(self.outer);
                    state.children.set(self.outer_children + elapsed);
                    local::forget_above(serial);
                }
                self.count(elapsed, elapsed, self.cell.leave_late(serial))
            }
        });
        if counted.as_ref().is_some_and(|counted| counted.full) {
            carry(self.cell);
        }
        if panicked {
            self.cell.count_ending(Ending::Panicked);
        }
        counted.is_none_or(|counted| counted.outermost)
    }

    fn close_outside(&self, elapsed: i64, panicked: bool) {
        let Some(name) = name::by_id(self.id()) else {
            return;
        };
        name.count_directly(|cell| count_alone(cell, elapsed, panicked));
    }

    /// The cell, unless the thread has none or has given it back: then another thread may write it.
    fn cell(&self) -> Option<&'static StatCell> {
        (self.serial & OUTSIDE == 0 && !local::has_ended()).then_some(self.cell)
    }

    /// Hands a finished call on: to the resolver if it has a GPU time, to the collector if it is to be
    /// logged without one.
    fn dispatch(&self, closed: &ClosedScope, log: Option<(u32, LogRequest)>) {
        let (cell, span) = (self.cell(), closed.span());
        // First, so that nothing here is the scope's.
        let recorded = (self.serial & RECORDED != 0).then(|| self.ended(closed));
        if self.serial & NO_STREAM != 0 {
            cuda::count_without_stream(cell, closed.elapsed);
        }
        if self.serial & CUDA != 0 {
            cuda::finish_scope(cell, log, |part| cuda::end(self.serial(), span, part));
        } else if self.serial & NO_CONTEXT != 0 && cuda::context_became_current() {
            cuda::finish_scope(cell, log, |part| {
                cuda::end_without_context(self.id(), span, part)
            });
        } else if let Some((every, request)) = log {
            collect::log(
                cell,
                self.id(),
                every,
                (closed.end, closed.elapsed),
                request,
            );
        }
        // With the GPU's side closed: whatever takes time here must not be between its two events.
        match recorded {
            Some(Some(ended)) => session::close(&ended),
            Some(None) => session::lose(),
            None => {}
        }
        if self.serial & STEP != 0 && closed.outermost {
            session::environment::step();
        }
    }

    /// What a session is to be told of it; none where its thread keeps nothing any more.
    fn ended(&self, closed: &ClosedScope) -> Option<EndedScope> {
        if self.serial & OUTSIDE != 0 {
            return None;
        }
        let serial = self.serial();
        let has_cuda = self.serial & CUDA != 0;
        let ending = if closed.panicked {
            RecordEnding::Panicked
        } else {
            RecordEnding::Returned
        };
        session::ending(serial);
        Some(EndedScope {
            name: self.id(),
            serial,
            parent: self.outer,
            start: self.start,
            elapsed: closed.elapsed,
            ending,
            cuda: if has_cuda { cuda::key_of(serial) } else { 0 },
        })
    }

    #[allow(clippy::cast_possible_truncation, reason = "the number of a name")]
    fn id(&self) -> u32 {
        if self.serial & OUTSIDE == 0 {
            self.cell.id.get() as u32
        } else {
            self.serial() as u32
        }
    }
}

/// Counts a call that has nothing around it.
fn count_alone(cell: &StatCell, elapsed: i64, panicked: bool) {
    let _ = cell.count(elapsed, elapsed, true);
    if panicked {
        cell.count_ending(Ending::Panicked);
    }
}

/// Calls of nothing, to find out what a call costs.
pub(crate) struct Probe;

impl Probe {
    /// Opens and closes scopes, and leaves no trace. One thread at a time.
    pub(crate) fn run(calls: u32) {
        static CELL: StatCell = StatCell::new();
        local::with_state(|state| {
            if state.top.get() == local::ENDED {
                return;
            }
            let children = state.children.get();
            for _ in 0..calls {
                let mut open = OpenScope::push(state, &CELL);
                open.start = now();
                open.pop(state, elapsed(open.start, now()));
            }
            state.children.set(children);
        });
    }
}

#[cold]
fn carry(cell: &StatCell) {
    #[allow(clippy::cast_possible_truncation, reason = "the number of a name")]
    let id = cell.id.get() as u32;
    catch_own_panic("counts were carried over", || {
        if let Some(name) = name::by_id(id) {
            name.carry(cell);
        }
    });
}

/// Ends a scope the fast way where it can.
#[inline(never)]
pub(super) fn end(open: &OpenScope) {
    // Asked first, and both ways of going on end the function: nothing has to be saved.
    if panicking() {
        return end_slow(open);
    }
    local::with_state(|state| {
        // A flag in the number fails the comparison too.
        if state.top.get() != open.serial {
            return end_slow(open);
        }
        if open.pop(state, elapsed(open.start, read_counter())).full {
            carry(open.cell);
        }
    });
}

#[cold]
#[inline(never)]
fn end_slow(open: &OpenScope) {
    catch_own_panic("a scope was closed", || close_slowly(open));
}

fn close_slowly(open: &OpenScope) {
    let closed = open.close(now());
    let logged = (open.serial & LOGGED != 0).then(|| {
        // A thread that has given the cell back has left this in it.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it was put there from a u32"
        )]
        let every = open.cell.every.get().max(1) as u32;
        (every, LogRequest::default())
    });
    open.dispatch(&closed, logged);
}

/// Ends a scope whose turn it is to be logged.
#[inline(never)]
pub(super) fn end_logged(open: &OpenScope, every: u32, request: &mut LogRequest) {
    catch_own_panic("a scope was closed", || {
        let closed = open.close(now());
        open.dispatch(&closed, Some((every, std::mem::take(request))));
    });
}
