//! The buffers that CUPTI writes its records to.
//!
//! CUPTI asks for a buffer on the thread that launches or on one of its own, and gives it back on one of its own, or on
//! the thread that flushes. Neither call waits. Asking allocates only if no buffer is free, as when many threads begin to launch
//! at once.
//!
//! # Protocol
//!
//! A buffer is in one place at a time: in `free`, at CUPTI, or in `full`. Both queues pass it on with the ordering that
//! its memory needs. The recorder's thread takes it out of `full`, reads its records, fills it with zeros, and puts it
//! into `free`. It adds new buffers while few are free, and so does a thread that finds none, up to [`MAX_BUFFERS`]. A buffer is
//! never freed: one that CUPTI has not given back belongs to CUPTI until the process ends.
//!
//! CUPTI has one pair of these functions for all its clients, so it may give back a buffer that another client had
//! handed out before. Only buffers that are at CUPTI are taken back; any other one is left as it is, and counts as lost.
//!
//! Without a buffer, libraries that can be refused one are; they drop the record and count it. Older ones crash, so
//! they get one buffer whose content is thrown away, again and again. Several threads of CUPTI may write to that one, so
//! it is never read: each return counts as one lost record, and may be many.
//!
//! Only CUPTI knows how long its records are, so nothing is known of what follows one that it cannot read. The rest of such
//! a buffer counts as one lost record, and may be many.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{AcqRel, Relaxed, Release},
};

use profiler_cuda_sys::cupti::{Cupti, Refused};
use profiler_host::diagnostics::user_code;
use profiler_host::process::fork;
use profiler_host::sync::{Queue, RaceCell, ReentrancyGuard};

use super::activity::WorkActivity;
use super::losses::{WorkLoss, lose};
use super::names;
use super::record::Record;

/// The bytes of a buffer: some 5,000 kernels.
const SIZE: usize = 1 << 20;
const LAYOUT: Layout = layout(SIZE);
/// The bytes of the buffer whose content is thrown away.
const DISCARDED_SIZE: usize = 256 << 10;
const DISCARDED_LAYOUT: Layout = layout(DISCARDED_SIZE);
/// The most buffers. From CUDA 12.3 on, each launching thread has one of its own.
const MAX_BUFFERS: usize = 256;
/// How many buffers are kept free, so that asking for one seldom allocates.
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

/// A buffer. It exists once its address is not null, and then until the process ends.
#[derive(Debug)]
struct Buffer {
    address: AtomicPtr<u8>,
    /// `true` from the moment it is handed out until CUPTI gives it back.
    is_at_cupti: AtomicBool,
}

/// A buffer that CUPTI has given back, with the bytes that hold records.
#[derive(Clone, Copy, Debug)]
struct Full {
    /// Its place in [`Pool::buffers`].
    buffer: usize,
    valid: usize,
}

#[derive(Debug)]
struct Pool {
    buffers: [Buffer; MAX_BUFFERS],
    /// How many buffers exist.
    made: AtomicUsize,
    /// The places of buffers in `buffers`. The thread that takes one out of a queue is the buffer's only owner.
    free: Queue<usize>,
    full: Queue<Full>,
    discarded: AtomicPtr<u8>,
    can_refuse: AtomicBool,
    cupti: &'static Cupti,
    /// Called when a buffer has come back.
    on_full: fn(),
}

static POOL: RaceCell<Pool> = RaceCell::new();

/// Prepares the buffers. Returns `false` if there is no memory. Called on the recorder's thread.
pub(super) fn prepare(cupti: &'static Cupti, on_full: fn()) -> bool {
    let pool = POOL.get_or_init(|| Pool::new(cupti, on_full));
    pool.grow();
    let has_discarded = !pool.discarded.load(Relaxed).is_null();
    pool.free.len() > 0 && (has_discarded || pool.can_refuse.load(Relaxed)) && names::prepare()
}

/// Reads the records of all buffers that have come back, and makes the buffers free again. Called on the recorder's
/// thread. Returns why CUPTI could not read the rest of a buffer, if that has happened.
pub(super) fn read(mut take: impl FnMut(WorkActivity)) -> Option<Refused> {
    let pool = POOL.get()?;
    let mut unreadable = None;
    while let Some(Full { buffer, valid }) = pool.full.pop() {
        let address = pool.buffers[buffer].address.load(Relaxed);
        let whole = pool.records(address, valid, |record| {
            if let Some(activity) = record.activity() {
                take(activity);
            }
        });
        if let Err(refused) = whole {
            lose(WorkLoss::Unreadable, 1);
            unreadable = Some(refused);
        }
        // SAFETY: this thread owns the buffer, which has that size.
        unsafe { ptr::write_bytes(address, 0, SIZE) };
        // There is space for every buffer that exists.
        let _ = pool.free.push(buffer);
    }
    pool.grow();
    unreadable
}

