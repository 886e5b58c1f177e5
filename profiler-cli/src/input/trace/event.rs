//! One event of a trace.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
};

use super::args::{Args, ArgsOf};
use super::time::Time;
use super::value::{Text, Value, truncate, whole};

/// One event, as far as the reader needs it.
#[derive(Debug, Default)]
pub(super) struct Event<'e> {
    /// The phase: `X`, `B`, `E`, `M`, `C`, `i`…; 0 if there is none.
    pub(super) phase: u8,
    pub(super) category: Category,
    /// The text of the category, for a call on the CPU that is no operator.
    pub(super) category_text: Option<Cow<'e, str>>,
    pub(super) name: Cow<'e, str>,
    pub(super) process: Id,
    pub(super) thread: Id,
    /// What tells counters of one name and process apart; of other events it is not read.
    pub(super) id: Id,
    pub(super) at: Time,
    pub(super) duration: Time,
    pub(super) args: Args<'e>,
}

/// The category of an event of PyTorch or `profiler-runtime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Category {
    /// A function on the CPU, of any program.
    #[default]
    Function,
    /// A function of PyTorch on the CPU.
    Operator,
    /// A range on the CPU that the program named.
    Annotation,
    /// A call of CUDA on the CPU.
    Runtime,
    Kernel,
    /// A copy on a device.
    Memcpy,
    /// A fill of memory on a device.
    Memset,
    /// A range on a stream that the program named.
    GpuAnnotation,
    /// A replay of a CUDA graph, which `profiler-runtime` writes as an instant.
    Replay,
    /// A wait for a device.
    Wait,
    /// A time without records of kernels.
    KernelGap,
    /// Why a device was idle, which follows from the rest of the file.
    Idle,
    /// For how long a thread was on a processor.
    Processor,
    /// Nothing that the program called: a summary of the profiler, or its overhead.
    Other,
}

impl Category {
    fn of(text: &str) -> Self {
        match text {
            "cpu_op" | "Operator" => Self::Operator,
            "user_annotation" => Self::Annotation,
            "Runtime" => Self::Runtime,
            "kernel" | "Kernel" => Self::Kernel,
            "gpu_memcpy" | "Memcpy" => Self::Memcpy,
            "gpu_memset" | "Memset" => Self::Memset,
            "gpu_user_annotation" => Self::GpuAnnotation,
            "replay" => Self::Replay,
            "cuda_sync" => Self::Wait,
            "kernel_gap" => Self::KernelGap,
            "gpu_idle" => Self::Idle,
            "on_processor" => Self::Processor,
            "Trace" | "overhead" => Self::Other,
            _ if is_runtime(text) => Self::Runtime,
            _ => Self::Function,
        }
    }

    pub(super) const fn is_on_gpu(self) -> bool {
        self.is_gpu_work() || matches!(self, Self::GpuAnnotation)
    }

    const fn is_of_host(self) -> bool {
        matches!(
            self,
            Self::Function | Self::Operator | Self::Annotation | Self::Runtime
        )
    }

    pub(super) const fn is_gpu_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Memcpy | Self::Memset)
    }
}

/// Returns `true` for the categories that PyTorch gives to calls of a device's library.
fn is_runtime(category: &str) -> bool {
    let of = category
        .strip_suffix("_runtime")
        .or_else(|| category.strip_suffix("_driver"));
    of.is_some_and(|of| ["cuda", "hip", "xpu", "mtia", "privateuse1"].contains(&of))
}

/// The id of a process or thread. Tools accept text too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Id {
    #[default]
    Missing,
    Number(i64),
    Text(String),
}

impl Id {
    /// Returns the bytes of its text.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Number(_) | Self::Missing => 0,
        }
    }
}

