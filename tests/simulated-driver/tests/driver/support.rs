//! The functions of a simulated driver that the tests call, and a driver for each test.
#![allow(dead_code, reason = "no test uses all of it")]
#![allow(
    non_snake_case,
    clippy::too_many_arguments,
    reason = "the functions are the driver's"
)]

use std::ffi::{CString, c_char, c_void};
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::ptr::null_mut;

use profiler_simulated_driver::{Installation, Installed, Report, Simulator};
use tempfile::TempDir;

/// A kernel whose name says how long it takes, and one whose parameter does.
const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry work_10us() { ret; }
.visible .entry spin_ns(.param .u64 spin_ns_param_0) { ret; }
";

pub(crate) const NON_BLOCKING: u32 = 1;
pub(crate) const PER_THREAD: usize = 2;

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// A driver that only this test uses.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Driver {
            pub(crate) simulator: Simulator,
            $($name: unsafe extern "C" fn($($type),*) -> u32,)*
        }

        impl Driver {
            pub(crate) fn of(simulator: Simulator) -> Self {
                Self {
                    simulator,
                    $(
                        // SAFETY: the driver exports the function with this type.
                        $name: *unsafe { simulator.library().get(stringify!($name).as_bytes()) }
                            .expect("the driver has this function"),
                    )*
                }
            }

            $(pub(crate) fn $name(&self, $($argument: $type),*) -> u32 {
                // SAFETY: the tests pass pointers to their stacks, to live memory, or null.
                unsafe { (self.$name)($($argument),*) }
            })*
        }
    };
}

functions! {
    cuInit(flags: u32);
    cuDriverGetVersion(version: *mut i32);
    cuGetProcAddress_v2(symbol: *const c_char, function: *mut *const c_void, version: i32, flags: u64, status: *mut u32);
    cuDeviceGetCount(count: *mut i32);
    cuDeviceGetName(name: *mut u8, length: i32, device: i32);
    cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32);
    cuDevicePrimaryCtxRetain(context: *mut usize, device: i32);
    cuDevicePrimaryCtxRelease_v2(device: i32);
    cuDevicePrimaryCtxReset_v2(device: i32);
    cuCtxCreate_v2(context: *mut usize, flags: u32, device: i32);
    cuCtxDestroy_v2(context: usize);
    cuCtxSetCurrent(context: usize);
    cuCtxGetCurrent(context: *mut usize);
    cuCtxPopCurrent_v2(context: *mut usize);
    cuCtxGetId(context: usize, id: *mut u64);
    cuCtxSynchronize();
    cuStreamCreate(stream: *mut usize, flags: u32);
    cuStreamDestroy_v2(stream: usize);
    cuStreamQuery(stream: usize);
    cuStreamSynchronize(stream: usize);
    cuStreamWaitEvent(stream: usize, event: usize, flags: u32);
    cuStreamGetCtx(stream: usize, context: *mut usize);
    cuStreamBeginCapture_v2(stream: usize, mode: u32);
    cuStreamEndCapture(stream: usize, graph: *mut usize);
    cuStreamIsCapturing(stream: usize, status: *mut u32);
    cuThreadExchangeStreamCaptureMode(mode: *mut u32);
    cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: u64);
    cuGraphLaunch(exec: usize, stream: usize);
    cuGraphExecDestroy(exec: usize);
    cuGraphDestroy(graph: usize);
    cuEventCreate(event: *mut usize, flags: u32);
    cuEventRecord(event: usize, stream: usize);
    cuEventRecordWithFlags(event: usize, stream: usize, flags: u32);
    cuEventQuery(event: usize);
    cuEventSynchronize(event: usize);
    cuEventDestroy_v2(event: usize);
    cuEventElapsedTime(ms: *mut f32, start: usize, end: usize);
    cuModuleLoadData(module: *mut usize, image: *const c_char);
    cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char);
    cuLinkCreate_v2(count: u32, options: *mut u32, values: *mut *mut c_void, link: *mut usize);
    cuLinkAddData_v2(link: usize, kind: u32, data: *const c_char, bytes: usize, name: *const c_char, count: u32, options: *mut u32, values: *mut *mut c_void);
    cuLinkComplete(link: usize, image: *mut *const c_char, bytes: *mut usize);
    cuLinkDestroy(link: usize);
    cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, parameters: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchHostFunc(stream: usize, function: extern "C" fn(usize), data: usize);
    cuMemAlloc_v2(address: *mut usize, bytes: usize);
    cuMemFree_v2(address: usize);
    cuMemFreeAsync(address: usize, stream: usize);
    cuMemAllocAsync(address: *mut usize, bytes: usize, stream: usize);
    cuMemcpyHtoD_v2(to: usize, from: *const u8, bytes: usize);
    cuMemcpyHtoDAsync_v2(to: usize, from: *const u8, bytes: usize, stream: usize);
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: usize, bytes: usize, stream: usize);
    cuMemcpyPeerAsync(to: usize, to_context: usize, from: usize, from_context: usize, bytes: usize, stream: usize);
    cuMemsetD32_v2(to: usize, value: u32, count: usize);
}

