//! Bindings to CUPTI, NVIDIA's tracing library, to read when a kernel ran.
//!
//! Only the beginning of a record is read. It is the same in all versions from 11.8 to 13.

use std::alloc::{Layout, alloc};
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::Library;

use crate::libraries;
use crate::trouble::Trouble;

/// The variable that names the library.
pub(crate) const VARIABLE: &str = "PROFILER_CUPTI_LIBRARY";

const NAMES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];

/// The kind of record for concurrent kernels, which does not serialize them.
const CONCURRENT_KERNEL: u32 = 10;
const KERNEL: u32 = 3;
const FORCED: u32 = 1;

const ROOM: usize = 1 << 20;
const LAYOUT: Layout = match Layout::from_size_align(ROOM, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("eight is a power of two"),
};

/// Where the record of a kernel has when it began and ended, and the number of its launch.
const BEGIN: usize = 16;
const END: usize = 24;
const CORRELATION: usize = 92;

type Requested = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut c_void) -> u32;
type Version = unsafe extern "C" fn(*mut u32) -> u32;
type Register = unsafe extern "C" fn(Requested, Completed) -> u32;
type Switch = unsafe extern "C" fn(u32) -> u32;

/// A kernel as CUPTI recorded it, in nanoseconds of CUPTI's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    begin: u64,
    end: u64,
    /// The id of the launch.
    pub(crate) correlation: u32,
}

impl Kernel {
    pub(crate) fn ns(&self) -> f64 {
        self.end.saturating_sub(self.begin) as f64
    }
}

/// The state of the callbacks, which receive no user argument.
static SEEN: Mutex<Seen> = Mutex::new(Seen {
    next: None,
    kernels: Vec::new(),
    stride: 0,
    free: Vec::new(),
});

struct Seen {
    next: Option<Next>,
    kernels: Vec<Kernel>,
    /// The bytes from one kernel's record to the next record, if they were seen.
    stride: usize,
    /// The addresses of buffers to reuse.
    free: Vec<usize>,
}

fn seen() -> MutexGuard<'static, Seen> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library while it records kernels.
pub(crate) struct Cupti {
    pub(crate) library: &'static Library,
    flush: Switch,
    enable: Switch,
    disable: Switch,
    pub(crate) version: u32,
    pub(crate) path: String,
}

impl Cupti {
    /// Starts recording kernels. Call this before a context is created: later, it can take seconds.
    pub(crate) fn start() -> Result<Self, Trouble> {
        let cupti = Self::open()?;
        cupti.enable()?;
        Ok(cupti)
    }

    /// Loads the library, which records nothing yet.
    pub(crate) fn open() -> Result<Self, Trouble> {
        let found = libraries::open_or_named(VARIABLE, &NAMES, "cuda_cupti");
        let (library, path) = found.map_err(Trouble::Skip)?;
        // SAFETY: CUPTI exports the functions with these types (cupti_activity.h, cupti_version.h).
        let (version_of, register, enable, disable, flush, next) = unsafe {
            (
                *library.get::<Version>(b"cuptiGetVersion")?,
                *library.get::<Register>(b"cuptiActivityRegisterCallbacks")?,
                *library.get::<Switch>(b"cuptiActivityEnable")?,
                *library.get::<Switch>(b"cuptiActivityDisable")?,
                *library.get::<Switch>(b"cuptiActivityFlushAll")?,
                *library.get::<Next>(b"cuptiActivityGetNextRecord")?,
            )
        };
        seen().next = Some(next);
        let mut version = 0;
        // SAFETY: the pointer is to this stack.
        check("cuptiGetVersion", unsafe { version_of(&raw mut version) })?;
        // SAFETY: both functions have the types that CUPTI calls, and are never unloaded.
        let registered = unsafe { register(requested, completed) };
        check("cuptiActivityRegisterCallbacks", registered)?;
        Ok(Self {
            library,
            flush,
            enable,
            disable,
            version,
            path,
        })
    }

    /// Starts recording kernels.
    pub(crate) fn enable(&self) -> Result<(), Trouble> {
        // SAFETY: the only argument is an integer.
        let code = unsafe { (self.enable)(CONCURRENT_KERNEL) };
        check("cuptiActivityEnable", code)
    }

    /// Stops recording kernels.
    pub(crate) fn disable(&self) -> Result<(), Trouble> {
        // SAFETY: the only argument is an integer.
        let code = unsafe { (self.disable)(CONCURRENT_KERNEL) };
        check("cuptiActivityDisable", code)
    }

    /// Returns the bytes between two records of kernels; 0 if no two were seen.
    pub(crate) fn stride() -> usize {
        seen().stride
    }

    /// Returns the kernels since the last call, ordered by start.
    pub(crate) fn take(&self) -> Result<Vec<Kernel>, Trouble> {
        // SAFETY: the only argument is an integer.
        check("cuptiActivityFlushAll", unsafe { (self.flush)(FORCED) })?;
        let mut kernels = std::mem::take(&mut seen().kernels);
        kernels.sort_unstable_by_key(|kernel| kernel.begin);
        Ok(kernels)
    }
}

