//! A stand-in for what libtorch says of the stream that it launches on: each thread has one, at first the legacy default stream.
//!
//! A copy of this library passes for libtorch: see [`Installation::libtorch`](crate::Installation::libtorch).

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;

thread_local! {
    static CURRENT: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// The device that is current, and the only one that this stand-in knows by number.
const CURRENT_DEVICE: i32 = -1;

/// Writes the stream of the calling thread. Fails for other devices than the current one.
///
/// # Safety
///
/// `stream` must be valid for a write.
// SAFETY: the name is that of libtorch, which no program loads beside its stand-in.
#[unsafe(no_mangle)]
unsafe extern "C" fn aoti_torch_get_current_cuda_stream(
    device: i32,
    stream: *mut *mut c_void,
) -> c_int {
    if device != CURRENT_DEVICE {
        return 1;
    }
    // SAFETY: as the caller promises.
    unsafe { stream.write(CURRENT.get()) };
    0
}

/// Chooses the stream of the calling thread.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn torch_set_current_cuda_stream(stream: *mut c_void, _device: i32) -> c_int {
    CURRENT.set(stream);
    0
}
