//! Measures what windows cost: a call before the first session, during one and after the last; a
//! window of a million scopes, and writing it; `step()` while that happens; and a hundred million
//! scopes in ten thousand windows.

mod after;
mod large;
mod soak;
mod steps;
mod work;

use bench_harness::{Machine, Options};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    machine: Machine,
    calls: after::Report,
    large: large::Report,
    steps: steps::Report,
    soak: soak::Report,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_command_line()?;
    // The first argument of a child process is the phase that it measures.
    if let [phase, ..] = options.rest.as_slice() {
        return after::child(phase, options.calls);
    }
    let machine = Machine::this();
    println!("{machine}\n");
    let rounds = options.rounds.unwrap_or(10);
    let calls = after::Report::measure(rounds)?;
    println!("{calls}");
    let large = large::Report::measure()?;
    println!("{large}");
    let steps = steps::Report::measure()?;
    println!("{steps}");
    let soak = soak::Report::measure()?;
    println!("{soak}");
    options.write_json(&Report {
        machine,
        calls,
        large,
        steps,
        soak,
    })?;
    Ok(())
}
