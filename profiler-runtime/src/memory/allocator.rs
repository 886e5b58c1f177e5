//! The allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};

use super::counters::count;

/// A global allocator that counts allocations for sessions, and forwards them to another allocator: by default, the
/// system's.
///
/// It counts for each thread separately, and only while a session records with
/// [`profile_memory`](crate::session::ProfileBuilder::profile_memory). Otherwise it costs one relaxed load per allocation.
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
/// # Ok::<(), profiler_runtime::session::ProfileError>(())
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
        // Before the memory is freed: a thread that gets it next must not count it first, or the total shows a peak that
        // was never there.
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
