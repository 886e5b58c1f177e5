//! Checks the traces that the command line names; the library's documentation describes the output.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use profiler_trace_validator::{DEFAULT_MAX_TRACE_BYTES, ValidateOptions, validate_with};

const USAGE: &str = "usage: profiler-trace-validator [--max-bytes BYTES] TRACE.json[.gz] ...";

fn main() -> ExitCode {
    let Some(request) = Request::parse(std::env::args_os().skip(1).map(PathBuf::from)) else {
        eprintln!("{USAGE}");
        eprintln!("BYTES limits a trace after decompression: {DEFAULT_MAX_TRACE_BYTES} by default");
        return ExitCode::from(2);
    };
    let options = ValidateOptions::default().max_bytes(request.max_bytes);
    let mut output = std::io::stdout().lock();
    let (mut violated, mut unread) = (false, false);
    for path in &request.traces {
        match validate_with(path, &options) {
            Ok(violations) => {
                violated |= !violations.is_empty();
                for violation in violations {
                    if writeln!(output, "{}: {violation}", path.display()).is_err() {
                        // Nothing reads the output any more, as in `… | head`.
                        return ExitCode::from(1);
                    }
                }
            }
            Err(error) => {
                unread = true;
                eprintln!("error: {error}");
            }
        }
    }
    match (unread, violated) {
        (true, _) => ExitCode::from(2),
        (false, violated) => ExitCode::from(u8::from(violated)),
    }
}

/// The request of a command line.
struct Request {
    max_bytes: u64,
    traces: Vec<PathBuf>,
}

impl Request {
    /// Returns `None` if the command line names no trace, or is not understood.
    fn parse(mut arguments: impl Iterator<Item = PathBuf>) -> Option<Self> {
        let mut request = Self {
            max_bytes: DEFAULT_MAX_TRACE_BYTES,
            traces: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("--max-bytes") => {
                    request.max_bytes = arguments.next()?.to_str()?.parse().ok()?;
                }
                Some(option) if option.starts_with('-') => return None,
                _ => request.traces.push(argument),
            }
        }
        (!request.traces.is_empty()).then_some(request)
    }
}
