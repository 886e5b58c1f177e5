//! Creates, enters, exits and closes one span repeatedly, so that callgrind can count the instructions of a layer; see
//! `span-instructions.sh`. It is no part of the program, whose allocator would be counted too.

use std::hint::black_box;
use std::io;
use std::process::ExitCode;

use opentelemetry::trace::TracerProvider;
use profiler_runtime::{ProfilerLayer, set_enabled};
use tracing::subscriber::set_global_default;
use tracing::{Subscriber, info_span};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::{Registry, registry};

/// A layer that does nothing: what is left is the registry.
struct Nothing;

impl<S: Subscriber> Layer<S> for Nothing {}

const USAGE: &str = "usage: spans nothing|profiler|profiler-whole|profiler-off|timing|flame|chrome|opentelemetry SPANS";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let variant = arguments.next().unwrap_or_default();
    let spans = arguments.next().and_then(|spans| spans.parse().ok());
    let (Some(keeps), Some(spans)) = (install(&variant), spans) else {
        println!("{USAGE}");
        return ExitCode::FAILURE;
    };
    set_enabled(variant != "profiler-off");
    // Not counted: what the first spans of a call site initialize.
    for _ in 0..2 {
        one_span();
    }
    counted_spans(spans);
    drop(keeps);
    ExitCode::SUCCESS
}

/// Makes a registry with one layer the program's subscriber. Returns what must live as long as it.
fn install(variant: &str) -> Option<Box<dyn std::any::Any>> {
    let with = |layer: Box<dyn Layer<Registry> + Send + Sync>| {
        set_global_default(registry().with(layer)).ok()
    };
    let mut keeps: Box<dyn std::any::Any> = Box::new(());
    match variant {
        "nothing" => set_global_default(registry().with(Nothing)).ok()?,
        "profiler" | "profiler-off" => {
            set_global_default(registry().with(ProfilerLayer::new())).ok()?;
        }
        "profiler-whole" => {
            set_global_default(registry().with(ProfilerLayer::new().whole_spans())).ok()?;
        }
        "timing" => {
            let layer = tracing_timing::Builder::default().layer(|| {
                tracing_timing::Histogram::new_with_max(1_000_000_000, 2)
                    .unwrap_or_else(|_| unreachable!("the bounds are valid"))
            });
            set_global_default(registry().with(layer)).ok()?;
        }
        "flame" => with(Box::new(tracing_flame::FlameLayer::new(io::sink())))?,
        "chrome" => {
            let (layer, guard) = tracing_chrome::ChromeLayerBuilder::new()
                .writer(io::sink())
                .build();
            keeps = Box::new(guard);
            with(Box::new(layer))?;
        }
        "opentelemetry" => {
            let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder().build();
            let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("spans"));
            keeps = Box::new(provider);
            with(Box::new(layer))?;
        }
        _ => return None,
    }
    Some(keeps)
}

#[inline(never)]
fn one_span() {
    let _span = info_span!("work").entered();
    black_box(());
}

/// The script makes callgrind count only inside it.
#[inline(never)]
fn counted_spans(spans: u64) {
    for _ in 0..spans {
        one_span();
    }
}
