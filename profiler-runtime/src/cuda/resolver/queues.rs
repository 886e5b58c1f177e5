//! What waits for a device, by the lines it runs in: a device passes the events of a line in their order.

use std::collections::{BTreeMap, VecDeque};

use super::anchor::Anchor;
use super::sink::Sink;
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::{Code, Fault};
use crate::cuda::loss::CudaLoss;
use crate::stream_key::StreamKey;

/// StreamQueues kept for what may come; programs have a few, unless each thread has its own.
const MAX_EMPTY: usize = 1024;

/// An item whose events the device has not passed.
pub(crate) struct Pending {
    pub(crate) item: Box<GpuMeasurement>,
    pub(crate) pair: Pair,
    /// In the order in which items left the rings.
    pub(crate) number: u64,
}

/// The lines of one context.
#[derive(Default)]
pub(crate) struct StreamQueues {
    queues: BTreeMap<StreamKey, VecDeque<Pending>>,
    /// Whether a logger wants to know where one of them stands on the time line.
    wants_places: bool,
}

/// What a question came to.
enum Answer {
    Passed,
    NotYet,
    /// The driver refuses to say; the item has been given up.
    Removed,
}

impl StreamQueues {
    pub(crate) fn push(&mut self, pending: Pending) {
        self.wants_places |= pending.item.log.is_some();
        let queue = self
            .queues
            .entry(pending.item.scope.stream_key)
            .or_default();
        queue.push_back(pending);
    }

    pub(crate) fn len(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.values().all(VecDeque::is_empty)
    }

    pub(crate) fn wants_places(&self) -> bool {
        self.wants_places
    }

    /// The number of the first item that is not read yet.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let fronts = self.queues.values().filter_map(VecDeque::front);
        fronts.map(|pending| pending.number).min()
    }

    /// When the first scope ended that is not read yet, in ticks.
    pub(crate) fn first_end(&self) -> u64 {
        let fronts = self.queues.values().filter_map(VecDeque::front);
        let ends = fronts.map(|pending| pending.item.span.end);
        ends.min().unwrap_or(u64::MAX)
    }

    /// Reads what the device has passed; true where that was anything. The error is what is wrong with the
    /// context.
    pub(crate) fn read(&mut self, sink: &mut Sink, anchor: Option<&Anchor>) -> Result<bool, Fault> {
        let mut progress = false;
        for queue in self.queues.values_mut() {
            let mut passed = passed(queue, sink)?;
            progress |= passed > 0;
            while passed > 0
                && let Some(pending) = queue.pop_front()
            {
                passed -= 1;
                if let Some(early) = read_one(pending, sink, anchor)? {
                    queue.push_front(early);
                    break;
                }
            }
        }
        if self.queues.len() > MAX_EMPTY {
            self.forget_empty();
        }
        // Most often all are read at once; until then some are asked for a place that nobody wants.
        self.wants_places &= !self.is_empty();
        Ok(progress)
    }

    /// Gives everything up.
    pub(crate) fn lose_all(&mut self, sink: &mut Sink, loss: CudaLoss) {
        while let Some(item) = self.take_any() {
            sink.lose(item, loss);
        }
    }

    /// Takes out an item, whichever; none where there is none.
    pub(crate) fn take_any(&mut self) -> Option<Box<GpuMeasurement>> {
        loop {
            let mut queue = self.queues.first_entry()?;
            match queue.get_mut().pop_front() {
                Some(pending) => return Some(pending.item),
                None => _ = queue.remove(),
            }
        }
    }

    pub(crate) fn forget_empty(&mut self) {
        self.queues.retain(|_, queue| !queue.is_empty());
    }
}

/// Reads a time that should be known; the item, where it is not yet: threads that share a stream may record
/// in another order than they end.
fn read_one(
    pending: Pending,
    sink: &mut Sink,
    anchor: Option<&Anchor>,
) -> Result<Option<Pending>, Fault> {
    let pair = pending.pair;
    match sink.driver.elapsed(pair.begin, pair.end) {
        Ok(elapsed) => match elapsed.length() {
            Some(ns) => sink.resolve(pending.item, pair, ns, anchor),
            None => sink.lose(pending.item, CudaLoss::ImpossibleTime),
        },
        Err(code) if code.fault() == Fault::NotReady => return Ok(Some(pending)),
        Err(code) => refused(pending, sink, code, "cuEventElapsedTime")?,
    }
    Ok(None)
}

/// How many of a line's events the device has passed, by few questions.
fn passed(queue: &mut VecDeque<Pending>, sink: &mut Sink) -> Result<usize, Fault> {
    loop {
        // Often all of them, or none; else it is found by halves.
        let all = queue.len();
        let (mut passed, mut not_passed, mut next) = (0, all + 1, all);
        let mut removed = false;
        while passed + 1 < not_passed && !removed {
            match ask(queue, sink, next)? {
                Answer::Passed => passed = next,
                Answer::NotYet => not_passed = next,
                Answer::Removed => removed = true,
            }
            next = if passed == 0 && next == all {
                1
            } else {
                usize::midpoint(passed, not_passed)
            };
        }
        if !removed {
            return Ok(passed);
        }
    }
}

/// Whether the device has passed so many of a line's events.
fn ask(queue: &mut VecDeque<Pending>, sink: &mut Sink, place: usize) -> Result<Answer, Fault> {
    let Some(pending) = queue.get(place - 1) else {
        return Ok(Answer::NotYet);
    };
    let code = sink.driver.query(pending.pair.end);
    if code.is_ok() {
        return Ok(Answer::Passed);
    }
    // Another thread may have begun to capture between our question and our event, which is part of that capture
    // then and has no time, ever.
    let is_captured = code == Code::CAPTURED_EVENT;
    if matches!(code.fault(), Fault::NotReady | Fault::Capture) && !is_captured {
        return Ok(Answer::NotYet);
    }
    if let Some(pending) = queue.remove(place - 1) {
        refused(pending, sink, code, "cuEventQuery")?;
    }
    Ok(Answer::Removed)
}

/// A call for this item was refused: its time is lost, and so may be its context.
fn refused(pending: Pending, sink: &mut Sink, code: Code, call: &str) -> Result<(), Fault> {
    let Pending { item, pair, .. } = pending;
    let fault = pair.context.handle_error(sink.driver, code, call);
    let loss = match fault {
        Fault::Sticky => CudaLoss::ContextFailed,
        Fault::ContextGone | Fault::NoDriver => CudaLoss::ContextGone,
        Fault::Capture => CudaLoss::Captured,
        Fault::InvalidHandle => CudaLoss::InvalidHandle,
        Fault::NotReady | Fault::NotPermitted | Fault::Refused => CudaLoss::DriverRefused,
    };
    sink.lose(item, loss);
    match fault {
        Fault::Refused
        | Fault::InvalidHandle
        | Fault::NotPermitted
        | Fault::NotReady
        | Fault::Capture => Ok(()),
        Fault::Sticky | Fault::ContextGone | Fault::NoDriver => Err(fault),
    }
}
