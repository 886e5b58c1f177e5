//! Graphs: captured work that runs at each launch.

use std::sync::Arc;

use super::code::{CudaResult, INVALID_HANDLE};
use super::event::Recorded;
use super::slab::Missing;
use super::state::DriverState;
use super::task::{Join, Location, Point, Task};

/// One operation of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) task: Box<Task>,
    /// The nodes that it depends on.
    pub(crate) after: Vec<usize>,
    /// An event, recorded outside of the graph, that it waits for.
    pub(crate) waits_for: Option<usize>,
}

/// A graph.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
}

/// An executable graph.
#[derive(Debug)]
pub(crate) struct GraphExec {
    pub(crate) context: usize,
    /// The number that CUPTI's records have.
    id: u32,
    nodes: Arc<[Node]>,
    /// The end of its last launch. The next launch starts after it.
    pub(crate) last: Point,
}

impl Graph {
    pub(crate) fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds the nodes of another graph after the nodes `before`. Returns the nodes that no other
    /// depends on.
    pub(crate) fn append(&mut self, nodes: &[Node], before: &[usize]) -> Vec<usize> {
        let base = self.nodes.len();
        let mut ends: Vec<usize> = before.to_vec();
        for node in nodes {
            let mut after: Vec<usize> = node.after.iter().map(|at| at + base).collect();
            if after.is_empty() {
                after.extend(before);
            }
            ends.retain(|end| !after.contains(end));
            let index = self.add(Node {
                after,
                ..node.clone()
            });
            ends.push(index);
        }
        ends
    }

    /// Returns `true` if every node is one of `ends` or precedes one.
    pub(crate) fn all_before(&self, ends: &[usize]) -> bool {
        let mut reached = vec![false; self.nodes.len()];
        let mut todo = ends.to_vec();
        while let Some(node) = todo.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                todo.extend(&self.nodes[node].after);
            }
        }
        reached.into_iter().all(|reached| reached)
    }
}

impl DriverState {
    pub(crate) fn graph(&mut self, handle: usize) -> CudaResult<&Graph> {
        if let Err(missing) = self.graphs.get(handle) {
            return Err(self.report_missing(missing, handle));
        }
        self.graphs.get(handle).map_err(|_| INVALID_HANDLE)
    }

    /// Creates an executable graph in the current context. Returns its handle.
    pub(crate) fn instantiate(&mut self, graph: usize) -> CudaResult<usize> {
        let context = self.usable_current()?;
        let nodes = self.graph(graph)?.nodes.clone().into();
        let id = u32::try_from(self.execs.created() + 1).unwrap_or(u32::MAX);
        Ok(self.execs.insert(GraphExec {
            context,
            id,
            nodes,
            last: Point::At(0),
        }))
    }

    pub(crate) fn destroy_graph(&mut self, handle: usize) -> CudaResult {
        let removed = self.graphs.remove(handle, Missing::Destroyed);
        removed
            .map(drop)
            .map_err(|missing| self.report_missing(missing, handle))
    }

    pub(crate) fn destroy_exec(&mut self, handle: usize) -> CudaResult {
        let removed = self.execs.remove(handle, Missing::Destroyed);
        removed
            .map(drop)
            .map_err(|missing| self.report_missing(missing, handle))
    }

    fn exec(&mut self, handle: usize) -> CudaResult<&mut GraphExec> {
        if let Err(missing) = self.execs.get(handle) {
            return Err(self.report_missing(missing, handle));
        }
        self.execs.get_mut(handle).map_err(|_| INVALID_HANDLE)
    }

    /// Launches a graph in a stream. If the stream is capturing, adds the graph to the captured
    /// one.
    pub(crate) fn launch_graph(&mut self, handle: usize, stream: usize) -> CudaResult {
        let key = self.stream_key(stream)?;
        let (context, capture) = (self.stream(key)?.context, self.stream(key)?.capture);
        let exec = self.exec(handle)?;
        let (nodes, last, id) = (Arc::clone(&exec.nodes), exec.last, exec.id);
        self.usable(context)?;
        if let Some(capture) = capture {
            return self.capture_graph(capture, key, &nodes);
        }
        self.check_implicit_sync(key)?;
        let mut begin = self.order(key);
        begin.add(last);
        let place = Location {
            graph: Some(handle),
            graph_id: id,
            ..self.place(key)?
        };
        let all = self.run_nodes(&nodes, &begin, place);
        let end = self.join_point(&all, key)?;
        self.occupy_slot(end);
        self.stream(key)?.tail = end;
        self.exec(handle)?.last = end;
        Ok(())
    }

    /// Queues all nodes. Returns when all of them have finished.
    fn run_nodes(&mut self, nodes: &[Node], begin: &Join, place: Location) -> Join {
        let (mut points, mut all) = (Vec::with_capacity(nodes.len()), begin.clone());
        for (number, node) in nodes.iter().enumerate() {
            let place = Location {
                graph_node: (u64::from(place.graph_id) << 32) | (number as u64 + 1),
                ..place
            };
            let mut after = if node.after.is_empty() {
                begin.clone()
            } else {
                Join::default()
            };
            node.after
                .iter()
                .for_each(|before| after.add(points[*before]));
            if let Some(event) = node.waits_for
                && let Ok(event) = self.events.get(event)
                && let Recorded::At(point) = event.recorded
            {
                after.add(point);
            }
            if node
                .task
                .event
                .is_some_and(|event| self.events.get(event).is_err())
            {
                self.misuse(
                    "a graph records an event that was destroyed",
                    node.task.event.unwrap_or(0),
                );
            }
            let point = self.submit(&after, node.task.clone(), place);
            points.push(point);
            all.add(point);
        }
        all
    }
}
