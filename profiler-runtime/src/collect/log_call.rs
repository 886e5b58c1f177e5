//! Logs a finished call on its own thread: pushes it to the thread's ring, or calls its loggers at once.

use profiler_host::diagnostics::user_code;
use profiler_host::process::fork;
use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::ring::Producer;
use profiler_log::Logger;
use profiler_report::DropReason;

use super::defaults::fan_out;
use super::deliver::deliver;
use super::entry::LogEntry;
use super::ring::{LATE, MAX_LATE, RINGS};
use super::{collector, held_up, ledger, unflushed};
use crate::local;
use crate::log_record::{LogRecord, LogRequest};
use crate::losses::{count_dropped, note_full_ring};
use crate::own_cost;
use crate::stats::StatCell;
use crate::switch::with_control;

/// [`log`] for the usual call, whose thread has a ring with room. Returns `false`, and does nothing, if `log` must do it.
///
/// `make` makes the request. It is called once if this returns `true`, and not at all otherwise. Nothing here allocates,
/// calls user code or takes a lock, so the thread need not enter the profiler.
#[inline(always)]
pub(crate) fn log_early(
    cell: &'static StatCell,
    id: u32,
    (end, elapsed): (u64, i64),
    make: impl FnOnce() -> LogRequest,
) -> bool {
    if refusal(!ReentrancyGuard::is_entered()).is_some() {
        return false;
    }
    let is_pushed = local::with_made_ring(|ring| {
        ring.push_early(|| LogRecord {
            id,
            end,
            elapsed,
            request: LogRequest {
                skipped: cell.skipped.get(),
                ..make()
            },
        })
    });
    if is_pushed != Some(true) {
        return false;
    }
    cell.skipped.set(0);
    collector::wake_if_dozing();
    true
}

/// Pushes a finished call to the thread's ring for the collector, or counts why it could not be.
pub(crate) fn log(
    cell: Option<&'static StatCell>,
    id: u32,
    (end, elapsed): (u64, i64),
    mut request: LogRequest,
) {
    let guard = ReentrancyGuard::try_enter();
    if let Some(reason) = refusal(guard.is_some()) {
        user_code::drop_value(request);
        return count_dropped(reason, 1);
    }
    let every = request.every;
    request.skipped = cell.map_or(0, |cell| cell.skipped.get());
    let record = LogRecord {
        id,
        end,
        elapsed,
        request,
    };
    // In an `Option`, so that a record which is not taken stays here and is dropped by `drop_value`.
    let mut record = Some(record);
    let outcome =
        local::with_ring(|ring| push(ring, &mut record)).unwrap_or_else(|| push_late(&mut record));
    // A logger's destructor is user code.
    user_code::drop_value(record);
    match (outcome, cell) {
        (PushOutcome::Pushed, Some(cell)) => cell.skipped.set(0),
        (PushOutcome::Full, Some(cell)) => {
            cell.skipped.add(every.into());
            cell.ring_full.add(1);
            note_full_ring();
            held_up::warn_elsewhere();
        }
        (PushOutcome::Pushed, None) => {}
        (PushOutcome::Full, None) => {
            count_dropped(DropReason::RingFull, 1);
            held_up::warn_elsewhere();
        }
        (PushOutcome::NoCollector, _) => count_dropped(DropReason::NoCollector, 1),
        (PushOutcome::NoMemory, _) => count_dropped(DropReason::NoMemory, 1),
    }
}

/// Returns why this thread may not push now, if it may not. `is_outside` is `false` if the call comes from within the
/// profiler, as from a measured allocator or the destructor of a logger: the ring may be borrowed then.
#[inline(always)]
fn refusal(is_outside: bool) -> Option<DropReason> {
    if fork::is_child() {
        // The collector does not exist in a forked child.
        Some(DropReason::NoCollector)
    } else if is_outside {
        None
    } else {
        Some(DropReason::Reentrant)
    }
}

/// Returns what a call that is logged costs beyond others, in nanoseconds.
pub(crate) fn cost_of_record() -> f64 {
    own_cost::cost_of_push(|| LogRecord {
        id: 0,
        end: 0,
        elapsed: 0,
        request: LogRequest::new(1),
    })
}

enum PushOutcome {
    Pushed,
    Full,
    /// There is no collector, and there cannot be one.
    NoCollector,
    /// There is no memory for a ring. The next call tries again.
    NoMemory,
}

