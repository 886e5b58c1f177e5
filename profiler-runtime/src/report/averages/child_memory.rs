//! The memory of nested calls, accumulated during a walk.

use crate::memory::MemoryUse;
use crate::report::row::MemoryStats;

/// Memory that the children of each scope of a walk used.
pub(super) struct ChildMemory(Vec<Used>);

#[derive(Clone, Copy, Default)]
struct Used {
    host: i64,
    allocated: u64,
    device: i64,
}

impl ChildMemory {
    /// Creates space for this many scopes; `None` if memory was not profiled.
    pub(super) fn new(scopes: usize, is_profiled: bool) -> Self {
        Self(vec![Used::default(); if is_profiled { scopes } else { 0 }])
    }

    /// Adds the memory of a scope that the walk leaves. A scope whose own memory is not known passes on the memory of
    /// its children.
    pub(super) fn leave(
        &mut self,
        index: usize,
        parent: u32,
        memory: Option<MemoryUse>,
        is_outermost: bool,
        row: &mut Option<MemoryStats>,
    ) {
        let Some(inside) = self.0.get(index).copied() else {
            return;
        };
        if let Some(memory) = memory {
            count(row.get_or_insert_default(), memory, inside, is_outermost);
        }
        let Some(around) = self.0.get_mut(parent as usize) else {
            return;
        };
        around.host += memory.map_or(inside.host, |memory| memory.host_net);
        around.allocated += memory.map_or(inside.allocated, |memory| memory.host_allocated);
        let device = memory.and_then(|memory| memory.device_net);
        around.device += device.unwrap_or(inside.device);
    }
}

fn count(row: &mut MemoryStats, memory: MemoryUse, inside: Used, is_outermost: bool) {
    row.self_cpu_net += memory.host_net - inside.host;
    row.self_cpu_allocated += memory.host_allocated.saturating_sub(inside.allocated);
    row.cpu_peak = row.cpu_peak.max(memory.host_peak);
    row.cpu_in_use = row.cpu_in_use.max(memory.host_total);
    if is_outermost {
        row.cpu_net += memory.host_net;
        row.cpu_allocated += memory.host_allocated;
    }
    let Some(net) = memory.device_net else { return };
    *row.self_cuda_net.get_or_insert(0) += net - inside.device;
    *row.cuda_net.get_or_insert(0) += if is_outermost { net } else { 0 };
    row.cuda_in_use = row.cuda_in_use.max(memory.device_total);
    row.cuda_reserved = row.cuda_reserved.max(memory.device_reserved);
}
