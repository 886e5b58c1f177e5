//! The memory of scopes, as the `[memory]` events that TensorBoard's memory view reads.

use std::io::{self, Write};

use crate::memory::MemoryUse;
use crate::report::export::chrome::event_writer::{EventWriter, Quoted, Track};

/// Bytes allocated, and bytes allocated less bytes freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryDelta {
    host_allocated: i64,
    host_net: i64,
    device_net: i64,
}

impl MemoryDelta {
    pub(super) fn of(memory: &MemoryUse) -> Self {
        Self {
            host_allocated: i64::try_from(memory.host_allocated).unwrap_or(i64::MAX),
            host_net: memory.host_net,
            device_net: memory.device_net.unwrap_or_default(),
        }
    }

    pub(super) fn with(self, other: Self) -> Self {
        self.each(other, i64::saturating_add)
    }

    pub(super) fn without(self, other: Self) -> Self {
        self.each(other, i64::saturating_sub)
    }

    fn each(self, other: Self, f: fn(i64, i64) -> i64) -> Self {
        Self {
            host_allocated: f(self.host_allocated, other.host_allocated),
            host_net: f(self.host_net, other.host_net),
            device_net: f(self.device_net, other.device_net),
        }
    }
}

/// Where a memory event is shown.
pub(super) struct Place {
    pub(super) track: Track,
    /// A time inside the scope, after all its children.
    pub(super) at: i64,
    pub(super) device: u64,
    /// The scope's `External id`. It is used as the address too: the memory view pairs an allocation with its release
    /// by address.
    pub(super) id: u64,
}

const HOST: u64 = 0;
const CUDA: u64 = 1;

/// Writes one event for the memory that the scope itself allocated, one for the memory it freed and one for the device.
/// Totals are those at its end.
pub(super) fn write<W: Write>(
    events: &mut EventWriter<W>,
    place: &Place,
    memory: &MemoryUse,
    own: MemoryDelta,
) -> io::Result<()> {
    let host = Total {
        device_type: HOST,
        device: 0,
        allocated: memory.host_total,
        reserved: 0,
    };
    event(events, place, own.host_allocated, &host)?;
    event(
        events,
        place,
        own.host_net.saturating_sub(own.host_allocated),
        &host,
    )?;
    let (Some(allocated), Some(reserved)) = (memory.device_total, memory.device_reserved) else {
        return Ok(());
    };
    let device = Total {
        device_type: CUDA,
        device: place.device,
        allocated,
        reserved,
    };
    event(events, place, own.device_net, &device)
}

struct Total {
    device_type: u64,
    device: u64,
    allocated: u64,
    reserved: u64,
}

fn event<W: Write>(
    events: &mut EventWriter<W>,
    place: &Place,
    bytes: i64,
    total: &Total,
) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let name = Quoted::new(r#""[memory]""#);
    let event = events.instant("cpu_instant_event", name, place.track, place.at);
    event
        .whole("Device Type", total.device_type)
        .whole("Device Id", total.device)
        .whole("Addr", place.id)
        .signed("Bytes", bytes)
        .whole("Total Allocated", total.allocated)
        .whole("Total Reserved", total.reserved)
        .end()
}
