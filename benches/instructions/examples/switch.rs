//! Turns the switch while the profiler knows some thousand call sites, each of which a turn visits.
//!
//! `cargo run --release -p instructions --example switch -- SITES TURNS` prints the time of a turn; callgrind counts its
//! instructions with `--toggle-collect='*counted_turns*'`.

use std::time::Instant;

use profiler_runtime::set_enabled;

const USAGE: &str = "usage: switch SITES TURNS; SITES is 0, 1000, 2000, 3000, 4000 or 5000";

/// Declares ten modules for each `ten`, nested in each other, with one measured function in each of the innermost.
macro_rules! functions {
    () => {
        #[profiler_runtime::measure_execution_time]
        pub(crate) fn call() {}
    };
    (ten $($inner:tt)*) => {
        functions!(@modules [$($inner)*] a b c d e f g h i j);
    };
    (@modules $inner:tt $($module:ident)*) => {
        $(functions!(@module $module $inner);)*
        pub(crate) fn call() {
            $($module::call();)*
        }
    };
    (@module $module:ident [$($inner:tt)*]) => {
        mod $module {
            functions!($($inner)*);
        }
    };
}

macro_rules! thousands {
    ($($name:ident)*) => {
        $(mod $name {
            functions!(ten ten ten);
        })*
        const THOUSANDS: &[fn()] = &[$($name::call),*];
    };
}

thousands!(one two three four five);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().and_then(|text| text.parse::<usize>().ok());
    let (Some(sites), Some(turns)) = (next(), next()) else {
        return Err(USAGE.into());
    };
    let thousands = THOUSANDS.get(..sites / 1000);
    let thousands = thousands.filter(|_| sites % 1000 == 0).ok_or(USAGE)?;
    for call in thousands {
        call();
    }
    let names = profiler_runtime::summary().rows.len();
    if names != sites {
        return Err(format!("{names} names in the summary instead of {sites}").into());
    }
    let start = Instant::now();
    counted_turns(turns);
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / turns as f64;
    println!("{sites} call sites: {nanoseconds:.0} ns for each of {turns} turns");
    Ok(())
}

/// Turns the switch off and on again. Callgrind counts inside this function only.
#[inline(never)]
fn counted_turns(turns: usize) {
    for turn in 0..turns {
        set_enabled(turn % 2 == 1);
    }
}
