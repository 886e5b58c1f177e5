//! Records on their way to the client: buffers are requested, filled, and returned.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::Duration;

use super::call::{in_client, is_active};
use super::fault::RecordFault;
use super::ids::kind;
use super::layout::Fields;
use super::record::{Body, Record};
use super::state::{self, Buffer, Cupti};
use crate::driver::state::LockedState;
use crate::driver::{ffi, thread};

/// Bytes at both ends of a buffer by which the library notices that its memory was used otherwise.
const CANARY: [u8; 8] = *b"\xc5CUPTI\xc5\x01";
/// The attribute of clients that hand out buffers of zeroes.
const ZEROED: u32 = 5;
/// Version 27 and newer accept that a client hands out no buffer.
const ACCEPTS_REFUSALS: u32 = 27;

/// The overheads that are recorded.
const FLUSH: u32 = 1 << 16;
const REQUEST: u32 = 7 << 16;

/// The buffers that have records, by key. Held while the client takes a buffer back.
static DELIVERY: Mutex<BTreeMap<u64, Buffer>> = Mutex::new(BTreeMap::new());

static STARTED: Once = Once::new();
static WAKE_LOCK: Mutex<()> = Mutex::new(());
static WAKE_UP: Condvar = Condvar::new();
/// How often the worker looks for records that are complete.
const PERIOD: Duration = Duration::from_millis(5);

/// The records and buffers that a delivery includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flush {
    /// Complete records move into buffers. Full buffers return.
    None,
    /// And so do those that are not full.
    Complete,
    /// Incomplete records too.
    Forced,
}

/// Forgets all buffers.
pub(super) fn forget() {
    DELIVERY
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

/// Makes the client hand out a buffer for this thread's records, if it has none. Called by the
/// thread that launches, as by the real library.
pub(super) fn provide_buffer() {
    let mut cupti = state::lock();
    let key = cupti.key(thread::id());
    if cupti.requested.is_none() || !cupti.provided.insert(key) {
        return;
    }
    drop(cupti);
    match request() {
        Some(buffer) => {
            state::lock().spare.insert(key, buffer);
        }
        None => {
            state::lock().provided.remove(&key);
        }
    }
}

/// Makes the client hand out a buffer. No lock is held but, on some threads, that of the delivery.
fn request() -> Option<Buffer> {
    let begin = LockedState::new().clock.now();
    let mut cupti = state::lock();
    let requested = cupti.requested?;
    let (is_zeroed, version) = (cupti.flag(ZEROED), cupti.version);
    cupti.report.buffers_requested += 1;
    drop(cupti);
    let (mut address, mut size, mut most) = (0_usize, 0_usize, 0_usize);
    in_client(|| requested(&raw mut address, &raw mut size, &raw mut most));
    if address == 0 || size < 1_024 {
        if version < ACCEPTS_REFUSALS {
            misuse("this version crashes if it gets no buffer", address);
        }
        return None;
    }
    if !address.is_multiple_of(8) {
        misuse("a buffer begins at a multiple of 8 bytes", address);
    }
    if is_zeroed {
        if ffi::keep(address, size).iter().any(|byte| *byte != 0) {
            misuse(
                "a buffer is not zeroed, although an attribute says so",
                address,
            );
        }
    } else {
        ffi::fill(address, 0, 1, size);
    }
    mark(address);
    mark(address + size - CANARY.len());
    let end = LockedState::new().clock.now();
    let mut cupti = state::lock();
    cupti.report.buffers_held += 1;
    overhead(&mut cupti, REQUEST, begin, end);
    Some(Buffer {
        address,
        size,
        used: 0,
        records: 0,
        most: if most == 0 { usize::MAX } else { most },
    })
}

fn overhead(cupti: &mut Cupti, kind: u32, start: u64, end: u64) {
    if cupti.kinds.contains(&kind::OVERHEAD) {
        let record = Record {
            thread: thread::id(),
            offset: cupti.offset,
            start,
            end,
            device: 0,
            context: 0,
            stream: 0,
            correlation: 0,
            graph: 0,
            node: 0,
            body: Body::Overhead { kind },
        };
        cupti.keep(end, record);
    }
}

fn mark(address: usize) {
    ffi::copy(address, CANARY.as_ptr() as usize, CANARY.len());
}

fn is_marked(address: usize) -> bool {
    ffi::keep(address, CANARY.len()) == CANARY
}

fn misuse(what: &str, handle: usize) {
    super::entry::misuse("cuptiActivityRegisterCallbacks", what, handle);
}

/// Moves complete records into buffers, and returns buffers to the client.
pub(super) fn deliver(flush: Flush) {
    let mut buffers = DELIVERY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut driver = LockedState::new();
    let now = driver.clock.now();
    if flush == Flush::Forced {
        driver.record_unfinished_operations();
    }
    drop(driver);
    let mut cupti = state::lock();
    let due = if flush == Flush::Forced {
        std::mem::take(&mut cupti.pending)
    } else {
        let later = cupti.pending.split_off(&(now.saturating_add(1), 0));
        std::mem::replace(&mut cupti.pending, later)
    };
    drop(cupti);
    for ((due, _), record) in due {
        write(&mut buffers, &record, due <= now);
    }
    if flush == Flush::None {
        return;
    }
    for (key, buffer) in std::mem::take(&mut *buffers) {
        complete(key, &buffer);
    }
    if flush == Flush::Forced {
        let spare = std::mem::take(&mut state::lock().spare);
        for (key, buffer) in spare {
            complete(key, &buffer);
        }
    }
    let end = LockedState::new().clock.now();
    overhead(&mut state::lock(), FLUSH, now, end);
}

/// Waits until the operations of a call have ended, and returns their records to the client.
pub(super) fn deliver_records_of(correlation: u32) {
    let of_call = |(due, record): (&(u64, u64), &Record)| {
        (record.correlation == correlation).then_some(due.0)
    };
    let last = state::lock().pending.iter().filter_map(of_call).max();
    let Some(last) = last.filter(|last| *last < u64::MAX) else {
        return;
    };
    LockedState::new().wait_until(last);
    deliver(Flush::Complete);
}

/// Writes a record into the buffer of its thread.
fn write(buffers: &mut BTreeMap<u64, Buffer>, record: &Record, is_complete: bool) {
    let mut cupti = state::lock();
    let key = cupti.key(record.thread);
    let mut record = *record;
    let mut is_timed = true;
    let before = std::mem::replace(&mut cupti.faults.last_correlation, record.correlation);
    match cupti.faults.of_next_record() {
        Some(RecordFault::Drop) => {
            cupti.dropped += 1;
            cupti.report.records_dropped += 1;
            return;
        }
        Some(RecordFault::Lose) => {
            cupti.report.records_lost += 1;
            return;
        }
        Some(RecordFault::Untimed) => {
            cupti.report.records_untimed += 1;
            is_timed = false;
        }
        Some(fault @ (RecordFault::AfterUnknown | RecordFault::AfterOverhead)) => {
            let body = match fault {
                RecordFault::AfterUnknown => Body::Unknown,
                _ => Body::Overhead { kind: FLUSH },
            };
            let before = Record { body, ..record }.encode(&cupti, true, true);
            cupti.report.records_unknown += u64::from(fault == RecordFault::AfterUnknown);
            drop(cupti);
            if let Some(before) = before {
                append(buffers, key, &before);
            }
            cupti = state::lock();
        }
        Some(RecordFault::Correlation(other)) => record.correlation = other,
        Some(RecordFault::Previous) => record.correlation = before,
        Some(RecordFault::OtherName) => {
            if let Body::Kernel { name, .. } = &mut record.body {
                *name = c"other_kernel";
            }
        }
        None => {}
    }
    if !is_complete {
        cupti.report.records_incomplete += 1;
    }
    let fields = record.encode(&cupti, is_complete, is_timed);
    drop(cupti);
    if let Some(fields) = fields {
        append(buffers, key, &fields);
    }
}

/// Adds the bytes of a record to a buffer, if there is one or the client hands one out.
fn append(buffers: &mut BTreeMap<u64, Buffer>, key: u64, fields: &Fields) {
    let bytes = fields.bytes();
    if let Some(full) = buffers.get(&key)
        && !full.has_room_for(bytes.len())
        && let Some(full) = buffers.remove(&key)
    {
        complete(key, &full);
    }
    let buffer = match buffers.entry(key) {
        Entry::Occupied(buffer) => buffer.into_mut(),
        Entry::Vacant(place) => {
            let spare = state::lock().spare.remove(&key);
            let Some(buffer) = spare.or_else(request) else {
                let mut cupti = state::lock();
                cupti.provided.remove(&key);
                cupti.dropped += 1;
                cupti.report.records_without_buffer += 1;
                return;
            };
            state::lock().provided.insert(key);
            place.insert(buffer)
        }
    };
    buffer.append(bytes);
    state::lock().report.records_written += 1;
}

impl Buffer {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.records < self.most && self.used + bytes + CANARY.len() <= self.size
    }

    fn append(&mut self, bytes: &[u8]) {
        if self.used == 0 && !is_marked(self.address) {
            misuse(
                "a buffer was changed or freed before it was returned",
                self.address,
            );
        }
        ffi::copy(
            self.address + self.used,
            bytes.as_ptr() as usize,
            bytes.len(),
        );
        self.used += bytes.len();
        self.records += 1;
    }
}

