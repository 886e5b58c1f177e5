//! Which spans a layer measures, and what it leaves to others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use profiler_runtime::{ProfilerLayer, builder, summary};
use profiler_tests::{if_measuring, measuring, row};
use tracing::span::{Attributes, Id};
use tracing::subscriber::with_default;
use tracing::{Level, Subscriber, debug_span, info_span, span, trace_span};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

use crate::support::install;

/// Counts the spans that it is shown.
#[derive(Clone, Default)]
struct Counts(Arc<AtomicU64>);

impl<S: Subscriber> Layer<S> for Counts {
    fn on_new_span(&self, _: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn each_kind() {
    info_span!("info").in_scope(|| ());
    debug_span!("debug").in_scope(|| ());
    trace_span!("trace").in_scope(|| ());
    span!(target: "candle_nn::linear", Level::TRACE, "matmul").in_scope(|| ());
    span!(target: "hyper::proto", Level::INFO, "frame").in_scope(|| ());
    span!(target: "tokio::task", Level::TRACE, "runtime.spawn").in_scope(|| ());
}

/// The names of the rows, without the module of this test.
fn names() -> Vec<String> {
    let rows = summary().rows.into_iter();
    let mut names: Vec<_> = rows
        .map(|row| row.name.replace("tracing_layer::filters::", ""))
        .collect();
    names.sort_unstable();
    names
}

fn measured<const N: usize>(names: [&str; N]) -> Vec<String> {
    let names = names.iter().filter(|_| measuring());
    names.map(ToString::to_string).collect()
}

#[test]
fn internals_and_traces_are_left_out_by_default() {
    let counts = Counts::default();
    let subscriber = registry().with(ProfilerLayer::new()).with(counts.clone());
    with_default(subscriber, each_kind);
    assert_eq!(
        names(),
        measured(["candle_nn::linear::matmul", "debug", "info"])
    );
    assert_eq!(counts.0.load(Relaxed), 6, "other layers see them all");
}

#[test]
fn spans_that_the_layer_alone_would_see_cost_nothing() {
    install();
    let is_wanted = !info_span!("wanted").is_disabled();
    assert_eq!(is_wanted, !cfg!(feature = "strip"));
    let unwanted = span!(target: "hyper::proto", Level::INFO, "unwanted");
    assert!(unwanted.is_disabled());
}

#[test]
fn all_spans_are_measured_if_asked_for() {
    let subscriber = registry().with(ProfilerLayer::new().all_spans());
    with_default(subscriber, each_kind);
    let all = [
        "candle_nn::linear::matmul",
        "debug",
        "hyper::proto::frame",
        "info",
        "tokio::task::runtime.spawn",
        "trace",
    ];
    assert_eq!(names(), measured(all));
}

#[test]
fn a_filter_of_the_layer_is_the_layers_alone() {
    let counts = Counts::default();
    let filter = Targets::new().with_target("tracing_layer", LevelFilter::INFO);
    let subscriber = registry()
        .with(counts.clone())
        .with(ProfilerLayer::new().with_filter(filter));
    with_default(subscriber, each_kind);
    assert_eq!(names(), measured(["info"]));
    assert_eq!(counts.0.load(Relaxed), 6);
}

#[test]
fn the_filter_of_another_layer_hides_nothing() {
    let counts = Counts::default();
    let subscriber = registry()
        .with(counts.clone().with_filter(LevelFilter::WARN))
        .with(ProfilerLayer::new());
    with_default(subscriber, each_kind);
    assert_eq!(
        names(),
        measured(["candle_nn::linear::matmul", "debug", "info"])
    );
    assert_eq!(counts.0.load(Relaxed), 0);
}

#[test]
fn the_filter_of_names_holds_for_spans() {
    let _profiler = builder().filter("*::info").init().expect("set up");
    install();
    each_kind();
    assert_eq!(names(), measured(["info"]));
}

#[test]
fn a_filter_of_the_whole_registry_is_named_as_a_cause() {
    let subscriber = registry()
        .with(ProfilerLayer::new())
        .with(LevelFilter::ERROR);
    with_default(subscriber, each_kind);
    let table = summary().to_string();
    assert_eq!(
        table.contains("a ProfilerLayer has seen no span"),
        measuring(),
        "{table}"
    );
    assert_eq!(
        table.contains("filter of the whole registry"),
        measuring(),
        "{table}"
    );
    drop(profiler_runtime::scope!("filters: a row"));
    let table = summary().to_string();
    assert_eq!(
        table.contains("a ProfilerLayer has seen no span"),
        measuring(),
        "{table}"
    );
}

#[test]
fn two_registries_have_ids_of_their_own() {
    let subscriber = || registry().with(ProfilerLayer::new());
    with_default(subscriber(), || {
        let _outer = info_span!("outer").entered();
        with_default(subscriber(), || info_span!("inner").in_scope(|| ()));
    });
    for name in ["outer", "inner"] {
        let row = row(&format!("tracing_layer::filters::{name}"));
        assert_eq!((row.calls, row.out_of_order), (if_measuring(1), 0));
    }
}
