//! The buffers that CUPTI writes its records to.
//!
//! CUPTI asks for a buffer on the thread that launches or on one of its own, and gives it back on one of its own, or on
//! the thread that flushes. Neither call allocates or waits for memory.
//!
//! # Protocol
//!
//! A buffer is in one place at a time: in `free`, at CUPTI, or in `full`. Both queues pass it on with the ordering that
//! its memory needs. The recorder's thread takes it out of `full`, reads its records, fills it with zeros, and puts it
//! into `free`. It adds new buffers while few are free, up to [`MAX_BUFFERS`]. A buffer is never freed: one that CUPTI
//! has not given back belongs to CUPTI until the process ends.
//!
//! Without a free buffer, libraries that can be refused one are; they drop the record and count it. Older ones crash, so
//! they get one buffer whose content is thrown away, again and again.

use std::alloc::{Layout, alloc_zeroed};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

use crossbeam_queue::ArrayQueue;

use super::activity::Activity;
use super::losses::{WorkLoss, lose};
use super::names;
use super::record::Record;
use super::table::Cupti;
use crate::diagnostics::user_code;
use crate::sync::{RaceCell, ReentrancyGuard};

/// The bytes of a buffer: some 5,000 kernels.
const SIZE: usize = 1 << 20;
const LAYOUT: Layout = layout(SIZE);
/// The bytes of the buffer whose content is thrown away.
const DISCARDED_SIZE: usize = 256 << 10;
const DISCARDED_LAYOUT: Layout = layout(DISCARDED_SIZE);
/// The most buffers. From CUDA 12.3 on, each launching thread has one of its own.
const MAX_BUFFERS: usize = 256;
/// How many buffers are kept free.
const MIN_FREE: usize = 8;
/// The version of CUPTI from which on a request may be refused.
const CAN_BE_REFUSED: u32 = 27;

const fn layout(size: usize) -> Layout {
    // CUPTI asks for an alignment of eight.
    match Layout::from_size_align(size, 64) {
        Ok(layout) => layout,
        Err(_) => Layout::new::<u64>(),
    }
}

/// A buffer on its way.
#[derive(Clone, Copy, Debug)]
struct Buffer(*mut u8);

// SAFETY: the address of memory that is never freed. The thread that takes it out of a queue is its only owner.
unsafe impl Send for Buffer {}

/// A buffer that CUPTI has given back, with the bytes that hold records.
#[derive(Clone, Copy, Debug)]
struct Full {
    buffer: Buffer,
    valid: usize,
}

#[derive(Debug)]
struct Pool {
    free: ArrayQueue<Buffer>,
    full: ArrayQueue<Full>,
    /// How many buffers exist.
    made: AtomicUsize,
    discarded: AtomicPtr<u8>,
    can_refuse: AtomicBool,
    cupti: &'static Cupti,
    /// Called when a buffer has come back.
    on_full: fn(),
}

static POOL: RaceCell<Pool> = RaceCell::new();

/// Prepares the buffers. Returns `false` if there is no memory. Called on the recorder's thread.
pub(super) fn prepare(cupti: &'static Cupti, on_full: fn()) -> bool {
    let pool = POOL.get_or_init(|| Pool {
        free: ArrayQueue::new(MAX_BUFFERS),
        full: ArrayQueue::new(MAX_BUFFERS),
        made: AtomicUsize::new(0),
        // SAFETY: the size is not zero.
        discarded: AtomicPtr::new(unsafe { alloc_zeroed(DISCARDED_LAYOUT) }),
        can_refuse: AtomicBool::new(cupti.version() >= CAN_BE_REFUSED),
        cupti,
        on_full,
    });
    pool.grow();
    let has_discarded = !pool.discarded.load(Relaxed).is_null();
    !pool.free.is_empty() && (has_discarded || pool.can_refuse.load(Relaxed)) && names::prepare()
}

