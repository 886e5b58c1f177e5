//! The memory of scopes, as the `[memory]` events that TensorBoard's memory view reads.

use std::io::{self, Write};

use super::event_writer::{EventWriter, Quoted, Track as Place};
use crate::memory::MemoryUse;
use crate::{Slice, SliceDetails};

/// Where a memory event is shown.
pub(super) struct MemoryPlace {
    pub(super) thread: Place,
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
    place: &MemoryPlace,
    (slice, details): (&Slice, &SliceDetails),
    memory: &MemoryUse,
) -> io::Result<()> {
    let allocated = i64::try_from(slice.allocated_bytes.unwrap_or_default()).unwrap_or(i64::MAX);
    let host = Total {
        device_type: HOST,
        device: 0,
        allocated: memory.host_total,
        reserved: 0,
    };
    event(events, place, allocated, &host)?;
    let freed = details.own_host_net.saturating_sub(allocated);
    event(events, place, freed, &host)?;
    let (Some(allocated), Some(reserved)) = (memory.device_total, memory.device_reserved) else {
        return Ok(());
    };
    let device = Total {
        device_type: CUDA,
        device: place.device,
        allocated,
        reserved,
    };
    event(
        events,
        place,
        slice.device_bytes.unwrap_or_default(),
        &device,
    )
}

struct Total {
    device_type: u64,
    device: u64,
    allocated: u64,
    reserved: u64,
}

fn event<W: Write>(
    events: &mut EventWriter<W>,
    place: &MemoryPlace,
    bytes: i64,
    total: &Total,
) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let name = Quoted::new(r#""[memory]""#);
    let event = events.instant("cpu_instant_event", name, place.thread, place.at);
    event
        .whole("Device Type", total.device_type)
        .whole("Device Id", total.device)
        .whole("Addr", place.id)
        .signed("Bytes", bytes)
        .whole("Total Allocated", total.allocated)
        .whole("Total Reserved", total.reserved)
        .end()
}
