//! Measures for a given time in every way, and compares all counts with the profiler's.
//!
//!     cargo run --release -p soak -- --seconds 60
//!
//! The program counts what it does: calls, panics, dropped futures, log entries, scopes with a GPU
//! time, scopes in sessions. At the end it compares each count with the profiler's, which must
//! count every call as either delivered or lost for a reason. It runs with the simulated CUDA
//! driver, which aborts the process if the profiler waits for the device. The resident memory must
//! not grow in the second half of the run.

mod account;
mod gpu;
mod memory;
mod options;
mod round;
mod work;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use account::Account;
use options::Options;

/// The number of progress lines per run.
const REPORTS: u32 = 10;

fn main() -> ExitCode {
    let outcome = Options::from_arguments(std::env::args().skip(1))
        .map_err(|error| error.to_string())
        .and_then(|options| {
            if gpu::is_on_driver() {
                soak(options.length)
            } else {
                gpu::start_again_on_driver()
            }
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs rounds for this long, then compares. The error lists the counts that differ.
fn soak(length: Duration) -> Result<(), String> {
    let _profiler = profiler_runtime::init().map_err(|error| error.to_string())?;
    let gpu = gpu::Gpu::new()?;
    let account = Account::new();
    let start = Instant::now();
    let mut first_half = None;
    let mut reported = 0;
    let mut round = 0;
    while start.elapsed() < length {
        round::run(round, &gpu, &account)?;
        round += 1;
        let tenth = tenths(start.elapsed(), length);
        if tenth > reported {
            reported = tenth;
            let resident = memory::resident_kib().unwrap_or_default();
            println!(
                "{:>4} s  {account}  {resident} KiB resident",
                start.elapsed().as_secs()
            );
            if tenth <= REPORTS / 2 {
                first_half = first_half.max(Some(resident));
            }
        }
    }
    account.compare(round)?;
    memory::compare(first_half)?;
    println!("{round} rounds: all counts agree with the profiler's");
    Ok(())
}

/// Returns how many tenths of the run have passed.
fn tenths(elapsed: Duration, length: Duration) -> u32 {
    let tenth = (length / REPORTS).max(Duration::from_millis(1));
    u32::try_from(elapsed.as_millis() / tenth.as_millis()).unwrap_or(u32::MAX)
}
