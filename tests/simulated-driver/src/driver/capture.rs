//! Stream capture: which calls become nodes, which streams take part, and what invalidates a
//! capture.

use std::collections::BTreeMap;

use super::code::{
    CAPTURED_EVENT, Code, CudaResult, ILLEGAL_STATE, INVALID_VALUE, STREAM_CAPTURE_IMPLICIT,
    STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_ISOLATION, STREAM_CAPTURE_MERGE,
    STREAM_CAPTURE_UNJOINED, STREAM_CAPTURE_UNMATCHED, STREAM_CAPTURE_UNSUPPORTED,
    STREAM_CAPTURE_WRONG_THREAD,
};
use super::graph::{Graph, Node};
use super::state::DriverState;
use super::stream::StreamKind;
use super::task::Task;
use super::thread;

const GLOBAL: u32 = 0;
const RELAXED: u32 = 2;

/// A capture in progress.
#[derive(Debug)]
pub(crate) struct Capture {
    mode: u32,
    thread: u64,
    origin: usize,
    pub(crate) valid: bool,
    graph: Graph,
    /// For each stream that takes part: the nodes that its next node depends on.
    frontiers: BTreeMap<usize, Vec<usize>>,
}

/// The status that `cuStreamIsCapturing` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaptureStatus {
    None = 0,
    Active = 1,
    Invalidated = 2,
}

