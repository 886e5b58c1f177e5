//! Measures what windows cost: a call before the first session, during one and after the last; a
//! window of a million scopes, and writing it; `step()` while that happens; and a hundred million
//! scopes in ten thousand windows.

mod after;
mod large;
mod soak;
mod steps;
mod work;

use bench_harness::{Options, Outcome, Report};

fn main() -> Outcome<()> {
    let options = Options::from_command_line()?;
    // The first argument of a child process is the phase that it measures.
    if let [phase] = options.words()[..] {
        return after::child(phase);
    }
    let mut report = Report::begin();
    report.show(after::measure(options.rounds.unwrap_or(10))?);
    for table in large::measure()? {
        report.show(table);
    }
    report.show(steps::measure()?);
    for table in soak::measure()? {
        report.show(table);
    }
    report.end(&options)
}
