//! Host memory: what threads allocate while a session profiles memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use crate::cuda::{self, DeviceMemory};
use crate::sync::ReentrancyGuard;

/// A global allocator that counts allocations for sessions, and forwards them to another allocator: by default, the
/// system's.
///
/// It counts for each thread separately, and only while a session records with
/// [`profile_memory`](crate::ProfileBuilder::profile_memory). Otherwise it costs one relaxed load per allocation.
/// Without this allocator, traces contain no host memory.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Profile, ProfilerAllocator, scope};
///
/// #[global_allocator]
/// static ALLOCATOR: ProfilerAllocator = ProfilerAllocator::system();
///
/// let (_, trace) = Profile::builder().profile_memory(true).run(|_| {
///     let _scope = scope!("fill");
///     vec![1_u8; 1000]
/// });
/// let trace = trace?;
/// # if profiler_runtime::is_enabled() {
/// let memory = trace.events().find(|event| event.name() == "fill").and_then(|event| event.memory());
/// assert!(memory.is_some_and(|memory| memory.host_net >= 1000));
/// # }
/// # Ok::<(), profiler_runtime::ProfileError>(())
/// ```
#[derive(Debug, Default)]
pub struct ProfilerAllocator<A = System> {
    inner: A,
}

impl ProfilerAllocator {
    /// Creates an allocator that forwards to the system's allocator.
    #[must_use]
    pub const fn system() -> Self {
        Self { inner: System }
    }
}

impl<A> ProfilerAllocator<A> {
    /// Creates an allocator that forwards to `inner`.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

/// The memory that a scope used, in bytes.
///
/// Futures have none: allocations between two polls of a future belong to other scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Host bytes allocated minus those freed on the scope's thread, including functions called.
    pub host_net: i64,
    /// Host bytes allocated on the scope's thread, including functions called.
    pub host_allocated: u64,
    /// The peak of the host bytes in use on the thread, above those in use when the scope opened.
    pub host_peak: u64,
    /// Host bytes in use by the process when the scope ended, above the minimum since the recording began. The absolute
    /// number is unknown, because blocks allocated before the recording are not counted.
    pub host_total: u64,
    /// Device bytes in use at the end minus those at the beginning, in the current context of the scope's thread; `None`
    /// if no context was current.
    pub device_net: Option<i64>,
    /// Device bytes in use when the scope ended.
    pub device_total: Option<u64>,
    /// Device bytes that the driver had reserved when the scope ended.
    pub device_reserved: Option<u64>,
}

/// The counts of a thread, in bytes.
struct Counts {
    /// Bytes allocated minus bytes freed.
    held: Cell<i64>,
    allocated: Cell<u64>,
    /// The maximum of `held` since the innermost recorded scope opened.
    peak: Cell<i64>,
}

thread_local! {
    // It has no destructor, so it can be used until the thread ends.
    static COUNTS: Counts = const {
        Counts {
            held: Cell::new(0),
            allocated: Cell::new(0),
            peak: Cell::new(0),
        }
    };
}

/// `true` while a session profiles memory.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Returns `true` while a session profiles memory.
#[inline]
fn is_wanted() -> bool {
    WANTED.load(Relaxed)
}

/// Starts or stops counting.
pub(crate) fn set_wanted(wanted: bool) {
    if wanted && !is_wanted() {
        start_over();
    }
    WANTED.store(wanted, Relaxed);
}

/// Bytes allocated minus bytes freed on all threads since the counting began.
static TOTAL: AtomicI64 = AtomicI64::new(0);
/// The minimum of `TOTAL`; negative if older blocks were freed.
static LEAST: AtomicI64 = AtomicI64::new(0);

/// Resets the total: it lacks the blocks that were freed while nothing was counted.
fn start_over() {
    TOTAL.store(0, Relaxed);
    LEAST.store(0, Relaxed);
}

/// Returns the bytes in use, above the minimum since the counting began.
fn total() -> u64 {
    let total = TOTAL.load(Relaxed) - LEAST.load(Relaxed);
    u64::try_from(total).unwrap_or_default()
}

