//! Calls one function repeatedly, so that callgrind can count its instructions; see
//! `instructions.sh`.

mod subjects;
mod variants;

use std::hint::black_box;

use variants::{VARIANTS, Variant};

const USAGE: &str = "usage: instructions VARIANT CALLS, or instructions --list";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    if name == "--list" {
        for variant in VARIANTS {
            println!("{} {} {}", variant.name, variant.base, variant.measured);
        }
        return Ok(());
    }
    let variant = VARIANTS.iter().find(|variant| variant.name == name);
    let calls = arguments.next().and_then(|calls| calls.parse().ok());
    let (Some(variant), Some(calls)) = (variant, calls) else {
        return Err(USAGE.into());
    };
    let _profiler = profiler_runtime::builder().filter("-filtered out").init()?;
    let expected = (variant.run)(&Counted { variant, calls })?;
    let counted: u64 = profiler_runtime::summary()
        .rows
        .iter()
        .map(|row| row.calls)
        .sum();
    // Otherwise, the instructions are those of something else.
    if counted != expected {
        return Err(format!("{name}: {counted} calls in the summary instead of {expected}").into());
    }
    Ok(())
}

/// The calls of one variant.
pub(crate) struct Counted {
    variant: &'static Variant,
    calls: u64,
}

/// More than the names that a variant uses.
pub(crate) const WARMING: u64 = 1000;

impl Counted {
    /// Makes calls that are not counted: the first call of a name initializes the clock, the name and
    /// the thread's cell. Returns how many measured calls these are.
    pub(crate) fn warm_up(&self) -> u64 {
        for argument in 0..WARMING {
            black_box((self.variant.function)(black_box(argument)));
        }
        WARMING * self.variant.measured
    }

    /// Makes the calls that are counted, and returns how many measured calls these are.
    pub(crate) fn count(&self) -> u64 {
        counted_calls(self.variant.function, self.calls);
        self.calls * self.variant.measured
    }
}

/// One loop for all variants, so that its cost is equal. The script makes callgrind count only
/// inside it, and so only on this thread.
#[inline(never)]
fn counted_calls(function: fn(u64) -> u64, calls: u64) {
    for argument in 0..calls {
        black_box(function(black_box(argument)));
    }
}
