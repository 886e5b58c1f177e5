//! Calls one function repeatedly, so that callgrind can count its instructions; see
//! `instructions.sh`.

mod subjects;
mod variants;

use std::hint::black_box;

use variants::{VARIANTS, Variant};

const USAGE: &str = "usage: instructions VARIANT BATCHES, or instructions --list";

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
    let batches = arguments.next().and_then(|batches| batches.parse().ok());
    let (Some(variant), Some(batches)) = (variant, batches) else {
        return Err(USAGE.into());
    };
    let _profiler = profiler_runtime::builder().filter("-filtered out").init()?;
    let expected = (variant.run)(&Counted { variant, batches })?;
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
    batches: u64,
}

/// The calls of a batch, and those that are made first. As many as a variant has names at most, so that each
/// batch calls all of them equally often.
pub(crate) const BATCH: u64 = 1000;

impl Counted {
    /// Makes calls that are not counted: the first call of a name initializes the clock, the name and
    /// the thread's cell. Returns how many measured calls these are.
    pub(crate) fn warm_up(&self) -> u64 {
        for argument in 0..BATCH {
            black_box((self.variant.function)(black_box(argument)));
        }
        BATCH * self.variant.measured
    }

    /// Makes the calls that are counted, and returns how many measured calls these are.
    pub(crate) fn count(&self) -> u64 {
        for _ in 0..self.batches {
            counted_calls(self.variant.function);
        }
        self.batches * BATCH * self.variant.measured
    }
}

/// One batch. It is one loop for all variants, so that its cost is equal. The script makes callgrind count only inside
/// it, and so only on this thread, and write the count at its end.
#[inline(never)]
fn counted_calls(function: fn(u64) -> u64) {
    for argument in 0..BATCH {
        black_box(function(black_box(argument)));
    }
}
