//! A scope that can be the parent of scopes on other threads.

use std::mem;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use profiler_host::sync::Lock;
use profiler_report::CudaLoss;
use profiler_report::internal::StreamKey;

use crate::clock::now;
use crate::name;
use crate::stats::Coverage;

/// The caller of a scope, by its node and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) node: u32,
    pub(super) name: u32,
}

/// The ids of the names of a caller and a callee.
pub(super) type Pair = (u32, u32);

/// A call that is open around a scope with a handle, and its node.
pub(super) type SharedCall = (Pair, u32);

/// The number of a scope that has a [`Handle`](crate::Handle): [`Handle::id`](crate::Handle::id).
///
/// It is unique in the process, and keeps nothing alive: it can be copied, and kept for as long as the program likes. A
/// [launch hook](crate::cuda::set_launch_hook) names a scope by it.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Handle, scope};
///
/// assert_eq!(Handle::none().id(), None);
/// let _scope = scope!("ask");
/// let (one, other) = (Handle::current(), Handle::current());
/// assert_eq!(one.id(), other.id());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleId(NonZeroU64);

impl HandleId {
    pub(crate) fn of(scope: &SharedScope) -> Option<Self> {
        NonZeroU64::new(scope.id).map(Self)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0.get()
    }
}

/// The part of an open scope, or of a future, that threads share if it has a handle.
#[derive(Debug)]
pub(crate) struct SharedScope {
    /// Unique in the process, and not 0.
    pub(crate) id: u64,
    /// The names of the scope and of the scopes around it, outermost first, each once.
    pub(crate) names: Arc<[u32]>,
    /// The scope as a caller, if callers are counted.
    pub(super) caller: Caller,
    /// The calls that are open around the scope and by it, if callers are counted: each pair of caller and callee once.
    pub(super) calls: Arc<[SharedCall]>,
    /// The times of devices that something else measured in the scope.
    reported: Lock<Reported>,
    /// The GPU times on streams that were bound to the scope.
    segments: Lock<Option<Box<Segments>>>,
    /// For how long children on other threads ran while the scope itself waited.
    pub(crate) coverage: Coverage,
}

/// The GPU times of a scope on the streams that [`bind_stream`](crate::cuda::bind_stream) bound to it: a segment lasts from the
/// call until another stream is bound, or until the scope or the poll ends.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// The name of the scope, if it was looked for and found: a name that is open around the scope too is not.
    name: Option<u32>,
    has_looked: bool,
    /// Those that are open on a thread.
    open: u32,
    /// Those that have ended, and were neither read nor lost.
    unread: u32,
    /// The sum of those that were read, in nanoseconds.
    pub(crate) ns: f64,
    /// The sum without the scopes inside on the same stream.
    pub(crate) own: f64,
    /// The first of them.
    pub(crate) first: Option<FirstSegment>,
    /// When the last of them ended, if all starts are known.
    until: Option<SystemTime>,
    /// The other streams.
    pub(crate) more_streams: Vec<StreamKey>,
    /// Why one was lost.
    pub(crate) loss: Option<CudaLoss>,
}

/// The first segment of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstSegment {
    pub(crate) stream_key: StreamKey,
    pub(crate) device: Option<u32>,
    /// When it began on the time line of the host, and how uncertain that is in nanoseconds, if it is known.
    pub(crate) start: Option<(SystemTime, f64)>,
}

impl Segments {
    /// The most streams that are kept, as many as a row lists.
    const MAX_STREAMS: usize = 8;

    /// Notes that one begins in the scope or poll with this serial. Returns the scope's name, if it is found.
    pub(crate) fn begin(&mut self, serial: u64) -> Option<u32> {
        self.open += 1;
        if !mem::replace(&mut self.has_looked, true) {
            self.name = super::name_of_outermost(serial);
        }
        self.name
    }

    /// Takes back that one has begun.
    pub(crate) fn cancel(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Notes that an open one has ended.
    pub(crate) fn end(&mut self) {
        self.open = self.open.saturating_sub(1);
        self.unread += 1;
    }

    /// Adds the times of one that has ended.
    pub(crate) fn read(&mut self, segment: FirstSegment, ns: f64, own: f64) {
        self.unread = self.unread.saturating_sub(1);
        self.ns += ns;
        self.own += own;
        let end = segment
            .start
            .and_then(|(start, _)| start.checked_add(Duration::try_from_secs_f64(ns / 1e9).ok()?));
        self.until = match self.first {
            None => end,
            Some(_) => self.until.zip(end).map(|(one, other)| one.max(other)),
        };
        // Streams are read in any order.
        let first = *self.first.get_or_insert(segment);
        let start = |segment: &FirstSegment| segment.start.map(|(start, _)| start);
        let (first, other) = match (start(&first), start(&segment)) {
            (Some(start), Some(other)) if other < start => (segment, first),
            _ => (first, segment),
        };
        self.first = Some(first);
        self.more_streams.retain(|known| *known != first.stream_key);
        let is_known =
            other.stream_key == first.stream_key || self.more_streams.contains(&other.stream_key);
        if !is_known && self.more_streams.len() < Self::MAX_STREAMS {
            self.more_streams.push(other.stream_key);
        }
    }

    /// Counts one that has ended as lost.
    pub(crate) fn lose(&mut self, loss: CudaLoss) {
        self.unread = self.unread.saturating_sub(1);
        self.loss.get_or_insert(loss);
    }

    /// Counts an open one as lost.
    pub(crate) fn abandon(&mut self) {
        self.end();
        self.lose(CudaLoss::Abandoned);
    }

    /// Returns how long it took from the begin of the first to the end of the last, in nanoseconds; their sum if that is not
    /// known.
    pub(crate) fn extent(&self) -> f64 {
        let first = self.first.and_then(|first| first.start);
        let extent = first
            .zip(self.until)
            .and_then(|((start, _), until)| until.duration_since(start).ok());
        extent.map_or(self.ns, |extent| extent.as_nanos() as f64)
    }

    /// Returns `true` if none is awaited. The scope has ended: one that is open is on a thread that the scope has left.
    pub(crate) fn is_complete(&self) -> bool {
        self.unread == 0
    }

    fn are_there(&self) -> bool {
        self.open > 0 || self.unread > 0 || self.first.is_some() || self.loss.is_some()
    }

    /// Returns why the scope has no GPU time.
    pub(crate) fn loss(&self) -> Option<CudaLoss> {
        self.loss.or((self.open > 0).then_some(CudaLoss::Abandoned))
    }
}

/// Times of devices that something else measured. Which name is theirs, the scope says when it ends.
#[derive(Debug, Default)]
struct Reported {
    /// The id of the scope's name, once the scope has ended.
    name: Option<u32>,
    /// The sum of those that are not counted yet.
    ns: f64,
}

impl Reported {
    /// Counts the times, if the name is known.
    fn count(&mut self) {
        let name = self.name.filter(|_| self.ns > 0.0).and_then(name::by_id);
        if let Some(name) = name {
            let ns = mem::take(&mut self.ns);
            name.cuda.with(|times| times.add_reported(ns));
        }
    }
}

impl SharedScope {
    /// Adds a time of a device to the scope's name. The caller is inside of the profiler.
    pub(crate) fn report(&self, ns: f64) {
        let mut reported = self.reported.lock();
        reported.ns += ns;
        reported.count();
    }

