//! NVIDIA's own tracing library, as far as it tells when a kernel ran.
//!
//! Only the beginning of a record is read; it is the same in all versions from 11.8 to 13.

use std::alloc::{Layout, alloc};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::libraries;
use crate::trouble::Trouble;

const NAMES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];

/// Kernels that may run at once, which leaves them as they are.
const CONCURRENT_KERNEL: u32 = 10;
const KERNEL: u32 = 3;
const FORCED: u32 = 1;

const ROOM: usize = 1 << 20;
const LAYOUT: Layout = match Layout::from_size_align(ROOM, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("eight is a power of two"),
};

type Requested = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32;

/// A kernel as CUPTI saw it, in nanoseconds of a clock of CUPTI's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    begin: u64,
    end: u64,
}

impl Kernel {
    pub(crate) fn ns(&self) -> f64 {
        self.end.saturating_sub(self.begin) as f64
    }
}

/// What the callbacks need, which take no argument of ours.
static SEEN: Mutex<Seen> = Mutex::new(Seen {
    next: None,
    kernels: Vec::new(),
    free: Vec::new(),
});

struct Seen {
    next: Option<Next>,
    kernels: Vec<Kernel>,
    /// Addresses of buffers to be used again.
    free: Vec<usize>,
}

fn seen() -> MutexGuard<'static, Seen> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library, with kernels being recorded.
pub(crate) struct Cupti {
    flush: unsafe extern "C" fn(u32) -> u32,
    pub(crate) version: u32,
    pub(crate) path: String,
}

impl Cupti {
    /// Begins to record kernels. To be called before a context is made: later it can take seconds.
    pub(crate) fn start() -> Result<Self, Trouble> {
        let (library, path) = libraries::open(&NAMES, "cuda_cupti").map_err(Trouble::Skip)?;
        // SAFETY: CUPTI exports the functions with these types (cupti_activity.h, cupti_version.h).
        let (version_of, register, enable, flush, next) = unsafe {
            (
                *library.get::<unsafe extern "C" fn(*mut u32) -> u32>(b"cuptiGetVersion")?,
                *library.get::<unsafe extern "C" fn(Requested, Completed) -> u32>(
                    b"cuptiActivityRegisterCallbacks",
                )?,
                *library.get::<unsafe extern "C" fn(u32) -> u32>(b"cuptiActivityEnable")?,
                *library.get::<unsafe extern "C" fn(u32) -> u32>(b"cuptiActivityFlushAll")?,
                *library.get::<Next>(b"cuptiActivityGetNextRecord")?,
            )
        };
        seen().next = Some(next);
        let mut version = 0;
        // SAFETY: the place is on this stack.
        check("cuptiGetVersion", unsafe { version_of(&raw mut version) })?;
        // SAFETY: both functions have the types that CUPTI calls, and exist as long as the process.
        let registered = unsafe { register(requested, completed) };
        check("cuptiActivityRegisterCallbacks", registered)?;
        // SAFETY: no more than a number is passed.
        check("cuptiActivityEnable", unsafe { enable(CONCURRENT_KERNEL) })?;
        Ok(Self {
            flush,
            version,
            path,
        })
    }

    /// The kernels since the last call, in the order in which they began.
    pub(crate) fn take(&self) -> Result<Vec<Kernel>, Trouble> {
        // SAFETY: no more than a number is passed.
        check("cuptiActivityFlushAll", unsafe { (self.flush)(FORCED) })?;
        let mut kernels = std::mem::take(&mut seen().kernels);
        kernels.sort_unstable_by_key(|kernel| kernel.begin);
        Ok(kernels)
    }
}

fn check(call: &'static str, code: u32) -> Result<(), Trouble> {
    if code == 0 {
        return Ok(());
    }
    Err(Trouble::Library {
        library: "CUPTI",
        call,
        code: i32::try_from(code).unwrap_or(i32::MAX),
    })
}

/// CUPTI wants a buffer. One that was used before is given: asking the system makes launches slow.
extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    let reused = seen().free.pop();
    // SAFETY: the layout is not empty.
    let given = reused.map_or_else(|| unsafe { alloc(LAYOUT) }, |address| address as *mut u8);
    // SAFETY: CUPTI passes places for all three.
    unsafe {
        *buffer = given;
        *size = if given.is_null() { 0 } else { ROOM };
        *records = 0;
    }
}

/// CUPTI gives a buffer back, with records in it.
extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    let mut seen = seen();
    let Some(next) = seen.next else { return };
    let mut record = std::ptr::null_mut();
    // SAFETY: the buffer and the number of its bytes are CUPTI's own.
    while valid > 0 && unsafe { next(buffer, valid, &raw mut record) } == 0 {
        // SAFETY: each record begins with its kind.
        let kind = unsafe { record.cast::<u32>().read_unaligned() };
        if kind == CONCURRENT_KERNEL || kind == KERNEL {
            // SAFETY: records of kernels hold begin and end at these places in all versions.
            let at = |place: usize| unsafe { record.add(place).cast::<u64>().read_unaligned() };
            seen.kernels.push(Kernel {
                begin: at(16),
                end: at(24),
            });
        }
    }
    seen.free.push(buffer as usize);
}

#[cfg(test)]
mod tests {
    use super::{CONCURRENT_KERNEL, ROOM, completed, requested, seen};

    /// As long as a record of CUPTI's may be.
    const RECORD: usize = 192;

    unsafe extern "C" fn next(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> u32 {
        // SAFETY: the test passes a place.
        let last = unsafe { *record };
        let at = if last.is_null() {
            0
        } else {
            last as usize - buffer as usize + RECORD
        };
        // SAFETY: as above; the place stays inside of the buffer.
        unsafe { *record = buffer.add(at.min(valid)) };
        u32::from(at >= valid)
    }

    #[test]
    fn kernels_are_read_from_a_buffer_which_is_then_used_again() {
        seen().next = Some(next);
        let (mut buffer, mut size, mut records) = (std::ptr::null_mut(), 0, 1);
        requested(&raw mut buffer, &raw mut size, &raw mut records);
        assert_eq!((size, records), (ROOM, 0));
        for (index, kind, begin, end) in [(0, CONCURRENT_KERNEL, 10_u64, 30_u64), (1, 1, 5, 6)] {
            // SAFETY: both records lie inside of the buffer.
            unsafe {
                let record = buffer.add(index * RECORD);
                record.cast::<u32>().write_unaligned(kind);
                record.add(16).cast::<u64>().write_unaligned(begin);
                record.add(24).cast::<u64>().write_unaligned(end);
            }
        }
        completed(std::ptr::null_mut(), 0, buffer, size, 2 * RECORD);
        let kernels: Vec<u64> = seen()
            .kernels
            .drain(..)
            .map(|kernel| kernel.begin)
            .collect();
        assert_eq!(kernels, [10]);
        let mut again = std::ptr::null_mut();
        requested(&raw mut again, &raw mut size, &raw mut records);
        assert_eq!(again, buffer);
    }
}
