//! A tutorial: a training loop with a performance bug, and how the table reveals it.
//!
//! The modules `slow` and `fixed` below contain the same loop, but one of them makes a common
//! mistake. Try to find it by reading first. Then run this program and see how the table shows it.
//!
//! ```text
//! cargo run --release --example find_the_bottleneck
//! ```

use profiler_examples::digits::Digits;
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::report::{RestrictionError, Row, SortKey, TableOptions};
use profiler_runtime::{Summary, measure_execution_time, summary};

const EPOCHS: usize = 5;
const BATCH: usize = 32;
const HIDDEN: usize = 32;
const RATE: f32 = 0.05;

// On a module, the attribute measures every function in it.
#[measure_execution_time]
mod slow {
    use super::{BATCH, Digits, EPOCHS, Network, RATE};

    pub(crate) fn train(network: &mut Network, images: &Digits, order: &[usize]) {
        for _ in 0..EPOCHS {
            for numbers in order.chunks(BATCH) {
                let batch = next_batch(images, numbers);
                learn(network, &batch);
            }
        }
    }

    fn next_batch(images: &Digits, numbers: &[usize]) -> Digits {
        standardise(images).select(numbers)
    }

    fn standardise(images: &Digits) -> Digits {
        images.standardised()
    }

    fn learn(network: &mut Network, batch: &Digits) {
        network.learn(batch, RATE);
    }
}

#[measure_execution_time]
mod fixed {
    use super::{BATCH, Digits, EPOCHS, Network, RATE};

    pub(crate) fn train(network: &mut Network, images: &Digits, order: &[usize]) {
        let images = standardise(images);
        for _ in 0..EPOCHS {
            for numbers in order.chunks(BATCH) {
                let batch = next_batch(&images, numbers);
                learn(network, &batch);
            }
        }
    }

    fn next_batch(images: &Digits, numbers: &[usize]) -> Digits {
        images.select(numbers)
    }

    fn standardise(images: &Digits) -> Digits {
        images.standardised()
    }

    fn learn(network: &mut Network, batch: &Digits) {
        network.learn(batch, RATE);
    }
}

fn main() -> Result<(), RestrictionError> {
    let images = Digits::all();
    let mut random = Random::seeded(11);
    let mut order: Vec<usize> = (0..images.len()).collect();
    random.shuffle(&mut order);
    let untrained = Network::new(HIDDEN, &mut random);

    let mut first = untrained.clone();
    slow::train(&mut first, &images, &order);
    let slow = rows_of("slow")?;
    if slow.rows.is_empty() {
        // Measuring is off, filtered or stripped. The summary says which, and what to do.
        print!("there are no measurements to show: {}", summary());
        return Ok(());
    }
    println!("1. A training loop that is slower than necessary: {EPOCHS} epochs\n");
    println!("{}", table(&slow));
    explain(&slow);

    let mut second = untrained;
    fixed::train(&mut second, &images, &order);
    let fixed = rows_of("fixed")?;
    println!("2. The same loop, with one line moved out of it (see `fixed::train`)\n");
    println!("{}", table(&fixed));
    compare(&slow, &fixed);

    let images = images.standardised();
    let [before, after] = [first, second].map(|network| network.forward(&images).loss(&images));
    println!("   The loss is {before:.6} with the first loop and {after:.6} with the second.");
    Ok(())
}

/// Returns the part of the summary for one module. Names are paths, so the functions of a module
/// share a prefix.
fn rows_of(module: &str) -> Result<Summary, RestrictionError> {
    summary().restrict(format!("^{}::{module}::", module_path!()))
}

fn table(summary: &Summary) -> String {
    summary.table(TableOptions::new().sort_by(SortKey::SelfCpuTimeTotal))
}

fn row<'a>(summary: &'a Summary, function: &str) -> Option<&'a Row> {
    summary.rows.iter().find(|row| row.name.ends_with(function))
}

fn total_ms(row: &Row) -> f64 {
    row.cpu.map_or(0.0, |cpu| cpu.total_ns / 1e6)
}

fn self_ms(row: &Row) -> f64 {
    row.cpu.map_or(0.0, |cpu| cpu.self_ns / 1e6)
}

fn largest_self(summary: &Summary) -> Option<&Row> {
    summary
        .rows
        .iter()
        .max_by(|a, b| self_ms(a).total_cmp(&self_ms(b)))
}

fn explain(slow: &Summary) {
    let (Some(top), Some(train), Some(loading)) = (
        largest_self(slow),
        row(slow, "::train"),
        row(slow, "::next_batch"),
    ) else {
        println!("   A filter hides rows: run this program again without PROFILER_FILTER.\n");
        return;
    };
    println!(
        "   How to read it:
   Self   is the time in a function without the functions it calls. The table is sorted by it, so
          the first row takes most of the time: {}, {:.0} % of the loop.
          That is not what a training loop should spend its time on.
   Total  includes the functions that a function calls. next_batch has a total of {:.1} ms, but a
          self time of {:.1} ms: it is slow because of the function that it calls.
   Calls  shows the reason: {} calls, one per batch, and each one processes all images, which never
          change. One call before the loop is enough.
",
        top.name,
        100.0 * self_ms(top) / total_ms(train),
        total_ms(loading),
        self_ms(loading),
        top.calls
    );
}

fn compare(slow: &Summary, fixed: &Summary) {
    let (Some(before), Some(after), Some(top)) = (
        row(slow, "::train"),
        row(fixed, "::train"),
        largest_self(fixed),
    ) else {
        println!("   A filter hides rows: run this program again without PROFILER_FILTER.");
        return;
    };
    println!(
        "   {:.1} ms became {:.1} ms: {:.1} times faster. The first row is now
   {}.",
        total_ms(before),
        total_ms(after),
        total_ms(before) / total_ms(after),
        top.name
    );
}
