//! Kernels and host functions.

use crate::driver::code::{CudaResult, INVALID_VALUE};
use crate::driver::entry::entry_points;
use crate::driver::ffi::{HostFunction, In, Out, Parameters, compared};
use crate::driver::kernel::LaunchDims;
use crate::driver::task::{Task, TaskDuration};
use crate::report::ActivityKind;

/// `CUlaunchConfig`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: usize,
    attributes: usize,
    attribute_count: u32,
}

compared! {
    Config = CUlaunchConfig {
        shared_bytes = sharedMemBytes,
        stream = hStream,
        attributes = attrs,
        attribute_count = numAttrs,
    }
}

/// Returns the structures as they are declared here.
#[cfg(test)]
pub(super) fn structures() -> Vec<header_check::Item> {
    let mut items = Config::declared();
    items.push(header_check::Item::field::<u32>(
        "CUlaunchConfig",
        "blockDimX",
        std::mem::offset_of!(Config, block),
    ));
    items
}

entry_points! {
    cuLaunchKernel(
        function: usize,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32,
        stream: usize,
        parameters: Parameters,
        _extra: usize,
    ) since 4_000, QUEUES => |m| {
        let shape = LaunchDims {
            grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes,
        };
        m.launch(function, shape, stream, &parameters)
    };
    cuLaunchCooperativeKernel(
        function: usize,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32,
        stream: usize,
        parameters: Parameters,
    ) since 9_000, QUEUES => |m| {
        let shape = LaunchDims {
            grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], shared_bytes,
        };
        m.launch(function, shape, stream, &parameters)
    };
    cuLaunchKernelEx(config: In<Config>, function: usize, parameters: Parameters, _extra: usize)
        since 11_060, QUEUES => |m| {
        let Config { grid, block, shared_bytes, stream, .. } = config.get()?;
        m.launch(function, LaunchDims { grid, block, shared_bytes }, stream, &parameters)
    };
    cuLaunchHostFunc(stream: usize, function: Option<extern "C" fn(usize)>, data: usize)
        since 10_000, QUEUES => |m| {
        let call = HostFunction::Plain { function: function.ok_or(INVALID_VALUE)?, data };
        let key = m.stream_key(stream)?;
        m.enqueue(key, Task::new(ActivityKind::HostFunction, TaskDuration::Host(call))).map(drop)
    };
    cuFuncGetAttribute(value: Out<i32>, attribute: u32, function: usize) since 2_020 => |m| {
        m.function(function)?;
        value.set(function_attribute(attribute)?)
    };
    cuFuncSetAttribute(function: usize, attribute: u32, _value: i32) since 9_000 => |m| {
        m.function(function)?;
        function_attribute(attribute).map(drop)
    };
    cuFuncSetCacheConfig(function: usize, _config: u32) since 3_000 => |m| {
        m.function(function).map(drop)
    };
}

/// Returns the attributes that all kernels have.
fn function_attribute(attribute: u32) -> CudaResult<i32> {
    match attribute {
        0 => Ok(1_024),  // threads per block
        4 => Ok(32),     // registers
        5 | 6 => Ok(80), // PTX and binary version
        8 => Ok(49_152), // dynamic shared memory
        1..=15 => Ok(0),
        _ => Err(INVALID_VALUE),
    }
}
