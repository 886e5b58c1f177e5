//! Scopes that wait for the device, by stream.
//!
//! A device passes the events of one stream in the order in which they were recorded. So the resolver finds out how
//! many scopes of a stream are complete with a few queries, however many wait.

use std::collections::{BTreeMap, VecDeque};

use profiler_cuda_sys::driver::{Code, Fault};
use profiler_report::CudaLoss;
use profiler_report::internal::StreamKey;

use super::anchor::Anchor;
use super::completion::Completion;
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;

/// The most queues that are kept, empty ones included. Programs use a few streams, unless each thread has its own.
const MAX_QUEUES: usize = 1024;

/// The scopes of one stream, in the order in which they left the rings.
type StreamQueue = VecDeque<Box<GpuMeasurement>>;

/// The queues of one context.
#[derive(Default)]
pub(super) struct StreamQueues {
    queues: BTreeMap<StreamKey, StreamQueue>,
    /// `true` while a waiting scope may have a log entry, which tells when the GPU time began.
    wants_start_times: bool,
}

/// The answer to a query of an event.
enum Query {
    Passed,
    NotPassed,
    /// The driver refused the query, and the scope has been removed from its queue.
    Removed,
}

impl StreamQueues {
    /// Adds a scope that has a pair of events.
    pub(super) fn push(&mut self, measurement: Box<GpuMeasurement>) {
        self.wants_start_times |= measurement.log.is_some();
        let queue = self.queues.entry(measurement.scope.stream_key);
        queue.or_default().push_back(measurement);
    }

    pub(super) fn len(&self) -> usize {
        self.queues.values().map(VecDeque::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.values().all(VecDeque::is_empty)
    }

    /// Returns `true` if a logger wants to know when the GPU time of a waiting scope began.
    pub(super) fn wants_start_times(&self) -> bool {
        self.wants_start_times
    }

    /// Returns the sequence number of the oldest scope.
    pub(super) fn oldest_sequence(&self) -> Option<u64> {
        self.fronts().map(|measurement| measurement.sequence).min()
    }

    /// Returns when the oldest scope ended on the CPU, in ticks; `u64::MAX` if none waits.
    pub(super) fn oldest_end(&self) -> u64 {
        let ends = self.fronts().map(|measurement| measurement.span.end);
        ends.min().unwrap_or(u64::MAX)
    }

    fn fronts(&self) -> impl Iterator<Item = &GpuMeasurement> {
        let fronts = self.queues.values().filter_map(VecDeque::front);
        fronts.map(AsRef::as_ref)
    }

    /// Completes the scopes whose events the device has passed. Returns `true` if there were any.
    ///
    /// # Errors
    ///
    /// A fault of the whole context. The scopes that remain are not readable, or the context must be examined.
    pub(super) fn read(
        &mut self,
        completion: &mut Completion<impl EventApi>,
        anchor: Option<&Anchor>,
    ) -> Result<bool, Fault> {
        let mut progress = false;
        for queue in self.queues.values_mut() {
            let passed = count_passed(queue, completion)?;
            progress |= passed > 0;
            read_front(queue, passed, completion, anchor)?;
        }
        if self.queues.len() > MAX_QUEUES {
            self.remove_empty();
        }
        // Cleared only when all queues are empty, which they often are. Until then, some anchors may be renewed for
        // nothing.
        self.wants_start_times &= !self.is_empty();
        Ok(progress)
    }

    /// Completes all scopes without a time.
    pub(super) fn lose_all(&mut self, completion: &mut Completion<impl EventApi>, loss: CudaLoss) {
        while let Some(measurement) = self.pop_any() {
            completion.lose(measurement, loss);
        }
    }

    /// Removes a scope of any stream.
    pub(super) fn pop_any(&mut self) -> Option<Box<GpuMeasurement>> {
        loop {
            let mut queue = self.queues.first_entry()?;
            match queue.get_mut().pop_front() {
                Some(measurement) => return Some(measurement),
                None => _ = queue.remove(),
            }
        }
    }

    /// Frees the queues of streams in which nothing waits.
    pub(super) fn remove_empty(&mut self) {
        self.queues.retain(|_, queue| !queue.is_empty());
    }
}

/// Reads the times of the first `count` scopes, all of which the device has passed.
fn read_front(
    queue: &mut StreamQueue,
    count: usize,
    completion: &mut Completion<impl EventApi>,
    anchor: Option<&Anchor>,
) -> Result<(), Fault> {
    for _ in 0..count {
        let Some(measurement) = queue.pop_front() else {
            break;
        };
        if let Some(unread) = read_one(measurement, completion, anchor)? {
            queue.push_front(unread);
            break;
        }
    }
    Ok(())
}

/// Reads the time of a scope and completes it. Returns the scope if the device has not passed it after all: threads
/// that share a stream may record their end events in another order than their scopes end.
fn read_one(
    measurement: Box<GpuMeasurement>,
    completion: &mut Completion<impl EventApi>,
    anchor: Option<&Anchor>,
) -> Result<Option<Box<GpuMeasurement>>, Fault> {
    let Some(pair) = measurement.pair else {
        return Ok(None);
    };
    match completion.driver.elapsed(pair.begin, pair.end) {
        Ok(elapsed) => match elapsed.length() {
            Some(ns) => completion.complete(measurement, pair, ns, anchor),
            None => completion.lose(measurement, CudaLoss::ImpossibleTime),
        },
        Err(code) if code.fault() == Fault::NotReady => return Ok(Some(measurement)),
        Err(code) => refuse(measurement, pair, completion, code, "cuEventElapsedTime")?,
    }
    Ok(None)
}

/// Returns how many scopes at the front of the queue the device has passed.
///
/// The last scope is queried first and the first one second: usually all have been passed, or none. Otherwise the
/// boundary is found by bisection.
fn count_passed(
    queue: &mut StreamQueue,
    completion: &mut Completion<impl EventApi>,
) -> Result<usize, Fault> {
    'restart: loop {
        let all = queue.len();
        // The device has passed the first `passed` scopes, and not those from number `not_passed` on.
        let (mut passed, mut not_passed, mut next) = (0, all + 1, all);
        while passed + 1 < not_passed {
            match query(queue, completion, next)? {
                Query::Passed => passed = next,
                Query::NotPassed => not_passed = next,
                // The numbers of the scopes behind it have changed.
                Query::Removed => continue 'restart,
            }
            next = if passed == 0 && next == all {
                1
            } else {
                usize::midpoint(passed, not_passed)
            };
        }
        return Ok(passed);
    }
}

