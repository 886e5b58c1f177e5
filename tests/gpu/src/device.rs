//! The device under test: its context, its kernels, and memory that kernels write to.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use serde::Serialize;

use crate::driver::{Driver, made};
use crate::trouble::Trouble;

const PTX: &str = include_str!("kernels.ptx");

/// The first device, with the kernels loaded and its primary context current.
pub(crate) struct Gpu {
    pub(crate) driver: &'static Driver,
    pub(crate) context: Arc<CudaContext>,
    pub(crate) kernels: Kernels,
    pub(crate) simulated: bool,
    /// The step of the device's timer in nanoseconds: what stamps may be wrong by.
    pub(crate) timer_step: f64,
}

/// What the device says of itself.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct About {
    name: String,
    compute_capability: String,
    memory_bytes: usize,
    devices: i32,
    cuda_version_of_the_driver: i32,
    simulated: bool,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            compute_capability,
            cuda_version_of_the_driver: version,
            ..
        } = self;
        let (major, minor) = (version / 1000, version % 1000 / 10);
        write!(
            f,
            "{name} (sm {compute_capability}), driver for CUDA {major}.{minor}"
        )
    }
}

impl Gpu {
    pub(crate) fn first(driver: &'static Driver) -> Result<Self, Trouble> {
        let context = CudaContext::new(0)?;
        let mut gpu = Self {
            driver,
            context,
            kernels: Kernels::load(driver)?,
            simulated: driver.is_simulated(),
            timer_step: 0.0,
        };
        gpu.timer_step = gpu.measure_timer_step()?;
        Ok(gpu)
    }

    pub(crate) fn about(&self) -> Result<About, Trouble> {
        let (major, minor) = self.context.compute_capability()?;
        Ok(About {
            name: self.context.name()?,
            compute_capability: format!("{major}.{minor}"),
            memory_bytes: self.context.total_mem()?,
            devices: self.driver.devices(),
            cuda_version_of_the_driver: self.driver.version(),
            simulated: self.simulated,
        })
    }

    /// A stream of the kind that cudarc, `CubeCL` and most frameworks use.
    pub(crate) fn stream(&self) -> Result<Arc<CudaStream>, Trouble> {
        let stream = self.context.new_stream()?;
        // The first launch of a kernel loads it, which takes time and may wait for the device.
        self.kernels.empty(raw(&stream))?;
        self.kernels.spin(raw(&stream), 0, 0)?;
        stream.synchronize()?;
        Ok(stream)
    }

    /// Keeps the device busy, so that whatever is queued meanwhile runs without waiting for the host.
    pub(crate) fn plug(&self, stream: &CudaStream, ns: u64) -> Result<(), Trouble> {
        self.kernels.spin(raw(stream), ns, 0)
    }

    fn measure_timer_step(&self) -> Result<f64, Trouble> {
        let values = Stamps::new(self.driver, 4)?;
        self.kernels.timer_steps(0, values.address)?;
        self.driver
            .check("cuCtxSynchronize", self.driver.cuCtxSynchronize())?;
        let values = values.words()?;
        let steps = values
            .windows(2)
            .map(|pair| pair[1].saturating_sub(pair[0]));
        Ok(steps.max().unwrap_or(0) as f64)
    }
}

/// The driver's handle of a stream.
pub(crate) fn raw(stream: &CudaStream) -> usize {
    stream.cu_stream() as usize
}

/// The kernels of a context, which end with it.
pub(crate) struct Kernels {
    driver: &'static Driver,
    empty: usize,
    spin: usize,
    timer_steps: usize,
    fault: usize,
}

impl Kernels {
    /// Loads them into the current context.
    pub(crate) fn load(driver: &'static Driver) -> Result<Self, Trouble> {
        let module = load_module(driver, PTX)?;
        Ok(Self {
            driver,
            empty: find(driver, module, c"empty")?,
            spin: find(driver, module, c"spin_ns")?,
            timer_steps: find(driver, module, c"timer_steps")?,
            fault: find(driver, module, c"fault")?,
        })
    }

    /// Spins for so many nanoseconds; the kernel's own stamps go to `stamps` where that is not 0.
    pub(crate) fn spin(&self, stream: usize, ns: u64, stamps: u64) -> Result<(), Trouble> {
        launch(self.driver, self.spin, stream, &mut [ns, stamps])
    }

    pub(crate) fn empty(&self, stream: usize) -> Result<(), Trouble> {
        launch(self.driver, self.empty, stream, &mut [])
    }

    fn timer_steps(&self, stream: usize, values: u64) -> Result<(), Trouble> {
        launch(self.driver, self.timer_steps, stream, &mut [values])
    }

    /// Breaks the context for good.
    pub(crate) fn fault(&self, stream: usize) -> Result<(), Trouble> {
        self.driver.simulate(c"fault cuLaunchKernel nth 1 fail 700");
        launch(self.driver, self.fault, stream, &mut [])
    }

    /// The code of a launch that may fail.
    pub(crate) fn try_empty(&self, stream: usize) -> u32 {
        match self.empty(stream) {
            Err(Trouble::Driver { code, .. }) => code,
            _ => 0,
        }
    }
}

