//! The arguments of an event.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

use profiler_report::internal::InOrder as _;
use profiler_report::{MemoryUse, SliceEnding};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::value::{Text, Value};
use super::work::WorkArgs;

/// The most values of one counter event that are kept.
const MAX_VALUES: usize = 16;

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
    /// The shapes of tensors, as a list in JSON.
    pub(super) input_dims: Option<&'e str>,
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
    /// The whole name, if the event has a shorter one.
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

/// How an argument is read.
#[derive(Clone, Copy)]
enum Set {
    Any(for<'e> fn(&mut Args<'e>, Value<'e>)),
    /// From its text in the file.
    Json(for<'e> fn(&mut Args<'e>, &'e str)),
}

/// The arguments that the reader needs, by their keys.
#[rustfmt::skip]
const ARGS: &[(&str, Set)] = {
    use Set::{Any, Json};
    &[
        ("Input Dims", Json(|args, text| args.input_dims = Some(text))),
        ("External id", Any(|args, value| args.external_id = value.id())),
        ("external id", Any(|args, value| args.external_id = value.id())),
        ("id", Any(|args, value| args.own.id = value.id())),
        ("correlation of CUPTI", Any(|args, value| args.own.correlation = value.id())),
        ("stream of CUPTI", Any(|args, value| args.own.stream = value.count())),
        ("dynamic shared memory", Any(|args, value| args.own.dynamic_shared_bytes = value.count())),
        ("shapes", Any(|args, value| args.own.shapes = value.text())),
        ("correlation", Any(|args, value| args.correlation = value.id())),
        ("name", Any(|args, value| args.name = value.name())),
        ("full name", Any(|args, value| args.own.full_name = value.name())),
        ("Call stack", Any(|args, value| args.call_stack = value.text())),
        ("future", Any(|args, value| if value.is_set() { args.own.future = Some(FuturePart::Whole); })),
        ("poll", Any(|args, value| if value.is_set() { args.own.future = Some(FuturePart::Poll); })),
        ("counted", Any(|args, value| args.own.is_not_counted = matches!(value, Value::Flag(false)))),
        ("stand-in", Any(|args, value| args.own.is_stand_in = value.is_set())),
        ("scope", Any(|args, value| args.own.is_stand_in = value.is_set())),
        ("ns since entered", Any(|args, value| args.own.since_entered_ns = value.whole())),
        ("range", Any(|args, value| args.own.is_range = value.is_set())),
        ("location", Any(|args, value| args.own.location = value.name())),
        ("call", Any(|args, value| args.own.call = value.name())),
        ("process", Any(|args, value| args.own.track.process = value.id())),
        ("thread", Any(|args, value| args.own.track.thread = value.id())),
        ("rank of process", Any(|args, value| args.own.track.rank = value.id())),
        ("ordinal", Any(|args, value| args.own.track.ordinal = value.count())),
        ("host", Any(|args, value| args.own.track.host = value.whole())),
        ("allocated bytes", Any(|args, value| args.own.own_memory.0 = value.id())),
        ("CUDA bytes", Any(|args, value| args.own.own_memory.1 = value.whole())),
        ("self_ns", Any(|args, value| args.own.self_ns = value.whole())),
        ("parent", Any(|args, value| args.own.parent = value.id())),
        ("ns", Any(|args, value| args.own.ns = value.whole())),
        ("cuda_ns", Any(|args, value| args.own.cuda.ns = value.whole())),
        ("cuda_self_ns", Any(|args, value| args.own.cuda.self_ns = value.whole())),
        ("cuda_device", Any(|args, value| args.own.cuda.device = value.whole())),
        ("cuda_stream", Any(|args, value| args.own.cuda.stream = value.whole())),
        ("cuda_after_ns", Any(|args, value| args.own.cuda.after_ns = value.whole())),
        ("uncertainty_ns", Any(|args, value| args.own.uncertainty_ns = value.whole())),
        ("moved_ns", Any(|args, value| args.own.moved_ns = value.whole())),
        ("waits for stream", Any(|args, value| args.own.waited_for = value.count())),
        ("Native stack", Any(|args, value| args.own.native_stack = value.text())),
        ("no CUDA time", Any(|args, value| args.own.no_gpu_time = value.text())),
        ("bound streams", Any(|args, value| args.own.is_bound = value.is_set())),
        ("panicked", Any(|args, value| if value.is_set() { args.own.ending = SliceEnding::Panicked; })),
        ("dropped", Any(|args, value| if value.is_set() { args.own.ending = SliceEnding::Dropped; })),
        ("Device Type", Any(|args, value| args.device_type = value.whole())),
        ("Device Id", Any(|args, value| args.device = value.whole())),
        ("Bytes", Any(|args, value| args.bytes = value.whole())),
        ("Total Allocated", Any(|args, value| args.allocated = value.number())),
        ("Total Reserved", Any(|args, value| args.reserved = value.number())),
        ("registers per thread", Any(|args, value| args.work.registers = value.count())),
        ("shared memory", Any(|args, value| args.work.shared_bytes = value.count())),
        ("bytes", Any(|args, value| args.work.bytes = value.id())),
        ("device", Any(|args, value| args.work.device = value.count())),
        ("context", Any(|args, value| args.work.context = value.count())),
        ("stream", Any(|args, value| args.work.stream = value.count())),
        ("fromDevice", Any(|args, value| args.work.from_device = value.count())),
        ("toDevice", Any(|args, value| args.work.to_device = value.count())),
        ("graph id", Any(|args, value| args.work.graph = value.count())),
        ("graph node id", Any(|args, value| args.work.graph_node = value.id())),
        ("CPU Mem", Any(|args, value| args.memory().0.host_net = value.whole().unwrap_or_default())),
        ("CPU Mem Peak", Any(|args, value| args.memory().0.host_peak = value.id().unwrap_or_default())),
        ("CPU Mem Allocated", Any(|args, value| args.memory().0.host_allocated = value.id().unwrap_or_default())),
        ("CPU Mem In Use", Any(|args, value| args.memory().0.host_total = value.id().unwrap_or_default())),
        ("Self CPU Mem", Any(|args, value| args.memory().1 = value.whole().unwrap_or_default())),
        ("CUDA Mem", Any(|args, value| args.memory().0.device_net = value.whole())),
        ("CUDA Mem In Use", Any(|args, value| args.memory().0.device_total = value.id())),
        ("CUDA Mem Reserved", Any(|args, value| args.memory().0.device_reserved = value.id())),
        ("grid", Json(|args, text| args.work.grid = serde_json::from_str(text).ok())),
        ("block", Json(|args, text| args.work.block = serde_json::from_str(text).ok())),
    ]
};

/// Returns how an argument is read; `None` if the reader does not need it. Each event has several.
fn set_of(key: &str) -> Option<Set> {
    fn compare(one: &str, other: &str) -> Ordering {
        // Most keys differ in their lengths.
        one.len().cmp(&other.len()).then_with(|| one.cmp(other))
    }
    static IN_ORDER: LazyLock<Vec<(&str, Set)>> = LazyLock::new(|| {
        let mut args = ARGS.to_vec();
        args.order_by(|one, other| compare(one.0, other.0));
        args
    });
    let place = IN_ORDER.binary_search_by(|(known, _)| compare(known, key));
    Some(IN_ORDER[place.ok()?].1)
}

/// Reads a key.
struct SetOf;

impl<'de> DeserializeSeed<'de> for SetOf {
    type Value = Option<Set>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Set>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for SetOf {
    type Value = Option<Set>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<Set>, E> {
        Ok(set_of(text))
    }
}

/// Reads arguments.
pub(super) struct ArgsOf<'a, 'e> {
    pub(super) args: &'a mut Args<'e>,
    /// Keep the numbers under all other keys.
    pub(super) values: bool,
}

impl<'de> DeserializeSeed<'de> for ArgsOf<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ArgsOf<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let args = self.args;
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
            return Ok(());
        }
        while let Some(set) = map.next_key_seed(SetOf)? {
            match set {
                None => _ = map.next_value::<IgnoredAny>()?,
                Some(Set::Any(set)) => set(args, map.next_value()?),
                Some(Set::Json(set)) => set(args, map.next_value::<&RawValue>()?.get()),
            }
        }
        Ok(())
    }
}

