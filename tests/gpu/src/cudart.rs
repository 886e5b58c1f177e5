//! Bindings to the CUDA runtime, for calls that reach the driver through it. Its streams and graphs are those of the driver.

use std::ffi::{c_int, c_void};

use libloading::Library;

use crate::libraries;
use crate::trouble::Trouble;

const NAMES: [&str; 4] = [
    "libcudart.so.13",
    "libcudart.so.12",
    "libcudart.so.11.0",
    "libcudart.so",
];

/// The library.
pub(crate) struct Runtime {
    library: &'static Library,
    pub(crate) path: String,
}

impl Runtime {
    pub(crate) fn open() -> Result<Self, Trouble> {
        let (library, path) = libraries::open(&NAMES, "cuda_runtime").map_err(Trouble::Skip)?;
        Ok(Self { library, path })
    }

    /// Fills memory of the device.
    pub(crate) fn fill(&self, to: u64, bytes: usize, stream: usize) -> Result<(), Trouble> {
        type Fill = unsafe extern "C" fn(u64, c_int, usize, usize) -> c_int;
        // SAFETY: the runtime exports the function with this type (cuda_runtime_api.h); the memory has that many bytes.
        let code = unsafe { self.library.get::<Fill>(b"cudaMemsetAsync")?(to, 1, bytes, stream) };
        check("cudaMemsetAsync", code)
    }

    /// Copies from pinned memory to the device.
    pub(crate) fn copy(
        &self,
        to: u64,
        from: *const c_void,
        bytes: usize,
        stream: usize,
    ) -> Result<(), Trouble> {
        const TO_DEVICE: c_int = 1;
        type Copy = unsafe extern "C" fn(u64, *const c_void, usize, c_int, usize) -> c_int;
        // SAFETY: as above, for both memories.
        let code = unsafe {
            self.library.get::<Copy>(b"cudaMemcpyAsync")?(to, from, bytes, TO_DEVICE, stream)
        };
        check("cudaMemcpyAsync", code)
    }

    /// Launches a graph.
    pub(crate) fn launch(&self, graph: usize, stream: usize) -> Result<(), Trouble> {
        type Launch = unsafe extern "C" fn(usize, usize) -> c_int;
        // SAFETY: as above; both exist.
        let code = unsafe { self.library.get::<Launch>(b"cudaGraphLaunch")?(graph, stream) };
        check("cudaGraphLaunch", code)
    }
}

fn check(call: &'static str, code: c_int) -> Result<(), Trouble> {
    if code == 0 {
        return Ok(());
    }
    Err(Trouble::Library {
        library: "the CUDA runtime",
        call,
        code,
    })
}
