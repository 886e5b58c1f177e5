//! Traces and their scopes for serde.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use super::event::Event;
use super::trace::Trace;
use crate::name::SourceLocation;

/// A window with its scopes: a trace refers to statics of the program, so it cannot be deserialized.
impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let events: Vec<Event> = self.events().collect();
        let mut trace = serializer.serialize_struct("Trace", 6)?;
        trace.serialize_field("cycle", &self.cycle())?;
        trace.serialize_field("step_num", &self.step_num())?;
        trace.serialize_field("start", &self.start())?;
        trace.serialize_field("duration", &self.duration())?;
        trace.serialize_field("truncation", &self.truncation())?;
        trace.serialize_field("events", &events)?;
        trace.end()
    }
}

/// The values that the methods of the same names return; `parent` is the name of the enclosing scope.
impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let location = self.location();
        let location = location.map(SourceLocation::in_files);
        let mut event = serializer.serialize_struct("Event", 16)?;
        event.serialize_field("name", self.name())?;
        event.serialize_field("location", &location)?;
        event.serialize_field("parent", &self.parent().map(Event::name))?;
        event.serialize_field("start_ns", &self.start_ns())?;
        event.serialize_field("cpu_ns", &self.cpu_ns())?;
        event.serialize_field("self_cpu_ns", &self.self_cpu_ns())?;
        event.serialize_field("gpu", &self.gpu())?;
        event.serialize_field("gpu_loss", &self.gpu_loss())?;
        event.serialize_field("shapes", &self.shapes())?;
        event.serialize_field("memory", &self.memory())?;
        event.serialize_field("native_stack", &self.native_stack())?;
        event.serialize_field("thread_name", &self.thread_name())?;
        event.serialize_field("thread_id", &self.thread_id())?;
        event.serialize_field("is_future", &self.is_future())?;
        event.serialize_field("has_panicked", &self.has_panicked())?;
        event.serialize_field("is_dropped", &self.is_dropped())?;
        event.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use crate::session::Trace;
    use crate::session::sample::Sample;
    use profiler_report::internal::StreamKey;

    fn json(trace: &Trace) -> Value {
        serde_json::to_value(trace).expect("a trace is serializable")
    }

    #[test]
    fn a_trace_is_serialized_with_its_scopes() {
        let mut sample = Sample::new();
        let outer = sample.scope("serialize: outer", 0, 0, 100);
        sample.scope("serialize: inner", outer, 10, 20);
        sample.gpu(StreamKey::NOWHERE, 0, 40.0, 30.0);
        let json = json(&sample.trace());
        assert_eq!(json["truncation"]["late"], 0);
        let [outer, inner] = json["events"].as_array().unwrap().as_slice() else {
            panic!("not two scopes: {json}")
        };
        assert_eq!(outer["name"], "serialize: outer");
        assert_eq!(
            (&outer["parent"], &outer["gpu"]),
            (&Value::Null, &Value::Null)
        );
        assert_eq!(inner["parent"], "serialize: outer");
        assert_eq!(
            (&inner["gpu"]["ns"], &inner["gpu"]["self_ns"]),
            (&40.0.into(), &30.0.into())
        );
    }
}
