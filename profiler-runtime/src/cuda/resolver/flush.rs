//! Threads that wait until the resolver has read what was measured before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use profiler_host::diagnostics;
use profiler_host::sync::Requests;

use super::state::ResolverState;
use super::{GATE, THREAD, gauges, wake};
use crate::clock::{clock, now};
use crate::cuda::ffi::EventApi;

/// Requests to read everything that was measured before them.
static REQUESTS: Requests = Requests::new();
/// `true` if a request also asks the resolver to destroy the events: the program is about to end. Relaxed, because the
/// lock in `REQUESTS` orders the accesses: a request stores this before it is issued, and the resolver loads it after
/// it has seen the request.
static DESTROY_EVENTS: AtomicBool = AtomicBool::new(false);

/// A request whose scopes have left the rings.
struct Flush {
    request: u64,
    /// The sequence number of the first scope that the request does not wait for.
    end: u64,
}

/// The requests that wait for the device, oldest first.
#[derive(Default)]
pub(super) struct Flushes(VecDeque<Flush>);

impl Flushes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers the requests whose scopes have been read and delivered. `issued` is from [`requested`], before the
    /// round.
    pub(super) fn update<D: EventApi>(&mut self, issued: u64, state: &mut ResolverState<D>) {
        self.add(issued, REQUESTS.answered(), state.next_sequence());
        while let Some(request) = self.pop_complete(state.oldest_pending()) {
            if DESTROY_EVENTS.swap(false, Relaxed) {
                state.destroy_events();
            }
            REQUESTS.answer_up_to(request);
        }
    }

    /// Adds the requests up to `issued`, if they are new. The rings have been emptied since they were issued, and `end`
    /// is the sequence number of the next scope.
    fn add(&mut self, issued: u64, answered: u64, end: u64) {
        let known = self.0.back().map_or(answered, |flush| flush.request);
        if issued > known {
            let request = issued;
            self.0.push_back(Flush { request, end });
        }
    }

    /// Removes the oldest request if its scopes have been read. `oldest_pending` is the sequence number of the oldest
    /// scope that has not been read.
    fn pop_complete(&mut self, oldest_pending: u64) -> Option<u64> {
        let is_complete = |flush: &Flush| flush.end <= oldest_pending;
        self.0.front().filter(|flush| is_complete(flush))?;
        self.0.pop_front().map(|flush| flush.request)
    }
}

/// Returns the latest request, and `true` if it has not been answered.
///
/// To be called before a round empties the rings: a later request may wait for scopes that the round does not take.
pub(super) fn requested() -> (u64, bool) {
    let issued = REQUESTS.issued();
    (issued, issued > REQUESTS.answered())
}

/// Makes the waiting threads notice that the resolver has ended.
pub(super) fn recheck_served() {
    REQUESTS.recheck_served();
}

/// Waits until the scopes that were measured so far have been read, for `timeout` at most. Returns how many have not
/// been read.
///
/// With `destroy_events`, the resolver then destroys the events that no scope uses.
pub(crate) fn wait_until_read(timeout: Duration, destroy_events: bool) -> u64 {
    if GATE.is_closed() || THREAD.has_ended() {
        return gauges::in_flight() as u64;
    }
    if !THREAD.is_running() {
        return 0;
    }
    let start = Instant::now();
    if destroy_events {
        DESTROY_EVENTS.store(true, Relaxed);
    }
    let request = REQUESTS.issue();
    wake();
    if REQUESTS.wait(request, timeout, || THREAD.is_running()) {
        return 0;
    }
    let left = gauges::in_flight() as u64;
    warn_if_stuck(start.elapsed(), left);
    left.max(1)
}

/// Warns if the resolver has been in one round for at least half of the time `waited`.
///
/// None of the driver calls of a round waits for the device, so the driver or the device is broken.
fn warn_if_stuck(waited: Duration, left: u64) {
    let Some(entered_at) = GATE.entered_at() else {
        return;
    };
    let age = clock().nanoseconds(now().saturating_sub(entered_at) as f64);
    if age >= 0.5 * waited.as_nanos() as f64 && age > 10e6 {
        diagnostics::warn_once(&format!(
            "the CUDA driver has not returned from a call that should not wait: {left} GPU times are not read; \
             see what `nvidia-smi` says"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_for_the_scopes_before_it_and_for_no_later_ones() {
        let mut flushes = Flushes::default();
        // The scopes 0 to 9 had left the rings.
        flushes.add(1, 0, 10);
        assert_eq!(flushes.pop_complete(9), None);
        assert_eq!(flushes.pop_complete(10), Some(1));
        assert!(flushes.is_empty());
        // Nothing was measured since.
        flushes.add(2, 1, 10);
        assert_eq!(flushes.pop_complete(u64::MAX), Some(2));
    }

    #[test]
    fn requests_are_answered_in_order() {
        let mut flushes = Flushes::default();
        flushes.add(1, 0, 10);
        // A round without a new request.
        flushes.add(1, 0, 20);
        // Two that were issued in one round are answered together.
        flushes.add(3, 0, 30);
        assert_eq!(flushes.pop_complete(10), Some(1));
        assert_eq!(flushes.pop_complete(29), None);
        assert_eq!(flushes.pop_complete(30), Some(3));
        assert_eq!(flushes.pop_complete(30), None);
        flushes.add(3, 3, 40);
        assert!(flushes.is_empty(), "all requests have been answered");
    }
}
