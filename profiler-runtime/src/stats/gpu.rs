//! Statistics of the GPU times of one name, in nanoseconds.

use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::{Lock, Locked};
use profiler_report::internal::{BUCKETS, Buckets, StreamKey, bucket_of};

/// The most streams that are listed for one name.
const MAX_STREAMS: usize = 8;
/// A pair of events with no work between them measures a few microseconds at most.
const IDLE_NS: f64 = 5_000.0;
/// The fewest calls from which a wrong stream is concluded.
const MIN_CALLS_TO_JUDGE: u64 = 32;

/// The GPU statistics of one name.
///
/// The resolver writes them, except `without`, which a measured thread counts too. Summaries read them.
#[derive(Clone, Debug)]
pub(crate) struct GpuTimes {
    pub(crate) calls: u64,
    /// The sum over calls that are not inside another one with a time on their stream.
    pub(crate) total: f64,
    /// The sum over all calls, recursive ones included: what the mean is taken of.
    pub(crate) sum: f64,
    pub(crate) own: f64,
    sum_of_squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) buckets: Buckets,
    /// Calls of which it is known how long they kept the CPU busy.
    pub(crate) judged: u64,
    /// Those that kept the CPU busy for at least as long as the GPU.
    pub(crate) launch_bound: u64,
    /// The time of scopes that ran inside these calls on other streams.
    pub(crate) other_streams: f64,
    /// Calls that should have a GPU time and have none.
    pub(crate) without: u64,
    pub(crate) stream_keys: Vec<StreamKey>,
    /// `true` once the user was warned that the name is measured on the wrong stream.
    is_warned: bool,
    /// Calls on a default stream because neither the call nor its thread named a stream.
    fallback: u64,
    /// Calls shorter than [`IDLE_NS`].
    idle: u64,
    /// Calls whose time does not show that their stream had any work.
    ///
    /// An idle stream passes each event as soon as it is recorded, so a pair around no work measures how long the CPU
    /// took from one record to the other. A call counts here if its GPU time is no longer than that.
    maybe_idle: u64,
}

/// One call, as [`GpuTimes::count`] takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuCall {
    pub(crate) ns: f64,
    /// Without the scopes inside the call on the same stream.
    pub(crate) own: f64,
    /// How long the CPU was busy with the call, including the time to record the events. `None` if that is not known, since
    /// streams were bound while it was open.
    pub(crate) launch_ns: Option<f64>,
    /// What the call adds to the total: its time without that of calls of the name inside it on its stream, which are counted.
    pub(crate) total: f64,
    pub(crate) stream_key: StreamKey,
    /// `true` if neither the call nor its thread named the stream.
    pub(crate) is_fallback: bool,
}

impl GpuTimes {
    const fn new() -> Self {
        Self {
            calls: 0,
            total: 0.0,
            sum: 0.0,
            own: 0.0,
            sum_of_squares: 0.0,
            min: f64::INFINITY,
            max: 0.0,
            buckets: Buckets::new(),
            judged: 0,
            launch_bound: 0,
            other_streams: 0.0,
            without: 0,
            stream_keys: Vec::new(),
            is_warned: false,
            fallback: 0,
            idle: 0,
            maybe_idle: 0,
        }
    }

    /// Counts a call. Returns `true` once: when enough calls show that the name is measured on the wrong stream.
    pub(crate) fn count(&mut self, call: &GpuCall) -> bool {
        let ns = call.ns;
        self.calls += 1;
        self.sum += ns;
        self.total += call.total;
        self.own += call.own;
        self.sum_of_squares += ns * ns;
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times are not negative, and the cast saturates"
        )]
        let bucket = bucket_of(ns.round() as u64).min(BUCKETS - 1);
        self.buckets.add(bucket, 1);
        let is_launch_bound = call.launch_ns.is_some_and(|launch_ns| launch_ns >= ns);
        self.judged += u64::from(call.launch_ns.is_some());
        self.launch_bound += u64::from(is_launch_bound);
        self.add_stream(call.stream_key);
        self.fallback += u64::from(call.is_fallback);
        self.idle += u64::from(ns < IDLE_NS);
        self.maybe_idle += u64::from(ns < IDLE_NS || is_launch_bound);
        self.detect_wrong_stream()
    }

    /// Adds a time that something else measured inside of a call: it is in the sums, and no call.
    pub(crate) fn add_reported(&mut self, ns: f64) {
        self.total += ns;
        self.own += ns;
    }

    /// Returns `true` if there are times.
    pub(crate) fn has_times(&self) -> bool {
        self.calls > 0 || self.own > 0.0
    }

    /// Returns `true` once: when nearly all calls may have measured an idle default stream while scopes inside them
    /// took a good part of that time, or more, on other streams.
    ///
    /// The sums are compared, and not the calls one by one: scopes on other streams are read earlier or much later than
    /// the call that they are inside of.
    fn detect_wrong_stream(&mut self) -> bool {
        let measured_nothing =
            self.calls >= MIN_CALLS_TO_JUDGE && self.are_nearly_all(self.maybe_idle);
        let worked_on_other_streams =
            self.other_streams > IDLE_NS * self.calls as f64 && 2.0 * self.other_streams > self.sum;
        let is_new = !self.is_warned && measured_nothing && worked_on_other_streams;
        self.is_warned |= is_new;
        is_new
    }

    /// Lists a stream of a call.
    pub(crate) fn add_stream(&mut self, stream_key: StreamKey) {
        if self.stream_keys.len() < MAX_STREAMS && !self.stream_keys.contains(&stream_key) {
            self.stream_keys.push(stream_key);
        }
    }

    /// Returns `true` if all calls fell back to a default stream and nearly all found it idle.
    pub(crate) fn idle_stream(&self) -> bool {
        self.are_nearly_all(self.idle)
    }

    /// Returns `true` if all calls fell back to a default stream and `calls` is at least 95 % of them.
    fn are_nearly_all(&self, calls: u64) -> bool {
        self.calls > 0 && self.fallback == self.calls && calls * 20 >= self.calls * 19
    }

    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.calls.max(1) as f64
    }

    /// Returns the population standard deviation of the calls.
    pub(crate) fn deviation(&self) -> f64 {
        let mean = self.mean();
        (self.sum_of_squares / self.calls.max(1) as f64 - mean * mean)
            .max(0.0)
            .sqrt()
    }
}