fn push(ring: &mut Option<Producer<LogRecord>>, record: &mut Option<LogRecord>) -> PushOutcome {
    let ring = match ring {
        Some(ring) => ring,
        empty => match make_ring() {
            Ok(made) => empty.insert(made),
            Err(outcome) => return outcome,
        },
    };
    let Some(taken) = record.take() else {
        return PushOutcome::NoCollector;
    };
    match ring.push(taken) {
        Ok(()) => {
            collector::wake_if_dozing();
            // For an ordinary load the collector's own rounds are often enough.
            if ring.is_half_full() {
                collector::wake();
            }
            PushOutcome::Pushed
        }
        Err(rejected) => {
            *record = Some(rejected);
            collector::wake();
            PushOutcome::Full
        }
    }
}

#[cold]
fn make_ring() -> Result<Producer<LogRecord>, PushOutcome> {
    let capacity = with_control(|control| control.settings.ring);
    if !collector::ensure_started() {
        return Err(PushOutcome::NoCollector);
    }
    RINGS.add(capacity, ()).ok_or(PushOutcome::NoMemory)
}

#[cold]
fn push_late(record: &mut Option<LogRecord>) -> PushOutcome {
    if !collector::ensure_started() {
        return PushOutcome::NoCollector;
    }
    let mut late = LATE.lock();
    if late.len() >= MAX_LATE {
        return PushOutcome::Full;
    }
    if late.try_reserve(1).is_err() {
        return PushOutcome::NoMemory;
    }
    late.extend(record.take());
    drop(late);
    collector::wake();
    PushOutcome::Pushed
}

/// Calls the loggers of an entry on this thread, before it returns: for scopes with `sync = true`.
pub(crate) fn log_here(entry: LogEntry, logger: Option<Logger>) {
    // The threads of the profiler do not exist in a forked child, and it logs nothing.
    if fork::is_child() {
        user_code::drop_value(logger);
        return count_dropped(DropReason::NoCollector, 1);
    }
    // Loggers are not measured, as on the profiler's own threads. Before any lock is taken: an allocation in a thread's
    // start would come back to that lock if the allocator is measured.
    let _guard = ReentrancyGuard::try_enter();
    // The collector flushes the loggers.
    collector::ensure_started();
    fan_out(entry.name, logger, |recipient| {
        ledger::add_pending(1);
        if let Some(oldest) = deliver(&entry, recipient) {
            unflushed::flush_for_the_last_time(oldest);
        }
    });
    collector::wake_if_dozing();
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;
    use crate::losses;
    use profiler_log::IntoLogger;

    struct SetsOnDrop(Arc<AtomicBool>);

    impl Drop for SetsOnDrop {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    #[test]
    fn a_call_inside_the_profiler_is_counted_as_re_entrant() {
        let was_dropped = Arc::new(AtomicBool::new(false));
        let value = SetsOnDrop(Arc::clone(&was_dropped));
        let logger = move |_: &str, _: f64, _: u64| {
            let _ = &value;
        };
        let request = LogRequest {
            logger: Some(logger.into_logger()),
            ..LogRequest::new(1)
        };
        let before = losses::dropped(DropReason::Reentrant);
        let guard = ReentrancyGuard::try_enter();
        assert!(guard.is_some());
        log(None, u32::MAX, (0, 0), request);
        drop(guard);
        assert!(losses::dropped(DropReason::Reentrant) > before);
        assert!(was_dropped.load(Relaxed), "its logger was dropped");
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn nothing_is_pushed_early_inside_the_profiler_or_in_a_forked_child() {
        static CELL: StatCell = StatCell::new();
        let early = || log_early(&CELL, u32::MAX, (0, 0), || LogRequest::new(1));
        fork::set_home();
        // Makes the thread's ring.
        log(None, u32::MAX, (0, 0), LogRequest::new(1));
        assert!(early());
        let guard = ReentrancyGuard::try_enter();
        assert!(!early());
        drop(guard);
        crate::fork_and::fork_and(|| !early());
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn a_call_in_a_forked_child_has_no_collector() {
        fork::set_home();
        crate::fork_and::fork_and(|| {
            let before = losses::dropped(DropReason::NoCollector);
            log(None, u32::MAX, (0, 0), LogRequest::new(1));
            losses::dropped(DropReason::NoCollector) == before + 1
        });
    }
}
