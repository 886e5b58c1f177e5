//! One event of a trace.

use std::borrow::Cow;
use std::fmt;

use profiler_report::{MemoryUse, SliceEnding};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::time::Time;
use super::work::WorkArgs;
use crate::input::Limits;

/// The most values of one counter event that are kept.
const MAX_VALUES: usize = 16;

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
            "cuda_runtime" | "cuda_driver" | "Runtime" | "hip_runtime" => Self::Runtime,
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

/// The arguments that the reader needs.
#[derive(Debug, Default)]
pub(super) struct Args<'e> {
    pub(super) external_id: Option<u64>,
    pub(super) correlation: Option<u64>,
    /// The name that metadata sets.
    pub(super) name: Option<Cow<'e, str>>,
    pub(super) call_stack: Option<Cow<'e, str>>,
    /// Written by `profiler-runtime` and the command line alone.
    pub(super) own: OwnArgs<'e>,
    /// The shapes of tensors, as a list.
    pub(super) shapes: Option<Cow<'e, str>>,
    pub(super) device_type: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) bytes: Option<i64>,
    pub(super) work: WorkArgs,
    pub(super) allocated: Option<f64>,
    pub(super) reserved: Option<f64>,
    /// The numbers under other keys, in counter events.
    pub(super) values: Vec<(Cow<'e, str>, f64)>,
}

/// What `profiler-runtime` and the command line write of an event that the format has no place for. In files of other
/// programs, these names mean nothing.
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts that are independent of each other"
)]
#[derive(Debug, Default)]
pub(super) struct OwnArgs<'e> {
    /// The whole name, if that of the event is shortened.
    pub(super) full_name: Option<Cow<'e, str>>,
    /// The real name of a call of CUDA.
    pub(super) call: Option<Cow<'e, str>>,
    /// The time without waits and children.
    pub(super) self_ns: Option<i64>,
    /// The length of a replay, or of a slice that is drawn longer or shorter than it was.
    pub(super) ns: Option<i64>,
    /// The id of the parent if the nesting of slices does not show it; 0 for none.
    pub(super) parent: Option<u64>,
    pub(super) ending: SliceEnding,
    /// The GPU time of a scope if it is not drawn.
    pub(super) cuda: CudaArgs,
    /// The slice is a future, or a poll of one.
    pub(super) future: Option<FuturePart>,
    /// The id that `parent` names, if that is not the external id.
    pub(super) id: Option<u64>,
    /// The correlation and the stream that CUPTI gave.
    pub(super) correlation: Option<u64>,
    pub(super) stream: Option<u32>,
    /// How much of the shared memory the launch added.
    pub(super) dynamic_shared_bytes: Option<u32>,
    /// Shapes that are no list.
    pub(super) shapes: Option<Cow<'e, str>>,
    /// The launch is no call that tables count.
    pub(super) is_not_counted: bool,
    /// For how long the thread of a launch had been in the handle of its parent.
    pub(super) since_entered_ns: Option<i64>,
    /// The slice on a stream is a range that encloses work, and no GPU time of a scope.
    pub(super) is_range: bool,
    /// The slice stands for a launch that is not known, or for the GPU time of a scope.
    pub(super) is_stand_in: bool,
    /// The source location of the name.
    pub(super) location: Option<Cow<'e, str>>,
    /// Host memory allocated without children, and the change of the device memory in use.
    pub(super) own_memory: (Option<u64>, Option<i64>),
    /// Of the track or the device that metadata names, of the device that a wait was for, or of the thread of a step.
    pub(super) track: TrackArgs,
    /// How far the start of a GPU time may be off, and how far it was moved.
    pub(super) uncertainty_ns: Option<i64>,
    pub(super) moved_ns: Option<i64>,
    /// The stream that was waited for.
    pub(super) waited_for: Option<u32>,
    /// What the scope and its children used, with what it used itself on the host.
    pub(super) memory: Option<(MemoryUse, i64)>,
    pub(super) native_stack: Option<Cow<'e, str>>,
    pub(super) no_gpu_time: Option<Cow<'e, str>>,
    pub(super) is_bound: bool,
}

/// A future as a whole, or one of its polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FuturePart {
    Whole,
    Poll,
}