/// The GPU statistics of a name, allocated when the first of its calls has, or should have, a GPU time.
#[derive(Debug)]
pub(crate) struct GpuTotals(Lock<Option<Box<GpuTimes>>>);

impl GpuTotals {
    pub(crate) const fn new() -> Self {
        Self(Lock::new(None))
    }

    fn lock(&self) -> Locked<'_, Option<Box<GpuTimes>>> {
        self.0.lock()
    }

    /// Runs `f` on the statistics, with their lock held.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut GpuTimes) -> T) -> T {
        f(self.lock().get_or_insert_with(|| Box::new(GpuTimes::new())))
    }

    /// Returns a copy of the statistics, or `None` if there are none.
    pub(crate) fn read(&self) -> Option<GpuTimes> {
        // The copy allocates with the lock held: a measured allocator must not count a call here.
        let _guard = ReentrancyGuard::try_enter();
        self.lock().as_deref().cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use profiler_report::internal::RawStream;

    /// A call of 10 µs on an idle default stream that kept the CPU busy for 20 µs.
    const IDLE_CALL: GpuCall = GpuCall {
        ns: 10_000.0,
        own: 10_000.0,
        launch_ns: Some(20_000.0),
        total: 10_000.0,
        stream_key: StreamKey::NOWHERE,
        is_fallback: true,
    };

    #[test]
    fn a_recursive_call_is_in_the_mean_and_once_in_the_total() {
        let mut times = GpuTimes::new();
        for (ns, total) in [(30.0, 30.0), (50.0, 20.0)] {
            times.count(&GpuCall {
                ns,
                total,
                ..IDLE_CALL
            });
        }
        assert_eq!((times.calls, times.total), (2, 50.0));
        assert_eq!((times.mean(), times.deviation()), (40.0, 10.0));
        assert_eq!((times.min, times.max), (30.0, 50.0));
    }

    #[test]
    fn a_wrong_stream_is_detected_once() {
        let mut times = GpuTimes::new();
        let detected = (0..100_u64).filter(|_| {
            times.other_streams += 50_000.0;
            times.count(&IDLE_CALL)
        });
        assert_eq!(detected.collect::<Vec<_>>(), [MIN_CALLS_TO_JUDGE - 1]);
    }

    #[test]
    fn a_stream_that_worked_is_not_wrong() {
        let mut times = GpuTimes::new();
        for _ in 0..100 {
            times.other_streams += 50_000.0;
            let worked = GpuCall {
                launch_ns: Some(5_000.0),
                ..IDLE_CALL
            };
            assert!(!times.count(&worked));
        }
    }

    #[test]
    fn a_stream_that_the_call_named_is_not_wrong() {
        let mut times = GpuTimes::new();
        for _ in 0..100 {
            times.other_streams += 50_000.0;
            let named = GpuCall {
                is_fallback: false,
                ..IDLE_CALL
            };
            assert!(!times.count(&named));
        }
        assert!(!times.idle_stream());
    }

    #[test]
    fn nineteen_of_twenty_idle_calls_mean_an_idle_stream() {
        let mut times = GpuTimes::new();
        for call in 0..20 {
            let ns = if call == 0 { 1e6 } else { 2_000.0 };
            times.count(&GpuCall { ns, ..IDLE_CALL });
        }
        assert!(times.idle_stream());
        times.count(&GpuCall {
            ns: 1e6,
            ..IDLE_CALL
        });
        assert!(!times.idle_stream());
    }

    #[test]
    fn the_list_of_streams_is_bounded() {
        let mut times = GpuTimes::new();
        for handle in 0..2 * MAX_STREAMS {
            let stream = RawStream(ptr::without_provenance_mut(handle));
            for _ in 0..2 {
                let stream_key = StreamKey {
                    stream,
                    ..StreamKey::NOWHERE
                };
                times.count(&GpuCall {
                    stream_key,
                    ..IDLE_CALL
                });
            }
        }
        assert_eq!(times.stream_keys.len(), MAX_STREAMS);
        assert_eq!(times.calls, 4 * MAX_STREAMS as u64);
    }

    #[test]
    fn a_name_without_gpu_times_has_no_statistics() {
        let totals = GpuTotals::new();
        assert!(totals.read().is_none());
        totals.with(|times| times.without += 1);
        assert_eq!(totals.read().map(|times| times.without), Some(1));
    }
}
