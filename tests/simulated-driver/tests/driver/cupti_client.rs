//! A client of the simulated CUPTI, as a C program would be: functions without data, and buffers
//! from a fixed pool.
#![allow(dead_code, reason = "no test uses all of it")]
#![allow(non_snake_case, reason = "the functions are CUPTI's")]

use std::ffi::{CStr, c_char};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::support::Driver;

pub(crate) const MEMCPY: u32 = 1;
pub(crate) const MEMSET: u32 = 2;
pub(crate) const KERNEL: u32 = 10;
pub(crate) const OVERHEAD: u32 = 17;
pub(crate) const MEMCPY2: u32 = 22;
pub(crate) const SYNCHRONIZATION: u32 = 38;

/// The callback of a launch.
pub(crate) const LAUNCH: u32 = 307;

/// A callback that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) site: u32,
    pub(crate) thread: std::thread::ThreadId,
    /// How many records had arrived.
    pub(crate) records: usize,
}

/// A record that was received.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) bytes: Vec<u8>,
    pub(crate) thread: std::thread::ThreadId,
}

impl Record {
    pub(crate) fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    pub(crate) fn long(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    pub(crate) fn kind(&self) -> u32 {
        self.word(0)
    }

    /// Returns the name of the kernel.
    pub(crate) fn name(&self) -> String {
        let name = self.long(104) as *const c_char;
        // SAFETY: the record of a kernel has the address of a C string there, which lives as long as the library.
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned()
    }
}

/// The state that the functions of one client share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) records: Mutex<Vec<Record>>,
    /// The addresses and used bytes of the buffers that have returned. None is ever freed.
    pub(crate) buffers: Mutex<Vec<(usize, usize)>>,
    /// The sizes of the buffers that are still to be handed out; then none is.
    sizes: Mutex<Vec<usize>>,
    /// The bytes that are added to the address of a buffer.
    pub(crate) misalignment: AtomicUsize,
    pub(crate) flush_inside: AtomicUsize,
    pub(crate) last_buffer: AtomicUsize,
    next_record: AtomicUsize,
    flush: AtomicUsize,
}

const CLIENTS: usize = 10;
static SHARED: [Shared; CLIENTS] = [const {
    Shared {
        calls: Mutex::new(Vec::new()),
        records: Mutex::new(Vec::new()),
        buffers: Mutex::new(Vec::new()),
        sizes: Mutex::new(Vec::new()),
        misalignment: AtomicUsize::new(0),
        flush_inside: AtomicUsize::new(0),
        last_buffer: AtomicUsize::new(0),
        next_record: AtomicUsize::new(0),
        flush: AtomicUsize::new(0),
    }
}; CLIENTS];

extern "C" fn called<const N: usize>(_user: usize, domain: u32, callback: u32, data: *const u32) {
    assert_eq!((domain, callback), (1, LAUNCH));
    SHARED[N].calls.lock().expect("no panic").push(Call {
        // SAFETY: the library passes a structure that begins with the site, and lives until this function returns.
        site: unsafe { data.read() },
        thread: std::thread::current().id(),
        records: SHARED[N].records.lock().expect("no panic").len(),
    });
    flush_inside(N);
}

/// Makes the mistake of a flush from inside one of the client's functions.
fn flush_inside(client: usize) {
    if SHARED[client].flush_inside.load(SeqCst) > 0 {
        let flush = SHARED[client].flush.load(SeqCst);
        // SAFETY: `Cupti::new` stored the address of this function.
        let flush: extern "C" fn(u32) -> u32 = unsafe { std::mem::transmute(flush) };
        assert_eq!(flush(0), 7);
    }
}

extern "C" fn requested<const N: usize>(buffer: *mut usize, size: *mut usize, most: *mut usize) {
    let next = SHARED[N].sizes.lock().expect("no panic").pop();
    let bytes = next.unwrap_or(0);
    let memory = if bytes == 0 {
        0
    } else {
        Vec::leak(vec![0_u64; bytes / 8 + 1]).as_mut_ptr() as usize
    };
    let skipped = if bytes == 0 {
        0
    } else {
        SHARED[N].misalignment.load(SeqCst)
    };
    SHARED[N].last_buffer.store(memory, SeqCst);
    // SAFETY: the library passes three places.
    unsafe {
        buffer.write(memory + skipped);
        size.write(bytes);
        most.write(0);
    }
}

extern "C" fn completed<const N: usize>(
    _context: usize,
    _stream: u32,
    buffer: usize,
    _size: usize,
    valid: usize,
) {
    let next = SHARED[N].next_record.load(SeqCst);
    // SAFETY: `Cupti::new` stored the address of this function.
    let next: NextRecord = unsafe { std::mem::transmute(next) };
    SHARED[N]
        .buffers
        .lock()
        .expect("no panic")
        .push((buffer, valid));
    let (starts, _) = walk(next, buffer, valid);
    let ends = starts.iter().skip(1).copied().chain([buffer + valid]);
    let mut records = SHARED[N].records.lock().expect("no panic");
    for (start, end) in starts.iter().zip(ends) {
        // SAFETY: the library wrote these bytes into a buffer that is never freed.
        let bytes = unsafe { std::slice::from_raw_parts(*start as *const u8, end - start) };
        records.push(Record {
            bytes: bytes.to_vec(),
            thread: std::thread::current().id(),
        });
    }
    drop(records);
    flush_inside(N);
}

