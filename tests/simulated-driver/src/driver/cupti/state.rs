//! The state of the simulated CUPTI behind one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::call;
use super::fault::CuptiFaults;
use super::record::Record;
use crate::driver::ffi::{BufferCompleted, BufferRequested, CuptiCallback, TimestampCallback};
use crate::report::CuptiReport;

static CUPTI: LazyLock<Mutex<Cupti>> = LazyLock::new(|| Mutex::new(Cupti::new()));

/// The client of the callbacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subscriber {
    pub(super) handle: usize,
    pub(super) callback: Option<CuptiCallback>,
    pub(super) user: usize,
}

/// A buffer that the client handed out.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) address: usize,
    pub(super) size: usize,
    pub(super) used: usize,
    pub(super) records: usize,
    /// How many records it may hold.
    pub(super) most: usize,
}

/// The state of the library.
#[derive(Debug)]
pub(super) struct Cupti {
    pub(super) version: u32,
    pub(super) is_11_8: bool,
    pub(super) subscriber: Option<Subscriber>,
    handles: usize,
    /// The callbacks that are enabled, by domain and number.
    pub(super) callbacks: BTreeSet<(u32, u32)>,
    pub(super) kinds: BTreeSet<u32>,
    pub(super) requested: Option<BufferRequested>,
    pub(super) completed: Option<BufferCompleted>,
    pub(super) timestamp: Option<TimestampCallback>,
    /// The difference of the time of records to the driver's.
    pub(super) offset: u64,
    pub(super) attributes: BTreeMap<u32, Vec<u8>>,
    /// The last correlation number.
    correlation: u32,
    /// Records that are in no buffer yet, by the time of their end.
    pub(super) pending: BTreeMap<(u64, u64), Record>,
    records: u64,
    /// The keys of the buffers that exist or are being requested: threads, or 0.
    pub(super) provided: BTreeSet<u64>,
    /// Buffers that launching threads requested and no record is in yet.
    pub(super) spare: BTreeMap<u64, Buffer>,
    pub(super) dropped: usize,
    /// The names of kernels. Records point to them, so they are never freed.
    names: BTreeMap<Arc<str>, &'static CStr>,
    pub(super) faults: CuptiFaults,
    pub(super) report: CuptiReport,
}

impl Cupti {
    fn new() -> Self {
        Self {
            version: super::DEFAULT_VERSION,
            is_11_8: false,
            subscriber: None,
            handles: 0,
            callbacks: BTreeSet::new(),
            kinds: BTreeSet::new(),
            requested: None,
            completed: None,
            timestamp: None,
            offset: 0,
            attributes: BTreeMap::new(),
            correlation: 0,
            pending: BTreeMap::new(),
            records: 0,
            provided: BTreeSet::new(),
            spare: BTreeMap::new(),
            dropped: 0,
            names: BTreeMap::new(),
            faults: CuptiFaults::default(),
            report: CuptiReport::default(),
        }
    }

    /// Returns a handle that no subscriber had before.
    pub(super) fn next_handle(&mut self) -> usize {
        self.handles += 1;
        0xc0_0000 + self.handles * 0x10
    }

    pub(super) fn next_correlation(&mut self) -> u32 {
        self.correlation += 1;
        self.correlation
    }

    /// Keeps a record until `due`.
    pub(super) fn keep(&mut self, due: u64, record: Record) {
        self.records += 1;
        self.pending.insert((due, self.records), record);
    }

    /// Returns the name of a kernel as a C string.
    pub(super) fn name(&mut self, name: &Arc<str>) -> &'static CStr {
        if let Some(known) = self.names.get(name) {
            return known;
        }
        let text = CString::new(&**name).unwrap_or_default();
        let kept: &'static CStr = Box::leak(text.into_boxed_c_str());
        self.names.insert(Arc::clone(name), kept);
        kept
    }

    /// Returns the one byte of an attribute.
    pub(super) fn flag(&self, attribute: u32) -> bool {
        let value = self.attributes.get(&attribute);
        match value.and_then(|bytes| bytes.first()) {
            Some(byte) => *byte != 0,
            // Buffers per thread, which is on unless it is turned off.
            None => attribute == 9 && self.version >= 22,
        }
    }

    /// Returns the key of the buffer for the records of a thread.
    pub(super) fn key(&self, thread: u64) -> u64 {
        if self.flag(9) { thread } else { 0 }
    }

    /// Stores whether driver calls have anything to do for the client.
    pub(super) fn update_activity(&self) {
        let calls_back = self.subscriber.is_some() && !self.callbacks.is_empty();
        call::set_active(calls_back || !self.kinds.is_empty() || self.faults.lingers());
    }

    /// Relates the time of records to the driver's time `now`.
    pub(super) fn set_offset(&mut self, now: u64, there: u64) {
        self.offset = there
            .wrapping_sub(now)
            .wrapping_add(self.faults.clock_offset);
    }

    /// Returns a time in nanoseconds since 1970 as it is told to the client.
    pub(super) fn told(&self, ns: u64) -> u64 {
        self.faults.other_clock.map_or(ns, |clock| clock.at(ns))
    }

    /// Returns the time of a record.
    pub(super) fn time(&self, at: u64) -> u64 {
        at.wrapping_add(self.offset)
    }
}

/// Returns the nanoseconds since 1970.
pub(super) fn real_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(0))
}

pub(super) fn lock() -> MutexGuard<'static, Cupti> {
    CUPTI.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the state after loading. Buffers that the client handed out are forgotten.
pub(crate) fn reset() {
    let mut cupti = lock();
    let handles = cupti.handles;
    *cupti = Cupti {
        handles,
        ..Cupti::new()
    };
    cupti.update_activity();
    drop(cupti);
    super::delivery::forget();
}

/// Returns what the report says about CUPTI.
pub(crate) fn report() -> CuptiReport {
    let cupti = lock();
    CuptiReport {
        subscribed: cupti.subscriber.is_some(),
        callbacks_enabled: cupti.callbacks.len() as u64,
        kinds_enabled: cupti.kinds.iter().copied().collect(),
        ..cupti.report.clone()
    }
}
