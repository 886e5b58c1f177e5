//! Events of the profiler itself, where a layer answers events with spans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_runtime::{ProfilerLayer, TracingLogger, builder, flush};
use profiler_tests::{if_measuring, measuring, row};
use tracing::{Event, Level, Subscriber, info_span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

use crate::support::all_lost;

/// Answers each event with a span, as a layer does that sends events elsewhere. Counts those of `TracingLogger`.
#[derive(Clone, Default)]
struct Answers(Arc<AtomicU64>);

impl<S: Subscriber> Layer<S> for Answers {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == "profiler_runtime" && *metadata.level() == Level::INFO {
            self.0.fetch_add(1, Relaxed);
            info_span!("answer").in_scope(|| ());
        }
    }
}

#[test]
fn spans_that_answer_the_tracing_logger_are_not_logged_in_turn() {
    let answers = Answers::default();
    let subscriber = registry().with(ProfilerLayer::new()).with(answers.clone());
    tracing::subscriber::set_global_default(subscriber).expect("the first of this process");
    let _profiler = builder().logger(TracingLogger).init().expect("set up");
    for _ in 0..10 {
        info_span!("logged").in_scope(|| ());
    }
    // Each would log what the one before it has measured.
    for _ in 0..5 {
        flush(Duration::from_secs(20));
    }
    let logged = answers.0.load(Relaxed);
    // With a GPU, entries of the first calls may be missing.
    assert_eq!(logged > 0, measuring());
    assert!(logged <= 10, "{logged}");
    assert_eq!(
        row("tracing_layer::loggers::logged").calls,
        if_measuring(10)
    );
    assert_eq!(row("tracing_layer::loggers::answer").calls, 0);
    assert_eq!(all_lost(), 0);
}
