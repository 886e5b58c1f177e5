//! Bindings to cuBLAS for one matrix product.

use std::ffi::c_int;

use libloading::Library;

use crate::libraries;
use crate::trouble::Trouble;

const NAMES: [&str; 4] = [
    "libcublas.so.13",
    "libcublas.so.12",
    "libcublas.so.11",
    "libcublas.so",
];
const LOWER_NAMES: [&str; 4] = [
    "libcublasLt.so.13",
    "libcublasLt.so.12",
    "libcublasLt.so.11",
    "libcublasLt.so",
];

type Handle = usize;
type Sgemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    u64,
    c_int,
    u64,
    c_int,
    *const f32,
    u64,
    c_int,
) -> c_int;

/// The library with a handle for the current context.
pub(crate) struct Cublas {
    library: &'static Library,
    handle: Handle,
    pub(crate) path: String,
}

impl Cublas {
    /// Opens the library for work on a stream.
    pub(crate) fn on(stream: usize) -> Result<Self, Trouble> {
        // cuBLAS depends on cublasLt, which the system's loader does not find in each installation.
        libraries::open(&LOWER_NAMES, "cublas").map_err(Trouble::Skip)?;
        let (library, path) = libraries::open(&NAMES, "cublas").map_err(Trouble::Skip)?;
        let mut handle = 0;
        // SAFETY: cuBLAS exports the function with this type (cublas_api.h). The pointer is to this
        // stack.
        let code = unsafe {
            library.get::<unsafe extern "C" fn(*mut Handle) -> c_int>(b"cublasCreate_v2")?(
                &raw mut handle,
            )
        };
        check("cublasCreate", code)?;
        let cublas = Self {
            library,
            handle,
            path,
        };
        // SAFETY: as above; handle and stream exist.
        let code = unsafe {
            cublas
                .library
                .get::<unsafe extern "C" fn(Handle, usize) -> c_int>(b"cublasSetStream_v2")?(
                handle, stream,
            )
        };
        check("cublasSetStream", code)?;
        Ok(cublas)
    }

    /// Multiplies two square matrices of `side` rows in device memory into a third.
    pub(crate) fn multiply(&self, side: c_int, [left, right, to]: [u64; 3]) -> Result<(), Trouble> {
        let (one, zero) = (1.0_f32, 0.0_f32);
        // SAFETY: cuBLAS exports the function with this type (cublas_api.h).
        let sgemm = unsafe { self.library.get::<Sgemm>(b"cublasSgemm_v2") }?;
        // SAFETY: the addresses are device memory for that many floats. The factors are on this
        // stack.
        let code = unsafe {
            sgemm(
                self.handle,
                0,
                0,
                side,
                side,
                side,
                &raw const one,
                left,
                side,
                right,
                side,
                &raw const zero,
                to,
                side,
            )
        };
        check("cublasSgemm", code)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: as above; the handle is not used again. A missing function is not called.
        unsafe {
            if let Ok(destroy) = self
                .library
                .get::<unsafe extern "C" fn(Handle) -> c_int>(b"cublasDestroy_v2")
            {
                destroy(self.handle);
            }
        }
    }
}

fn check(call: &'static str, code: c_int) -> Result<(), Trouble> {
    let library = "cuBLAS";
    if code == 0 {
        Ok(())
    } else {
        Err(Trouble::Library {
            library,
            call,
            code,
        })
    }
}
