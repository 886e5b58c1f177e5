//! Threads that wait until the resolver has read what was measured before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::state::ResolverState;
use super::{GATE, THREAD, gauges, wake};
use crate::clock::{clock, now};
use crate::cuda::ffi::EventApi;
use crate::diagnostics;
use crate::sync::Requests;

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
    /// Returns the latest request, and `true` if it has not been answered.
    ///
    /// To be called before a round empties the rings: a later request may wait for scopes that the round does not take.
    pub(super) fn requested() -> (u64, bool) {
        let issued = REQUESTS.issued();
        (issued, issued > REQUESTS.answered())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes the requests up to `issued`, for which this round has emptied the rings. Answers those whose scopes have
    /// been read and delivered.
    pub(super) fn update<D: EventApi>(&mut self, issued: u64, state: &mut ResolverState<D>) {
        let last = self.0.back().map(|flush| flush.request);
        if issued > last.unwrap_or_else(|| REQUESTS.answered()) && state.has_drained() {
            self.0.push_back(Flush {
                request: issued,
                end: state.next_sequence(),
            });
        }
        while let Some(flush) = self.0.front()
            && state.oldest_pending() >= flush.end
            && state.is_delivered()
        {
            if DESTROY_EVENTS.swap(false, Relaxed) {
                state.destroy_events();
            }
            REQUESTS.answer_up_to(flush.request);
            self.0.pop_front();
        }
    }
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