/// Reads the records of all buffers that have come back, and makes the buffers free again. Called on the recorder's
/// thread. Returns `true` if there was a buffer.
pub(super) fn read(mut take: impl FnMut(Activity)) -> bool {
    let Some(pool) = POOL.get() else {
        return false;
    };
    let mut has_read = false;
    while let Some(Full { buffer, valid }) = pool.full.pop() {
        has_read = true;
        pool.records(buffer.0, valid, |record| {
            if let Some(activity) = record.activity() {
                take(activity);
            }
        });
        // SAFETY: this thread owns the buffer, which has that size.
        unsafe { ptr::write_bytes(buffer.0, 0, SIZE) };
        // There is space for every buffer that exists.
        let _ = pool.free.push(buffer);
    }
    pool.grow();
    has_read
}

impl Pool {
    /// Adds buffers while few are free.
    fn grow(&self) {
        while self.free.len() < MIN_FREE && self.made.load(Relaxed) < MAX_BUFFERS {
            // SAFETY: the size is not zero.
            let buffer = unsafe { alloc_zeroed(LAYOUT) };
            if buffer.is_null() {
                return;
            }
            self.made.fetch_add(1, Relaxed);
            let _ = self.free.push(Buffer(buffer));
        }
    }

    /// Calls `visit` with each record of a buffer.
    fn records(&self, buffer: *mut u8, valid: usize, mut visit: impl FnMut(Record)) {
        let mut record = ptr::null_mut();
        loop {
            if valid == 0 {
                return;
            }
            // SAFETY: CUPTI has given the buffer back with this number of bytes.
            record = unsafe { self.cupti.next(buffer, valid, record) };
            if record.is_null() {
                return;
            }
            // SAFETY: CUPTI has returned it, and it stays until the buffer is filled with zeros.
            visit(unsafe { Record::new(record) });
        }
    }
}

/// Hands out a buffer. CUPTI calls it on the thread that launches, or on one of its own.
///
/// # Safety
///
/// The pointers must be valid for writes.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    max_records: *mut usize,
) {
    let (given, bytes) = take_free();
    // SAFETY: CUPTI passes valid pointers.
    unsafe {
        *buffer = given;
        *size = bytes;
        // As many as there is space for.
        *max_records = 0;
    }
}

fn take_free() -> (*mut u8, usize) {
    let Some(pool) = POOL.get() else {
        return (ptr::null_mut(), 0);
    };
    if let Some(Buffer(buffer)) = pool.free.pop() {
        return (buffer, SIZE);
    }
    (pool.on_full)();
    if pool.can_refuse.load(Relaxed) {
        return (ptr::null_mut(), 0);
    }
    (pool.discarded.load(Relaxed), DISCARDED_SIZE)
}

/// Takes a buffer back. The names of kernels are read at once: they belong to CUPTI.
///
/// # Safety
///
/// `buffer` must come from [`requested`], and its first `valid` bytes must hold records.
pub(super) unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    // No panic may leave a function that C calls.
    let _ = user_code::call(|| take_back(buffer, valid));
}

fn take_back(buffer: *mut u8, valid: usize) {
    // The lock of the names must not be taken again by an allocator or a signal handler that is measured.
    let _busy = ReentrancyGuard::try_enter();
    let Some(pool) = POOL.get() else { return };
    if buffer.is_null() {
        return;
    }
    if buffer == pool.discarded.load(Relaxed) {
        let mut lost = 0;
        pool.records(buffer, valid, |_| lost += 1);
        lose(WorkLoss::NoBuffer, lost);
        // SAFETY: of that size. Another thread may write its records to it: nothing in it is read but their number.
        unsafe { ptr::write_bytes(buffer, 0, DISCARDED_SIZE) };
        return;
    }
    pool.records(buffer, valid, |record| {
        if let Some(address) = record.name() {
            // SAFETY: the record has just come from CUPTI, whose names are terminated.
            record.set_name(unsafe { names::number_of(address) });
        }
    });
    let buffer = Buffer(buffer);
    let _ = pool.full.push(Full { buffer, valid });
    (pool.on_full)();
}
