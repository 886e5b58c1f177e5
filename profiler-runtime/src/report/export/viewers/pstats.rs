//! Profiles for Python's pstats and for SnakeViz, as cProfile writes them.

use std::collections::HashMap;
use std::path::Path;

use super::for_cuda;
use super::frames::Frame;
use super::marshal::Marshal;
use crate::report::export::{ExportError, file};
use crate::report::{CallEdge, CallFunction, CallTree, EdgeTimes};

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
    /// it, to `run.cuda.prof` for `run.prof`. cProfile's method of this name writes the same.
    ///
    /// Times are in seconds. Threads and streams are not distinguished. A function `<program>` calls everything that has
    /// no caller. In the profile of GPU times, a function that was not measured on the GPU itself has the sum of what it
    /// called.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(tree: &profiler_runtime::report::CallTree) -> Result<(), profiler_runtime::report::ExportError> {
    /// // python -m pstats run.prof
    /// tree.dump_stats("run.prof")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dump_stats(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let path = path.as_ref();
        file::write(path, &profile(self, Clock::Cpu))?;
        if self.nodes.iter().any(|node| node.cuda.is_some()) {
            let cuda = profile(&with_gpu_callers(self), Clock::Cuda);
            file::write(&for_cuda(path), &cuda)?;
        }
        Ok(())
    }
}

/// Returns the tree with GPU times of the functions that were not measured on the GPU themselves, so that each GPU time
/// has its callers.
pub(super) fn with_gpu_callers(tree: &CallTree) -> CallTree {
    let mut tree = tree.clone();
    let mut below = vec![0.0; tree.nodes.len()];
    for (index, node) in tree.nodes.iter_mut().enumerate().rev() {
        if node.cuda.is_none() && below[index] > 0.0 {
            node.cuda = Some(EdgeTimes {
                total_ns: below[index],
                self_ns: 0.0,
            });
        }
        let parent = node
            .parent
            .and_then(|parent| below.get_mut(parent as usize));
        if let (Some(sum), Some(times)) = (parent, node.cuda) {
            *sum += times.total_ns;
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
