//! What the driver tells about itself: plain data, written as JSON by it and read by the client.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All that the driver knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Nanoseconds on the driver's clock when this was written.
    pub now: u64,
    /// Calls of each entry point that was called, counted since the last `reset`.
    pub calls: BTreeMap<String, u64>,
    /// What was created and not destroyed.
    pub alive: Objects,
    /// The most that was alive at any time.
    pub peak: Objects,
    /// What was created, over all.
    pub created: Objects,
    /// Events that went with their context instead of being destroyed one by one.
    pub events_lost_with_context: u64,
    /// Bytes of device memory in use.
    pub bytes: u64,
    /// Work that ended, or whose end is certain, oldest call first.
    pub activities: Vec<Activity>,
    /// Activities that were not kept, because the log was off or full.
    pub unlogged: u64,
    /// Work that has no end yet: it stalls, or waits for a host function.
    pub unfinished: u64,
    /// Uses of the driver that a real one may punish by a crash.
    pub misuses: Vec<Misuse>,
    /// Timed events that were recorded again before anybody read the time they held.
    pub unread_records: u64,
    /// Captures that an unsafe call or a forbidden one spoiled.
    pub captures_invalidated: u64,
    /// Calls from inside a host function, which were refused.
    pub host_function_calls: u64,
    /// Calls that waited for a place in the launch queue.
    pub blocked_calls: u64,
    /// Faults that happened.
    pub faults: u64,
}

impl Report {
    /// Calls of the entry point `name`.
    pub fn calls_of(&self, name: &str) -> u64 {
        self.calls.get(name).copied().unwrap_or(0)
    }

    /// Calls of every entry point that makes the host wait for a device.
    pub fn waiting_calls(&self) -> u64 {
        crate::driver::waiting_entry_points()
            .map(|name| self.calls_of(name))
            .sum()
    }

    /// The kernels among the activities.
    pub fn kernels(&self) -> impl Iterator<Item = &Activity> {
        self.activities
            .iter()
            .filter(|activity| activity.kind == ActivityKind::Kernel)
    }

    /// The records of events among the activities.
    pub fn event_records(&self) -> impl Iterator<Item = &Activity> {
        self.activities
            .iter()
            .filter(|activity| activity.kind == ActivityKind::EventRecord)
    }
}

/// Counts of objects by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objects {
    /// Contexts, the primary ones included.
    pub contexts: u64,
    /// Streams, those excluded that a context brings with it.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Graphs, the executable ones excluded.
    pub graphs: u64,
    /// Executable graphs.
    pub graph_execs: u64,
    /// Modules.
    pub modules: u64,
    /// Allocations of device, managed and pinned host memory.
    pub allocations: u64,
}

/// What a stream did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivityKind {
    /// A kernel ran.
    Kernel,
    /// Memory was copied.
    Copy,
    /// Memory was filled.
    Fill,
    /// A function of the program ran.
    HostFunction,
    /// An event was recorded.
    EventRecord,
    /// Memory was allocated or freed in stream order.
    Memory,
}

/// One piece of work of a stream: the ground truth. All times are nanoseconds on the driver's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// Rises by the order of the calls that queued the work.
    pub order: u64,
    /// What it is.
    pub kind: ActivityKind,
    /// The name of a kernel.
    pub name: Option<String>,
    /// The ordinal of the device.
    pub device: u64,
    /// The number of the context, as `cuCtxGetId` tells it.
    pub context: u64,
    /// The handle of the stream as programs use it: 0 and 2 are the default streams.
    pub stream: u64,
    /// The number of the stream, as `cuStreamGetId` tells it.
    pub stream_id: u64,
    /// The number of the thread that queued it.
    pub thread: u64,
    /// The handle of the executable graph that queued it.
    pub graph: Option<u64>,
    /// The handle of the event that was recorded.
    pub event: Option<u64>,
    /// When the call was made.
    pub enqueued: u64,
    /// When the device began.
    pub start: u64,
    /// When the device ended.
    pub end: u64,
}

/// A use of the driver that a real one may punish by a crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misuse {
    /// The entry point.
    pub call: String,
    /// What was wrong.
    pub what: String,
    /// The handle or address.
    pub handle: u64,
    /// The number of the thread.
    pub thread: u64,
}
