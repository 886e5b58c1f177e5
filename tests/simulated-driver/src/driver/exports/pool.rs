//! Memory pools: handles exist and allocations from them succeed, but nothing is pooled.

use crate::driver::code::{CudaResult, INVALID_VALUE};
use crate::driver::entry::entry_points;
use crate::driver::ffi::{InOut, Out};

/// The default pool of device 0. Those of the other devices and of the program follow.
const POOLS: usize = 0x7e00_0000_0000;

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD` and the attributes after it have 64 bits, those before it
/// 32.
const FIRST_LONG: u32 = 4;
const LAST: u32 = 8;

entry_points! {
    cuDeviceGetDefaultMemPool(pool: Out<usize>, device: i32) since 11_020 => |m| {
        m.device(device)?;
        pool.set(default_pool(device)?)
    };
    cuDeviceGetMemPool(pool: Out<usize>, device: i32) since 11_020 => |m| {
        m.device(device)?;
        pool.set(default_pool(device)?)
    };
    cuDeviceSetMemPool(device: i32, pool: usize) since 11_020 => |m| {
        m.device(device)?;
        check(pool)
    };
    cuMemPoolCreate(pool: Out<usize>, _properties: usize) since 11_020 => |m| {
        let id = usize::try_from(m.next_id()).map_err(|_| INVALID_VALUE)?;
        pool.set(POOLS + (1 << 20) + (id << 4))
    };
    cuMemPoolDestroy(pool: usize) since 11_020 => |_| check(pool);
    cuMemPoolTrimTo(pool: usize, _keep: usize) since 11_020 => |_| check(pool);
    cuMemPoolSetAttribute(pool: usize, attribute: u32, _value: usize) since 11_020 => |_| {
        check(pool)?;
        if attribute <= LAST { Ok(()) } else { Err(INVALID_VALUE) }
    };
    cuMemPoolGetAttribute(pool: usize, attribute: u32, value: InOut<u32>) since 11_020 => |_| {
        check(pool)?;
        match attribute {
            1..FIRST_LONG => value.set(1),
            FIRST_LONG..=LAST => value.widen::<u64>().set(0),
            _ => Err(INVALID_VALUE),
        }
    };
    cuMemAllocFromPoolAsync(address: Out<usize>, bytes: usize, pool: usize, stream: usize)
        since 11_020 => |m| {
        check(pool)?;
        address.set(m.allocate_async(bytes, stream)?)
    };
}

fn default_pool(device: i32) -> CudaResult<usize> {
    let device = usize::try_from(device).map_err(|_| INVALID_VALUE)?;
    Ok(POOLS + (device << 4))
}

fn check(pool: usize) -> CudaResult {
    if pool & POOLS == POOLS {
        Ok(())
    } else {
        Err(INVALID_VALUE)
    }
}
