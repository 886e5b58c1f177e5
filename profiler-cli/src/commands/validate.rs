//! `profiler validate`: will the tools read the file as it was meant?

use std::path::PathBuf;

use clap::Args;
use profiler_trace_validator::{ValidateOptions, validate_with};

use crate::error::Error;
use crate::exit::Exit;
use crate::input::Limits;
use crate::output::Stdout;

/// Checks that Perfetto, TensorBoard, HTA and speedscope read a trace as it was meant.
///
/// Prints each violation with its remedy, one on a line.
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Traces (`.json`, `.json.gz`).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    limits: Limits,
}

impl Validate {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let options = ValidateOptions::default().max_bytes(self.limits.max_bytes);
        let mut output = Stdout::new();
        let mut exit = Exit::Done;
        for path in &self.files {
            let violations = validate_with(path, &options).map_err(Error::Validate)?;
            for violation in violations {
                exit = Exit::Found;
                output.line(format_args!("{}: {violation}", path.display()))?;
            }
        }
        output.finish()?;
        Ok(exit)
    }
}
