//! The device under test: its context, its kernels, and memory to which kernels write.

use std::ffi::{CStr, CString, c_void};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};
use serde::{Deserialize, Serialize};

use crate::driver::{Driver, made};
use crate::trouble::Trouble;

const PTX: &str = include_str!("kernels.ptx");

/// The first device, with loaded kernels and its primary context current.
pub(crate) struct Gpu {
    pub(crate) driver: &'static Driver,
    pub(crate) context: Arc<CudaContext>,
    pub(crate) kernels: Kernels,
    pub(crate) simulated: bool,
    /// The resolution of the device's timer in nanoseconds, which bounds the error of the stamps.
    pub(crate) timer_step: f64,
}

/// The properties of the device.
#[derive(Clone, Debug, Deserialize, Serialize)]
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

    /// Returns a number of rounds: a few of many on a simulated device, whose costs mean nothing.
    pub(crate) fn rounds(&self, rounds: usize) -> usize {
        if self.simulated {
            rounds.div_ceil(5)
        } else {
            rounds
        }
    }

    /// Returns the UUID of the device.
    pub(crate) fn uuid(&self) -> Result<[u8; 16], Trouble> {
        let uuid = self.context.uuid()?.bytes;
        // The type of C's characters has a sign on some processors only.
        Ok(uuid.map(|byte| u8::from_ne_bytes(byte.to_ne_bytes())))
    }

    /// Creates a stream of the kind that cudarc, `CubeCL` and most frameworks use.
    pub(crate) fn stream(&self) -> Result<Arc<CudaStream>, Trouble> {
        let stream = self.context.new_stream()?;
        // The first launch loads the kernel, which takes time and may wait for the device.
        self.kernels.empty(raw(&stream))?;
        self.kernels.spin(raw(&stream), 0, 0)?;
        stream.synchronize()?;
        Ok(stream)
    }

    /// Keeps the device busy, so that work queued during that time runs without waiting for the
    /// host.
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

/// Returns the driver's handle of a stream.
pub(crate) fn raw(stream: &CudaStream) -> usize {
    stream.cu_stream() as usize
}

/// The kernels of a context, which are unloaded with it.
pub(crate) struct Kernels {
    driver: &'static Driver,
    empty: usize,
    spin: usize,
    timer_steps: usize,
    fault: usize,
}

impl Kernels {
    /// Loads the kernels into the current context.
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

    /// Spins for this many nanoseconds. The kernel writes its own time stamps to `stamps`, unless
    /// that is 0.
    pub(crate) fn spin(&self, stream: usize, ns: u64, stamps: u64) -> Result<(), Trouble> {
        launch(self.driver, self.spin, stream, &mut [ns, stamps])
    }

    pub(crate) fn empty(&self, stream: usize) -> Result<(), Trouble> {
        launch(self.driver, self.empty, stream, &mut [])
    }

    fn timer_steps(&self, stream: usize, values: u64) -> Result<(), Trouble> {
        launch(self.driver, self.timer_steps, stream, &mut [values])
    }

    /// Makes the context fail permanently.
    pub(crate) fn fault(&self, stream: usize) -> Result<(), Trouble> {
        self.driver.simulate(c"fault cuLaunchKernel nth 1 fail 700");
        launch(self.driver, self.fault, stream, &mut [])
    }

    /// Returns the code of a launch that may fail.
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

/// Returns the kernel of this name in a module.
pub(crate) fn find(driver: &Driver, module: usize, name: &CStr) -> Result<usize, Trouble> {
    made(driver, "cuModuleGetFunction", |function| {
        driver.cuModuleGetFunction(function, module, name.as_ptr())
    })
}

/// Runs a kernel on one thread. All parameters have 64 bits.
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

/// Device memory for the time stamps of kernels: four words per kernel.
pub(crate) struct Stamps {
    driver: &'static Driver,
    address: u64,
    count: usize,
}

/// The time at which a kernel ran, by its own stamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) begin: u64,
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

    /// Returns the address to which kernel `number` writes.
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

    /// Returns the stamps of the kernels, after all of them have finished.
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

    /// Returns how long each kernel ran in nanoseconds.
    pub(crate) fn lengths(&self) -> Result<Vec<f64>, Trouble> {
        let stamps = self.read()?;
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

    /// Returns the cycles of the multiprocessor's clock per nanosecond.
    pub(crate) fn cycles_per_ns(&self) -> f64 {
        self.cycles as f64 / self.ns().max(1.0)
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        // A failed context has already freed its memory.
        let _ = self.driver.cuMemFree_v2(self.address);
    }
}

/// An event that the suite created.
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

    /// Returns the nanoseconds since another event. Both must have finished.
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
        // An event is destroyed with its context.
        let _ = self.driver.cuEventDestroy_v2(self.handle);
    }
}
