//! What is known of the GPU time of one name, in nanoseconds.

use std::sync::MutexGuard;

use super::{BUCKETS, Buckets, bucket_of};
use crate::stream_key::StreamKey;
use crate::sync::Lock;
use crate::sync::ReentrancyGuard;

/// How many streams are named for each name.
const MAX_STREAMS: usize = 8;

/// Written by the resolver, with a few exceptions that are counted elsewhere; read by summaries.
#[derive(Clone, Debug)]
pub(crate) struct GpuTimes {
    pub(crate) calls: u64,
    /// The time of outermost calls: a recursive frame counts once.
    pub(crate) total: f64,
    /// The time of all calls.
    every: f64,
    pub(crate) own: f64,
    squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) buckets: Buckets,
    /// Calls whose CPU span was as long as that of the GPU, or longer.
    pub(crate) launch_bound: u64,
    /// The time of scopes inside of it on other streams.
    pub(crate) elsewhere: f64,
    /// Calls that were to have a GPU time and have none.
    pub(crate) without: u64,
    pub(crate) stream_keys: Vec<StreamKey>,
    /// Whether it was said already that it is measured on the wrong stream.
    is_said: bool,
    /// Calls on a default stream, for which neither they nor their thread named one.
    fallback: u64,
    /// Calls that read as next to nothing.
    idle: u64,
    /// Calls that read as no more than the CPU took to come from one event to the other: an idle stream
    /// passes each at once, so that a pair around nothing reads as that.
    unseen: u64,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuCall {
    pub(crate) ns: f64,
    pub(crate) own: f64,
    /// How long the CPU was busy with it, recording included.
    pub(crate) launch_ns: f64,
    pub(crate) outermost: bool,
    pub(crate) stream_key: StreamKey,
    /// Whether neither the call nor its thread named the stream.
    pub(crate) is_fallback: bool,
}

/// A pair of events around nothing reads a few microseconds at most.
const IDLE_NS: f64 = 5_000.0;
/// After so many calls it is no accident.
const IDLE_CALLS: u64 = 32;

impl GpuTimes {
    const fn new() -> Self {
        Self {
            calls: 0,
            total: 0.0,
            every: 0.0,
            own: 0.0,
            squares: 0.0,
            min: f64::INFINITY,
            max: 0.0,
            buckets: Buckets::new(),
            launch_bound: 0,
            elsewhere: 0.0,
            without: 0,
            stream_keys: Vec::new(),
            is_said: false,
            fallback: 0,
            idle: 0,
            unseen: 0,
        }
    }

    /// Counts a call; true where its name has been measured on the wrong stream for long enough.
    pub(crate) fn count(&mut self, call: &GpuCall) -> bool {
        let ns = call.ns;
        self.calls += 1;
        self.every += ns;
        if call.outermost {
            self.total += ns;
        }
        self.own += call.own;
        self.squares += ns * ns;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time, and of any length"
        )]
        let bucket = bucket_of(ns.round() as u64).min(BUCKETS - 1);
        self.buckets.add(bucket, 1);
        self.launch_bound += u64::from(call.launch_ns >= ns);
        self.note_stream(call.stream_key);
        self.fallback += u64::from(call.is_fallback);
        self.idle += u64::from(ns < IDLE_NS);
        self.unseen += u64::from(ns < IDLE_NS || call.launch_ns >= ns);
        self.is_on_wrong_stream()
    }

    /// True once, where nearly all of enough calls need not have seen anything on the default stream, while a good
    /// part of as much time, or more, was taken by others.
    ///
    /// Not call by call: what a call has inside is read before it or long after, as the streams come to it.
    fn is_on_wrong_stream(&mut self) -> bool {
        let calls = self.calls >= IDLE_CALLS && self.are_nearly_all(self.unseen);
        let apart =
            self.elsewhere > IDLE_NS * self.calls as f64 && 2.0 * self.elsewhere > self.every;
        let wrong = !self.is_said && calls && apart;
        self.is_said |= wrong;
        wrong
    }

    fn note_stream(&mut self, stream_key: StreamKey) {
        if self.stream_keys.len() < MAX_STREAMS && !self.stream_keys.contains(&stream_key) {
            self.stream_keys.push(stream_key);
        }
    }

    /// Whether nearly all calls were on a default stream, for want of another, and saw nothing there.
    pub(crate) fn saw_no_work(&self) -> bool {
        self.are_nearly_all(self.idle)
    }

    /// Whether all calls were on a default stream, for want of another, and so many are nearly all of them.
    fn are_nearly_all(&self, calls: u64) -> bool {
        self.fallback == self.calls && calls * 20 >= self.calls * 19
    }

    pub(crate) fn mean(&self) -> f64 {
        self.every / self.calls.max(1) as f64
    }

    /// The standard deviation of the calls there were (not of a sample).
    pub(crate) fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.squares / self.calls.max(1) as f64 - mean * mean)
            .max(0.0)
            .sqrt()
    }
}

/// The totals of a name; nothing is kept for one that never had a GPU time.
#[derive(Debug)]
pub(crate) struct GpuTotals(Lock<Option<Box<GpuTimes>>>);

impl GpuTotals {
    pub(crate) const fn new() -> Self {
        Self(Lock::new(None))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<GpuTimes>>> {
        self.0.lock()
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut GpuTimes) -> T) -> T {
        f(self.lock().get_or_insert_with(|| Box::new(GpuTimes::new())))
    }

    pub(crate) fn read(&self) -> Option<GpuTimes> {
        let _busy = ReentrancyGuard::try_enter();
        self.lock().as_deref().cloned()
    }
}