impl Driver {
    /// Returns a new driver that has run only `script`.
    pub(crate) fn untouched(script: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let installed = Installation::new(folder.path())
            .create()
            .expect("a driver was built");
        let simulator = Simulator::open(&installed.library()).expect("the driver loads");
        simulator.run(script).expect("the script is right");
        Self::of(simulator)
    }

    /// Returns a new initialized driver with a virtual clock and the primary context of device 0
    /// current.
    pub(crate) fn ready() -> Self {
        Self::ready_after("clock virtual")
    }

    pub(crate) fn ready_after(script: &str) -> Self {
        let driver = Self::untouched(script);
        assert_eq!(driver.cuInit(0), 0);
        let context = driver.primary(0);
        assert_eq!(driver.cuCtxSetCurrent(context), 0);
        driver
    }

    pub(crate) fn primary(&self, device: i32) -> usize {
        made(|context| self.cuDevicePrimaryCtxRetain(context, device))
    }

    pub(crate) fn stream(&self, flags: u32) -> usize {
        made(|stream| self.cuStreamCreate(stream, flags))
    }

    pub(crate) fn event(&self) -> usize {
        made(|event| self.cuEventCreate(event, 0))
    }

    /// Returns an event that was just recorded.
    pub(crate) fn recorded(&self, stream: usize) -> usize {
        let event = self.event();
        assert_eq!(self.cuEventRecord(event, stream), 0);
        event
    }

    pub(crate) fn kernel(&self, name: &str) -> usize {
        let text = CString::new(PTX).expect("no zero byte");
        let module: usize = made(|module| self.cuModuleLoadData(module, text.as_ptr()));
        let name = CString::new(name).expect("no zero byte");
        made(|function| self.cuModuleGetFunction(function, module, name.as_ptr()))
    }

    /// Launches a kernel without parameters.
    pub(crate) fn launch(&self, kernel: usize, stream: usize) -> u32 {
        self.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, null_mut(), null_mut())
    }

    /// Launches a kernel that takes as long as its parameter says.
    pub(crate) fn spin(&self, kernel: usize, mut ns: u64, stream: usize) -> u32 {
        let mut parameters = [(&raw mut ns).cast::<c_void>()];
        let parameters = parameters.as_mut_ptr();
        self.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, null_mut())
    }

    pub(crate) fn report(&self) -> Report {
        self.simulator.report().expect("a report")
    }
}

impl Deref for Driver {
    type Target = Simulator;

    fn deref(&self) -> &Simulator {
        &self.simulator
    }
}

/// Returns the value that a successful function writes.
pub(crate) fn made<T: Default>(make: impl FnOnce(*mut T) -> u32) -> T {
    let mut value = T::default();
    assert_eq!(make(&raw mut value), 0);
    value
}

/// The environment variable that tells a process that it is the child of a test.
const CHILD: &str = "SIMULATED_DRIVER_TEST_CHILD";

/// Returns `true` if this process is the child of a test.
pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Returns a command that runs the test called `name` of a module again in another process, with a driver.
pub(crate) fn again(module: &str, name: &str, driver: &Installed, script: &str) -> Command {
    let program = std::env::current_exe().expect("a test knows its program");
    let test = match module.split_once("::") {
        Some((_crate, module)) => format!("{module}::{name}"),
        None => name.to_owned(),
    };
    let mut command = driver.command(program, script);
    command
        .args([test.as_str(), "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1");
    command
}

/// Installs a driver in `folder`.
pub(crate) fn installed(folder: &Path) -> Installed {
    Installation::new(folder)
        .create()
        .expect("a driver was built")
}