/// Returns a buffer to the client.
fn complete(key: u64, buffer: &Buffer) {
    let mut cupti = state::lock();
    cupti.provided.remove(&key);
    if cupti.faults.buffers_to_keep > 0 {
        cupti.faults.buffers_to_keep -= 1;
        cupti.report.buffers_kept += 1;
        return;
    }
    let completed = cupti.completed;
    cupti.report.buffers_held -= 1;
    cupti.report.buffers_returned += 1;
    drop(cupti);
    let last = buffer.address + buffer.size - CANARY.len();
    if !is_marked(last) || (buffer.used == 0 && !is_marked(buffer.address)) {
        misuse(
            "a buffer was changed or freed before it was returned",
            buffer.address,
        );
    }
    ffi::fill(last, 0, 1, CANARY.len());
    if buffer.used == 0 {
        ffi::fill(buffer.address, 0, 1, CANARY.len());
    }
    if let Some(completed) = completed {
        in_client(|| completed(0, 0, buffer.address, buffer.size, buffer.used));
    }
}

/// Starts the thread that fills buffers, or wakes it.
pub(super) fn wake() {
    STARTED.call_once(|| {
        let name = String::from("simulated CUPTI");
        // Without the thread, records wait for a flush.
        drop(std::thread::Builder::new().name(name).spawn(work));
    });
    WAKE_UP.notify_all();
}

fn work() {
    loop {
        let sleeping = WAKE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let most = if is_active() {
            PERIOD
        } else {
            Duration::from_millis(200)
        };
        drop(WAKE_UP.wait_timeout(sleeping, most));
        let has_records = !state::lock().pending.is_empty();
        if has_records {
            deliver(Flush::None);
        }
    }
}
