//! Direct calls of the driver, which must be cheap, exact or allowed to fail.
//!
//! Codes are plain integers here, since cudarc's enumeration cannot hold unknown ones.

#![allow(
    non_snake_case,
    clippy::too_many_arguments,
    reason = "the functions are the driver's"
)]

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library;

use crate::trouble::Trouble;

const FILE: &str = "libcuda.so.1";

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// Functions that every driver from CUDA 11.4 on exports.
        pub(crate) struct Driver {
            library: Library,
            $($name: unsafe extern "C" fn($($type),*) -> u32,)*
            elapsed: unsafe extern "C" fn(*mut f32, usize, usize) -> u32,
        }

        impl Driver {
            fn resolve(library: Library) -> Result<Self, libloading::Error> {
                // SAFETY: the driver exports the function with this type (cuda.h).
                $(let $name = *unsafe { library.get(stringify!($name).as_bytes()) }?;)*
                // SAFETY: as above; both have the same type, and one of them always exists.
                let newer = unsafe { library.get(b"cuEventElapsedTime_v2") }.map(|found| *found);
                let elapsed = match newer {
                    Ok(newer) => newer,
                    // SAFETY: as above.
                    Err(_) => *unsafe { library.get(b"cuEventElapsedTime") }?,
                };
                Ok(Self { library, $($name,)* elapsed })
            }

            $(pub(crate) fn $name(&self, $($argument: $type),*) -> u32 {
                // SAFETY: this program passes handles that the driver returned and that still
                // exist, pointers to its stacks, and the parameters that the kernels declare.
                unsafe { (self.$name)($($argument),*) }
            })*

            /// Returns the functions as they are declared here.
            #[cfg(test)]
            pub(crate) fn declared() -> Vec<header_check::Item> {
                use header_check::Item;
                type Elapsed = unsafe extern "C" fn(*mut f32, usize, usize) -> u32;

                vec![
                    $(Item::function::<unsafe extern "C" fn($($type),*) -> u32>(stringify!($name)),)*
                    Item::function::<Elapsed>("cuEventElapsedTime"),
                    Item::function::<Elapsed>("cuEventElapsedTime_v2"),
                ]
            }
        }
    };
}

functions! {
    cuInit(flags: u32);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(code: u32, name: *mut *const c_char);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: u32, device: c_int);
    cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int);
    cuDevicePrimaryCtxReset_v2(device: c_int);
    cuCtxCreate_v2(context: *mut usize, flags: u32, device: c_int);
    cuCtxDestroy_v2(context: usize);
    cuCtxSetCurrent(context: usize);
    cuCtxGetCurrent(context: *mut usize);
    cuCtxSynchronize();
    cuStreamCreate(stream: *mut usize, flags: u32);
    cuStreamDestroy_v2(stream: usize);
    cuStreamSynchronize(stream: usize);
    cuStreamBeginCapture_v2(stream: usize, mode: u32);
    cuStreamEndCapture(stream: usize, graph: *mut usize);
    cuStreamIsCapturing(stream: usize, status: *mut u32);
    cuGraphInstantiate_v2(exec: *mut usize, graph: usize, node: *mut usize, log: *mut c_char, room: usize);
    cuGraphGetNodes(graph: usize, nodes: *mut usize, count: *mut usize);
    cuGraphLaunch(exec: usize, stream: usize);
    cuGraphExecDestroy(exec: usize);
    cuGraphDestroy(graph: usize);
    cuEventCreate(event: *mut usize, flags: u32);
    cuEventRecord(event: usize, stream: usize);
    cuEventRecordWithFlags(event: usize, stream: usize, flags: u32);
    cuEventQuery(event: usize);
    cuEventSynchronize(event: usize);
    cuEventDestroy_v2(event: usize);
    cuModuleLoadData(module: *mut usize, image: *const c_char);
    cuModuleUnload(module: usize);
    cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char);
    cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, parameters: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchHostFunc(stream: usize, function: extern "C" fn(usize), data: usize);
    cuMemAlloc_v2(address: *mut u64, bytes: usize);
    cuMemFree_v2(address: u64);
    cuMemsetD8_v2(to: u64, value: u8, count: usize);
    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: usize);
    cuMemsetD32Async(to: u64, value: u32, count: usize, stream: usize);
    cuMemAllocHost_v2(memory: *mut usize, bytes: usize);
    cuMemFreeHost(memory: usize);
    cuMemcpyHtoD_v2(to: u64, from: *const u64, bytes: usize);
    cuMemcpyDtoH_v2(to: *mut u64, from: u64, bytes: usize);
    cuMemcpyHtoDAsync_v2(to: u64, from: usize, bytes: usize, stream: usize);
    cuMemcpyDtoHAsync_v2(to: usize, from: u64, bytes: usize, stream: usize);
    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize);
}

