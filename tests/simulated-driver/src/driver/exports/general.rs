//! Initialization, versions, errors, and the lookup of entry points.

use std::ffi::{c_char, c_void};

use crate::driver::code::{CudaResult, INVALID_VALUE, NOT_FOUND, describe};
use crate::driver::entry::{EntryPoint, entry_points};
use crate::driver::ffi::{Out, Text};
use crate::driver::state::DriverState;

entry_points! {
    cuInit(flags: u32) since 2_000, BEFORE_INIT => |m| {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        m.initialise()
    };
    cuDriverGetVersion(version: Out<i32>) since 2_020, BEFORE_INIT => |m| {
        version.set(m.settings.driver_version)
    };
    cuGetErrorName(code: u32, name: Out<*const c_char>) since 6_000, BEFORE_INIT => |_| {
        text(describe(code).map(|(name, _)| name), &name)
    };
    cuGetErrorString(code: u32, text_out: Out<*const c_char>) since 6_000, BEFORE_INIT => |_| {
        text(describe(code).map(|(_, text)| text), &text_out)
    };
    cuGetProcAddress(symbol: Text, function: Out<*const c_void>, version: i32, _flags: u64)
        since 11_030, BEFORE_INIT => |m| look_up(m, symbol.get()?, &function, version).map_err(|_| NOT_FOUND);
    cuGetProcAddress_v2(
        symbol: Text,
        function: Out<*const c_void>,
        version: i32,
        _flags: u64,
        status: Out<u32>,
    ) since 12_000, BEFORE_INIT => |m| {
        let found = look_up(m, symbol.get()?, &function, version);
        status.set_if_wanted(found.err().unwrap_or(0));
        found.map_err(|_| NOT_FOUND)
    };
    cuProfilerStart() since 4_000 => |m| m.usable_current().map(drop);
    cuProfilerStop() since 4_000 => |m| m.usable_current().map(drop);
}

fn text(text: Option<&'static str>, out: &Out<*const c_char>) -> CudaResult {
    let Some(text) = text else {
        out.set(std::ptr::null())?;
        return Err(INVALID_VALUE);
    };
    out.set(text.as_ptr().cast())
}

/// Finds the newest variant of a function that both the driver and the caller's version have:
/// `cuMemAlloc` is `cuMemAlloc_v2`. Fails with the status of `cuGetProcAddress`: 1 for an unknown
/// function, 2 for one that is too new.
fn look_up(
    state: &DriverState,
    symbol: &str,
    function: &Out<*const c_void>,
    version: i32,
) -> Result<(), u32> {
    let is_variant = |entry: &&EntryPoint| {
        let rest = entry.name.strip_prefix(symbol);
        let rest = rest.map(|rest| rest.strip_prefix("_v").unwrap_or(rest));
        rest.is_some_and(|rest| rest.bytes().all(|digit| digit.is_ascii_digit()))
            && !state.settings.hidden.contains(entry.name)
            && entry.since <= state.settings.driver_version
    };
    let mut variants: Vec<&EntryPoint> = super::all().filter(is_variant).collect();
    if variants.is_empty() {
        function.set_if_wanted(std::ptr::null());
        return Err(1);
    }
    variants.retain(|entry| entry.since <= version);
    let newest = variants
        .into_iter()
        .max_by_key(|entry| (entry.since, entry.name));
    let address = newest.map_or(std::ptr::null(), |entry| entry.address.0.cast());
    function.set(address).map_err(|_| 1_u32)?;
    if address.is_null() { Err(2) } else { Ok(()) }
}