impl Pool {
    fn new(cupti: &'static Cupti, on_full: fn()) -> Self {
        Self {
            buffers: [const {
                Buffer {
                    address: AtomicPtr::new(ptr::null_mut()),
                    is_at_cupti: AtomicBool::new(false),
                }
            }; MAX_BUFFERS],
            made: AtomicUsize::new(0),
            free: Queue::new(MAX_BUFFERS),
            full: Queue::new(MAX_BUFFERS),
            // SAFETY: the size is not zero.
            discarded: AtomicPtr::new(unsafe { alloc_zeroed(DISCARDED_LAYOUT) }),
            can_refuse: AtomicBool::new(
                cupti
                    .version()
                    .is_ok_and(|version| version >= CAN_BE_REFUSED),
            ),
            cupti,
            on_full,
        }
    }

    /// Adds buffers while few are free. Called on the recorder's thread alone.
    fn grow(&self) {
        while self.free.len() < MIN_FREE {
            let Some(made) = self.make() else { return };
            let _ = self.free.push(made);
        }
    }

    /// Makes a buffer that is in no queue, and returns its place. Returns `None` without memory, or if there are too many.
    fn make(&self) -> Option<usize> {
        if self.made.load(Relaxed) >= MAX_BUFFERS {
            return None;
        }
        // SAFETY: the size is not zero.
        let address = unsafe { alloc_zeroed(LAYOUT) };
        if address.is_null() {
            return None;
        }
        // Several threads may make one: each takes a place. An address is not looked for before the buffer is handed out.
        let next = |made: usize| (made < MAX_BUFFERS).then_some(made + 1);
        let Ok(place) = self.made.fetch_update(Relaxed, Relaxed, next) else {
            // SAFETY: allocated above with this layout, and known to nothing else.
            unsafe { dealloc(address, LAYOUT) };
            return None;
        };
        self.buffers[place].address.store(address, Relaxed);
        Some(place)
    }

    /// Takes a buffer out of the free ones, for CUPTI, or makes one.
    fn hand_out(&self) -> Option<*mut u8> {
        let buffer = &self.buffers[self.free.pop().or_else(|| self.make())?];
        // Releases the address to the thread that takes the buffer back.
        buffer.is_at_cupti.store(true, Release);
        Some(buffer.address.load(Relaxed))
    }

    /// Returns the place of a buffer that was at CUPTI until now. Returns `None` for any other address.
    fn returned(&self, address: *mut u8) -> Option<usize> {
        if address.is_null() {
            return None;
        }
        let mut places = self.buffers.iter().enumerate();
        let (place, buffer) = places.find(|(_, buffer)| buffer.address.load(Relaxed) == address)?;
        buffer.is_at_cupti.swap(false, AcqRel).then_some(place)
    }

