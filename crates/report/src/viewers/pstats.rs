//! Profiles for Python's pstats and for SnakeViz, as cProfile writes them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::frames::Frame;
use super::marshal::Marshal;
use super::write_for_cuda;
use crate::{CallEdge, CallFunction, CallNode, CallTree, EdgeTimes};
use crate::{ExportError, file};

/// The function that called what has no caller. Viewers start at a function that no other one called, and leave out
/// functions that neither call nor are called.
const ROOT: &str = "<program>";
/// The root if it is not known what called what.
const FLAT_ROOT: &str = "<program, callers were not counted>";

/// The times of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Cpu,
    Cuda,
}

impl CallTree {
    /// Writes profiles for Python's `pstats` and for SnakeViz: CPU times to `path`, and GPU times, if there are any, beside
    /// it, to `run.cuda.prof` for `run.prof`. cProfile's method of this name writes the same. Without GPU times, a file of
    /// that name is left alone; if `path` is a stream or a device, GPU times are left out.
    ///
    /// Times are in seconds. Threads and streams are not distinguished. A function `<program>` calls everything that has
    /// no caller. If callers were not counted, that is each function, with its self time, so that the sum is the time that was
    /// measured. In the profile of GPU times, a function that was not measured on the GPU itself has the sum of what it
    /// called.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let path = std::env::temp_dir().join(format!("calltree-{}.prof", std::process::id()));
    /// summary().call_tree().dump_stats(&path)?;
    /// // Then: snakeviz run.prof
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dump_stats(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let path = path.as_ref();
        file::write(path, &profile(self, Clock::Cpu))?;
        if self.nodes.iter().any(|node| node.cuda.is_some()) {
            write_for_cuda(path, &profile(self, Clock::Cuda))?;
        }
        Ok(())
    }
}

/// Returns the tree with times of all functions that called functions with times, so that the callers of each are in the
/// file: SnakeViz fails otherwise.
fn with_callers(tree: &CallTree, clock: Clock) -> CallTree {
    let mut tree = tree.clone();
    let times_of = |node: &CallNode| match clock {
        Clock::Cpu => node.cpu,
        Clock::Cuda => node.cuda,
    };
    let measured = tree.nodes.iter().filter(|node| times_of(node).is_some());
    let measured: HashSet<Arc<str>> = measured.map(|node| Arc::clone(&node.name)).collect();
    let mut below: Vec<Option<f64>> = vec![None; tree.nodes.len()];
    for (index, node) in tree.nodes.iter_mut().enumerate().rev() {
        // The times of its other nodes include what it called here.
        let is_included = node.is_caller_only && measured.contains(&node.name);
        let times = match clock {
            Clock::Cpu => &mut node.cpu,
            Clock::Cuda => &mut node.cuda,
        };
        if times.is_none() && !is_included {
            *times = below[index].map(|total_ns| EdgeTimes {
                total_ns,
                self_ns: 0.0,
                non_exhaustive: (),
            });
        }
        let parent = node
            .parent
            .and_then(|parent| below.get_mut(parent as usize));
        if let (Some(sum), Some(times)) = (parent, times) {
            *sum.get_or_insert_default() += times.total_ns;
        }
    }
    tree
}

/// Returns the dictionary that pstats loads: `{function: (primitive calls, calls, self, total, {caller: (calls, primitive
/// calls, self, total)})}`. The two numbers of calls are in opposite orders.
pub(super) fn profile(tree: &CallTree, clock: Clock) -> Vec<u8> {
    let times = |cpu: Option<EdgeTimes>, cuda| match clock {
        Clock::Cpu => cpu,
        Clock::Cuda => cuda,
    };
    let tree = with_callers(tree, clock);
    let functions = tree.functions();
    let mut callers: HashMap<&str, Vec<(CallEdge, EdgeTimes)>> = HashMap::new();
    let known: HashMap<&str, &CallFunction> = functions
        .iter()
        .map(|function| (&*function.name, function))
        .collect();
    let mut root_ns = 0.0;
    for edge in tree.edges() {
        let (Some(times), Some(callee)) = (times(edge.cpu, edge.cuda), known.get(&*edge.callee))
        else {
            continue;
        };
        // Without callers, totals contain each other.
        let times = EdgeTimes {
            total_ns: if tree.is_flat {
                times.self_ns
            } else {
                times.total_ns
            },
            ..times
        };
        if edge.caller.is_none() {
            root_ns += times.total_ns;
        }
        callers.entry(&callee.name).or_default().push((edge, times));
    }
    let mut root = if tree.is_flat { FLAT_ROOT } else { ROOT }.to_owned();
    while known.contains_key(root.as_str()) {
        root.push('_');
    }
    let key = |out: &mut Marshal, function: Option<&CallFunction>| match function {
        Some(function) => write_key(out, function),
        None => write_own_key(out, &root),
    };
    let mut out = Marshal::default();
    out.dict(|out| {
        key(out, None);
        out.tuple(5);
        out.integer(1);
        out.integer(1);
        out.float(0.0);
        out.float(root_ns / 1e9);
        out.dict(|_| {});
        for function in &functions {
            let Some(sums) = times(function.cpu, function.cuda) else {
                continue;
            };
            key(out, Some(function));
            out.tuple(5);
            out.integer(function.primitive_calls);
            out.integer(function.calls);
            write_seconds(out, sums);
            out.dict(|out| {
                for (edge, times) in callers.remove(&*function.name).unwrap_or_default() {
                    let caller = edge.caller.as_deref();
                    key(out, caller.and_then(|caller| known.get(caller).copied()));
                    out.tuple(4);
                    out.integer(edge.calls);
                    out.integer(edge.primitive_calls);
                    write_seconds(out, times);
                }
            });
        }
    });
    out.into_bytes()
}

fn write_seconds(out: &mut Marshal, times: EdgeTimes) {
    out.float(times.self_ns / 1e9);
    out.float(times.total_ns / 1e9);
}

/// Writes the key of a function: file, line and name.
fn write_key(out: &mut Marshal, function: &CallFunction) {
    let frame = Frame {
        name: &function.name,
        location: &function.location,
    };
    match frame.file_and_line() {
        Some((file, line)) => {
            out.tuple(3);
            out.text(file);
            out.integer(line.into());
            out.text(frame.name);
        }
        None => write_own_key(out, frame.name),
    }
}

/// Writes the key of a function without a source file, as cProfile does for built-in functions.
fn write_own_key(out: &mut Marshal, name: &str) {
    out.tuple(3);
    out.text("~");
    out.integer(0);
    out.text(name);
}