/// What they write of a track beside its name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrackArgs {
    /// The system's ids of the process and the thread.
    pub(super) process: Option<u64>,
    pub(super) thread: Option<u64>,
    pub(super) rank: Option<u64>,
    /// The ordinal of the device of a stream, and the process that the device belongs to.
    pub(super) ordinal: Option<u32>,
    pub(super) host: Option<i64>,
}

/// The GPU time of a scope that is not drawn on its stream, or the stream of a replay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CudaArgs {
    pub(super) ns: Option<i64>,
    pub(super) self_ns: Option<i64>,
    pub(super) device: Option<i64>,
    pub(super) stream: Option<i64>,
    /// From the start of the scope to its own.
    pub(super) after_ns: Option<i64>,
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
                        "ts" => event.at = map.next_value()?,
                        "dur" => event.duration = map.next_value()?,
                        "args" => {
                            // Counters alone have arguments of any name.
                            let values = matches!(event.phase, b'C' | 0);
                            event.args = map.next_value_seed(ArgsOf { values })?;
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

const EVENT_KEYS: &[&str] = &["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"];

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

/// A text, or the text form of another value.
#[derive(Debug, Default)]
struct Text<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Text(text) => cut(text),
            Value::Number(number) => number.to_string().into(),
            Value::Flag(flag) => flag.to_string().into(),
            Value::Other => Cow::default(),
        }))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Text(text) => Self::Text(cut(text).into_owned()),
            Value::Number(number) => {
                whole(number).map_or_else(|| Self::Text(number.to_string()), Self::Number)
            }
            Value::Flag(_) | Value::Other => Self::Missing,
        })
    }
}

/// A value whose type the format does not fix. Lists and objects are read and forgotten.
#[derive(Debug)]
pub(super) enum Value<'v> {
    Text(Cow<'v, str>),
    Number(f64),
    Flag(bool),
    Other,
}

impl<'v> Value<'v> {
    fn whole(&self) -> Option<i64> {
        match self {
            Self::Number(number) => whole(*number),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    fn id(&self) -> Option<u64> {
        self.whole().and_then(|id| u64::try_from(id).ok())
    }

    fn count(&self) -> Option<u32> {
        self.id().and_then(|count| u32::try_from(count).ok())
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(self) -> Option<Cow<'v, str>> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn name(self) -> Option<Cow<'v, str>> {
        self.text().map(cut)
    }

    fn is_set(&self) -> bool {
        matches!(self, Self::Flag(true))
    }
}

/// Returns a number as a whole one, if it is that: identifiers are below 2⁵³.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the limit is checked before"
)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0).then_some(number as i64)
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyValue;

        impl<'de> Visitor<'de> for AnyValue {
            type Value = Value<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Value<'de>, E> {
                Ok(Value::Other)
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Value<'de>, E> {
                Ok(Value::Flag(flag))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
                Ok(Value::Number(number as f64))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
                Ok(Value::Number(number as f64))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Value<'de>, E> {
                Ok(Value::Number(number))
            }

            fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
                Ok(Value::Text(text.to_owned().into()))
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
                Ok(Value::Text(text.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value<'de>, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Value::Other)
            }
        }

        deserializer.deserialize_any(AnyValue)
    }
}

/// Returns the beginning of a text, as long as a name may be.
pub(super) fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut end = text.len().min(Limits::NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end == text.len() {
        return text;
    }
    match text {
        Cow::Borrowed(text) => text[..end].into(),
        Cow::Owned(mut text) => {
            text.truncate(end);
            text.into()
        }
    }
}

/// Reads arguments.
struct ArgsOf {
    /// Keep the numbers under all other keys.
    values: bool,
}

