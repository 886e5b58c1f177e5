//! The rules, and their violations.

use std::fmt;

/// A rule for traces; see [`validate`](crate::validate). Variants are in the order of their numbers.
///
/// A violation is an [error](Severity::Error) if a tool then shows wrong numbers or does not read the file. It is a
/// [remark](Severity::Remark) if all of them survive: the documentation of these rules says how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// 1: The file is one JSON object with the list `traceEvents`.
    Json,
    /// 2: No key with a bracket in its value follows `traceEvents`. TensorBoard's trace plugin inserts its counters
    /// before the last bracket of the file. A remark: only these counters are lost, which are not in the file.
    EventsLast,
    /// 3: The rank in `distributedInfo` is written with a space, `"rank": 3`. HTA treats any other file as rank 0.
    Rank,
    /// 4: `deviceProperties` lists each device at the index of its ordinal, up to the last one with memory events.
    /// TensorBoard's trace plugin crashes, or shows another device's name.
    Devices,
    /// 5: The name of each event is a string. TensorBoard's trace plugin does not read the file otherwise.
    Name,
    /// 6: A slice (`ph` X) has a category, `ts`, and a `dur` that is not negative. TensorBoard's trace plugin does not
    /// read a file with a slice that has no category.
    Slice,
    /// 7: Times with decimals are below 2⁴³ µs, counted from `baseTimeNanoseconds`. Readers lose nanoseconds above. A remark:
    /// no time is wrong by a microsecond.
    Time,
    /// 8: Process and thread ids of events on the host are numbers, or text that is one. TensorBoard's trace plugin ignores
    /// the threads.
    Track,
    /// 9: Slices of one track nest or follow each other; those of operators also when `ts` and `dur` are added in
    /// floating point. Perfetto and TensorBoard's trace plugin drop a slice that does not, and say so. A remark: PyTorch
    /// writes them, the others stay as they are, and HTA and `chrome://tracing` have all.
    Nesting,
    /// 10: Each operator (`cpu_op`) has a unique `External id` above 0. Launches and GPU times are attributed to the
    /// first operator with their id.
    ExternalId,
    /// 11: An operator with the name of its parent is not the parent's only child. TensorBoard's trace plugin counts
    /// the two as one call. A remark: PyTorch writes them, and the times are right.
    Recursion,
    /// 12: A name that contains `ProfilerStep` is a step: `ProfilerStep#` and a number, on the host. TensorBoard's
    /// trace plugin crashes or counts another step, HTA crashes or leaves out events.
    Step,
    /// 13: An event on a device has the number of the device as `pid` and as `args.device`. TensorBoard's trace plugin
    /// crashes.
    Device,
    /// 14: An event on a device has the number of its stream in `args.stream`, above 0. HTA treats it as a host event,
    /// or as part of no step.
    Stream,
    /// 15: An event on a device has a `correlation` above 0 and at most one launch with this correlation, which has the same
    /// `External id`; if there are more than 32,767 events, some correlation is above that too. HTA leaves the event
    /// out or stops, TensorBoard's trace plugin attributes its time to no operator.
    Correlation,
    /// 16: A launch has an `External id`, 0 if it belongs to no operator. TensorBoard's trace plugin attributes it to
    /// the first operator without one. A remark: such an operator breaks [`ExternalId`](Self::ExternalId).
    Launch,
    /// 17: The name of a copy begins with `Memcpy`, that of a memory set with `Memset`. HTA treats it as a computation.
    Copy,
    /// 18: The annotation of a GPU time (`gpu_user_annotation`) has no `args.stream`. HTA treats it as a kernel.
    Annotation,
    /// 19: `[memory]` is an instant (`ph` i) with `Device Type` 0 or 1, `Device Id`, `Addr`, `Bytes` and `Total
    /// Allocated`, all whole numbers. TensorBoard's trace plugin leaves it out. A remark: before version 1.10, PyTorch wrote
    /// no `Addr`, and the plugin shows what it reads.
    Memory,
    /// 20: Each arrow (`ac2g`) has one start and one end, which is not before the start. Perfetto does not draw it. A remark:
    /// PyTorch writes an end for each kernel whose launch it has not recorded, and arrows are in no number.
    Arrow,
    /// 21: A wait for a device (`cuda_sync`) has no `args.stream`. HTA counts it as busy time of the device.
    Wait,
    /// 22: An event on a device has a launch with its `correlation`. No tool attributes its time to an operator or a step. A
    /// remark: it was launched before the recording began, and the tools count it where they need no launch.
    Launched,
    /// 23: Process and thread ids are not text, such as `"7"` or, on a device, `"stream 7"`. speedscope refuses the file. A
    /// remark: PyTorch 1.8 wrote them, and the other tools read the number, or find that of the stream elsewhere.
    TrackText,
    /// 24: An event on a device begins no earlier than its launch. HTA reports a negative launch delay. A remark: the clocks of
    /// device and host were not aligned, and the lengths are right.
    BeforeLaunch,
}

/// What a violation means for a reader of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The tools survive it: something is not drawn, or the trace is no worse than what it tells.
    Remark,
    /// A tool shows wrong numbers, stops, or does not read the file.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Remark => "remark",
            Self::Error => "error",
        })
    }
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 24] = [
        Self::Json,
        Self::EventsLast,
        Self::Rank,
        Self::Devices,
        Self::Name,
        Self::Slice,
        Self::Time,
        Self::Track,
        Self::Nesting,
        Self::ExternalId,
        Self::Recursion,
        Self::Step,
        Self::Device,
        Self::Stream,
        Self::Correlation,
        Self::Launch,
        Self::Copy,
        Self::Annotation,
        Self::Memory,
        Self::Arrow,
        Self::Wait,
        Self::Launched,
        Self::TrackText,
        Self::BeforeLaunch,
    ];

    /// Returns the number of the rule, from 1 on.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns what a violation of the rule means for a reader.
    #[must_use]
    pub const fn severity(self) -> Severity {
        match self {
            Self::EventsLast
            | Self::Time
            | Self::Nesting
            | Self::Recursion
            | Self::Launch
            | Self::Memory
            | Self::Arrow
            | Self::Launched
            | Self::TrackText
            | Self::BeforeLaunch => Severity::Remark,
            Self::Json
            | Self::Rank
            | Self::Devices
            | Self::Name
            | Self::Slice
            | Self::Track
            | Self::ExternalId
            | Self::Step
            | Self::Device
            | Self::Stream
            | Self::Correlation
            | Self::Copy
            | Self::Annotation
            | Self::Wait => Severity::Error,
        }
    }
}

/// A violation of a [`Rule`]. Displays as one line: the rule, the event, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The index of the event in `traceEvents`; `None` if the violation concerns the file.
    pub event: Option<usize>,
    /// The name of the event, if it has one.
    pub name: Option<String>,
    /// The problem and its remedy.
    pub what: String,
}

impl Violation {
    /// Returns what it means for a reader of the trace; `strict` takes remarks for errors too.
    #[must_use]
    pub const fn severity(&self, strict: bool) -> Severity {
        if strict {
            Severity::Error
        } else {
            self.rule.severity()
        }
    }

    pub(super) fn of_file(rule: Rule, what: impl Into<String>) -> Self {
        Self {
            rule,
            event: None,
            name: None,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} ({:?})", self.rule.number(), self.rule)?;
        if let Some(event) = self.event {
            write!(f, ", event {event}")?;
        }
        if let Some(name) = &self.name {
            // A name may hold escape sequences of a terminal.
            write!(f, " `{}`", name.escape_debug())?;
        }
        write!(f, ": {}", self.what)
    }
}
