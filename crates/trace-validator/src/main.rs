//! Checks the traces that the command line names; the library's documentation describes the output.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use profiler_trace_validator::{
    DEFAULT_MAX_EVENTS, DEFAULT_MAX_TRACE_BYTES, Severity, ValidateOptions, validate_with,
};

const USAGE: &str = "usage: profiler-trace-validator [--strict] [--max-bytes BYTES] [--max-events EVENTS] TRACE.json[.gz] ...";

fn main() -> ExitCode {
    let Some(request) = Request::parse(std::env::args_os().skip(1).map(PathBuf::from)) else {
        eprintln!("{USAGE}");
        eprintln!("BYTES limits a trace after decompression: {DEFAULT_MAX_TRACE_BYTES} by default");
        eprintln!("EVENTS limits the events of a trace: {DEFAULT_MAX_EVENTS} by default");
        eprintln!("--strict makes errors of remarks, which the tools survive");
        return ExitCode::from(2);
    };
    let options = ValidateOptions::default()
        .max_bytes(request.max_bytes)
        .max_events(request.max_events);
    let mut output = std::io::stdout().lock();
    let (mut has_errors, mut unread) = (false, false);
    for path in &request.traces {
        match validate_with(path, &options) {
            Ok(violations) => {
                for violation in violations {
                    let severity = violation.severity(request.strict);
                    has_errors |= severity == Severity::Error;
                    let line = format_args!("{}: {severity}: {violation}", path.display());
                    if writeln!(output, "{line}").is_err() {
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
    match (unread, has_errors) {
        (true, _) => ExitCode::from(2),
        (false, has_errors) => ExitCode::from(u8::from(has_errors)),
    }
}

/// The request of a command line.
struct Request {
    strict: bool,
    max_bytes: u64,
    max_events: u64,
    traces: Vec<PathBuf>,
}

impl Request {
    /// Returns `None` if the command line names no trace, or is not understood.
    fn parse(mut arguments: impl Iterator<Item = PathBuf>) -> Option<Self> {
        let mut request = Self {
            strict: false,
            max_bytes: DEFAULT_MAX_TRACE_BYTES,
            max_events: DEFAULT_MAX_EVENTS,
            traces: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("--strict") => request.strict = true,
                Some("--max-bytes") => {
                    request.max_bytes = arguments.next()?.to_str()?.parse().ok()?;
                }
                Some("--max-events") => {
                    request.max_events = arguments.next()?.to_str()?.parse().ok()?;
                }
                Some(option) if option.starts_with('-') => return None,
                _ => request.traces.push(argument),
            }
        }
        (!request.traces.is_empty()).then_some(request)
    }
}
