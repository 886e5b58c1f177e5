//! The rules, and their violations.

use std::fmt;

/// A rule for traces; see [`validate`](crate::validate). Variants are in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// 1: The file is one JSON object with the list `traceEvents`.
    Json,
    /// 2: No key with a bracket in its value follows `traceEvents`. TensorBoard's trace plugin inserts its counters
    /// before the last bracket of the file.
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
    /// 7: Times with decimals are below 2⁴³ µs, counted from `baseTimeNanoseconds`. Readers lose nanoseconds above.
    Time,
    /// 8: Process and thread ids are numbers. speedscope refuses the file, TensorBoard's trace plugin ignores the
    /// threads.
    Track,
    /// 9: Slices of one track nest or follow each other; those of operators also when `ts` and `dur` are added in
    /// floating point. Perfetto and TensorBoard's trace plugin drop a slice that does not.
    Nesting,
    /// 10: Each operator (`cpu_op`) has a unique `External id` above 0. Launches and GPU times are attributed to the
    /// first operator with their id.
    ExternalId,
    /// 11: An operator with the name of its parent is not the parent's only child. TensorBoard's trace plugin counts
    /// the two as one call.
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
    /// 15: An event on a device has a `correlation` above 0 and exactly one launch with this correlation and the same
    /// `External id`; if there are more than 32,767 events, some correlation is above that too. HTA leaves the event
    /// out or stops, TensorBoard's trace plugin attributes its time to no operator.
    Correlation,
    /// 16: A launch has an `External id`, 0 if it belongs to no operator. TensorBoard's trace plugin attributes it to
    /// the first operator without one.
    Launch,
    /// 17: The name of a copy begins with `Memcpy`, that of a memory set with `Memset`. HTA treats it as a computation.
    Copy,
    /// 18: The annotation of a GPU time (`gpu_user_annotation`) has no `args.stream`. HTA treats it as a kernel.
    Annotation,
    /// 19: `[memory]` is an instant (`ph` i) with `Device Type` 0 or 1, `Device Id`, `Addr`, `Bytes` and `Total
    /// Allocated`, all whole numbers. TensorBoard's trace plugin leaves it out.
    Memory,
    /// 20: Each arrow (`ac2g`) has one start and one end, which is not before the start. Perfetto does not draw it.
    Arrow,
    /// 21: A wait for a device (`cuda_sync`) has no `args.stream`. HTA counts it as busy time of the device.
    Wait,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 21] = [
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
    ];

    /// Returns the number of the rule, from 1 on.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
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
