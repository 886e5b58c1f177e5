//! The kinds of calls that are counted.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use profiler_runtime::{Profile, flush, scope, set_enabled};

use crate::Counted;
use crate::subjects::{self, ARRIVED, KNOWN};

pub(crate) type Outcome = Result<u64, Box<dyn std::error::Error>>;

/// One kind of call.
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    /// The variant whose instructions are subtracted.
    pub(crate) base: &'static str,
    /// The measured calls in one call.
    pub(crate) measured: u64,
    pub(crate) function: fn(u64) -> u64,
    /// Makes the calls. Returns how many calls the summary should have in the end.
    pub(crate) run: fn(&Counted) -> Outcome,
}

/// A base, which measures nothing.
const fn base(name: &'static str, function: fn(u64) -> u64) -> Variant {
    Variant {
        name,
        base: name,
        measured: 0,
        function,
        run: plain,
    }
}

const fn variant(name: &'static str, function: fn(u64) -> u64) -> Variant {
    Variant {
        name,
        base: "bare",
        measured: 1,
        function,
        run: plain,
    }
}

impl Variant {
    const fn beyond(mut self, base: &'static str) -> Self {
        self.base = base;
        self
    }

    const fn by(mut self, run: fn(&Counted) -> Outcome) -> Self {
        self.run = run;
        self
    }
}

pub(crate) const VARIANTS: &[Variant] = &[
    base("bare", subjects::bare),
    base("bare-calling", subjects::bare_calling),
    base("bare-nested", subjects::bare_nested),
    base("bare-future", subjects::bare_future),
    base("bare-named-10", subjects::bare_named).by(with_names::<10>),
    base("bare-named-1000", subjects::bare_named).by(with_names::<1000>),
    variant("off", subjects::measured).by(off),
    variant("off-calling", subjects::measured_calling)
        .beyond("bare-calling")
        .by(off),
    variant("filtered-out", subjects::filtered_out).by(filtered_out),
    variant("on", subjects::measured),
    variant("on-calling", subjects::measured_calling).beyond("bare-calling"),
    Variant {
        measured: 2,
        ..variant("on-nested", subjects::measured_nested).beyond("bare-nested")
    },
    variant("on-after-1024-names", subjects::measured).by(after_many_names),
    variant("scope-literal", subjects::scope_literal),
    variant("scope-named-10", subjects::scope_named)
        .beyond("bare-named-10")
        .by(with_names::<10>),
    variant("scope-named-1000", subjects::scope_named)
        .beyond("bare-named-1000")
        .by(with_names::<1000>),
    variant("measure-named-10", subjects::block_named)
        .beyond("bare-named-10")
        .by(with_names::<10>),
    variant("measure-named-1000", subjects::block_named)
        .beyond("bare-named-1000")
        .by(with_names::<1000>),
    variant("future-ready", subjects::ready_future).beyond("bare-future"),
    variant("logged", subjects::logged).by(logged),
    variant("rarely-logged", subjects::rarely_logged),
    variant("recorded", subjects::measured).by(recorded),
];

#[allow(clippy::unnecessary_wraps, reason = "the type of all these functions")]
fn plain(calls: &Counted) -> Outcome {
    Ok(calls.warm_up() + calls.count())
}

#[allow(clippy::unnecessary_wraps, reason = "the type of all these functions")]
fn off(calls: &Counted) -> Outcome {
    let warmed = calls.warm_up();
    set_enabled(false);
    calls.count();
    set_enabled(true);
    Ok(warmed)
}

fn filtered_out(calls: &Counted) -> Outcome {
    plain(calls)?;
    Ok(0)
}

fn with_names<const NAMES: usize>(calls: &Counted) -> Outcome {
    /// Enough for the times of a name to have reached most of their range.
    const EACH: u64 = 300;
    KNOWN.store(NAMES, Relaxed);
    let warmed: u64 = (0..EACH * NAMES as u64 / crate::BATCH)
        .map(|_| calls.warm_up())
        .sum();
    Ok(warmed + plain(calls)?)
}

/// The name that is called has a high number.
fn after_many_names(calls: &Counted) -> Outcome {
    const EARLIER: u64 = 1100;
    for number in 0..EARLIER {
        let _scope = scope!(format!("earlier name {number}"));
    }
    Ok(EARLIER + plain(calls)?)
}

/// The script sets a ring that has room for all entries.
fn logged(calls: &Counted) -> Outcome {
    let made = plain(calls)?;
    flush(Duration::from_secs(10));
    let arrived = ARRIVED.load(Relaxed);
    if arrived == made {
        Ok(made)
    } else {
        Err(format!("{made} calls, {arrived} log entries: set a larger PROFILER_RING").into())
    }
}

fn recorded(calls: &Counted) -> Outcome {
    let session = Profile::builder().start()?;
    let made = plain(calls)?;
    session.stop();
    let window = session
        .wait(Duration::from_secs(10))
        .then(|| session.trace())
        .flatten();
    let window = window.ok_or("there is no window")?;
    if window.truncation().is_complete() && window.len() as u64 == made {
        Ok(made)
    } else {
        Err(format!(
            "{made} calls, {} in the window: set a larger PROFILER_RING",
            window.len()
        )
        .into())
    }
}