/// `cuptiActivityGetNextRecord`.
pub(crate) type NextRecord = extern "C" fn(usize, usize, *mut usize) -> u32;

/// Returns where the records of a buffer begin, and the code after the last one.
pub(crate) fn walk(next: NextRecord, buffer: usize, valid: usize) -> (Vec<usize>, u32) {
    let mut starts = Vec::new();
    let mut at = 0_usize;
    loop {
        match next(buffer, valid, &raw mut at) {
            0 => starts.push(at),
            code => return (starts, code),
        }
    }
}

extern "C" fn clock() -> u64 {
    // A clock that no other is mistaken for.
    7_000_000_000_000
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The simulated CUPTI of a driver, and its client number `N`, which only one test uses.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Cupti<const N: usize> {
            pub(crate) shared: &'static Shared,
            $($name: unsafe extern "C" fn($($type),*) -> u32,)*
        }

        impl<const N: usize> Cupti<N> {
            pub(crate) fn new(driver: &Driver) -> Self {
                let library = driver.simulator.library();
                let cupti = Self {
                    shared: &SHARED[N],
                    $(
                        // SAFETY: the library exports the function with this type.
                        $name: *unsafe { library.get(stringify!($name).as_bytes()) }
                            .expect("the library has this function"),
                    )*
                };
                SHARED[N].next_record.store(cupti.cuptiActivityGetNextRecord as usize, SeqCst);
                SHARED[N].flush.store(cupti.cuptiActivityFlushAll as usize, SeqCst);
                cupti
            }

            $(pub(crate) fn $name(&self, $($argument: $type),*) -> u32 {
                // SAFETY: the tests pass pointers to their stacks, to live memory, or null.
                unsafe { (self.$name)($($argument),*) }
            })*
        }
    };
}

type Callback = extern "C" fn(usize, u32, u32, *const u32);
type Requested = extern "C" fn(*mut usize, *mut usize, *mut usize);
type Completed = extern "C" fn(usize, u32, usize, usize, usize);

functions! {
    cuptiSubscribe(handle: *mut usize, callback: Callback, user: usize);
    cuptiUnsubscribe(handle: usize);
    cuptiEnableCallback(enable: u32, handle: usize, domain: u32, callback: u32);
    cuptiActivityRegisterCallbacks(requested: Requested, completed: Completed);
    cuptiActivityEnable(kind: u32);
    cuptiActivityFlushAll(flag: u32);
    cuptiActivityGetNextRecord(buffer: usize, bytes: usize, record: *mut usize);
    cuptiActivityGetNumDroppedRecords(context: usize, stream: u32, dropped: *mut usize);
    cuptiActivitySetAttribute(attribute: u32, size: *mut usize, value: *const u8);
    cuptiActivityRegisterTimestampCallback(function: extern "C" fn() -> u64);
    cuptiFinalize();
}

impl<const N: usize> Cupti<N> {
    /// Subscribes. Returns the handle or the error.
    pub(crate) fn subscribe(&self) -> Result<usize, u32> {
        let mut handle = 0;
        match self.cuptiSubscribe(&raw mut handle, called::<N>, 0) {
            0 => Ok(handle),
            code => Err(code),
        }
    }

    /// Registers the client's buffers, of these sizes, and enables `kinds`.
    pub(crate) fn record(&self, kinds: &[u32], sizes: &[usize]) {
        self.hand_out(sizes);
        assert_eq!(
            self.cuptiActivityRegisterCallbacks(requested::<N>, completed::<N>),
            0
        );
        for kind in kinds {
            assert_eq!(self.cuptiActivityEnable(*kind), 0);
        }
    }

    pub(crate) fn hand_out(&self, sizes: &[usize]) {
        self.shared.sizes.lock().expect("no panic").extend(sizes);
    }

    /// Uses a clock that always shows 7,000 seconds.
    pub(crate) fn use_clock(&self) {
        assert_eq!(self.cuptiActivityRegisterTimestampCallback(clock), 0);
    }

    /// Flushes, and returns the records that have arrived since the last call.
    pub(crate) fn flushed(&self, flag: u32) -> Vec<Record> {
        assert_eq!(self.cuptiActivityFlushAll(flag), 0);
        std::mem::take(&mut *self.shared.records.lock().expect("no panic"))
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.shared.calls.lock().expect("no panic"))
    }

    pub(crate) fn dropped(&self) -> usize {
        crate::support::made(|dropped| self.cuptiActivityGetNumDroppedRecords(0, 0, dropped))
    }
}
