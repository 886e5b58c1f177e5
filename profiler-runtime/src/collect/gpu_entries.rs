//! Entries of GPU times, on their way from the resolver to the collector.

use profiler_host::diagnostics::user_code;
use profiler_host::sync::ring::Producer;
use profiler_log::Logger;
use profiler_report::DropReason;

use super::entry::LogEntry;
use super::ring::GPU_RINGS;
use super::{collector, held_up};
use crate::losses::count_dropped;

/// How many entries wait for the collector at most: while a logger is slow, GPU times are read all the same.
const CAPACITY: usize = 8192;

/// An entry, and its logger if the call brought one.
pub(super) type GpuEntry = (LogEntry, Option<Logger>);

/// The resolver's end of the ring. Its destructor ends the ring: what is in it is delivered.
#[derive(Default)]
pub(crate) struct EntrySender {
    ring: Option<Producer<GpuEntry>>,
}

impl EntrySender {
    /// Sends an entry to `logger`, else to the default loggers; or counts why that is not possible.
    pub(crate) fn send(&mut self, entry: LogEntry, logger: Option<Logger>) {
        if let Err((reason, logger)) = self.push(entry, logger) {
            // A logger's destructor is user code.
            user_code::drop_value(logger);
            count_dropped(reason, 1);
            if reason == DropReason::RingFull {
                held_up::warn_elsewhere();
            }
        }
    }

    fn push(
        &mut self,
        entry: LogEntry,
        logger: Option<Logger>,
    ) -> Result<(), (DropReason, Option<Logger>)> {
        if !collector::ensure_started() {
            return Err((DropReason::NoCollector, logger));
        }
        let ring = match &mut self.ring {
            Some(ring) => ring,
            empty => match GPU_RINGS.add(CAPACITY, ()) {
                Some(made) => empty.insert(made),
                None => return Err((DropReason::NoMemory, logger)),
            },
        };
        let pushed = ring.push((entry, logger));
        collector::wake_if_dozing();
        if ring.is_half_full() {
            collector::wake();
        }
        pushed.map_err(|(_, logger)| (DropReason::RingFull, logger))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::SystemTime;

    use super::*;
    use crate::{losses, name};
    use profiler_log::IntoLogger;

    /// Sets its flag when it is dropped, and panics.
    struct PanicsInDrop(Arc<AtomicBool>);

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
            std::panic::panic_any("a test panics");
        }
    }

    fn entry() -> LogEntry {
        LogEntry {
            name: name::declared("gpu entries: entry", std::panic::Location::caller()),
            milliseconds: 1.0,
            cpu_ms: 1.0,
            cuda: None,
            step: 0,
            wall_time: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn an_entry_that_finds_the_ring_full_is_counted_and_its_logger_contained() {
        let (producer, _consumer) = profiler_host::sync::ring::ring(1).expect("there is memory");
        let mut sender = EntrySender {
            ring: Some(producer),
        };
        let before = losses::dropped(DropReason::RingFull);
        sender.send(entry(), None);
        assert_eq!(losses::dropped(DropReason::RingFull), before);
        let was_dropped = Arc::new(AtomicBool::new(false));
        let value = PanicsInDrop(Arc::clone(&was_dropped));
        let logger = move |_: &str, _: f64, _: u64| {
            let _ = &value;
        };
        sender.send(entry(), Some(logger.into_logger()));
        assert!(was_dropped.load(Relaxed));
        assert!(losses::dropped(DropReason::RingFull) > before);
    }
}
