//! Call trees and time lines as files for viewers: pstats and SnakeViz, pprof, flame graphs.

mod collapsed;
mod frames;
mod marshal;
mod of_summary;
mod of_timeline;
mod pprof;
mod pstats;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

/// Returns the path of the file with GPU times beside `path`: `run.cuda.prof` for `run.prof`.
fn for_cuda(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".cuda");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
