//! Host memory: what threads allocate while a session profiles memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

use crate::cuda::{self, DeviceMemory};
use crate::sync::ReentrancyGuard;

/// A global allocator that counts for sessions that profile memory, and hands on to another one: the system's,
/// unless it is given.
///
/// It counts only while a session records with [`profile_memory`](crate::ProfileBuilder::profile_memory), for each
/// thread by itself; else it costs one relaxed load for each allocation. Without it traces have no host memory.
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
    /// Counts what the system's allocator gives.
    #[must_use]
    pub const fn system() -> Self {
        Self { inner: System }
    }
}

impl<A> ProfilerAllocator<A> {
    /// Counts what another allocator gives.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }
}

/// What a scope did to memory, in bytes. Futures have none: what is allocated between two of their polls is not theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Host bytes allocated less those freed on the scope's thread, with what it called.
    pub host_net: i64,
    /// Host bytes allocated on the scope's thread, with what it called.
    pub host_allocated: u64,
    /// The most host bytes that were in use on the thread at once, over what was in use when the scope opened.
    pub host_peak: u64,
    /// Host bytes in use by the process when the scope ended, over the least that were in use since the recording
    /// began: how many there were then is not known.
    pub host_total: u64,
    /// Device bytes in use at the end less those at the beginning, in the context of the scope's thread; none
    /// where no context was current.
    pub device_net: Option<i64>,
    /// Device bytes in use when the scope ended.
    pub device_total: Option<u64>,
    /// Device bytes that the driver had reserved when the scope ended.
    pub device_reserved: Option<u64>,
}

/// What a thread has counted, in bytes.
struct Counts {
    /// Allocated less freed.
    held: Cell<i64>,
    allocated: Cell<u64>,
    /// The most that was held since the innermost scope that counts opened.
    peak: Cell<i64>,
}

thread_local! {
    // No destructor: it counts to the thread's very end.
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

/// Counts from now on, or stops counting.
pub(crate) fn set_wanted(wanted: bool) {
    if wanted && !is_wanted() {
        start_over();
    }
    WANTED.store(wanted, Relaxed);
}

/// Of all threads, since the counting began.
static TOTAL: AtomicI64 = AtomicI64::new(0);
/// The least that was, below zero where older blocks were freed.
static LEAST: AtomicI64 = AtomicI64::new(0);

/// What was freed while nothing was counted must not be in the total for ever.
fn start_over() {
    TOTAL.store(0, Relaxed);
    LEAST.store(0, Relaxed);
}

/// Over the least since the counting began.
fn total() -> u64 {
    let total = TOTAL.load(Relaxed) - LEAST.load(Relaxed);
    u64::try_from(total).unwrap_or_default()
}

fn count(allocated: usize, freed: usize) {
    // What the profiler takes for itself is nobody's.
    if !is_wanted() || ReentrancyGuard::is_entered() {
        return;
    }
    // An allocation is no more than half of the address space.
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

// SAFETY: every call is handed to the inner allocator as it came, and what that returns is returned; counting
// neither allocates nor unwinds, nor looks at the memory.
unsafe impl<A: GlobalAlloc> GlobalAlloc for ProfilerAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is the one that the inner allocator asks for.
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

/// Memory at both ends of a scope.
#[derive(Debug)]
pub(crate) struct Mark {
    /// On the device, before.
    device: Option<DeviceMemory>,
    host: Option<Host>,
    /// Once it has ended.
    used: Option<MemoryUse>,
}

/// What the thread had counted when a scope opened.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    held: i64,
    allocated: u64,
    /// The peak of the scope around it.
    outer_peak: i64,
}

/// Asks for what is to be known before a scope opens: the driver may take its time.
pub(crate) fn before() -> Mark {
    Mark {
        device: cuda::device_memory(),
        host: None,
        used: None,
    }
}

impl Mark {
    /// The scope is open.
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

    /// The scope has ended, before those that opened later and are still open: guards may be dropped in any order.
    pub(crate) fn end<'m>(&mut self, younger: impl Iterator<Item = &'m mut Self>) {
        let Some(host) = self.host else { return };
        let mut inside = younger.filter_map(|mark| mark.host.as_mut());
        let look = |counts: &Counts| {
            let mut peak = counts.peak.get();
            if let Some(first) = inside.next() {
                // It has put aside what was the most before it opened.
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

/// What a scope did, with what the device has after it; none where it was not told of both of its ends.
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
