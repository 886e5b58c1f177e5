//! The end of a future: counting it, logging it and recording it.

use profiler_host::sync::ReentrancyGuard;

use super::super::builder::ScopeBuilder;
use super::{FutureState, Progress};
use crate::clock::{elapsed, now};
use crate::collect;
use crate::cuda::{self, Begun, BoundCall, CpuSpan, TaskGpuScope, nvtx};
use crate::local::callers::CountedCall;
use crate::local::{self, NoCell, Place};
use crate::log_record::LogRequest;
use crate::losses;
use crate::name;
use crate::session::{self, EndedScope, RecordEnding};
use crate::stats::{Ending, StatCell};

impl FutureState {
    /// Finishes the future. Does nothing if it has finished, was never polled, or is not measured.
    pub(super) fn finish(&mut self, builder: Option<&mut ScopeBuilder<'static>>, ending: Ending) {
        let (Some(decision), Some(mut progress)) = (self.decision.take(), self.progress.take())
        else {
            return;
        };
        // An executor may catch the panic of a poll, and drop the future much later.
        let ending = if progress.panicked {
            Ending::Panicked
        } else {
            ending
        };
        let end = match ending {
            Ending::Dropped => now(),
            Ending::Returned | Ending::Panicked => progress.last_end,
        };
        let mut span = CpuSpan {
            end,
            elapsed: elapsed(progress.first_poll, end),
            outermost: progress.outermost,
            call: CountedCall::NONE,
        };
        let name = decision.id();
        let cell = match local::cell_outside(name) {
            Ok(cell) => Some(cell),
            Err(NoCell::Unavailable) => None,
            // Ended inside the profiler, where nothing is measured.
            Err(NoCell::Reentrant) => {
                losses::count_refused();
                nvtx::end(progress.range);
                let gpu = progress.cuda.ok().and_then(TaskGpuScope::into_opened);
                return gpu.map_or((), cuda::abandon);
            }
        };
        progress.end_shared(end, name);
        progress.count(name, cell, span, ending);
        if decision.counts_callers() {
            let times = (span.elapsed, progress.polled - progress.children);
            span.call = local::callers::finished(name, progress.call, times, span.outermost);
        }
        let log = match builder {
            Some(builder) => builder.take_request(),
            None => self.is_logged.then(|| LogRequest::new(1)),
        };
        progress.dispatch(name, cell, span, ending, log);
        if let Some(cell) = cell {
            local::give_back(cell);
        }
        if decision.is_step() && span.outermost {
            session::environment::step();
        }
    }
}

impl Progress {
    /// Ends what the future shares with other threads, and counts the time in which their scopes covered its polls as
    /// that of children.
    fn end_shared(&mut self, end: u64, name: u32) {
        let Some(shared) = &self.shared else {
            return;
        };
        let covered = shared.coverage.end(end);
        self.children += covered;
        name::count_covered(name, covered);
        let _reentrancy = ReentrancyGuard::try_enter();
        shared.end(name);
    }

    fn count(&self, name: u32, cell: Option<&StatCell>, span: CpuSpan, ending: Ending) {
        let count = |cell: &StatCell| {
            let own = self.polled - self.children;
            let needs_maintenance = cell.count(span.elapsed, own, span.outermost);
            cell.count_future(self.polled);
            cell.count_ending(ending);
            needs_maintenance
        };
        match cell {
            Some(cell) => {
                if count(cell) {
                    name::maintain(cell);
                }
            }
            None => {
                if let Some(name) = name::by_id(name) {
                    name.count_without_cell(|cell| _ = count(cell));
                }
            }
        }
    }

    /// Passes the future on: to the session if one records it; to the GPU's resolver if it has a GPU time, else to the
    /// collector if it is logged.
    fn dispatch(
        self,
        name: u32,
        cell: Option<&'static StatCell>,
        span: CpuSpan,
        ending: Ending,
        log: Option<LogRequest>,
    ) {
        let shared = self.shared.as_ref();
        let bound = shared
            .filter(|_| self.cuda.is_err())
            .and_then(|shared| BoundCall::of(shared, 0));
        if let Some(record) = self.record {
            let ended = EndedScope {
                name,
                serial: 0,
                place: Place::default(),
                shared: shared.map_or(0, |shared| shared.id),
                start: self.first_poll,
                elapsed: span.elapsed,
                ending: record_ending(ending),
                cuda: match &bound {
                    Some(bound) => bound.key(),
                    None => self.cuda.as_ref().map_or(0, TaskGpuScope::key),
                },
            };
            session::close_future(record, &ended, self.polled);
        }
        let range = self.range;
        let has_no_stream = match &self.cuda {
            _ if bound.is_some() => false,
            Err(Begun::NoStream) => true,
            // There was no driver at the first poll. If there is one now, find out whether there was a stream.
            Err(Begun::NoDriver) => cuda::has_no_stream(),
            _ => false,
        };
        if has_no_stream {
            cuda::count_without_stream(cell, span.elapsed);
        }
        let gpu = self.cuda.ok().and_then(TaskGpuScope::into_opened);
        match (bound, gpu, log) {
            (Some(bound), _, log) => bound.end(name, span, cell, log),
            (None, Some(gpu), log) => {
                cuda::end_task(gpu, span, cell, log);
            }
            (None, None, Some(log)) if !has_no_stream && cuda::context_became_current() => {
                cuda::end_without_context(name, span, cell, Some(log));
            }
            (None, None, Some(log)) => collect::log(cell, name, (span.end, span.elapsed), log),
            (None, None, None) => {}
        }
        nvtx::end(range);
        let _reentrancy = ReentrancyGuard::try_enter();
        drop(self.shared);
    }
}

fn record_ending(ending: Ending) -> RecordEnding {
    match ending {
        Ending::Returned => RecordEnding::Returned,
        Ending::Panicked => RecordEnding::Panicked,
        Ending::Dropped => RecordEnding::Dropped,
    }
}