const ARG_KEYS: &[&str] = &[
    "External id",
    "external id",
    "id",
    "correlation of CUPTI",
    "stream of CUPTI",
    "dynamic shared memory",
    "shapes",
    "correlation",
    "name",
    "full name",
    "Call stack",
    "future",
    "poll",
    "counted",
    "ns since entered",
    "stand-in",
    "range",
    "location",
    "call",
    "process",
    "thread",
    "rank of process",
    "ordinal",
    "host",
    "allocated bytes",
    "CUDA bytes",
    "self_ns",
    "parent",
    "scope",
    "ns",
    "cuda_ns",
    "cuda_self_ns",
    "cuda_device",
    "cuda_stream",
    "cuda_after_ns",
    "uncertainty_ns",
    "moved_ns",
    "waits for stream",
    "Native stack",
    "bound streams",
    "no CUDA time",
    "CPU Mem",
    "CPU Mem Peak",
    "CPU Mem Allocated",
    "CPU Mem In Use",
    "Self CPU Mem",
    "CUDA Mem",
    "CUDA Mem In Use",
    "CUDA Mem Reserved",
    "panicked",
    "dropped",
    "Input Dims",
    "Device Type",
    "Device Id",
    "Bytes",
    "Total Allocated",
    "Total Reserved",
    "grid",
    "block",
    "registers per thread",
    "shared memory",
    "bytes",
    "device",
    "context",
    "stream",
    "fromDevice",
    "toDevice",
    "graph id",
    "graph node id",
];

impl<'de> DeserializeSeed<'de> for ArgsOf {
    type Value = Args<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Args<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ArgsOf {
    type Value = Args<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    fn visit_unit<E>(self) -> Result<Args<'de>, E> {
        Ok(Args::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Args<'de>, E> {
        Ok(Args::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Args<'de>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Args::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Args<'de>, A::Error> {
        let mut args = Args::default();
        if self.values {
            while let Some(Text(key)) = map.next_key()? {
                let value: Value = map.next_value()?;
                match value.number() {
                    Some(number) if args.values.len() < MAX_VALUES => {
                        args.values.push((key, number));
                    }
                    Some(_) => {}
                    // The phase may come later.
                    None => args.set(&key, value),
                }
            }
            return Ok(args);
        }
        while let Some(key) = map.next_key_seed(KeyOf(ARG_KEYS))? {
            if key.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else if key == "Input Dims" {
                args.shapes = map.next_value::<Shapes>()?.0.map(Cow::Owned);
            } else if key == "grid" {
                args.work.grid = map.next_value::<Extents>()?.0;
            } else if key == "block" {
                args.work.block = map.next_value::<Extents>()?.0;
            } else {
                let value = map.next_value()?;
                args.set(key, value);
            }
        }
        Ok(args)
    }
}

/// Three counts; `None` if it is something else.
struct Extents(Option<[u32; 3]>);

impl<'de> Deserialize<'de> for Extents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = serde_json::Value::deserialize(deserializer)?;
        let extent = |index: usize| {
            let extent = list.get(index)?.as_u64()?;
            u32::try_from(extent).ok()
        };
        let extents = || Some([extent(0)?, extent(1)?, extent(2)?]);
        Ok(Self(extents()))
    }
}

/// The text of a list of shapes, such as `[[8, 16], []]`; `None` if it is something else.
struct Shapes(Option<String>);

impl<'de> Deserialize<'de> for Shapes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = serde_json::Value::deserialize(deserializer)?;
        let has_extent = list
            .as_array()
            .is_some_and(|list| list.iter().any(has_number));
        Ok(Self(
            has_extent.then(|| list.to_string().replace(',', ", ")),
        ))
    }
}

/// Most operators have other inputs than tensors, of which PyTorch writes empty shapes.
fn has_number(shape: &serde_json::Value) -> bool {
    shape.as_array().is_some_and(|shape| {
        let is_extent = |extent: &serde_json::Value| extent.is_u64() || has_number(extent);
        shape.iter().any(is_extent)
    })
}

