//! The driver's report about itself: plain data that the driver writes as JSON and the client
//! reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The whole report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The time on the driver's clock when the report was written, in nanoseconds.
    pub now: u64,
    /// The number of calls per entry point since the last `reset`, for each that was called.
    pub calls: BTreeMap<String, u64>,
    /// The objects that exist.
    pub alive: Objects,
    /// The objects that were ever created.
    pub created: Objects,
    /// Events that were destroyed with their context, and not individually.
    pub events_lost_with_context: u64,
    /// Operations that have ended or whose end is known, in the order of the calls.
    pub activities: Vec<Activity>,
    /// Operations whose end is not known: stalled, or waiting for a host function.
    pub unfinished: u64,
    /// Invalid uses, on which a real driver may crash.
    pub misuses: Vec<Misuse>,
    /// Timed events that were recorded again before their time was read.
    pub unread_records: u64,
    /// Captures that were invalidated by a call.
    pub captures_invalidated: u64,
    /// Calls from inside a host function that were refused.
    pub host_function_calls: u64,
    /// Calls that waited for a slot of the launch queue.
    pub blocked_calls: u64,
    /// Faults that were triggered.
    pub faults: u64,
    /// The calls, buffers and records of the simulated CUPTI.
    pub cupti: CuptiReport,
}

impl Report {
    /// Returns the number of calls of the entry point `name`.
    pub fn calls_of(&self, name: &str) -> u64 {
        self.calls.get(name).copied().unwrap_or(0)
    }

    /// Returns the number of calls of all entry points that make the host wait for a device.
    pub fn waiting_calls(&self) -> u64 {
        crate::driver::waiting_entry_points()
            .map(|name| self.calls_of(name))
            .sum()
    }

    /// Returns the kernels among the activities.
    pub fn kernels(&self) -> impl Iterator<Item = &Activity> {
        self.activities
            .iter()
            .filter(|activity| activity.kind == ActivityKind::Kernel)
    }

    /// Returns the event records among the activities.
    pub fn event_records(&self) -> impl Iterator<Item = &Activity> {
        self.activities
            .iter()
            .filter(|activity| activity.kind == ActivityKind::EventRecord)
    }
}

/// The calls, buffers and records of the simulated CUPTI. Its misuses are among those of the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CuptiReport {
    /// A client has subscribed and not unsubscribed.
    pub subscribed: bool,
    /// The callbacks that are enabled.
    pub callbacks_enabled: u64,
    /// The kinds of records that are enabled.
    pub kinds_enabled: Vec<u32>,
    /// Callbacks around driver calls: up to two per call.
    pub callbacks: u64,
    /// Flushes that include incomplete records.
    #[serde(default)]
    pub forced_flushes: u64,
    /// Buffers that were requested.
    pub buffers_requested: u64,
    /// Buffers that were returned to the client.
    pub buffers_returned: u64,
    /// Buffers that belong to the library.
    pub buffers_held: u64,
    /// Buffers that a fault has kept from the client. They never return.
    pub buffers_kept: u64,
    /// Records that were written into buffers.
    pub records_written: u64,
    /// Records that a fault has dropped, and that the client can count.
    pub records_dropped: u64,
    /// Records for which there was no buffer, and that the client can count.
    pub records_without_buffer: u64,
    /// Records that a fault has dropped, and that nothing counts.
    pub records_lost: u64,
    /// Records of operations that had not ended.
    pub records_incomplete: u64,
    /// Records without times.
    pub records_untimed: u64,
    /// Records of a kind that no version has, which are not counted in any other number but
    /// `records_written`.
    pub records_unknown: u64,
}

/// Numbers of objects by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objects {
    /// Contexts, including primary ones.
    pub contexts: u64,
    /// Streams, excluding the default streams.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Graphs, excluding executable ones.
    pub graphs: u64,
    /// Executable graphs.
    pub graph_execs: u64,
    /// Modules.
    pub modules: u64,
    /// Allocations of device, managed and pinned host memory.
    pub allocations: u64,
}

/// The kind of an operation in a stream.
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

/// One operation of a stream. All times are in nanoseconds on the driver's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The position in the order of the calls that queued the operations.
    pub order: u64,
    /// The kind of operation.
    pub kind: ActivityKind,
    /// The name of the kernel.
    pub name: Option<String>,
    /// The ordinal of the device.
    pub device: u64,
    /// The number of the context, as `cuCtxGetId` returns it.
    pub context: u64,
    /// The handle of the stream that programs use. 0 and 2 are the default streams.
    pub stream: u64,
    /// The number of the stream, as `cuStreamGetId` returns it.
    pub stream_id: u64,
    /// The number of the thread that queued the operation.
    pub thread: u64,
    /// The handle of the executable graph that queued the operation.
    pub graph: Option<u64>,
    /// The handle of the event that was recorded.
    pub event: Option<u64>,
    /// The number of the call in CUPTI's callbacks and records, if those were on.
    pub correlation: Option<u32>,
    /// The time of the call.
    pub enqueued: u64,
    /// The time at which the device began.
    pub start: u64,
    /// The time at which the device finished.
    pub end: u64,
}

/// An invalid use of the driver, on which a real driver may crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misuse {
    /// The entry point.
    pub call: String,
    /// The error.
    pub what: String,
    /// The handle or address.
    pub handle: u64,
    /// The number of the thread.
    pub thread: u64,
}
