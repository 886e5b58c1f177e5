//! What the Python manual's "The Python Profilers" shows of `cProfile` and `pstats`, and the file that `SnakeViz` opens.
//!
//! ```text
//! cargo run --release --example cprofile
//! snakeviz program.prof
//! ```

use std::error::Error;

use profiler_runtime::report::SortKey;
use profiler_runtime::{Profile, measured, set_enabled, summary};

#[measured]
fn parse(text: &str) -> Vec<usize> {
    text.split(' ').map(init).collect()
}

#[measured]
fn init(word: &str) -> usize {
    word.len()
}

#[measured]
fn work() -> usize {
    let lengths = parse("how long is each of these words");
    lengths.iter().sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    // cProfile always counts callers; here, a call costs some 100 ns more then.
    let _profiler = profiler_runtime::builder().callers(true).init()?;
    // pr = cProfile.Profile(); pr.enable(); …; pr.disable()
    set_enabled(true);
    work();
    set_enabled(false);

    // pstats.Stats(pr).sort_stats('cumulative').print_stats(10)
    println!("{}", summary().sort_by("cumulative").restrict(10)?);
    // pstats.Stats(pr).sort_stats(SortKey.TIME).print_stats('init')
    println!(
        "{}",
        summary()
            .sort_by(SortKey::SelfCpuTimeTotal)
            .restrict("init")?
    );

    // cProfile.run('work()'), print_callers and print_callees
    set_enabled(true);
    let (sum, trace) = Profile::builder().run(|_| work());
    assert_eq!(sum, 25);
    let stats = trace?.key_averages();
    println!("{}", stats.clone().restrict("init")?.callers());
    println!("{}", stats.clone().restrict("parse")?.callees());

    // pr.dump_stats('program.prof')
    summary().dump_stats("program.prof")?;
    Ok(())
}
