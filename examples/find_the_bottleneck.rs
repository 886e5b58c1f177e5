//! A tutorial: a training loop with a mistake in it, and how the table gives it away.
//!
//! The modules `slow` and `mended` below hold the same loop; one of them does something that people
//! do. Try to find it by reading first. Then run this, and see how the table leads there.
//!
//! ```text
//! cargo run --release --example find_the_bottleneck
//! ```

use profiler_examples::digits::Digits;
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::{Row, SortBy, Summary, TableOptions, measure_execution_time, summary};

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
mod mended {
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

fn main() {
    let images = Digits::all();
    let mut random = Random::seeded(11);
    let mut order: Vec<usize> = (0..images.len()).collect();
    random.shuffle(&mut order);
    let untrained = Network::new(HIDDEN, &mut random);

    let mut first = untrained.clone();
    slow::train(&mut first, &images, &order);
    let slow = rows_of("slow");
    if slow.rows.is_empty() {
        // Off, filtered or stripped: the summary knows, and says what to do.
        print!("there is no table to learn from: {}", summary());
        return;
    }
    println!("1. A loop that learns, but takes its time: {EPOCHS} epochs\n");
    println!("{}", table(&slow));
    explain(&slow);

    let mut second = untrained;
    mended::train(&mut second, &images, &order);
    let mended = rows_of("mended");
    println!("2. The same loop, with one line moved in front of it (see `mended::train`)\n");
    println!("{}", table(&mended));
    compare(&slow, &mended);

    let images = images.standardised();
    let [before, after] = [first, second].map(|network| network.forward(&images).loss(&images));
    println!("   The loss is {before:.6} with the first loop and {after:.6} with the second.");
}

/// A summary is of the whole program: this is the part of one module. Names are paths, so that the
/// functions of a module are easily told.
fn rows_of(module: &str) -> Summary {
    let mut summary = summary();
    let path = format!("{}::{module}::", module_path!());
    summary.rows.retain(|row| row.name.starts_with(&path));
    summary
}

fn table(summary: &Summary) -> String {
    summary.table(&TableOptions::default().sort_by(SortBy::SelfTime))
}

fn row<'a>(summary: &'a Summary, function: &str) -> Option<&'a Row> {
    summary.rows.iter().find(|row| row.name.ends_with(function))
}

fn largest_self(summary: &Summary) -> Option<&Row> {
    summary
        .rows
        .iter()
        .max_by(|a, b| a.self_ns.total_cmp(&b.self_ns))
}

fn explain(slow: &Summary) {
    let (Some(top), Some(train), Some(loading)) = (
        largest_self(slow),
        row(slow, "::train"),
        row(slow, "::next_batch"),
    ) else {
        println!("   A filter hides rows: run this again without PROFILER_FILTER.\n");
        return;
    };
    println!(
        "   How to read it:
   Self   is the time in a function itself. The table is sorted by it, so the first row is where
          the time goes: {}, {:.0} % of the loop.
          Is that what you expect of a loop that trains?
   Total  counts what a function calls, too. next_batch has {:.1} ms of it, but only {:.1} ms are
          its own: it is slow because of what it calls, and there is nothing to mend in itself.
   Calls  tells why. {} calls, one for each batch, and each one goes through all the images, which
          never change: one call before the loop would do.
",
        top.name,
        100.0 * top.self_ns / train.total_ns,
        loading.total_ns / 1e6,
        loading.self_ns / 1e6,
        top.calls
    );
}

fn compare(slow: &Summary, mended: &Summary) {
    let (Some(before), Some(after), Some(top)) = (
        row(slow, "::train"),
        row(mended, "::train"),
        largest_self(mended),
    ) else {
        println!("   A filter hides rows: run this again without PROFILER_FILTER.");
        return;
    };
    println!(
        "   {:.1} ms became {:.1} ms: {:.1} times faster. The first row is now
   {}. (% wall counts from the start of the program.)",
        before.total_ns / 1e6,
        after.total_ns / 1e6,
        before.total_ns / after.total_ns,
        top.name
    );
}