impl DriverState {
    /// Fails, and invalidates the captures that it endangers, if this thread must not make a
    /// potentially unsafe call.
    pub(crate) fn check_unsafe_call(&mut self) -> CudaResult {
        let (mode, thread) = (thread::capture_mode(), thread::id());
        if self.captures.is_empty() || mode == RELAXED {
            return Ok(());
        }
        let endangered = |capture: &Capture| {
            let own = capture.thread == thread && capture.mode != RELAXED;
            own || (mode == GLOBAL && capture.thread != thread && capture.mode == GLOBAL)
        };
        let captures = self
            .captures
            .iter()
            .filter(|(_, capture)| endangered(capture));
        let captures: Vec<u64> = captures.map(|(id, _)| *id).collect();
        if captures.is_empty() {
            return Ok(());
        }
        for capture in captures {
            self.invalidate(capture);
        }
        Err(STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Invalidates a capture, if it is still in progress.
    pub(crate) fn invalidate(&mut self, capture: u64) {
        if let Some(capture) = self.captures.get_mut(&capture)
            && std::mem::replace(&mut capture.valid, false)
        {
            self.log.captures_invalidated += 1;
        }
    }

    pub(crate) fn begin_capture(&mut self, stream: usize, mode: u32) -> CudaResult {
        let key = self.stream_key(stream)?;
        let context = self.stream(key)?.context;
        self.usable(context)?;
        if mode > RELAXED {
            return Err(INVALID_VALUE);
        }
        if self.stream(key)?.kind == StreamKind::Legacy {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.stream(key)?.capture.is_some() {
            return Err(ILLEGAL_STATE);
        }
        let id = self.next_id();
        let capture = Capture {
            mode,
            thread: thread::id(),
            origin: key,
            valid: true,
            graph: Graph::default(),
            frontiers: BTreeMap::from([(key, Vec::new())]),
        };
        self.captures.insert(id, capture);
        self.stream(key)?.capture = Some(id);
        Ok(())
    }

    /// Ends the capture that began in this stream, and returns the graph.
    pub(crate) fn end_capture(&mut self, stream: usize) -> CudaResult<usize> {
        let key = self.stream_key(stream)?;
        let id = self.stream(key)?.capture.ok_or(ILLEGAL_STATE)?;
        let capture = self.captures.get(&id).ok_or(ILLEGAL_STATE)?;
        if capture.origin != key {
            self.invalidate(id);
            return Err(STREAM_CAPTURE_UNMATCHED);
        }
        if capture.mode != RELAXED && capture.thread != thread::id() {
            return Err(STREAM_CAPTURE_WRONG_THREAD);
        }
        for stream in self
            .streams
            .values_mut()
            .filter(|stream| stream.capture == Some(id))
        {
            stream.capture = None;
        }
        let mut capture = self.captures.remove(&id).ok_or(ILLEGAL_STATE)?;
        if !capture.valid {
            return Err(STREAM_CAPTURE_INVALIDATED);
        }
        let ends = capture.frontiers.remove(&key).unwrap_or_default();
        if !capture.graph.all_before(&ends) {
            self.log.captures_invalidated += 1;
            return Err(STREAM_CAPTURE_UNJOINED);
        }
        Ok(self.graphs.insert(capture.graph))
    }

    /// Returns the capture status of a stream and the number of its capture.
    pub(crate) fn capture_status(&mut self, stream: usize) -> CudaResult<(CaptureStatus, u64)> {
        let key = self.stream_key(stream)?;
        let context = self.stream(key)?.context;
        self.usable(context)?;
        // Unlike other calls, this query does not invalidate these captures.
        if !self.implicit_captures(key)?.is_empty() {
            return Err(STREAM_CAPTURE_IMPLICIT);
        }
        let capture = self.stream(key)?.capture;
        Ok(match capture {
            None => (CaptureStatus::None, 0),
            Some(id) if self.capture_is_valid(id).is_ok() => (CaptureStatus::Active, id),
            Some(id) => (CaptureStatus::Invalidated, id),
        })
    }

    /// Fails, and invalidates the capture, if a capturing stream is queried or waited for.
    pub(crate) fn check_not_capturing(&mut self, key: usize) -> CudaResult {
        match self.stream(key)?.capture {
            None => Ok(()),
            Some(capture) => {
                self.invalidate(capture);
                Err(STREAM_CAPTURE_UNSUPPORTED)
            }
        }
    }

    /// Fails, and invalidates the captures, if the caller waits for a context that has capturing
    /// streams.
    pub(crate) fn check_no_capturing_stream(&mut self, context: usize) -> CudaResult {
        if self.captures.is_empty() {
            return Ok(());
        }
        for stream in self.context(context)?.streams.clone() {
            self.check_not_capturing(stream)?;
        }
        Ok(())
    }

    /// Returns the nodes that the next node of this stream depends on.
    pub(crate) fn capture_frontier(&mut self, capture: u64, key: usize) -> CudaResult<Vec<usize>> {
        self.capture_is_valid(capture)?;
        let capture = self
            .captures
            .get(&capture)
            .ok_or(STREAM_CAPTURE_INVALIDATED)?;
        Ok(capture.frontiers.get(&key).cloned().unwrap_or_default())
    }

    fn capture_node(&mut self, capture: u64, key: usize, node: Node) -> CudaResult {
        let mut after = self.capture_frontier(capture, key)?;
        let capture = self
            .captures
            .get_mut(&capture)
            .ok_or(STREAM_CAPTURE_INVALIDATED)?;
        after.extend(&node.after);
        let index = capture.graph.add(Node { after, ..node });
        capture.frontiers.insert(key, vec![index]);
        Ok(())
    }

    pub(crate) fn capture_task(&mut self, capture: u64, key: usize, task: Box<Task>) -> CudaResult {
        self.capture_node(
            capture,
            key,
            Node {
                task,
                after: Vec::new(),
                waits_for: None,
            },
        )
    }

    /// Adds a node that waits for an event recorded outside of the capture.
    pub(crate) fn capture_wait(&mut self, capture: u64, key: usize, event: usize) -> CudaResult {
        let node = Node {
            task: Task::marker(),
            after: Vec::new(),
            waits_for: Some(event),
        };
        self.capture_node(capture, key, node)
    }

    /// Adds the nodes of another graph.
    pub(crate) fn capture_graph(&mut self, capture: u64, key: usize, nodes: &[Node]) -> CudaResult {
        let before = self.capture_frontier(capture, key)?;
        let capture = self
            .captures
            .get_mut(&capture)
            .ok_or(STREAM_CAPTURE_INVALIDATED)?;
        let ends = capture.graph.append(nodes, &before);
        capture.frontiers.insert(key, ends);
        Ok(())
    }

    /// Makes a stream wait for an event of a capture, by which the stream joins the capture.
    pub(crate) fn fork(&mut self, key: usize, capture: u64, nodes: Vec<usize>) -> CudaResult {
        if !self.captures.contains_key(&capture) {
            return Err(CAPTURED_EVENT);
        }
        self.capture_is_valid(capture)?;
        let (kind, own) = (self.stream(key)?.kind, self.stream(key)?.capture);
        match own {
            Some(own) if own != capture => {
                self.invalidate(own);
                self.invalidate(capture);
                return Err(STREAM_CAPTURE_MERGE);
            }
            None if kind == StreamKind::Legacy => {
                self.invalidate(capture);
                return Err(super::code::STREAM_CAPTURE_IMPLICIT);
            }
            _ => self.stream(key)?.capture = Some(capture),
        }
        if let Some(capture) = self.captures.get_mut(&capture) {
            let frontier = capture.frontiers.entry(key).or_default();
            frontier.extend(nodes);
            frontier.sort_unstable();
            frontier.dedup();
        }
        Ok(())
    }

    /// Invalidates a capture whose stream would wait for work outside of it.
    pub(crate) fn isolation_error(&mut self, capture: u64) -> Code {
        if let Err(code) = self.capture_is_valid(capture) {
            return code;
        }
        self.invalidate(capture);
        STREAM_CAPTURE_ISOLATION
    }

    /// Removes a destroyed stream from its capture, which that invalidates.
    pub(crate) fn drop_from_capture(&mut self, key: usize) {
        let Some(id) = self.streams.get(key).ok().and_then(|stream| stream.capture) else {
            return;
        };
        self.invalidate(id);
        if self
            .captures
            .get(&id)
            .is_some_and(|capture| capture.origin == key)
        {
            self.captures.remove(&id);
            for stream in self
                .streams
                .values_mut()
                .filter(|stream| stream.capture == Some(id))
            {
                stream.capture = None;
            }
        }
    }
}
