//! The command line `profiler`, which reads what programs measured with
//! [`profiler-runtime`](https://docs.rs/profiler-runtime) wrote, and the traces of PyTorch's profiler.
//!
//! Install it with `cargo install profiler-runtime-cli`; `profiler help` lists the commands. This library is the program:
//! [`main`] runs it, and its readers of files are public for the project's fuzzing targets only.
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

mod arguments;
mod budget;
mod commands;
mod compare;
mod error;
mod exit;
#[doc(hidden)]
pub mod input;
mod output;
mod progress;
mod similar;
mod staging;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use self::arguments::Arguments;
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
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => exit::report(arguments.command.run()),
        Err(refused) => {
            // Help and the version are answers, and go to standard output.
            let code = if refused.use_stderr() {
                USAGE
            } else {
                Exit::Done.code()
            };
            match refused.print() {
                Ok(()) => code.into(),
                Err(_) => Exit::Unclear.code().into(),
            }
        }
    }
}
