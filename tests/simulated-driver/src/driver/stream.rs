//! Streams, and how default and blocking streams wait for each other.

use super::code::{CudaResult, INVALID_HANDLE, INVALID_VALUE, STREAM_CAPTURE_IMPLICIT};
use super::slab::Missing;
use super::state::DriverState;
use super::task::{Join, Location, Point, Task};
use super::thread;

/// The per-thread default stream.
const PER_THREAD: usize = 2;
/// The flag of a stream that does not synchronize with the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// The relation of a stream to the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// It is the legacy default stream.
    Legacy,
    /// It and the legacy default stream wait for each other.
    Blocking,
    /// It is independent of the legacy default stream.
    NonBlocking,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The number that `cuStreamGetId` returns.
    pub(crate) id: u64,
    pub(crate) context: usize,
    pub(crate) kind: StreamKind,
    /// `true` if it was created with its context or thread.
    pub(crate) is_default: bool,
    /// The handle that programs use.
    pub(crate) handle: usize,
    pub(crate) priority: i32,
    /// The end of its last work.
    pub(crate) tail: Point,
    /// The capture that it takes part in.
    pub(crate) capture: Option<u64>,
}

impl Stream {
    pub(crate) fn new(context: usize, kind: StreamKind, priority: i32) -> Self {
        let tail = Point::At(0);
        Self {
            id: 0,
            context,
            kind,
            is_default: true,
            handle: 0,
            priority,
            tail,
            capture: None,
        }
    }

    /// Returns the flags as `cuStreamGetFlags` does.
    pub(crate) fn flags(&self) -> u32 {
        if self.kind == StreamKind::NonBlocking {
            NON_BLOCKING
        } else {
            0
        }
    }
}

/// The result of queuing work in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// The work runs, and ends at this point.
    Runs(Point),
    /// The work became a node of a captured graph.
    Captured,
}

impl DriverState {
    pub(crate) fn add_stream(&mut self, context: usize, mut stream: Stream) -> usize {
        let id = self.next_id();
        stream.id = id;
        let key = self.streams.insert(stream);
        if let Ok(context) = self.contexts.get_mut(context) {
            context.streams.push(key);
        }
        key
    }

    /// Creates a stream in the current context. Returns its handle.
    pub(crate) fn create_stream(&mut self, flags: u32, priority: i32) -> CudaResult<usize> {
        let context = self.usable_current()?;
        let kind = match flags {
            0 => StreamKind::Blocking,
            NON_BLOCKING => StreamKind::NonBlocking,
            _ => return Err(INVALID_VALUE),
        };
        let new = Stream::new(context, kind, priority.clamp(-5, 0));
        let key = self.add_stream(
            context,
            Stream {
                is_default: false,
                ..new
            },
        );
        if let Ok(stream) = self.streams.get_mut(key) {
            stream.handle = key;
        }
        Ok(key)
    }

    pub(crate) fn destroy_stream(&mut self, handle: usize) -> CudaResult {
        if handle <= PER_THREAD {
            self.misuse("a default stream cannot be destroyed", handle);
            return Err(INVALID_HANDLE);
        }
        let key = self.stream_key(handle)?;
        self.drop_from_capture(key);
        let removed = self.streams.remove(key, Missing::Destroyed);
        let stream = removed.map_err(|missing| self.report_missing(missing, handle))?;
        if let Ok(context) = self.contexts.get_mut(stream.context) {
            context.streams.retain(|other| *other != key);
            context.orphaned_work.add(stream.tail);
        }
        self.context_failure(stream.context).map_or(Ok(()), Err)
    }

    /// Returns the stream of a handle, which for the default streams depends on this thread.
    pub(crate) fn stream_key(&mut self, handle: usize) -> CudaResult<usize> {
        match handle {
            0 | 1 => {
                let context = self.current()?;
                Ok(self.context(context)?.legacy)
            }
            PER_THREAD => self.per_thread_stream(),
            _ => match self.streams.get(handle) {
                Ok(stream) if !stream.is_default => self.require_current().map(|()| handle),
                Ok(_) => Err(INVALID_HANDLE),
                Err(missing) => Err(self.report_missing(missing, handle)),
            },
        }
    }

