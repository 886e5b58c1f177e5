//! Memory of the device and of the host, for copies and fills.

use std::ffi::c_void;

use crate::driver::{Driver, made};
use crate::trouble::Trouble;

/// The forms of the driver's copy of a batch: that of CUDA 12.8, and that of CUDA 13.
pub(crate) const BATCHES: [&str; 2] = ["cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2"];

/// Two blocks on the device, and one of pinned memory on the host.
pub(crate) struct Buffers {
    driver: &'static Driver,
    from: u64,
    to: u64,
    host: usize,
    bytes: usize,
}

/// `CUmemcpyAttributes`: how copies of a batch may be ordered, and hints that are not given.
#[repr(C)]
struct Attributes {
    source_order: u32,
    source_hint: [u32; 2],
    destination_hint: [u32; 2],
    flags: u32,
}

/// `CU_MEMCPY_SRC_ACCESS_ORDER_STREAM`.
const IN_STREAM_ORDER: u32 = 1;

type First = unsafe extern "C" fn(
    *const u64,
    *const u64,
    *const usize,
    usize,
    *const Attributes,
    *const usize,
    usize,
    *mut usize,
    usize,
) -> u32;
type Second = unsafe extern "C" fn(
    *const u64,
    *const u64,
    *const usize,
    usize,
    *const Attributes,
    *const usize,
    usize,
    usize,
) -> u32;

impl Buffers {
    /// Allocates blocks of this many bytes.
    pub(crate) fn new(driver: &'static Driver, bytes: usize) -> Result<Self, Trouble> {
        let mut buffers = Self {
            driver,
            from: 0,
            to: 0,
            host: 0,
            bytes,
        };
        for address in [&mut buffers.from, &mut buffers.to] {
            *address = made(driver, "cuMemAlloc", |address| {
                driver.cuMemAlloc_v2(address, bytes)
            })?;
            driver.check("cuMemsetD8", driver.cuMemsetD8_v2(*address, 0, bytes))?;
        }
        buffers.host = made(driver, "cuMemAllocHost", |memory| {
            driver.cuMemAllocHost_v2(memory, bytes)
        })?;
        driver.check("cuCtxSynchronize", driver.cuCtxSynchronize())?;
        Ok(buffers)
    }

    /// Returns the address of a block on the device.
    pub(crate) fn device(&self) -> u64 {
        self.to
    }

    /// Returns the address of the pinned memory.
    pub(crate) fn host(&self) -> *const c_void {
        std::ptr::with_exposed_provenance(self.host)
    }

    pub(crate) fn fill_bytes(&self, bytes: usize, stream: usize) -> Result<(), Trouble> {
        let code = self
            .driver
            .cuMemsetD8Async(self.to, 1, self.within(bytes), stream);
        self.driver.check("cuMemsetD8Async", code)
    }

    pub(crate) fn fill_words(&self, bytes: usize, stream: usize) -> Result<(), Trouble> {
        let words = self.within(bytes) / size_of::<u32>();
        let code = self.driver.cuMemsetD32Async(self.to, 1, words, stream);
        self.driver.check("cuMemsetD32Async", code)
    }

    pub(crate) fn copy_to_device(&self, bytes: usize, stream: usize) -> Result<(), Trouble> {
        let bytes = self.within(bytes);
        let code = self
            .driver
            .cuMemcpyHtoDAsync_v2(self.to, self.host, bytes, stream);
        self.driver.check("cuMemcpyHtoDAsync", code)
    }

    pub(crate) fn copy_to_host(&self, bytes: usize, stream: usize) -> Result<(), Trouble> {
        let bytes = self.within(bytes);
        let code = self
            .driver
            .cuMemcpyDtoHAsync_v2(self.host, self.from, bytes, stream);
        self.driver.check("cuMemcpyDtoHAsync", code)
    }

    pub(crate) fn copy_on_device(&self, bytes: usize, stream: usize) -> Result<(), Trouble> {
        let bytes = self.within(bytes);
        let code = self
            .driver
            .cuMemcpyDtoDAsync_v2(self.to, self.from, bytes, stream);
        self.driver.check("cuMemcpyDtoDAsync", code)
    }

    /// Copies from memory that may be paged out.
    pub(crate) fn copy_to_device_and_wait(&self, bytes: usize) -> Result<(), Trouble> {
        let words = vec![1_u64; self.within(bytes) / size_of::<u64>()];
        let code = self
            .driver
            .cuMemcpyHtoD_v2(self.to, words.as_ptr(), size_of_val(&words[..]));
        self.driver.check("cuMemcpyHtoD", code)
    }

    /// Copies to memory that may be paged out.
    pub(crate) fn copy_to_host_and_wait(&self, bytes: usize) -> Result<(), Trouble> {
        let mut words = vec![0_u64; self.within(bytes) / size_of::<u64>()];
        let bytes = size_of_val(&words[..]);
        let code = self
            .driver
            .cuMemcpyDtoH_v2(words.as_mut_ptr(), self.from, bytes);
        self.driver.check("cuMemcpyDtoH", code)
    }

    /// Copies several parts of one block on the device to the other by one call.
    pub(crate) fn copy_batch(
        &self,
        form: &'static str,
        sizes: [usize; 3],
        stream: usize,
    ) -> Result<(), Trouble> {
        let mut at = 0;
        let offsets = sizes.map(|bytes| {
            at += bytes;
            (at - bytes) as u64
        });
        self.within(at);
        let to = offsets.map(|offset| self.to + offset);
        let from = offsets.map(|offset| self.from + offset);
        let attributes = Attributes {
            source_order: IN_STREAM_ORDER,
            source_hint: [0; 2],
            destination_hint: [0; 2],
            flags: 0,
        };
        let (first, count) = (0_usize, sizes.len());
        let (to, from, sizes) = (to.as_ptr(), from.as_ptr(), sizes.as_ptr());
        let code = if form == BATCHES[0] {
            let mut failed = 0;
            // SAFETY: the function of this name has this type (cuda.h).
            let call = unsafe { self.driver.optional::<First>(form) };
            // SAFETY: the three lists have `count` elements, and the attributes are for all copies from the first on. All
            // parts are inside of the blocks.
            call.map(|call| unsafe {
                call(
                    to,
                    from,
                    sizes,
                    count,
                    &raw const attributes,
                    &raw const first,
                    1,
                    &raw mut failed,
                    stream,
                )
            })
        } else {
            // SAFETY: as above.
            let call = unsafe { self.driver.optional::<Second>(form) };
            // SAFETY: as above.
            call.map(|call| unsafe {
                call(
                    to,
                    from,
                    sizes,
                    count,
                    &raw const attributes,
                    &raw const first,
                    1,
                    stream,
                )
            })
        };
        let code = code.ok_or_else(|| Trouble::Skip(format!("the driver has no {form}")))?;
        self.driver.check(form, code)
    }

    fn within(&self, bytes: usize) -> usize {
        debug_assert!(bytes <= self.bytes, "{bytes} of {} bytes", self.bytes);
        bytes
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // A failed context has already freed them.
        for address in [self.from, self.to] {
            let _ = self.driver.cuMemFree_v2(address);
        }
        let _ = self.driver.cuMemFreeHost(self.host);
    }
}
