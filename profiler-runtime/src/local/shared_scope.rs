//! A scope that can be the parent of scopes on other threads.

use std::collections::HashMap;
use std::mem;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use profiler_host::sync::Lock;
use profiler_report::CudaLoss;
use profiler_report::internal::StreamKey;

use super::node_gpu;
use super::segment_nesting::SegmentNesting;
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
    /// `true` once there was one.
    is_bound: AtomicBool,
    /// The serial by which the scope is found if its name is not known; 0 if it is not among those.
    serial_of_unnamed: AtomicU64,
    /// The id of its own name. `None` in a recursive call while callers are not counted.
    pub(crate) name: Option<u32>,
    /// For how long children on other threads ran while the scope itself waited.
    pub(crate) coverage: Coverage,
}

/// The GPU times of a scope on the streams that [`bind_stream`](crate::cuda::bind_stream) bound to it: a segment lasts from the
/// call until another stream is bound, or until the scope or the poll ends.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Those that are open on a thread.
    open: u32,
    /// Those that have ended, and were neither read nor lost.
    unread: u32,
    /// Those that were read.
    count: u64,
    /// The sum of those, in nanoseconds.
    pub(crate) ns: f64,
    /// The sum without the scopes inside on the same stream.
    pub(crate) own: f64,
    pub(crate) nesting: SegmentNesting,
    /// The first of them.
    pub(crate) first: Option<FirstSegment>,
    /// The streams, as far as there is room.
    streams: [Option<StreamKey>; Self::MAX_STREAMS],
    /// Why one was lost.
    loss: Option<CudaLoss>,
    /// `true` if the call was counted as one without a GPU time.
    is_counted: bool,
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

    /// Notes that one begins.
    pub(crate) fn begin(&mut self) {
        self.open += 1;
    }

    /// Notes that an open one has ended.
    pub(crate) fn end(&mut self) {
        self.open = self.open.saturating_sub(1);
        self.unread += 1;
    }

    /// Adds the times of one that has ended.
    pub(crate) fn read(&mut self, segment: FirstSegment, ns: f64, own: f64) {
        self.unread = self.unread.saturating_sub(1);
        self.count += 1;
        self.ns += ns;
        self.own += own;
        let start = |segment: &FirstSegment| segment.start.map(|(start, _)| start);
        // Streams are read in any order.
        let is_earlier = |first: &FirstSegment| match (start(first), start(&segment)) {
            (Some(first), Some(start)) => start < first,
            _ => false,
        };
        if self.first.as_ref().is_none_or(is_earlier) {
            self.first = Some(segment);
        }
        let stream = Some(segment.stream_key);
        let mut places = self.streams.iter_mut();
        if let Some(place) = places.find(|place| place.is_none() || **place == stream) {
            *place = stream;
        }
    }

    /// Returns how many were read.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the streams, as many as a row lists.
    pub(crate) fn streams(&self) -> impl Iterator<Item = StreamKey> {
        self.streams.iter().copied().flatten()
    }

    /// Counts one that has ended as lost.
    pub(crate) fn lose(&mut self, loss: CudaLoss) {
        self.unread = self.unread.saturating_sub(1);
        self.loss.get_or_insert(loss);
    }

    /// Counts an open one as lost.
    pub(crate) fn lose_open(&mut self, loss: CudaLoss) {
        self.end();
        self.lose(loss);
    }

    /// Notes that the call is counted as one without a GPU time. Returns `true` if it was not before.
    pub(crate) fn count_without(&mut self) -> bool {
        !mem::replace(&mut self.is_counted, true)
    }

    /// Takes the times, and leaves whether the call was counted.
    pub(crate) fn take(&mut self) -> Self {
        let left = Self {
            is_counted: self.is_counted || self.loss().is_some(),
            ..Self::default()
        };
        mem::replace(self, left)
    }

    /// Returns `true` if none is awaited. Once the scope has ended, one that is open is on a thread that the scope has left.
    pub(crate) fn is_complete(&self) -> bool {
        self.unread == 0
    }

    /// Returns why the scope has no GPU time.
    pub(crate) fn loss(&self) -> Option<CudaLoss> {
        self.loss.or((self.open > 0).then_some(CudaLoss::Abandoned))
    }
}

/// The times of devices that something else measured while the name of the scope is not known.
#[derive(Debug, Default)]
struct Reported {
    /// The id of the name, once the scope has ended.
    name: Option<u32>,
    /// Their sum.
    ns: f64,
}