/// Asks the driver whether the device has passed scope `number` of the queue, counted from one.
fn query(
    queue: &mut StreamQueue,
    completion: &mut Completion<impl EventApi>,
    number: usize,
) -> Result<Query, Fault> {
    let pair = queue
        .get(number - 1)
        .and_then(|measurement| measurement.pair);
    let Some(pair) = pair else {
        return Ok(Query::NotPassed);
    };
    let code = completion.driver.query(pair.end);
    if code.is_ok() {
        return Ok(Query::Passed);
    }
    // `CAPTURED_EVENT` is final: the event was part of a capture that began and ended while its scope did, and never has
    // a time. Other faults of captures concern the query alone.
    let is_captured = code == Code::CAPTURED_EVENT;
    if matches!(code.fault(), Fault::NotReady | Fault::Capture) && !is_captured {
        return Ok(Query::NotPassed);
    }
    if let Some(measurement) = queue.remove(number - 1) {
        refuse(measurement, pair, completion, code, "cuEventQuery")?;
    }
    Ok(Query::Removed)
}

/// Completes a scope without a time because the driver refused a call for its events.
///
/// # Errors
///
/// The fault, if it concerns the whole context.
fn refuse(
    measurement: Box<GpuMeasurement>,
    pair: Pair,
    completion: &mut Completion<impl EventApi>,
    code: Code,
    call: &str,
) -> Result<(), Fault> {
    let fault = pair.context.handle_error(completion.driver, code, call);
    let loss = match fault {
        Fault::Sticky => CudaLoss::ContextFailed,
        Fault::ContextGone | Fault::NoDriver => CudaLoss::ContextGone,
        Fault::Capture => CudaLoss::Captured,
        Fault::InvalidHandle => CudaLoss::InvalidHandle,
        Fault::NotReady | Fault::NotPermitted | Fault::Refused => CudaLoss::DriverRefused,
    };
    completion.lose(measurement, loss);
    match fault {
        Fault::Sticky | Fault::ContextGone | Fault::NoDriver => Err(fault),
        Fault::Refused
        | Fault::InvalidHandle
        | Fault::NotPermitted
        | Fault::NotReady
        | Fault::Capture => Ok(()),
    }
}

#[cfg(test)]
mod tests;
