//! Streams: each a line of work in order; how default and blocking ones wait for each other.

use super::code::{Answer, INVALID_HANDLE, INVALID_VALUE, STREAM_CAPTURE_IMPLICIT};
use super::machine::Machine;
use super::slab::Missing;
use super::task::{Join, Place, Point, Task};
use super::thread;

/// The per-thread default stream.
const PER_THREAD: usize = 2;
/// The flag of a stream that does not wait for the legacy default stream.
const NON_BLOCKING: u32 = 1;

/// How a stream stands to the legacy default stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamKind {
    /// It is that stream.
    Legacy,
    /// They wait for each other.
    Blocking,
    /// They do not know each other.
    NonBlocking,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The number that `cuStreamGetId` tells.
    pub(crate) id: u64,
    pub(crate) context: usize,
    pub(crate) kind: StreamKind,
    /// Whether it came with its context or thread.
    pub(crate) is_default: bool,
    /// The handle that programs use.
    pub(crate) shown: usize,
    pub(crate) priority: i32,
    /// Where its last work ends.
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
            shown: 0,
            priority,
            tail,
            capture: None,
        }
    }

    /// The flags that `cuStreamGetFlags` tells.
    pub(crate) fn flags(&self) -> u32 {
        if self.kind == StreamKind::NonBlocking {
            NON_BLOCKING
        } else {
            0
        }
    }
}

/// What became of work that was handed to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// It runs, and ends at this point.
    Runs(Point),
    /// It became part of a graph.
    Captured,
}

impl Machine {
    pub(crate) fn add_stream(&mut self, context: usize, mut stream: Stream) -> usize {
        let id = self.next_id();
        stream.id = id;
        let key = self.streams.insert(stream);
        if let Ok(context) = self.contexts.get_mut(context) {
            context.streams.push(key);
        }
        key
    }

    /// Creates a stream in the current context; returns its handle.
    pub(crate) fn create_stream(&mut self, flags: u32, priority: i32) -> Answer<usize> {
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
            stream.shown = key;
        }
        Ok(key)
    }

    pub(crate) fn destroy_stream(&mut self, handle: usize) -> Answer {
        if handle <= PER_THREAD {
            self.misuse("a default stream cannot be destroyed", handle);
            return Err(INVALID_HANDLE);
        }
        let key = self.stream_key(handle)?;
        self.drop_from_capture(key);
        let removed = self.streams.remove(key, Missing::Destroyed);
        let stream = removed.map_err(|missing| self.missing(missing, handle))?;
        if let Ok(context) = self.contexts.get_mut(stream.context) {
            context.streams.retain(|other| *other != key);
            context.orphans.add(stream.tail);
        }
        self.context_failure(stream.context).map_or(Ok(()), Err)
    }

    /// The stream behind a handle, as this thread sees it.
    pub(crate) fn stream_key(&mut self, handle: usize) -> Answer<usize> {
        match handle {
            0 | 1 => {
                let context = self.current()?;
                Ok(self.context(context)?.legacy)
            }
            PER_THREAD => self.per_thread_stream(),
            _ => match self.streams.get(handle) {
                Ok(stream) if !stream.is_default => self.require_current().map(|()| handle),
                Ok(_) => Err(INVALID_HANDLE),
                Err(missing) => Err(self.missing(missing, handle)),
            },
        }
    }

    fn per_thread_stream(&mut self) -> Answer<usize> {
        let (context, thread) = (self.current()?, thread::id());
        if let Some(key) = self.context(context)?.per_thread.get(&thread) {
            return Ok(*key);
        }
        let new = Stream::new(context, StreamKind::Blocking, 0);
        let key = self.add_stream(
            context,
            Stream {
                shown: PER_THREAD,
                ..new
            },
        );
        self.context(context)?.per_thread.insert(thread, key);
        Ok(key)
    }

    pub(crate) fn stream(&mut self, key: usize) -> Answer<&mut Stream> {
        self.streams.get_mut(key).map_err(|_| INVALID_HANDLE)
    }

    /// What new work of a stream waits for.
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
                join.add_all(&context.orphans);
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

    /// Where work of a stream runs.
    pub(crate) fn place(&self, key: usize) -> Answer<Place> {
        let stream = self.streams.get(key).map_err(|_| INVALID_HANDLE)?;
        let context = self
            .contexts
            .get(stream.context)
            .map_err(|_| INVALID_HANDLE)?;
        Ok(Place {
            device: context.device,
            context: stream.context,
            context_id: context.id,
            stream: stream.shown as u64,
            stream_id: stream.id,
            graph: None,
        })
    }

    /// Hands `task` to a stream: it runs after what is there, or is captured.
    pub(crate) fn enqueue(&mut self, key: usize, task: Task) -> Answer<Queued> {
        let stream = self.stream(key)?;
        let (context, capture) = (stream.context, stream.capture);
        self.usable(context)?;
        if let Some(capture) = capture {
            self.capture_task(capture, key, task)?;
            return Ok(Queued::Captured);
        }
        self.refuse_implicit(key)?;
        let (after, place) = (self.order(key), self.place(key)?);
        let point = self.submit(&after, task, place);
        self.take_place(point);
        self.stream(key)?.tail = point;
        Ok(Queued::Runs(point))
    }

    /// Fails where the legacy default stream would have to wait for a capturing stream.
    pub(crate) fn refuse_implicit(&mut self, key: usize) -> Answer {
        let captures = self.implicit_captures(key)?;
        if captures.is_empty() {
            return Ok(());
        }
        for capture in captures {
            self.invalidate(capture);
        }
        Err(STREAM_CAPTURE_IMPLICIT)
    }

    /// The captures that the legacy default stream would have to wait for.
    pub(crate) fn implicit_captures(&mut self, key: usize) -> Answer<Vec<u64>> {
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

    /// The end of a stream's work, for one who asks or waits; a capturing stream must not be asked.
    pub(crate) fn work_of(&mut self, handle: usize) -> Answer<Join> {
        let key = self.stream_key(handle)?;
        let context = self.stream(key)?.context;
        self.usable(context)?;
        self.refuse_capturing(key)?;
        self.refuse_implicit(key)?;
        let stream = self.stream(key)?;
        Ok(match stream.kind {
            // To wait for the legacy stream is to wait for what its next work would wait for.
            StreamKind::Legacy => self.order(key),
            _ => Join::from(stream.tail),
        })
    }
}
