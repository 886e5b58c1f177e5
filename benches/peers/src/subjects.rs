//! One function, measured by each peer.

use std::any::Any;
use std::hint::black_box;
use std::sync::LazyLock;

use bench_harness::{Variant, batch};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;

/// A peer and the way to measure a function with it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) variant: Variant,
    /// Sets the peer up. The result is kept until the process ends.
    pub(crate) start: fn() -> Box<dyn Any>,
}

pub(crate) const BARE: Variant = Variant::new("bare", |n| batch(n, bare));

pub(crate) const FLOOR: Variant = Variant::new("two raw timestamps", |n| {
    static CLOCK: LazyLock<quanta::Clock> = LazyLock::new(quanta::Clock::new);
    let clock = &*CLOCK;
    batch(n, |x| two_raw(clock, x));
});

pub(crate) const PEERS: [Peer; 5] = [
    Peer {
        name: "profiler-runtime",
        variant: Variant::new("profiler-runtime", |n| batch(n, profiled)),
        start: nothing,
    },
    Peer {
        name: "profiler-runtime, off",
        variant: Variant::new("profiler-runtime, off", |n| batch(n, profiled)),
        start: || {
            profiler_runtime::set_enabled(false);
            Box::new(())
        },
    },
    Peer {
        name: "hotpath, guard alive",
        variant: Variant::new("hotpath", |n| batch(n, with_hotpath)),
        start: || Box::new(hotpath::HotpathGuardBuilder::new("main").build()),
    },
    Peer {
        name: "tracing, no-op subscriber",
        variant: Variant::new("tracing, no-op subscriber", |n| batch(n, with_tracing)),
        start: || {
            let subscriber = Registry::default().with(NoOp);
            if let Err(error) = tracing::subscriber::set_global_default(subscriber) {
                println!("{error}");
            }
            Box::new(())
        },
    },
    Peer {
        name: "tracing, no subscriber",
        variant: Variant::new("tracing, no subscriber", |n| batch(n, with_tracing)),
        start: nothing,
    },
];

fn nothing() -> Box<dyn Any> {
    Box::new(())
}

/// A subscriber that enables every span, and does nothing with it.
struct NoOp;

impl<S: Subscriber> Layer<S> for NoOp {}

#[inline(always)]
#[allow(clippy::inline_always, reason = "it is the body of each subject")]
fn body(x: u64) -> u64 {
    black_box(x) + 1
}

#[inline(never)]
fn bare(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
fn two_raw(clock: &quanta::Clock, x: u64) -> u64 {
    let start = clock.raw();
    let result = body(x);
    black_box(clock.raw().wrapping_sub(start));
    result
}

#[inline(never)]
#[profiler_runtime::measure_execution_time]
fn profiled(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[hotpath::measure]
fn with_hotpath(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
#[tracing::instrument(skip_all)]
fn with_tracing(x: u64) -> u64 {
    body(x)
}