impl<'de> Deserialize<'de> for Event<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EventVisitor;

        impl<'de> Visitor<'de> for EventVisitor {
            type Value = Event<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event<'de>, A::Error> {
                let mut event = Event::default();
                while let Some(key) = map.next_key_seed(KeyOf(EVENT_KEYS))? {
                    match key {
                        "ph" => {
                            let phase: Text<'_> = map.next_value()?;
                            // What lies between two events was lost.
                            if event.phase != 0 {
                                return Err(A::Error::custom("a second `ph`"));
                            }
                            event.phase = phase.0.bytes().next().unwrap_or(0);
                        }
                        "cat" => {
                            let category: Text<'_> = map.next_value()?;
                            event.category = Category::of(&category.0);
                            let keeps_text = event.category.is_of_host();
                            event.category_text =
                                Some(category.0).filter(|text| keeps_text && text != "cpu_op");
                        }
                        "name" => event.name = map.next_value::<Text<'_>>()?.0,
                        "pid" => event.process = map.next_value()?,
                        "tid" => event.thread = map.next_value()?,
                        "id" if matches!(event.phase, b'C' | 0) => event.id = map.next_value()?,
                        "ts" => event.at = map.next_value()?,
                        "dur" => event.duration = map.next_value()?,
                        "args" => {
                            // Counters alone have arguments of any name.
                            let values = matches!(event.phase, b'C' | 0);
                            let args = &mut event.args;
                            map.next_value_seed(ArgsOf { args, values })?;
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(event)
            }
        }

        deserializer.deserialize_map(EventVisitor)
    }
}

const EVENT_KEYS: &[&str] = &["ph", "cat", "name", "pid", "tid", "id", "ts", "dur", "args"];

/// Reads a key. Returns the one of the list that it equals, or the empty text.
struct KeyOf(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeyOf {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf {
    type Value = &'static str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<&'static str, E> {
        Ok(self
            .0
            .iter()
            .find(|key| **key == text)
            .copied()
            .unwrap_or(""))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Text(text) => Self::Text(truncate(text).into_owned()),
            Value::Number(number) => {
                whole(number).map_or_else(|| Self::Text(number.to_string()), Self::Number)
            }
            Value::Flag(_) | Value::Other => Self::Missing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_report::internal;

    fn event(json: &str) -> Event<'_> {
        serde_json::from_str(json).expect("an event")
    }

    #[test]
    fn an_event_may_have_values_of_any_type() {
        let event = event(
            r#"{"ph": "X", "cat": ["a"], "name": 7, "pid": "Spans", "tid": {}, "ts": 1, "dur": null,
                "args": {"correlation": "12", "External id": -1, "Bytes": 1.5, "future": 1, "x": [[{}]]}}"#,
        );
        assert_eq!((event.phase, event.category), (b'X', Category::Function));
        assert_eq!(event.name, "7");
        assert_eq!(
            (event.process, event.thread),
            (Id::Text("Spans".to_owned()), Id::Missing)
        );
        assert_eq!(
            (event.at, event.duration),
            (Time::Nanoseconds(1000), Time::Missing)
        );
        let args = event.args;
        assert_eq!(
            (args.correlation, args.external_id, args.bytes),
            (Some(12), None, None)
        );
        assert!(args.own.future.is_none() && args.values.is_empty());
    }

    #[test]
    fn arguments_before_the_phase_count_too() {
        let mut event = event(r#"{"args": {"correlation": 5, "full name": "a::b"}, "ph": "X"}"#);
        event.args.interpret_values();
        assert_eq!(event.args.correlation, Some(5));
        assert_eq!(event.args.own.full_name.as_deref(), Some("a::b"));
    }

    #[test]
    fn long_names_that_differ_only_at_the_end_remain_two() {
        let long = "é".repeat(internal::MAX_LENGTH);
        let [one, other] = ["a", "b"].map(|end| format!(r#"{{"name": "{long}{end}"}}"#));
        let (one, other) = (event(&one), event(&other));
        assert!(one.name.len() <= internal::MAX_LENGTH);
        assert_ne!(one.name, other.name);
    }
}
