//! One function, measured by each peer.

use std::any::Any;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bench_harness::subjects::{bare, body, two_rdtsc};
use bench_harness::{Variant, batch, calls, paced_batch};
use fastrace::collector::{Config, Reporter, SpanRecord};
use fastrace::prelude::{Span, SpanContext};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;

use crate::measured::measured;

/// A way to measure a function, in a hot loop and paced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) hot: Variant,
    pub(crate) paced: fn(u64) -> u64,
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) subject: Subject,
    /// Sets the peer up. The result is kept until the process ends.
    pub(crate) start: fn() -> Box<dyn Any>,
    /// Returns `true` if the peer is in the state that its row is about: it has recorded calls, or none.
    pub(crate) is_as_stated: fn() -> bool,
}

/// The calls of a frame or of a root span, for peers that have those.
const FRAME: u64 = 1000;

/// Makes calls in frames: `frame` calls its argument with all that its peer documents around it.
fn in_frames(calls: u64, frame: fn(&mut dyn FnMut()), call: impl Fn(u64) -> u64 + Copy) {
    let mut left = calls;
    while left > 0 {
        let now = left.min(FRAME);
        frame(&mut || batch(now, call));
        left -= now;
    }
}

/// As above; the frame's own beginning and end are not timed here.
fn paced_in_frame(
    calls: u64,
    frame: fn(&mut dyn FnMut()),
    call: impl Fn(u64) -> u64 + Copy,
) -> u64 {
    let mut ticks = 0;
    frame(&mut || ticks = paced_batch(calls, call));
    ticks
}

macro_rules! subject {
    ($name:expr, $call:expr) => {
        Subject {
            hot: Variant::base($name, calls!($call)),
            paced: |n| paced_batch(n, $call),
        }
    };
    ($name:expr, $call:expr, in $frame:expr) => {
        Subject {
            hot: Variant::base($name, |n| in_frames(n, $frame, $call)),
            paced: |n| paced_in_frame(n, $frame, $call),
        }
    };
}

pub(crate) const BARE: Subject = subject!("bare", bare);

pub(crate) const FLOOR: Subject = subject!("two rdtsc", two_rdtsc);

macro_rules! peer {
    ($name:expr, $call:expr $(, in $frame:expr)?; $start:expr, $is_as_stated:expr) => {
        Peer {
            name: $name,
            subject: subject!($name, $call $(, in $frame)?),
            start: $start,
            is_as_stated: $is_as_stated,
        }
    };
}

pub(crate) const PEERS: [Peer; 12] = [
    peer!("profiler-runtime", measured; nothing, || profiled_calls() > 0),
    peer!("profiler-runtime, off", measured; || {
        profiler_runtime::set_enabled(false);
        Box::new(())
    }, || profiled_calls() == 0),
    peer!("hotpath, guard alive", with_hotpath; || {
        Box::new(hotpath::HotpathGuardBuilder::new("main").build())
    }, unknown),
    peer!("puffin, in a frame's scope", with_puffin, in puffin_frame; || {
        puffin::set_scopes_on(true);
        VIEW.get_or_init(puffin::GlobalFrameView::default);
        Box::new(())
    }, || VIEW.get().is_some_and(|view| view.lock().latest_frame().is_some())),
    peer!("fastrace, in a root span", with_fastrace, in fastrace_root; || {
        fastrace::set_reporter(CountingReporter, Config::default());
        Box::new(())
    }, || {
        fastrace::flush();
        REPORTED.load(Relaxed) > 0
    }),
    peer!("perfetto-recorder, taken at the end", with_perfetto; || {
        Box::new(perfetto_recorder::start())
    }, perfetto_recorder::is_enabled),
    peer!("perfetto-recorder, taken every 1,000", with_perfetto, in perfetto_part; || {
        Box::new(perfetto_recorder::start())
    }, perfetto_recorder::is_enabled),
    peer!(TRACY, with_tracy; || {
        Box::new(tracy_client::Client::start())
    }, || !tracy_client::Client::is_connected()),
    peer!("tracing, no subscriber", with_tracing; nothing, unknown),
    peer!("tracing, a layer that does nothing", with_tracing; || subscribe(NoOp), unknown),
    peer!("tracing-timing, spans only", with_tracing; || {
        subscribe(tracing_timing::Builder::default().span_close_events().layer(histogram))
    }, || HISTOGRAMS.load(Relaxed) > 0),
    peer!("tracing-chrome, to a sink", with_tracing; || {
        let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new().writer(CountingSink).build();
        subscribe(layer);
        Box::new(guard)
    }, || WRITTEN.load(Relaxed) > 0),
];

