//! The rules, and what violates them.

use std::fmt;

/// What a trace has to keep to; see [`validate`](crate::validate). The order is that of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// 1: The file is one JSON object with the list `traceEvents`.
    Json,
    /// 2: Nothing with a bracket follows `traceEvents`. TensorBoard's trace plugin puts its counters before the last
    /// bracket of the file.
    EventsLast,
    /// 3: The rank in `distributedInfo` is written with a space, `"rank": 3`. HTA takes any other file for that of
    /// rank 0.
    Rank,
    /// 4: `deviceProperties` lists each device at the place of its ordinal, up to the last one that memory is told
    /// of. TensorBoard's trace plugin crashes, or shows another device's name.
    Devices,
    /// 5: Every event has a string as its name. TensorBoard's trace plugin reads no file with one that has not.
    Name,
    /// 6: A slice (`ph` X) has a category, `ts`, and a `dur` that is not negative. TensorBoard's trace plugin reads no
    /// file with one that has no category.
    Slice,
    /// 7: Times with decimals are below 2⁴³ µs, from `baseTimeNanoseconds` on. Above, readers lose nanoseconds.
    Time,
    /// 8: Processes and threads have numbers. speedscope refuses the file, TensorBoard's trace plugin the threads.
    Track,
    /// 9: Slices of one track nest or follow each other; those of operators also when `ts` and `dur` are added in
    /// floating point. Perfetto and TensorBoard's trace plugin drop one that does not.
    Nesting,
    /// 10: Each operator (`cpu_op`) has an `External id` above 0 that no other has. Launches and GPU times go to the
    /// first that has theirs.
    ExternalId,
    /// 11: An operator whose only operator inside has its own name is not alone with it. TensorBoard's trace plugin
    /// counts the two as one call.
    Recursion,
    /// 12: What has `ProfilerStep` in its name is a step: `ProfilerStep#` and a number, on the host. TensorBoard's
    /// trace plugin crashes or counts one step more, HTA crashes or leaves out what it should not.
    Step,
    /// 13: What runs on a device has its number as `pid` and as `args.device`. TensorBoard's trace plugin crashes.
    Device,
    /// 14: What runs on a device has the number of its stream in `args.stream`, above 0. HTA takes it for something
    /// on the host, or for part of no step.
    Stream,
    /// 15: What runs on a device has a `correlation` above 0, and exactly one launch with the same, and with the same
    /// `External id`; where there are more than 32,767 events, some correlation is above that too. HTA leaves it out or
    /// stops, TensorBoard's trace plugin gives its time to nobody.
    Correlation,
    /// 16: A launch has an `External id`, 0 for that of no operator. TensorBoard's trace plugin gives it to the first
    /// operator without one.
    Launch,
    /// 17: The name of a copy begins with `Memcpy`, that of a set with `Memset`. HTA takes it for a computation.
    Copy,
    /// 18: The annotation of a GPU time (`gpu_user_annotation`) has no `args.stream`. HTA takes it for a kernel.
    Annotation,
    /// 19: `[memory]` is an instant (`ph` i) with `Device Type` 0 or 1, `Device Id`, `Addr`, `Bytes` and
    /// `Total Allocated`, all of them whole numbers. TensorBoard's trace plugin leaves it out.
    Memory,
    /// 20: Each arrow (`ac2g`) has one start and one end, which is not before it. Perfetto draws none.
    Arrow,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 20] = [
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
    ];

    /// Its number, from 1 on.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Something in a trace that a [`Rule`] forbids. It displays as one line: the rule, the event, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The event, by its place in `traceEvents` from 0 on; none where it is the file.
    pub event: Option<usize>,
    /// The name of the event, where it has one.
    pub name: Option<String>,
    /// What is wrong, and what to do.
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
            write!(f, " `{name}`")?;
        }
        write!(f, ": {}", self.what)
    }
}