impl<'e> Args<'e> {
    fn set(&mut self, key: &str, value: Value<'e>) {
        match key {
            "External id" | "external id" => self.external_id = value.id(),
            "id" => self.own.id = value.id(),
            "correlation of CUPTI" => self.own.correlation = value.id(),
            "stream of CUPTI" => self.own.stream = value.count(),
            "dynamic shared memory" => self.own.dynamic_shared_bytes = value.count(),
            "shapes" => self.own.shapes = value.text(),
            "correlation" => self.correlation = value.id(),
            "name" => self.name = value.name(),
            "full name" => self.own.full_name = value.name(),
            "Call stack" => self.call_stack = value.text(),
            "future" if value.is_set() => self.own.future = Some(FuturePart::Whole),
            "poll" if value.is_set() => self.own.future = Some(FuturePart::Poll),
            "counted" => self.own.is_not_counted = matches!(value, Value::Flag(false)),
            "stand-in" | "scope" => self.own.is_stand_in = value.is_set(),
            "ns since entered" => self.own.since_entered_ns = value.whole(),
            "range" => self.own.is_range = value.is_set(),
            "location" => self.own.location = value.name(),
            "call" => self.own.call = value.name(),
            "process" => self.own.track.process = value.id(),
            "thread" => self.own.track.thread = value.id(),
            "rank of process" => self.own.track.rank = value.id(),
            "ordinal" => self.own.track.ordinal = value.count(),
            "host" => self.own.track.host = value.whole(),
            "allocated bytes" => self.own.own_memory.0 = value.id(),
            "CUDA bytes" => self.own.own_memory.1 = value.whole(),
            "self_ns" => self.own.self_ns = value.whole(),
            "parent" => self.own.parent = value.id(),
            "ns" => self.own.ns = value.whole(),
            "cuda_ns" => self.own.cuda.ns = value.whole(),
            "cuda_self_ns" => self.own.cuda.self_ns = value.whole(),
            "cuda_device" => self.own.cuda.device = value.whole(),
            "cuda_stream" => self.own.cuda.stream = value.whole(),
            "cuda_after_ns" => self.own.cuda.after_ns = value.whole(),
            "uncertainty_ns" => self.own.uncertainty_ns = value.whole(),
            "moved_ns" => self.own.moved_ns = value.whole(),
            "waits for stream" => self.own.waited_for = value.count(),
            "Native stack" => self.own.native_stack = value.text(),
            "no CUDA time" => self.own.no_gpu_time = value.text(),
            "bound streams" => self.own.is_bound = value.is_set(),
            "panicked" if value.is_set() => self.own.ending = SliceEnding::Panicked,
            "dropped" if value.is_set() => self.own.ending = SliceEnding::Dropped,
            "Device Type" => self.device_type = value.whole(),
            "Device Id" => self.device = value.whole(),
            "Bytes" => self.bytes = value.whole(),
            "Total Allocated" => self.allocated = value.number(),
            "Total Reserved" => self.reserved = value.number(),
            "registers per thread" => self.work.registers = value.count(),
            "shared memory" => self.work.shared_bytes = value.count(),
            "bytes" => self.work.bytes = value.id(),
            "device" => self.work.device = value.count(),
            "context" => self.work.context = value.count(),
            "stream" => self.work.stream = value.count(),
            "fromDevice" => self.work.from_device = value.count(),
            "toDevice" => self.work.to_device = value.count(),
            _ if key.contains(" Mem") => self.set_memory(key, &value),
            "graph id" => self.work.graph = value.count(),
            "graph node id" => self.work.graph_node = value.id(),
            _ => {}
        }
    }

    fn set_memory(&mut self, key: &str, value: &Value<'_>) {
        let (memory, own_host_net) = self.own.memory.get_or_insert_default();
        match key {
            "CPU Mem" => memory.host_net = value.whole().unwrap_or_default(),
            "CPU Mem Peak" => memory.host_peak = value.id().unwrap_or_default(),
            "CPU Mem Allocated" => memory.host_allocated = value.id().unwrap_or_default(),
            "CPU Mem In Use" => memory.host_total = value.id().unwrap_or_default(),
            "Self CPU Mem" => *own_host_net = value.whole().unwrap_or_default(),
            "CUDA Mem" => memory.device_net = value.whole(),
            "CUDA Mem In Use" => memory.device_total = value.id(),
            "CUDA Mem Reserved" => memory.device_reserved = value.id(),
            _ => {}
        }
    }

    /// Interprets the numbers that were kept before the phase was known.
    pub(super) fn interpret_values(&mut self) {
        for (key, number) in std::mem::take(&mut self.values) {
            self.set(&key, Value::Number(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn long_texts_are_cut() {
        let name = "é".repeat(Limits::NAME_BYTES);
        let json = format!(r#"{{"name": "{name}"}}"#);
        let event = event(&json);
        assert_eq!(event.name.len(), Limits::NAME_BYTES);
    }
}