impl<'e> Args<'e> {
    fn set(&mut self, key: &str, value: Value<'e>) {
        if let Some(Set::Any(set)) = set_of(key) {
            set(self, value);
        }
    }

    /// Returns what is known of the memory that a scope used.
    fn memory(&mut self) -> &mut (MemoryUse, i64) {
        self.own.memory.get_or_insert_default()
    }

    /// Interprets the numbers that were kept before the phase was known.
    pub(super) fn interpret_values(&mut self) {
        for (key, number) in std::mem::take(&mut self.values) {
            self.set(&key, Value::Number(number));
        }
    }
}

/// Returns the text of a list of shapes, such as `[[8, 16], []]`; `None` if it is something else.
pub(super) fn shapes(json: &str) -> Option<String> {
    let list: serde_json::Value = serde_json::from_str(json).ok()?;
    let has_extent = list.as_array()?.iter().any(has_number);
    has_extent.then(|| list.to_string().replace(',', ", "))
}

/// Most operators have other inputs than tensors, of which PyTorch writes empty shapes.
fn has_number(shape: &serde_json::Value) -> bool {
    shape.as_array().is_some_and(|shape| {
        let is_extent = |extent: &serde_json::Value| extent.is_u64() || has_number(extent);
        shape.iter().any(is_extent)
    })
}