/// The scopes whose names are not known, by their serials: a guard that ends on another thread finds its scope here, since the links
/// of the thread that opened it are out of reach.
static UNNAMED: Lock<Option<HashMap<u64, Weak<SharedScope>>>> = Lock::new(None);
/// How many there are, so that few take the lock.
static UNNAMED_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Changes the list of scopes without a name.
fn with_unnamed<T>(change: impl FnOnce(&mut HashMap<u64, Weak<SharedScope>>) -> T) -> T {
    let mut unnamed = UNNAMED.lock();
    let unnamed = unnamed.get_or_insert_default();
    let changed = change(unnamed);
    UNNAMED_COUNT.store(unnamed.len(), Relaxed);
    changed
}

/// Notes that the scope with this serial has ended on another thread than its own, and the id of its name.
// Relaxed: whoever gives a guard to another thread orders what it did before.
pub(crate) fn end_elsewhere(serial: u64, name: u32) {
    if UNNAMED_COUNT.load(Relaxed) == 0 {
        return;
    }
    // Upgraded outside of the lock: the last reference takes it again when it is dropped.
    let found = with_unnamed(|unnamed| unnamed.remove(&serial));
    if let Some(scope) = found.and_then(|scope| scope.upgrade()) {
        scope.end(name);
    }
}

impl Drop for SharedScope {
    fn drop(&mut self) {
        let serial = *self.serial_of_unnamed.get_mut();
        if serial != 0 {
            with_unnamed(|unnamed| unnamed.remove(&serial));
        }
    }
}

impl SharedScope {
    /// Has the end of the scope on another thread be noticed too, if its name is not known.
    pub(super) fn note_unnamed(self: &Arc<Self>, serial: u64) {
        if self.name.is_some() {
            return;
        }
        let is_noted = with_unnamed(|unnamed| {
            let has_room = unnamed.try_reserve(1).is_ok();
            if has_room {
                unnamed.insert(serial, Arc::downgrade(self));
            }
            has_room
        });
        if is_noted {
            self.serial_of_unnamed.store(serial, Relaxed);
        }
    }

    /// Adds a time of a device to the scope's name. The caller is inside of the profiler.
    pub(crate) fn report(&self, ns: f64) {
        if let Some(name) = self.name {
            // Where and when the scope ends does not matter then, nor whether it does.
            return self.count_reported(name, ns);
        }
        let mut reported = self.reported.lock();
        match reported.name {
            Some(name) => self.count_reported(name, ns),
            None => reported.ns += ns,
        }
    }

    /// Notes that the scope has ended, and the id of its name.
    pub(crate) fn end(&self, name: u32) {
        if self.name.is_some() {
            return;
        }
        let mut reported = self.reported.lock();
        reported.name = Some(name);
        let ns = mem::take(&mut reported.ns);
        self.count_reported(name, ns);
    }

    fn count_reported(&self, name: u32, ns: f64) {
        if ns > 0.0
            && let Some(name) = name::by_id(name)
        {
            name.cuda.with(|times| times.add_reported(ns));
            node_gpu::add_reported(self.caller.node(), ns);
        }
    }

    /// Notes that a segment begins. The caller is inside of the profiler.
    pub(crate) fn begin_segment(&self) {
        self.is_bound.store(true, Relaxed);
        self.segments.lock().get_or_insert_default().begin();
    }

    /// Runs `f` on the segments of the scope, which is bound.
    pub(crate) fn segments<T>(&self, f: impl FnOnce(&mut Segments) -> T) -> T {
        f(self.segments.lock().get_or_insert_default())
    }

    /// Returns `true` if streams were bound to the scope.
    // Relaxed: the thread that asks has bound them itself, or has got the future from one that has.
    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound.load(Relaxed)
    }

    /// Shares a scope that the calling thread is in.
    pub(super) fn new(
        name: Option<u32>,
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
            is_bound: AtomicBool::new(false),
            serial_of_unnamed: AtomicU64::new(0),
            name,
            coverage: Coverage::new(now()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::time::Duration;

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
            segments.begin();
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
            assert_eq!(segments.first.unwrap().start, all[0].start);
            let mut streams: Vec<_> = segments.streams().collect();
            streams.sort_unstable();
            assert_eq!(streams, [stream(7), stream(8)], "{order:?}");
            assert!(segments.is_complete() && segments.loss().is_none());
        }
    }

    #[test]
    fn a_bounded_number_of_streams_is_kept() {
        let all: Vec<_> = (1..=100).map(|number| began(number, None)).collect();
        assert_eq!(read(&all).streams().count(), Segments::MAX_STREAMS);
    }

    #[test]
    fn a_segment_that_is_lost_or_left_open_elsewhere_is_told() {
        let mut segments = read(&[began(7, None)]);
        segments.begin();
        segments.begin();
        assert_eq!(segments.loss(), Some(CudaLoss::Abandoned), "one is open");
        segments.end();
        segments.lose(CudaLoss::RingFull);
        segments.lose_open(CudaLoss::Captured);
        assert_eq!(
            segments.loss(),
            Some(CudaLoss::RingFull),
            "the first reason"
        );
        assert!(segments.is_complete());
    }
}