impl Driver {
    /// Returns the driver. It is loaded once and never unloaded.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says why there is no usable driver.
    pub(crate) fn get() -> Result<&'static Self, String> {
        static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
        DRIVER
            .get_or_init(Self::load)
            .as_ref()
            .map_err(Clone::clone)
    }

    fn load() -> Result<Self, String> {
        // SAFETY: any program may load the driver's library. It is never unloaded.
        let library = unsafe { Library::new(FILE) }
            .map_err(|error| format!("there is no CUDA driver here ({})", in_full(&error)))?;
        let driver = Self::resolve(library).map_err(|error| {
            format!(
                "the CUDA driver lacks a function of CUDA 11.4 ({})",
                in_full(&error)
            )
        })?;
        match driver.cuInit(0) {
            0 => Ok(driver),
            code => Err(format!(
                "the CUDA driver cannot be used: cuInit returned {code} ({})",
                driver.name_of(code)
            )),
        }
    }

    /// Returns an error unless a call succeeded.
    pub(crate) fn check(&self, call: &'static str, code: u32) -> Result<(), Trouble> {
        if code == 0 {
            return Ok(());
        }
        let name = self.name_of(code);
        Err(Trouble::Driver { call, code, name })
    }

    /// Returns the name of a code, if the driver knows it.
    pub(crate) fn name_of(&self, code: u32) -> String {
        let mut name = std::ptr::null();
        if self.cuGetErrorName(code, &raw mut name) != 0 || name.is_null() {
            return "a code without a name".to_owned();
        }
        // SAFETY: the driver returned a static string.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    }

    /// Returns the CUDA version in the driver's format: 12040 for 12.4.
    pub(crate) fn version(&self) -> i32 {
        let mut version = 0;
        if self.cuDriverGetVersion(&raw mut version) == 0 {
            version
        } else {
            0
        }
    }

    pub(crate) fn devices(&self) -> i32 {
        let mut count = 0;
        if self.cuDeviceGetCount(&raw mut count) == 0 {
            count
        } else {
            0
        }
    }

    pub(crate) fn exports(&self, name: &str) -> bool {
        // SAFETY: the symbol is only looked up, not used.
        unsafe { self.library.get::<*const c_void>(name.as_bytes()) }.is_ok()
    }

    /// Returns a function that newer drivers export.
    ///
    /// # Safety
    ///
    /// `F` must be the type of the function (cuda.h).
    pub(crate) unsafe fn optional<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller promises the type.
        let function = unsafe { self.library.get::<F>(name.as_bytes()) };
        function.ok().map(|function| *function)
    }

    /// Returns the context that is current on this thread, or 0.
    pub(crate) fn current(&self) -> usize {
        let mut context = 0;
        if self.cuCtxGetCurrent(&raw mut context) == 0 {
            context
        } else {
            0
        }
    }

    /// Returns the nanoseconds between two events that have finished, or the driver's code.
    pub(crate) fn elapsed(&self, start: usize, end: usize) -> Result<f64, u32> {
        let mut ms = f32::NAN;
        // SAFETY: both events exist, and the pointer is to this stack.
        match unsafe { (self.elapsed)(&raw mut ms, start, end) } {
            0 => Ok(f64::from(ms) * 1e6),
            code => Err(code),
        }
    }

    /// Returns `true` for the project's simulated driver, which simulates times but runs no code.
    pub(crate) fn is_simulated(&self) -> bool {
        self.exports("simulated_driver_run")
    }

    /// Makes the simulated driver do what a real one does by itself. Has no effect on a real
    /// driver.
    pub(crate) fn simulate(&self, script: &CStr) {
        type Run = extern "C" fn(*const c_char, *mut c_char, c_int) -> usize;
        // SAFETY: only the simulated driver exports this name, with this type.
        if let Ok(run) = unsafe { self.library.get::<Run>(b"simulated_driver_run") } {
            run(script.as_ptr(), std::ptr::null_mut(), 0);
        }
    }
}

/// Returns the message of the loader; the error itself only names the failed function.
pub(crate) fn in_full(error: &libloading::Error) -> String {
    let cause = error.source();
    cause.map_or_else(|| error.to_string(), ToString::to_string)
}

/// Returns the value that the driver writes.
pub(crate) fn made<T: Default>(
    driver: &Driver,
    call: &'static str,
    make: impl FnOnce(*mut T) -> u32,
) -> Result<T, Trouble> {
    let mut value = T::default();
    let code = make(&raw mut value);
    driver.check(call, code)?;
    Ok(value)
}
