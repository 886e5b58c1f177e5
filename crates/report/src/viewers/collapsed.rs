//! Collapsed stacks, which tools that draw flame graphs read.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use profiler_host::diagnostics::printable;

use super::write_for_cuda;
use crate::CallTree;
use crate::stack_metric::{StackMetric, StackMetricError};
use crate::{ExportError, file};

impl CallTree {
    /// Writes collapsed stacks, weighted by a value such as `self_cpu_time_total`: one line for each path,
    /// `outermost;…;innermost 1234`, in nanoseconds, bytes or calls. Tools that draw flame graphs read it, such as
    /// `inferno-flamegraph` and speedscope. torch's method of this name writes the same with underscores for spaces and in
    /// microseconds.
    ///
    /// A `;` in a name is written as `:`, a line break as a space, another control character or one that is not shown as U+FFFD, and no name as `?`. A name that ends in a number, such
    /// as `layer 2`, is written as `layer_2`, because the tools would read the number as a value.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no value of this name, if no call has it, or if the file cannot be written.
    ///
    /// # Examples
    ///
    /// ```
    /// # use profiler_report::{Row, Summary, Times};
    /// # fn summary() -> Summary {
    /// #     let cpu = Some(Times { calls: 1, self_ns: 1.0, ..Times::default() });
    /// #     Summary { rows: vec![Row { name: "load".into(), calls: 1, cpu, ..Row::default() }], ..Summary::default() }
    /// # }
    /// let path = std::env::temp_dir().join(format!("calltree-{}.folded", std::process::id()));
    /// summary().call_tree().export_stacks(&path, "self_cpu_time_total")?;
    /// // Then: inferno-flamegraph < run.folded > run.svg
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_stacks(
        &self,
        path: impl AsRef<Path>,
        metric: impl TryInto<StackMetric, Error: Into<StackMetricError>>,
    ) -> Result<(), ExportError> {
        let metric = metric
            .try_into()
            .map_err(|error| ExportError::Metric(error.into()))?;
        if !self.nodes.iter().any(|node| metric.of(node).is_some()) {
            return Err(ExportError::NotRecorded { metric });
        }
        file::write(path.as_ref(), collapsed(self, metric).as_bytes())
    }

    /// Writes stacks by CPU time to `path`, and those by GPU time, if there are any, beside it: to `run.cuda.folded` for
    /// `run.folded`.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be created or written.
    #[doc(hidden)]
    pub fn export_stacks_of_times(&self, path: &Path) -> Result<(), ExportError> {
        let stacks = collapsed(self, StackMetric::SelfCpuTimeTotal);
        file::write(path, stacks.as_bytes())?;
        let stacks = collapsed(self, StackMetric::SelfCudaTimeTotal);
        if stacks.is_empty() {
            return Ok(());
        }
        write_for_cuda(path, stacks.as_bytes())
    }
}

/// Returns the stacks in alphabetical order. Those that differ only in their labels are one.
pub(super) fn collapsed(tree: &CallTree, metric: StackMetric) -> String {
    let mut values: BTreeMap<String, f64> = BTreeMap::new();
    for (index, node) in (0..).zip(&tree.nodes) {
        if let Some(value) = metric.of(node).filter(|value| *value != 0.0) {
            let path = tree.path(index);
            let names = path
                .into_iter()
                .filter_map(|at| tree.nodes.get(at as usize));
            let names: Vec<String> = names.map(|node| escaped(&node.name)).collect();
            *values.entry(names.join(";")).or_default() += value;
        }
    }
    let mut text = String::new();
    for (stack, value) in values {
        // The tools know no values below zero.
        if value.round() > 0.0 {
            let _ = writeln!(text, "{stack} {value:.0}");
        }
    }
    text
}

/// Returns a name without the characters that separate names and values.
fn escaped(name: &str) -> String {
    let name = name.replace(';', ":").replace(['\n', '\r', '\t'], " ");
    // The pictures that are made of it cannot hold control characters.
    let name = printable(&name);
    let name = name.trim();
    if name.is_empty() {
        return "?".to_owned();
    }
    // Two numbers at the end of a line are the values of two runs.
    match name.rsplit_once(' ') {
        Some((rest, number))
            if number
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.') =>
        {
            format!("{rest}_{number}")
        }
        _ => name.to_owned(),
    }
}
