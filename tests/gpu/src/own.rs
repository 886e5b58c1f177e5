//! Contexts that the suite creates, in addition to cudarc's.

use profiler_runtime::cuda::Stream;

use crate::device::Kernels;
use crate::driver::{Driver, made};
use crate::trouble::Trouble;

/// A context with a stream and kernels.
pub(crate) struct Own {
    driver: &'static Driver,
    pub(crate) context: usize,
    pub(crate) stream: usize,
    kernels: Kernels,
}

impl Own {
    /// Creates a context on a device. The current context does not change.
    pub(crate) fn new(driver: &'static Driver, device: i32) -> Result<Self, Trouble> {
        let before = driver.current();
        let own = Self::current(driver, device)?;
        driver.check("cuCtxSetCurrent", driver.cuCtxSetCurrent(before))?;
        Ok(own)
    }

    /// Creates a context on a device and makes it current.
    pub(crate) fn current(driver: &'static Driver, device: i32) -> Result<Self, Trouble> {
        let context = made(driver, "cuCtxCreate", |context| {
            driver.cuCtxCreate_v2(context, 0, device)
        })?;
        Self::furnish(driver, context)
    }

    /// Retains the primary context of a device and makes it current.
    pub(crate) fn primary(driver: &'static Driver, device: i32) -> Result<Self, Trouble> {
        let context = made(driver, "cuDevicePrimaryCtxRetain", |context| {
            driver.cuDevicePrimaryCtxRetain(context, device)
        })?;
        driver.check("cuCtxSetCurrent", driver.cuCtxSetCurrent(context))?;
        Self::furnish(driver, context)
    }

    fn furnish(driver: &'static Driver, context: usize) -> Result<Self, Trouble> {
        let stream = made(driver, "cuStreamCreate", |stream| {
            driver.cuStreamCreate(stream, 1)
        })?;
        let kernels = Kernels::load(driver)?;
        let own = Self {
            driver,
            context,
            stream,
            kernels,
        };
        // The first launch loads the kernel.
        own.spin(0)?;
        driver.check("cuCtxSynchronize", driver.cuCtxSynchronize())?;
        Ok(own)
    }

    pub(crate) fn as_stream(&self) -> Stream {
        // SAFETY: the checks drop every scope before they destroy the stream or its context. Some
        // destroy it before the times of the scopes are read, which is what these checks test; each
        // runs in its own process.
        unsafe { Stream::from_raw(self.stream as _, self.context as _) }
    }

    pub(crate) fn spin(&self, ns: u64) -> Result<(), Trouble> {
        self.kernels.spin(self.stream, ns, 0)
    }

    pub(crate) fn synchronize(&self) -> Result<(), Trouble> {
        self.driver.check(
            "cuStreamSynchronize",
            self.driver.cuStreamSynchronize(self.stream),
        )
    }

    /// Runs `work` while this context is current.
    pub(crate) fn with<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let before = self.driver.current();
        self.driver
            .check("cuCtxSetCurrent", self.driver.cuCtxSetCurrent(self.context))?;
        let done = work();
        self.driver
            .check("cuCtxSetCurrent", self.driver.cuCtxSetCurrent(before))?;
        done
    }

    pub(crate) fn destroy(self) -> Result<(), Trouble> {
        let (driver, context, stream) = (self.driver, self.context, self.stream);
        self.with(|| driver.check("cuStreamDestroy", driver.cuStreamDestroy_v2(stream)))?;
        driver.check("cuCtxDestroy", driver.cuCtxDestroy_v2(context))
    }
}
