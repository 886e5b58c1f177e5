//! The command line `profiler`, which reads what programs measured with
//! [`profiler-runtime`](https://docs.rs/profiler-runtime) wrote, and the traces of PyTorch's profiler. It also prints what the
//! sensors of the GPUs say now.
//!
//! Install it with `cargo install profiler-runtime-cli`; `profiler help` lists the commands. This library is the program:
//! [`main`] runs it, and its readers and formats of files are public for the project's tests only.
//!
//! # Exit status
//!
//! | status | meaning |
//! |---|---|
//! | 0 | nothing was found, or the file was written |
//! | 1 | something was found: a violation, a slower function |
//! | 2 | the question has no answer: a file cannot be read or written, or a comparison is unclear |
//! | 3 | the command line is not valid |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod budget;
mod commands;
mod compare;
mod error;
mod exit;
#[doc(hidden)]
pub mod input;
mod lanes;
mod output;
mod progress;
mod run_of;
mod staging;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use profiler_host::diagnostics::printable;

use self::commands::Arguments;
#[doc(hidden)]
pub use self::commands::ConvertFormat;
use self::error::Error;
use self::exit::{Exit, USAGE};

/// Runs the program with the arguments of a command line, the first of which is the name of the program. Returns the exit
/// status.
///
/// # Examples
///
/// ```no_run
/// profiler_runtime_cli::main(["profiler", "validate", "trace.json"]);
/// ```
pub fn main<I, A>(arguments: I) -> ExitCode
where
    I: IntoIterator<Item = A>,
    A: Into<OsString> + Clone,
{
    let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let code = match Arguments::try_parse_from(&arguments) {
        Ok(arguments) => match arguments.command.run() {
            Ok(exit) => exit.code(),
            // Nothing reads the output any more, as in `… | head`.
            Err(Error::OutputClosed) => Exit::Done.code(),
            Err(error) => {
                output::complain(&error);
                error.code()
            }
        },
        Err(refused) => {
            let text = text_of(&refused, &arguments);
            if refused.use_stderr() {
                output::complain_in_lines(&text);
                if let Some(hint) = hint(&refused, &arguments) {
                    output::complain(&hint);
                }
                USAGE
            } else {
                // Help and the version are answers.
                match output::answer(&text) {
                    Ok(()) | Err(Error::OutputClosed) => Exit::Done.code(),
                    Err(_) => Exit::Unclear.code(),
                }
            }
        }
    };
    code.into()
}

/// Returns the message of the parser, which quotes arguments: a name that a shell took from a folder may hold escape sequences.
fn text_of(refused: &clap::Error, arguments: &[OsString]) -> String {
    let printable = |text: &OsString| printable(&text.to_string_lossy());
    match Arguments::try_parse_from(arguments.iter().map(printable)) {
        Err(refused) => refused.render().to_string(),
        Ok(_) => self::printable(&refused.render().to_string()),
    }
}

/// Says what to do with a file that stands where the command is missing, or where one file is enough.
fn hint(refused: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let file = |kind| match refused.get(kind)? {
        ContextValue::String(word) if Path::new(word).exists() => Some(word),
        _ => None,
    };
    let command = file(ContextKind::InvalidSubcommand)
        .map(|file| format!("to print the table of a file: profiler report {file}"));
    command.or_else(|| {
        let file = file(ContextKind::InvalidArg)?;
        let takes_one = ["report", "explain", "convert"];
        let command = arguments.get(1)?;
        takes_one.iter().any(|name| command == name).then(|| {
            format!("{file}: one file at a time; to compare two runs: profiler diff OLD NEW")
        })
    })
}