    /// Notes that the scope has ended, and the id of its name.
    pub(crate) fn end(&self, name: u32) {
        let mut reported = self.reported.lock();
        reported.name = Some(name);
        reported.count();
    }

    /// Runs `f` on the segments of the scope. The caller is inside of the profiler.
    pub(crate) fn segments<T>(&self, f: impl FnOnce(&mut Segments) -> T) -> T {
        f(self.segments.lock().get_or_insert_default())
    }

    /// Returns `true` if a stream was bound to the scope.
    pub(crate) fn has_segments(&self) -> bool {
        self.segments
            .lock()
            .as_deref()
            .is_some_and(Segments::are_there)
    }

    /// Shares a scope that the calling thread is in.
    pub(super) fn new(
        names: Arc<[u32]>,
        (caller, calls): (Caller, Arc<[SharedCall]>),
    ) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            id: NEXT.fetch_add(1, Relaxed),
            names,
            caller,
            calls,
            reported: Lock::new(Reported::default()),
            segments: Lock::new(None),
            coverage: Coverage::new(now()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use profiler_report::internal::RawStream;

    use super::*;

    fn stream(number: usize) -> StreamKey {
        StreamKey {
            stream: RawStream(ptr::without_provenance_mut(number)),
            ..StreamKey::NOWHERE
        }
    }

    /// A segment on a stream that began so many nanoseconds after the epoch.
    fn began(number: usize, at: Option<u64>) -> FirstSegment {
        FirstSegment {
            stream_key: stream(number),
            device: None,
            start: at.map(|ns| (SystemTime::UNIX_EPOCH + Duration::from_nanos(ns), 0.0)),
        }
    }

    /// Segments of 10 ns, 4 of them their own.
    fn read(all: &[FirstSegment]) -> Segments {
        let mut segments = Segments::default();
        for segment in all {
            segments.open += 1;
            segments.end();
            assert!(!segments.is_complete());
            segments.read(*segment, 10.0, 4.0);
        }
        segments
    }

    #[test]
    fn the_first_segment_is_the_first_that_began_in_whatever_order_they_are_read() {
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let all = [
                began(7, Some(100)),
                began(8, Some(150)),
                began(7, Some(250)),
            ];
            let segments = read(&order.map(|place: usize| all[place]));
            assert!((segments.ns - 30.0).abs() < 0.1 && (segments.own - 12.0).abs() < 0.1);
            assert_eq!(segments.first.unwrap().stream_key, stream(7));
            assert_eq!(segments.more_streams, [stream(8)], "{order:?}");
            assert!((segments.extent() - 160.0).abs() < 0.1, "{order:?}");
            assert!(segments.is_complete() && segments.loss().is_none());
        }
    }

    #[test]
    fn without_all_starts_the_extent_is_the_sum() {
        for all in [
            [began(7, None), began(7, Some(500))],
            [began(7, Some(500)), began(7, None)],
        ] {
            assert!((read(&all).extent() - 20.0).abs() < 0.1);
        }
    }

    #[test]
    fn a_bounded_number_of_streams_is_kept() {
        let all: Vec<_> = (1..=100).map(|number| began(number, Some(5))).collect();
        assert_eq!(read(&all).more_streams.len(), Segments::MAX_STREAMS);
    }

    #[test]
    fn a_segment_that_is_lost_or_left_open_elsewhere_is_told() {
        let mut segments = read(&[began(7, None)]);
        segments.open += 2;
        assert_eq!(segments.loss(), Some(CudaLoss::Abandoned), "one is open");
        segments.end();
        segments.lose(CudaLoss::RingFull);
        segments.abandon();
        assert_eq!(
            segments.loss(),
            Some(CudaLoss::RingFull),
            "the first reason"
        );
        assert!(segments.is_complete());
    }

    #[test]
    fn what_could_not_begin_leaves_nothing() {
        let mut segments = Segments::default();
        segments.open += 1;
        assert!(segments.are_there());
        segments.cancel();
        assert!(!segments.are_there());
    }
}