    fn per_thread_stream(&mut self) -> CudaResult<usize> {
        let (context, thread) = (self.current()?, thread::id());
        if let Some(key) = self.context(context)?.per_thread.get(&thread) {
            return Ok(*key);
        }
        let new = Stream::new(context, StreamKind::Blocking, 0);
        let key = self.add_stream(
            context,
            Stream {
                handle: PER_THREAD,
                ..new
            },
        );
        self.context(context)?.per_thread.insert(thread, key);
        Ok(key)
    }

    pub(crate) fn stream(&mut self, key: usize) -> CudaResult<&mut Stream> {
        self.streams.get_mut(key).map_err(|_| INVALID_HANDLE)
    }

    /// Returns what new work of a stream waits for.
    pub(crate) fn order(&self, key: usize) -> Join {
        let Ok(stream) = self.streams.get(key) else {
            return Join::default();
        };
        let mut join = Join::from(stream.tail);
        let Ok(context) = self.contexts.get(stream.context) else {
            return join;
        };
        match stream.kind {
            StreamKind::NonBlocking => {}
            StreamKind::Blocking => {
                if let Ok(legacy) = self.streams.get(context.legacy) {
                    join.add(legacy.tail);
                }
            }
            StreamKind::Legacy => {
                join.add_all(&context.orphaned_work);
                let others = context
                    .streams
                    .iter()
                    .filter_map(|key| self.streams.get(*key).ok());
                others
                    .filter(|other| other.kind == StreamKind::Blocking)
                    .for_each(|other| join.add(other.tail));
            }
        }
        join
    }

    /// Returns where the work of a stream runs.
    pub(crate) fn place(&self, key: usize) -> CudaResult<Location> {
        let stream = self.streams.get(key).map_err(|_| INVALID_HANDLE)?;
        let context = self
            .contexts
            .get(stream.context)
            .map_err(|_| INVALID_HANDLE)?;
        Ok(Location {
            device: context.device,
            context: stream.context,
            context_id: context.id,
            stream: stream.handle as u64,
            stream_id: stream.id,
            graph: None,
            graph_id: 0,
            graph_node: 0,
        })
    }

    /// Queues `task` in a stream after its previous work, or captures it.
    pub(crate) fn enqueue(&mut self, key: usize, task: Box<Task>) -> CudaResult<Queued> {
        let stream = self.stream(key)?;
        let (context, capture) = (stream.context, stream.capture);
        self.usable(context)?;
        if let Some(capture) = capture {
            self.capture_task(capture, key, task)?;
            return Ok(Queued::Captured);
        }
        self.check_implicit_sync(key)?;
        let (after, place) = (self.order(key), self.place(key)?);
        let point = self.submit(&after, task, place);
        self.occupy_slot(point);
        self.stream(key)?.tail = point;
        Ok(Queued::Runs(point))
    }

    /// Fails, and invalidates the captures, if the legacy default stream would have to wait for a
    /// capturing stream.
    pub(crate) fn check_implicit_sync(&mut self, key: usize) -> CudaResult {
        let captures = self.implicit_captures(key)?;
        if captures.is_empty() {
            return Ok(());
        }
        for capture in captures {
            self.invalidate(capture);
        }
        Err(STREAM_CAPTURE_IMPLICIT)
    }

    /// Returns the captures that the legacy default stream would have to wait for.
    pub(crate) fn implicit_captures(&mut self, key: usize) -> CudaResult<Vec<u64>> {
        if self.captures.is_empty() || self.stream(key)?.kind != StreamKind::Legacy {
            return Ok(Vec::new());
        }
        let context = self.stream(key)?.context;
        Ok(self
            .streams
            .values()
            .filter(|other| other.context == context && other.kind == StreamKind::Blocking)
            .filter_map(|other| other.capture)
            .collect())
    }

    /// Returns the end of a stream's work, for a query or a wait. Both are errors on a capturing
    /// stream.
    pub(crate) fn unfinished_work(&mut self, handle: usize) -> CudaResult<Join> {
        let key = self.stream_key(handle)?;
        let context = self.stream(key)?.context;
        self.usable(context)?;
        self.check_not_capturing(key)?;
        self.check_implicit_sync(key)?;
        let stream = self.stream(key)?;
        Ok(match stream.kind {
            // WaitPolicy for the legacy stream waits for everything that its next work would wait for.
            StreamKind::Legacy => self.order(key),
            _ => Join::from(stream.tail),
        })
    }
}
