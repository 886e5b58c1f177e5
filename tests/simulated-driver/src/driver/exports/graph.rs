//! Graphs.

use crate::driver::code::{CudaResult, INVALID_VALUE};
use crate::driver::entry::entry_points;
use crate::driver::ffi::Out;
use crate::driver::state::DriverState;

/// The flags that exist for a graph launched by the host.
const FLAGS: u64 = 1 | 2 | 8;

entry_points! {
    cuGraphInstantiate_v2(exec: Out<usize>, graph: usize, _node: usize, _log: usize, _size: usize)
        since 11_000 => |m| instantiate(m, &exec, graph, 0);
    cuGraphInstantiateWithFlags(exec: Out<usize>, graph: usize, flags: u64) since 11_040 => |m| {
        instantiate(m, &exec, graph, flags)
    };
    cuGraphLaunch(exec: usize, stream: usize) since 10_000, QUEUES => |m| m.launch_graph(exec, stream);
    cuGraphUpload(_exec: usize, stream: usize) since 11_010 => |m| m.stream_key(stream).map(drop);
    cuGraphExecDestroy(exec: usize) since 10_000 => |m| m.destroy_exec(exec);
    cuGraphDestroy(graph: usize) since 10_000 => |m| m.destroy_graph(graph);
    cuGraphGetNodes(graph: usize, nodes: Out<usize>, count: Out<usize>) since 10_000 => |m| {
        // Nodes have no handles here, so only their number can be queried.
        if !nodes.is_null() {
            return Err(INVALID_VALUE);
        }
        count.set(m.graph(graph)?.len())
    };
}

fn instantiate(state: &mut DriverState, exec: &Out<usize>, graph: usize, flags: u64) -> CudaResult {
    if flags & !FLAGS != 0 {
        return Err(INVALID_VALUE);
    }
    exec.set(state.instantiate(graph)?)
}