/// Returns the functions and numbers as they are declared here, and the fields of the records of kernels.
#[cfg(test)]
pub(crate) fn declared(headers: &header_check::Headers) -> Vec<header_check::Item> {
    use header_check::Item;

    let mut items = vec![
        Item::function_type::<Requested>("CUpti_BuffersCallbackRequestFunc"),
        Item::function_type::<Completed>("CUpti_BuffersCallbackCompleteFunc"),
        Item::function::<Version>("cuptiGetVersion"),
        Item::function::<Register>("cuptiActivityRegisterCallbacks"),
        Item::function::<Switch>("cuptiActivityEnable"),
        Item::function::<Switch>("cuptiActivityDisable"),
        Item::function::<Switch>("cuptiActivityFlushAll"),
        Item::function::<Next>("cuptiActivityGetNextRecord"),
        Item::constant("CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL", &CONCURRENT_KERNEL),
        Item::constant("CUPTI_ACTIVITY_KIND_KERNEL", &KERNEL),
        Item::constant("CUPTI_ACTIVITY_FLAG_FLUSH_FORCED", &FORCED),
    ];
    for record in headers.numbered("CUpti_ActivityKernel", 8) {
        items.push(Item::field::<u64>(&record, "start", BEGIN));
        items.push(Item::field::<u64>(&record, "end", END));
        items.push(Item::field::<u32>(&record, "correlationId", CORRELATION));
    }
    items
}

pub(crate) fn check(call: &'static str, code: u32) -> Result<(), Trouble> {
    if code == 0 {
        return Ok(());
    }
    Err(Trouble::Library {
        library: "CUPTI",
        call,
        code: i32::try_from(code).unwrap_or(i32::MAX),
    })
}

/// CUPTI's request for a buffer. Buffers are reused, because allocating one slows down launches.
extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    let reused = seen().free.pop();
    // SAFETY: the size of the layout is not zero.
    let given = reused.map_or_else(|| unsafe { alloc(LAYOUT) }, |address| address as *mut u8);
    // SAFETY: CUPTI passes valid pointers for all three.
    unsafe {
        *buffer = given;
        *size = if given.is_null() { 0 } else { ROOM };
        *records = 0;
    }
}

/// CUPTI returns a buffer with records.
extern "C" fn completed(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    let mut seen = seen();
    let Some(next) = seen.next else { return };
    let mut next_record = std::ptr::null_mut();
    let mut last = None::<usize>;
    // SAFETY: the buffer and its size are those that CUPTI passed.
    while valid > 0 && unsafe { next(buffer, valid, &raw mut next_record) } == 0 {
        let record = next_record.cast::<u8>();
        // SAFETY: each record begins with its kind.
        let kind = unsafe { record.cast::<u32>().read_unaligned() };
        if let Some(last) = last.take() {
            seen.stride = record.addr() - last;
        }
        if kind == CONCURRENT_KERNEL || kind == KERNEL {
            last = Some(record.addr());
            // SAFETY: kernel records contain begin and end at these offsets in all versions.
            let at = |place: usize| unsafe { record.add(place).cast::<u64>().read_unaligned() };
            seen.kernels.push(Kernel {
                begin: at(BEGIN),
                end: at(END),
                // SAFETY: and the correlation id at this one.
                correlation: unsafe { record.add(CORRELATION).cast::<u32>().read_unaligned() },
            });
        }
    }
    seen.free.push(buffer as usize);
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use super::{BEGIN, CONCURRENT_KERNEL, END, ROOM, completed, requested, seen};

    /// The maximum size of a CUPTI record.
    const RECORD: usize = 192;

    unsafe extern "C" fn next(buffer: *mut u8, valid: usize, record: *mut *mut c_void) -> u32 {
        // SAFETY: the test passes a valid pointer.
        let last = unsafe { *record };
        let at = if last.is_null() {
            0
        } else {
            last as usize - buffer as usize + RECORD
        };
        // SAFETY: as above; the pointer stays inside the buffer.
        unsafe { *record = buffer.add(at.min(valid)).cast() };
        u32::from(at >= valid)
    }

    #[test]
    fn kernels_are_read_from_a_buffer_which_is_then_used_again() {
        seen().next = Some(next);
        let (mut buffer, mut size, mut records) = (std::ptr::null_mut(), 0, 1);
        requested(&raw mut buffer, &raw mut size, &raw mut records);
        assert_eq!((size, records), (ROOM, 0));
        for (index, kind, begin, end) in [(0, CONCURRENT_KERNEL, 10_u64, 30_u64), (1, 1, 5, 6)] {
            // SAFETY: both records are inside the buffer.
            unsafe {
                let record = buffer.add(index * RECORD);
                record.cast::<u32>().write_unaligned(kind);
                record.add(BEGIN).cast::<u64>().write_unaligned(begin);
                record.add(END).cast::<u64>().write_unaligned(end);
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