    /// Calls `visit` with each record of a buffer, up to one that CUPTI cannot read.
    fn records(
        &self,
        buffer: *mut u8,
        valid: usize,
        mut visit: impl FnMut(Record),
    ) -> Result<(), Refused> {
        let mut record = ptr::null_mut();
        loop {
            if valid == 0 {
                return Ok(());
            }
            // SAFETY: CUPTI has given the buffer back with this number of bytes.
            record = unsafe { self.cupti.next(buffer, valid, record) }?;
            if record.is_null() {
                return Ok(());
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
    // The program may have an allocator that is measured, or that panics.
    let _busy = ReentrancyGuard::try_enter();
    if let Some(Some(buffer)) = user_code::call(|| pool.hand_out()) {
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
/// If `buffer` comes from [`requested`], its first `valid` bytes must hold records.
pub(super) unsafe extern "C" fn completed(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    if fork::is_child() {
        return;
    }
    // No panic may leave a function that C calls.
    let _ = user_code::call(|| take_back(buffer, valid));
}

fn take_back(buffer: *mut u8, valid: usize) {
    // The lock of the names must not be taken again by an allocator or a signal handler that is measured.
    let _busy = ReentrancyGuard::try_enter();
    let Some(pool) = POOL.get() else { return };
    let Some(place) = pool.returned(buffer) else {
        // Null, the buffer whose content is thrown away, or that of another client: not touched.
        return lose(WorkLoss::NoBuffer, u64::from(valid > 0));
    };
    let valid = valid.min(SIZE);
    // What cannot be read counts when the recorder reads the buffer.
    let _ = pool.records(buffer, valid, |record| {
        if let Some(address) = record.name() {
            // SAFETY: the record has just come from CUPTI, whose names are terminated.
            record.set_name(unsafe { names::number_of(address) });
        }
    });
    let _ = pool.full.push(Full {
        buffer: place,
        valid,
    });
    (pool.on_full)();
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ops::Deref;

    use super::*;

    /// A library that refuses to tell its version. Its other functions are never called.
    fn library() -> &'static Cupti {
        extern "C" fn refuses(_: *mut u32) -> u32 {
            1
        }
        static LIBRARY: RaceCell<Cupti> = RaceCell::new();
        LIBRARY.get_or_init(|| {
            let find = |_: &CStr| Some(refuses as *mut c_void);
            // SAFETY: only the function for the version is called, which is of its type.
            let library = unsafe { Cupti::read("a test".to_owned(), find) };
            library.expect("all functions are there")
        })
    }

    /// A pool whose buffers are freed, since no CUPTI has any of them.
    struct TestPool(Pool);

    impl TestPool {
        fn new() -> Self {
            let pool = Pool::new(library(), || ());
            pool.grow();
            Self(pool)
        }
    }

    impl Deref for TestPool {
        type Target = Pool;

        fn deref(&self) -> &Pool {
            &self.0
        }
    }

    impl Drop for TestPool {
        fn drop(&mut self) {
            let buffers = self.buffers.iter();
            let buffers = buffers.map(|buffer| (buffer.address.load(Relaxed), LAYOUT));
            let discarded = (self.discarded.load(Relaxed), DISCARDED_LAYOUT);
            for (address, layout) in buffers.chain([discarded]) {
                if !address.is_null() {
                    // SAFETY: allocated with this layout, and used no more.
                    unsafe { dealloc(address, layout) };
                }
            }
        }
    }

    #[test]
    fn only_buffers_that_are_at_cupti_are_taken_back() {
        let pool = TestPool::new();
        assert_eq!(pool.free.len(), MIN_FREE);
        let mut foreign = [0xA5_u8; 64];
        assert_eq!(pool.returned(foreign.as_mut_ptr()), None);
        assert_eq!(pool.returned(pool.discarded.load(Relaxed)), None);
        assert_eq!(pool.returned(ptr::null_mut()), None);
        let free = pool.buffers[1].address.load(Relaxed);
        assert_eq!(pool.returned(free), None, "it is not at CUPTI");
        let buffer = pool.hand_out().expect("a buffer");
        assert_eq!(pool.returned(buffer.wrapping_add(8)), None);
        assert_eq!(pool.returned(buffer), Some(0));
        assert_eq!(pool.returned(buffer), None, "it was taken back");
    }

    #[test]
    fn threads_that_begin_to_launch_at_once_all_get_a_buffer_before_the_recorder_comes() {
        let pool = TestPool::new();
        let start = std::sync::Barrier::new(64);
        let buffers: Vec<usize> = std::thread::scope(|threads| {
            let threads = [(); 64].map(|()| {
                threads.spawn(|| {
                    start.wait();
                    pool.hand_out().map_or(0, <*mut u8>::addr)
                })
            });
            let buffers = threads.into_iter();
            buffers.map(|thread| thread.join().unwrap_or(0)).collect()
        });
        let distinct: std::collections::BTreeSet<&usize> = buffers.iter().collect();
        assert!(distinct.len() == 64 && !distinct.contains(&0));
        assert_eq!(pool.made.load(Relaxed), 64, "the free ones first");
    }

    #[test]
    fn there_are_as_many_buffers_as_are_used_up_to_a_limit() {
        let pool = TestPool::new();
        let mut handed_out = Vec::new();
        while let Some(buffer) = pool.hand_out() {
            assert!(!handed_out.contains(&buffer));
            handed_out.push(buffer);
            if handed_out.len() % 2 == 0 {
                pool.grow();
            }
        }
        assert_eq!(handed_out.len(), MAX_BUFFERS);
        let mut returned = handed_out.iter().map(|buffer| pool.returned(*buffer));
        assert!(returned.all(|place| place.is_some()));
    }
}