#[cfg(feature = "tracy-on-demand")]
const TRACY: &str = "tracy-client, on demand, no server";
#[cfg(not(feature = "tracy-on-demand"))]
const TRACY: &str = "tracy-client, recording, no server";

fn nothing() -> Box<dyn Any> {
    Box::new(())
}

/// For peers that show what they have recorded at the end of the process only.
fn unknown() -> bool {
    true
}

fn profiled_calls() -> u64 {
    profiler_runtime::summary()
        .rows
        .iter()
        .map(|row| row.calls)
        .sum()
}

fn subscribe(layer: impl Layer<Registry> + Send + Sync) -> Box<dyn Any> {
    if let Err(error) = tracing::subscriber::set_global_default(Registry::default().with(layer)) {
        println!("{error}");
    }
    Box::new(())
}

/// A subscriber that enables every span, and does nothing with it.
struct NoOp;

impl<S: Subscriber> Layer<S> for NoOp {}

/// Holds the latest and the slowest frames, for a viewer.
static VIEW: OnceLock<puffin::GlobalFrameView> = OnceLock::new();

fn puffin_frame(calls: &mut dyn FnMut()) {
    puffin::GlobalProfiler::lock().new_frame();
    puffin::profile_scope!("frame");
    calls();
}

/// Drops the spans, which a true reporter would send.
struct CountingReporter;

static REPORTED: AtomicU64 = AtomicU64::new(0);

impl Reporter for CountingReporter {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        REPORTED.fetch_add(spans.len() as u64, Relaxed);
    }
}

fn fastrace_root(calls: &mut dyn FnMut()) {
    let root = Span::root("frame", SpanContext::random());
    let _guard = root.set_local_parent();
    calls();
}

/// Takes the thread's data, and drops it.
fn perfetto_part(calls: &mut dyn FnMut()) {
    calls();
    drop(perfetto_recorder::ThreadTraceData::take_current_thread());
}

/// The histograms of tracing-timing: it makes the first with the first span that it measures.
static HISTOGRAMS: AtomicU64 = AtomicU64::new(0);

/// Up to a second, in two digits.
fn histogram() -> tracing_timing::Histogram<u64> {
    HISTOGRAMS.fetch_add(1, Relaxed);
    tracing_timing::Histogram::new_with_max(1_000_000_000, 2)
        .unwrap_or_else(|_| unreachable!("the bounds are valid"))
}

/// Drops the trace, so that no disk is measured.
struct CountingSink;

static WRITTEN: AtomicU64 = AtomicU64::new(0);

impl io::Write for CountingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.fetch_add(bytes.len() as u64, Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[inline(never)]
#[hotpath::measure]
fn with_hotpath(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
fn with_puffin(x: u64) -> u64 {
    puffin::profile_function!();
    body(x)
}

#[inline(never)]
#[fastrace::trace]
fn with_fastrace(x: u64) -> u64 {
    body(x)
}

#[inline(never)]
fn with_perfetto(x: u64) -> u64 {
    perfetto_recorder::scope!("with_perfetto");
    body(x)
}

#[inline(never)]
fn with_tracy(x: u64) -> u64 {
    let _span = tracy_client::span!("with_tracy");
    body(x)
}

#[inline(never)]
#[tracing::instrument(skip_all)]
fn with_tracing(x: u64) -> u64 {
    body(x)
}