fn count(allocated: usize, freed: usize) {
    // Do not attribute the profiler's own allocations to a scope.
    if !is_wanted() || ReentrancyGuard::is_entered() {
        return;
    }
    // These casts do not overflow: an allocation is at most half of the address space.
    let grown = allocated.cast_signed() as i64 - freed.cast_signed() as i64;
    let total = TOTAL.fetch_add(grown, Relaxed) + grown;
    if total < LEAST.load(Relaxed) {
        LEAST.fetch_min(total, Relaxed);
    }
    let _ = COUNTS.try_with(|counts| {
        counts
            .allocated
            .set(counts.allocated.get() + allocated as u64);
        counts.held.set(counts.held.get() + grown);
        counts.peak.set(counts.peak.get().max(counts.held.get()));
    });
}

// SAFETY: every call is forwarded unchanged to the inner allocator, and its result is returned. Counting neither
// allocates nor unwinds, and does not access the memory.
unsafe impl<A: GlobalAlloc> GlobalAlloc for ProfilerAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`, which the inner allocator requires.
        let block = unsafe { self.inner.alloc(layout) };
        if !block.is_null() {
            count(layout.size(), 0);
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { self.inner.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let block = unsafe { self.inner.alloc_zeroed(layout) };
        if !block.is_null() {
            count(layout.size(), 0);
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { self.inner.realloc(block, layout, size) };
        if !moved.is_null() {
            count(size, layout.size());
        }
        moved
    }
}

/// The memory at both ends of a scope.
#[derive(Debug)]
pub(crate) struct Mark {
    /// The device memory before the scope opened.
    device: Option<DeviceMemory>,
    host: Option<Host>,
    /// The result, after the scope has ended.
    used: Option<MemoryUse>,
}

/// The counts of the thread when a scope opened.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    held: i64,
    allocated: u64,
    /// The peak of the enclosing scope so far.
    outer_peak: i64,
}

/// Queries the device memory before a scope opens, because the query may take long and must not be part of the scope.
pub(crate) fn before() -> Mark {
    Mark {
        device: cuda::device_memory(),
        host: None,
        used: None,
    }
}

impl Mark {
    /// Notes the counts when the scope opens.
    pub(crate) fn begin(&mut self) {
        let look = |counts: &Counts| {
            let held = counts.held.get();
            Host {
                held,
                allocated: counts.allocated.get(),
                outer_peak: counts.peak.replace(held),
            }
        };
        self.host = COUNTS.try_with(look).ok();
    }

    /// Computes the result when the scope ends. `younger` are the scopes that opened later and are still open, since
    /// guards may be dropped in any order.
    pub(crate) fn end<'m>(&mut self, younger: impl Iterator<Item = &'m mut Self>) {
        let Some(host) = self.host else { return };
        let mut inside = younger.filter_map(|mark| mark.host.as_mut());
        let look = |counts: &Counts| {
            let mut peak = counts.peak.get();
            if let Some(first) = inside.next() {
                // The younger scope has saved the peak before its opening.
                peak = peak.max(first.outer_peak);
                first.outer_peak = first.outer_peak.max(host.outer_peak);
                peak = inside.fold(peak, |peak, other| peak.max(other.outer_peak));
            } else {
                counts.peak.set(peak.max(host.outer_peak));
            }
            MemoryUse {
                host_net: counts.held.get() - host.held,
                host_allocated: counts.allocated.get() - host.allocated,
                host_peak: u64::try_from(peak - host.held).unwrap_or_default(),
                host_total: total(),
                ..MemoryUse::default()
            }
        };
        self.used = COUNTS.try_with(look).ok();
    }
}

/// Returns the memory that a scope used, with the device memory after it; `None` unless both of its ends were recorded.
pub(crate) fn after(mark: &Mark) -> Option<MemoryUse> {
    let used = mark.used?;
    let device = cuda::device_memory();
    let net = |(before, after): (DeviceMemory, DeviceMemory)| {
        after.used.cast_signed() - before.used.cast_signed()
    };
    Some(MemoryUse {
        device_net: mark.device.zip(device).map(net),
        device_total: device.map(|device| device.used),
        device_reserved: device.map(|device| device.reserved),
        ..used
    })
}
