//! The program `profiler`.

use std::process::ExitCode;

fn main() -> ExitCode {
    profiler_runtime_cli::main(std::env::args_os())
}
