//! Calls of the runtime, which this library lacks: a script says where one begins and ends on its thread, and the driver
//! calls in between are inside of it.

use std::cell::Cell;

use super::call::{current, notify};
use super::{ids, state};
use crate::driver::ffi::CallbackData;
use crate::driver::state::LockedState;

thread_local! {
    /// The number of the callback and the correlation number of the call that this thread is in.
    static CALL: Cell<Option<(u32, u32)>> = const { Cell::new(None) };
}

/// Begins a call.
pub(super) fn begin(callback: u32) -> Result<(), String> {
    if CALL.get().is_some() {
        return Err("this thread is in a call of the runtime".to_owned());
    }
    let correlation = state::lock().next_correlation();
    CALL.set(Some((callback, correlation)));
    call_back(0, callback, correlation);
    Ok(())
}

/// Ends the call.
pub(super) fn end() -> Result<(), String> {
    let (callback, correlation) = CALL
        .take()
        .ok_or("this thread is in no call of the runtime")?;
    call_back(1, callback, correlation);
    Ok(())
}

/// Its parameters are not told.
fn call_back(site: u32, callback: u32, correlation: u32) {
    let (context, context_id) = current(&mut LockedState::new());
    let (code, mut data) = (0_u32, 0_u64);
    let data = CallbackData {
        site,
        function_name: 0,
        arguments: 0,
        return_value: &raw const code as usize,
        symbol_name: 0,
        context,
        context_id,
        correlation_data: &raw mut data as usize,
        correlation,
    };
    notify(ids::RUNTIME_API, callback, &data);
}