/// Loads a PTX text into the current context.
pub(crate) fn load_module(driver: &Driver, ptx: &str) -> Result<usize, Trouble> {
    let text = CString::new(ptx).map_err(|error| Trouble::Missing(error.to_string()))?;
    made(driver, "cuModuleLoadData", |module| {
        driver.cuModuleLoadData(module, text.as_ptr())
    })
}

/// The kernel of this name in a module.
pub(crate) fn find(driver: &Driver, module: usize, name: &CStr) -> Result<usize, Trouble> {
    made(driver, "cuModuleGetFunction", |function| {
        driver.cuModuleGetFunction(function, module, name.as_ptr())
    })
}

/// Runs a kernel on one thread; all parameters are 64 bits wide.
pub(crate) fn launch(
    driver: &Driver,
    kernel: usize,
    stream: usize,
    values: &mut [u64],
) -> Result<(), Trouble> {
    let mut places = [null_mut::<c_void>(); 2];
    for (place, value) in places.iter_mut().zip(values) {
        *place = (&raw mut *value).cast();
    }
    let places = places.as_mut_ptr();
    let code = driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, places, null_mut());
    driver.check("cuLaunchKernel", code)
}

/// Device memory for what kernels say of themselves: four words each.
pub(crate) struct Stamps {
    driver: &'static Driver,
    address: u64,
    count: usize,
}

/// When a kernel ran, by its own account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    begin: u64,
    end: u64,
    cycles: u64,
}

const WORDS: usize = 4;

impl Stamps {
    pub(crate) fn new(driver: &'static Driver, count: usize) -> Result<Self, Trouble> {
        let bytes = count * WORDS * size_of::<u64>();
        let address: u64 = made(driver, "cuMemAlloc", |address| {
            driver.cuMemAlloc_v2(address, bytes)
        })?;
        let stamps = Self {
            driver,
            address,
            count,
        };
        driver.check("cuMemsetD8", driver.cuMemsetD8_v2(address, 0, bytes))?;
        driver.check("cuCtxSynchronize", driver.cuCtxSynchronize())?;
        Ok(stamps)
    }

    /// Where the kernel of this number writes.
    pub(crate) fn of(&self, index: usize) -> u64 {
        debug_assert!(index < self.count);
        self.address + (index * WORDS * size_of::<u64>()) as u64
    }

    fn words(&self) -> Result<Vec<u64>, Trouble> {
        let mut words = vec![0_u64; self.count * WORDS];
        let bytes = size_of_val(&words[..]);
        let code = self
            .driver
            .cuMemcpyDtoH_v2(words.as_mut_ptr(), self.address, bytes);
        self.driver.check("cuMemcpyDtoH", code)?;
        Ok(words)
    }

    /// What the kernels wrote, once all of them are over.
    pub(crate) fn read(&self) -> Result<Vec<Stamp>, Trouble> {
        self.driver
            .check("cuCtxSynchronize", self.driver.cuCtxSynchronize())?;
        let stamp = |words: &[u64]| Stamp {
            begin: words[0],
            end: words[1],
            cycles: words[3].saturating_sub(words[2]),
        };
        Ok(self.words()?.chunks_exact(WORDS).map(stamp).collect())
    }

    /// How long each kernel ran in nanoseconds. A simulated device writes nothing: there the kernels
    /// ran as long as they were asked to.
    pub(crate) fn lengths(&self, gpu: &Gpu, asked: u64) -> Result<Vec<f64>, Trouble> {
        let stamps = self.read()?;
        if gpu.simulated {
            return Ok(vec![asked as f64; self.count]);
        }
        if stamps.iter().any(|stamp| stamp.end == 0) {
            return Err(Trouble::Missing("a kernel wrote no stamps".to_owned()));
        }
        Ok(stamps.iter().map(Stamp::ns).collect())
    }
}

impl Stamp {
    pub(crate) fn ns(&self) -> f64 {
        self.end.saturating_sub(self.begin) as f64
    }

    /// Cycles of the multiprocessor's clock in each nanosecond.
    pub(crate) fn cycles_per_ns(&self) -> f64 {
        self.cycles as f64 / self.ns().max(1.0)
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // A context that failed has given its memory back by itself.
        let _ = self.driver.cuMemFree_v2(self.address);
    }
}

/// An event of the suite's own.
pub(crate) struct Event {
    driver: &'static Driver,
    pub(crate) handle: usize,
}

impl Event {
    pub(crate) fn new(driver: &'static Driver) -> Result<Self, Trouble> {
        let handle = made(driver, "cuEventCreate", |event| {
            driver.cuEventCreate(event, 0)
        })?;
        Ok(Self { driver, handle })
    }

    pub(crate) fn record(&self, stream: usize) -> Result<(), Trouble> {
        self.driver.check(
            "cuEventRecord",
            self.driver.cuEventRecord(self.handle, stream),
        )
    }

    pub(crate) fn wait(&self) -> Result<(), Trouble> {
        self.driver.check(
            "cuEventSynchronize",
            self.driver.cuEventSynchronize(self.handle),
        )
    }

    /// Nanoseconds since another event; both are over.
    pub(crate) fn since(&self, start: &Self) -> Result<f64, Trouble> {
        self.driver
            .elapsed(start.handle, self.handle)
            .map_err(|code| Trouble::Driver {
                call: "cuEventElapsedTime",
                code,
                name: self.driver.name_of(code),
            })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // An event of a context that is gone went with it.
        let _ = self.driver.cuEventDestroy_v2(self.handle);
    }
}
