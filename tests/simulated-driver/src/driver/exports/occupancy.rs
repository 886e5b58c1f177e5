//! Occupancy: plausible values that a program can launch with, not those of a real device.

use crate::driver::code::{CudaResult, INVALID_VALUE};
use crate::driver::entry::entry_points;
use crate::driver::ffi::Out;

/// The threads per multiprocessor.
const THREADS: i32 = 2_048;

entry_points! {
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<i32>, function: usize, block_size: i32, _shared_bytes: usize,
    ) since 6_050 => |m| {
        m.function(function)?;
        blocks.set(blocks_of(block_size)?)
    };
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<i32>, function: usize, block_size: i32, _shared_bytes: usize, _flags: u32,
    ) since 7_000 => |m| {
        m.function(function)?;
        blocks.set(blocks_of(block_size)?)
    };
    cuOccupancyMaxPotentialBlockSize(
        grid: Out<i32>, block: Out<i32>, function: usize,
        _shared: usize, _shared_bytes: usize, limit: i32,
    ) since 6_050 => |m| {
        m.function(function)?;
        grid.set(216)?;
        block.set(if limit == 0 { 1_024 } else { limit.clamp(1, 1_024) })
    };
    cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<i32>, block: Out<i32>, function: usize,
        _shared: usize, _shared_bytes: usize, limit: i32, _flags: u32,
    ) since 7_000 => |m| {
        m.function(function)?;
        grid.set(216)?;
        block.set(if limit == 0 { 1_024 } else { limit.clamp(1, 1_024) })
    };
    cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, function: usize, _blocks: i32, _block_size: i32,
    ) since 10_020 => |m| {
        m.function(function)?;
        bytes.set(49_152)
    };
}

fn blocks_of(block_size: i32) -> CudaResult<i32> {
    if (1..=1_024).contains(&block_size) {
        Ok(THREADS / block_size)
    } else {
        Err(INVALID_VALUE)
    }
}
