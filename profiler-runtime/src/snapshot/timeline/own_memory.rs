//! The memory of scopes without that of their children.

use crate::session::{Event, NONE, Trace};

/// Bytes that a scope used.
#[derive(Clone, Copy, Default)]
pub(super) struct Used {
    pub(super) allocated: Option<u64>,
    /// Host bytes allocated less those freed.
    pub(super) host_net: i64,
    pub(super) device: Option<i64>,
}

/// Returns the memory of each record without its children. `order` lists each record after its parent.
pub(super) fn own_memory(trace: &Trace, order: &[u32]) -> Vec<Used> {
    if !trace.meta.options.profile_memory {
        return Vec::new();
    }
    let mut own = vec![Used::default(); trace.scopes.len()];
    let mut inside = vec![(0_u64, 0_i64, 0_i64); trace.scopes.len()];
    for index in order.iter().rev().map(|index| *index as usize) {
        let event = Event::new(trace, index);
        let (allocated, host_net, device) = inside[index];
        let memory = event.memory();
        own[index] = Used {
            allocated: memory.map(|memory| memory.host_allocated.saturating_sub(allocated)),
            host_net: memory.map_or(0, |memory| memory.host_net.saturating_sub(host_net)),
            device: memory.and_then(|memory| Some(memory.device_net?.saturating_sub(device))),
        };
        // Memory is counted for each thread: what a child on another thread uses is not in that of its parent. A scope
        // whose own memory is not known passes on the memory of its children.
        let parent = trace.nodes[index].parent;
        if parent != NONE && !event.has_parent_elsewhere() {
            let around = &mut inside[parent as usize];
            let device_net = memory.and_then(|memory| memory.device_net);
            around.0 += memory.map_or(allocated, |memory| memory.host_allocated);
            around.1 += memory.map_or(host_net, |memory| memory.host_net);
            around.2 += device_net.unwrap_or(device);
        }
    }
    own
}
