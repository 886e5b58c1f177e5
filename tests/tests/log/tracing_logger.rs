//! `TracingLogger` emits one event for each measurement, with typed fields.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use profiler_runtime::log::Scalar;
use profiler_runtime::{ScalarLogger, TracingLogger};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

/// The events it saw.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<SeenEvent>>>);

struct SeenEvent {
    target: String,
    level: Level,
    cuda_ms_is_declared: bool,
    fields: Fields,
}

#[derive(Debug, Default, PartialEq)]
struct Fields(Vec<(&'static str, String)>);

impl<S: Subscriber> Layer<S> for Seen {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        self.0.lock().expect("nobody panics").push(SeenEvent {
            target: metadata.target().to_owned(),
            level: *metadata.level(),
            cuda_ms_is_declared: metadata.fields().field("cuda_ms").is_some(),
            fields,
        });
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.push((field.name(), format!("f64 {value}")));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.push((field.name(), format!("u64 {value}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), format!("str {value}")));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("other {value:?}")));
    }
}

#[test]
fn an_event_has_the_name_the_time_and_the_step() -> Result<(), Box<dyn Error>> {
    let seen = Seen::default();
    let subscriber = tracing_subscriber::registry().with(seen.clone());
    tracing::subscriber::with_default(subscriber, || {
        TracingLogger.add(&Scalar::new("model::forward", 1.25, 7, SystemTime::now()))?;
        TracingLogger.add_scalar("model::backward", 2.5, 8)
    })?;

    let events = seen.0.lock().expect("nobody panics");
    let expected = [("model::forward", 1.25, 7), ("model::backward", 2.5, 8)];
    assert_eq!(events.len(), expected.len());
    for (event, (name, ms, step)) in events.iter().zip(expected) {
        assert_eq!(
            (event.target.as_str(), event.level),
            ("profiler_runtime", Level::INFO)
        );
        assert!(
            event.cuda_ms_is_declared,
            "a formatter may reserve its column"
        );
        let expected = [
            ("name", format!("str {name}")),
            ("cpu_ms", format!("f64 {ms}")),
            ("step", format!("u64 {step}")),
        ];
        assert_eq!(event.fields.0, expected);
    }
    Ok(())
}
