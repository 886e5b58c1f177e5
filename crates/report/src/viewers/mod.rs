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

use std::path::Path;

use profiler_host::process::output::new_file;

use crate::summary::for_cuda;
use crate::{ExportError, file};

/// Writes the file with GPU times beside `path`: `run.cuda.prof` for `run.prof`. A stream or a device has nothing beside it.
fn write_for_cuda(path: &Path, content: &[u8]) -> Result<(), ExportError> {
    if new_file::is_replaced(path) {
        file::write(&for_cuda(path), content)
    } else {
        Ok(())
    }
}
