//! The current stream of libtorch, the library of PyTorch that `tch` and other bindings call.
//!
//! libtorch keeps a current stream for each thread and device, on which it launches. The two functions are of its stable
//! interface for C, `torch/csrc/inductor/aoti_torch/c/shim.h`. Builds for the CPU do not have them.

use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;

use crate::driver::RawStream;
use crate::library::Library;

/// The device that is current on the thread.
const CURRENT_DEVICE: i32 = -1;

#[cfg(unix)]
const NAME: &std::ffi::CStr = c"libtorch_cuda.so";
#[cfg(windows)]
const NAME: &std::ffi::CStr = c"torch_cuda.dll";

/// The libtorch of this process.
#[derive(Clone, Copy, Debug)]
pub struct Libtorch {
    /// `AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void** ret_stream)`: zero if it succeeds.
    current_stream: unsafe extern "C" fn(i32, *mut *mut c_void) -> c_int,
}

impl Libtorch {
    /// Returns the libtorch with CUDA that the process has loaded. Loads nothing.
    #[must_use]
    pub fn loaded() -> Option<Self> {
        // Never closed: its function is called until the process ends.
        let library = ManuallyDrop::new(Library::loaded(NAME)?);
        let function = library.symbol(c"aoti_torch_get_current_cuda_stream")?;
        Some(Self {
            // SAFETY: the library is libtorch by its name, and the function of this name has had this type in each release
            // of the interface, which promises not to change it.
            current_stream: unsafe {
                std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(i32, *mut *mut c_void) -> c_int,
                >(function)
            },
        })
    }

    /// Returns the stream on which this thread's operations run on the device that is current; `None` if libtorch cannot say.
    ///
    /// A thread that has chosen none has the legacy default stream.
    #[must_use]
    pub fn current_stream(&self) -> Option<RawStream> {
        let mut stream = ptr::null_mut();
        // SAFETY: the function writes one pointer, and turns exceptions into codes.
        let code = unsafe { (self.current_stream)(CURRENT_DEVICE, &raw mut stream) };
        (code == 0).then(|| RawStream(stream).canonical())
    }
}
