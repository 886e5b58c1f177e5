//! Per-thread state of GPU measurements.

use std::cell::{RefCell, RefMut};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use profiler_cuda_sys::driver::{Fault, RawContext};
use profiler_host::diagnostics::catch_own_panic;
use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::ring::Producer;
use profiler_report::internal::{RawStream, StreamKey};

use super::backoff::HostFunctionBackoff;
use super::context_cache::ContextCache;
use super::context_seen::ContextSeen;
use super::scope::{CostSampling, TaskGpuScope};
use super::stack::ScopeStack;
use crate::cuda::context::measurement::{GpuMeasurement, ScopeRef};
use crate::cuda::context::{self, Context};
use crate::cuda::ffi::EventApi;
use crate::cuda::idle;
use crate::cuda::nvtx;
use crate::cuda::stream::Stream;

/// The bits of a key that number the scopes of a thread.
const KEYS: u64 = (1 << 40) - 1;

/// The most boxes of ended futures that a thread keeps.
const MAX_TASK_BOXES: usize = 64;

/// The per-thread state of GPU measurements.
pub(crate) struct GpuThread {
    /// Unique among the threads of the process; zero until it is needed.
    pub(super) number: u32,
    /// How many GPU scopes the thread has opened.
    opened: u64,
    pub(super) stack: ScopeStack,
    caches: Vec<ContextCache>,
    current: Option<Stream>,
    pub(super) backoff: HostFunctionBackoff,
    context_seen: ContextSeen,
    /// Boxes of ended futures, for new ones.
    task_boxes: Vec<TaskGpuScope>,
    pub(super) ring: Option<Producer<Box<GpuMeasurement>>>,
    /// How many calls of the thread had streams that were bound, and the serial and the key of the last one.
    bound_calls: u64,
    last_bound_call: (u64, u64),
}

thread_local! {
    /// The calling thread's number; zero before it is needed. It has no destructor, so a callback of CUPTI can read it
    /// without registering one.
    #[cfg(feature = "cuda")]
    static NUMBER: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    static THREAD: RefCell<GpuThread> = const { RefCell::new(GpuThread::new()) };
}

/// Calls `f` with the thread's state. Returns `None` if the thread is ending, or is inside already: an allocator or a
/// logger may be measured itself.
#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&mut GpuThread) -> T) -> Option<T> {
    // SAFETY: it is dropped when this function returns.
    let mut thread = unsafe { borrow() }?;
    Some(f(&mut thread))
}

/// Returns the thread's state, as [`with`] passes it on.
///
/// # Safety
///
/// The caller drops it before it returns to its own caller: the state is freed when the thread ends.
// Takes no closure, unlike `with`: the compiler would not inline one as large as the code that opens or ends a scope.
#[inline(always)]
pub(super) unsafe fn borrow() -> Option<RefMut<'static, GpuThread>> {
    let thread = THREAD.try_with(ptr::from_ref).ok()?;
    // SAFETY: the state exists: `try_with` has just succeeded. Only this thread destroys it, when it ends, and not before the
    // caller returns.
    unsafe { &*thread }.try_borrow_mut().ok()
}

impl GpuThread {
    pub(super) const fn new() -> Self {
        Self {
            number: 0,
            opened: 0,
            bound_calls: 0,
            last_bound_call: (0, 0),
            stack: ScopeStack::new(),
            caches: Vec::new(),
            current: None,
            backoff: HostFunctionBackoff::new(),
            context_seen: ContextSeen::NotAfter(0),
            task_boxes: Vec::new(),
            ring: None,
        }
    }

    /// Returns the thread's number.
    #[inline(always)]
    pub(super) fn number(&mut self) -> u32 {
        if self.number == 0 {
            self.take_number();
        }
        self.number
    }

    #[cold]
    #[inline(never)]
    fn take_number(&mut self) {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        self.number = NEXT.fetch_add(1, Relaxed);
        idle::note_launching(self.number);
        #[cfg(feature = "cuda")]
        NUMBER.set(self.number);
    }

    /// Returns a key that no other GPU scope of the process has: `number`, the thread's, in the upper 24 bits, and the
    /// number of the thread's scope in the lower 40.
    #[inline(always)]
    pub(super) fn next_key(&mut self, number: u32) -> u64 {
        self.opened += 1;
        u64::from(number) << 40 | self.opened & KEYS
    }

    /// Returns a key for a call whose GPU scopes are segments. It is numbered from above, so that it is no scope of those of which
    /// one in 64 is sampled.
    pub(super) fn next_call_key(&mut self, serial: u64) -> u64 {
        let number = self.number();
        self.bound_calls += 1;
        let key = u64::from(number) << 40 | KEYS.wrapping_sub(self.bound_calls) & KEYS;
        self.last_bound_call = (serial, key);
        key
    }

    /// Returns a reference to a new scope whose stream is not known.
    #[cold]
    pub(super) fn unplaced_scope(&mut self, name: u32) -> ScopeRef {
        let number = self.number();
        ScopeRef {
            key: self.next_key(number),
            name,
            ..ScopeRef::NONE
        }
    }

    /// Returns whether the profiler's cost is sampled in the next scope: once in 64 scopes.
    pub(super) fn sampling(&self) -> CostSampling {
        match self.opened % 64 {
            1 => CostSampling::On,
            _ => CostSampling::Off,
        }
    }

    /// Returns the thread's cache for a context. Returns `None` if there are too many contexts.
    #[inline(always)]
    pub(super) fn context_cache(
        &mut self,
        driver: &impl EventApi,
        raw: RawContext,
    ) -> Option<&mut ContextCache> {
        let is_first = self
            .caches
            .first()
            .is_some_and(|cache| cache.context.raw == raw);
        if !is_first {
            self.make_first(driver, raw)?;
        }
        self.caches.first_mut()
    }

    /// Moves the cache for a context to the front, where the next scope finds it. Adds it if there is none.
    #[cold]
    #[inline(never)]
    fn make_first(&mut self, driver: &impl EventApi, raw: RawContext) -> Option<()> {
        let is_it = |cache: &ContextCache| cache.context.raw == raw;
        let index = if let Some(known) = self.caches.iter().position(is_it) {
            known
        } else {
            // Do not attribute the memory to the program's scopes.
            let _reentrancy = ReentrancyGuard::try_enter();
            let context = context::of(driver, raw)?;
            self.caches.push(ContextCache::new(context));
            self.caches.len() - 1
        };
        self.caches.swap(0, index);
        Some(())
    }

    /// Returns the thread's current stream.
    #[inline]
    pub(crate) fn current(&self) -> Option<&Stream> {
        self.current.as_ref()
    }

    /// Replaces the thread's current stream. Open scopes on the stream before own it from now on.
    pub(super) fn replace_current(&mut self, stream: Option<Stream>) -> Option<Stream> {
        let before = std::mem::replace(&mut self.current, stream);
        if let Some(before) = &before {
            self.stack.own_stream(before);
        }
        before
    }

    /// Returns `true` if a context is current on this thread or has been, at the end of a scope without a stream.
    /// [`ContextSeen::is_due`] says when the driver is asked.
    pub(super) fn has_context(&mut self, driver: &impl EventApi, elapsed: i64) -> bool {
        if self.context_seen.is_due(elapsed) && !self.backoff.skips_scope() {
            match driver.current_context() {
                Ok(RawContext::NONE) => {}
                Ok(_) => self.context_seen = ContextSeen::Yes,
                Err(code) if code.fault() == Fault::NotPermitted => self.backoff.extend(),
                Err(_) => {}
            }
        }
        self.context_seen == ContextSeen::Yes
    }

    /// Returns a box for a future's GPU scope, one of an ended future if possible.
    pub(super) fn take_task_box(&mut self) -> TaskGpuScope {
        self.task_boxes.pop().unwrap_or_default()
    }

    /// Keeps the box of an ended future.
    pub(super) fn keep_task_box(&mut self, task: TaskGpuScope) {
        if self.task_boxes.len() < MAX_TASK_BOXES {
            self.task_boxes.push(task);
        }
    }

    fn return_magazines(&mut self) {
        self.caches
            .iter_mut()
            .for_each(ContextCache::return_magazine);
    }
}

impl Drop for GpuThread {
    fn drop(&mut self) {
        let _guard = ReentrancyGuard::try_enter();
        catch_own_panic("a thread ended", || {
            self.stack.abandon_all();
            self.return_magazines();
            if self.number != 0 {
                idle::note_ended(self.number);
            }
        });
    }
}

/// Returns the calling thread's number; zero if it has none yet.
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
pub(crate) fn known_number() -> u32 {
    NUMBER.get()
}

/// Returns `true` if this thread must not call the driver, because it may be inside a host function.
pub(crate) fn is_backing_off() -> bool {
    with(|thread| thread.backoff.is_active()).unwrap_or(false)
}

/// Makes a future's scope the innermost one of this thread during the poll with this serial. Returns the key for
/// [`pop_poll`].
pub(crate) fn push_poll(serial: u64, task: &TaskGpuScope) -> Option<u64> {
    with(|thread| thread.stack.push_poll(serial, task))?
}

/// Ends the poll with this serial.
pub(crate) fn pop_poll(serial: u64, key: u64) {
    with(|thread| thread.stack.pop_poll(serial, key));
}

/// Returns the key of a scope that is open on this thread, or of the last call to whose scope streams were bound; zero for none.
pub(crate) fn key_of(serial: u64) -> u64 {
    let key = |thread: &mut GpuThread| {
        let (bound, key) = thread.last_bound_call;
        let open = thread.stack.key_of(serial);
        open.or((bound == serial).then_some(key))
    };
    with(key).flatten().unwrap_or(0)
}

/// Names the stream of a scope that is open on this thread, in the NVTX tool.
#[cold]
pub(crate) fn name_stream(serial: u64, name: u32) {
    let stream = with(|thread| thread.stack.stream_of(serial)).flatten();
    if let Some(stream) = stream {
        nvtx::name_stream(stream, name);
    }
}

/// Names the stream of a future in the NVTX tool.
#[cold]
pub(crate) fn name_stream_of_task(task: &TaskGpuScope, name: u32) {
    if let Some(scope) = task.scope() {
        nvtx::name_stream(scope.stream_key.stream, name);
    }
}

/// Returns the free event pairs of this thread to the pools.
pub(crate) fn return_magazines() {
    with(GpuThread::return_magazines);
}

/// Returns the key of a stream. The handle of the per-thread default stream means a different stream on each thread.
#[inline]
pub(super) fn stream_key(context: &Context, stream: RawStream, thread: u32) -> StreamKey {
    StreamKey {
        context: context.index,
        stream,
        thread: if stream.is_per_thread() { thread } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::super::scope::OpenGpuScope;
    use super::*;
    use crate::cuda::ffi::fake::FakeDriver;
    use crate::cuda::stream::StreamHandles;
    use crate::cuda::thread::target::NamedBy;

    #[test]
    fn keys_are_unique_among_threads() {
        let (mut one, mut other) = (GpuThread::new(), GpuThread::new());
        let keys = [one.next_key(1), other.next_key(2), one.next_key(1)];
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        assert!(keys.iter().all(|key| *key != 0));
    }

    #[test]
    fn one_scope_in_64_is_sampled() {
        let mut thread = GpuThread::new();
        let sampled = (0..128).filter(|_| {
            let sampling = thread.sampling();
            thread.next_key(1);
            sampling == CostSampling::On
        });
        assert_eq!(sampled.collect::<Vec<_>>(), [1, 65]);
    }

    #[test]
    fn a_thread_asks_for_its_context_until_it_has_one() {
        let (mut thread, driver) = (GpuThread::new(), FakeDriver::new());
        assert!(!thread.has_context(&driver, 0));
        let _ = driver.set_context(RawContext(ptr::without_provenance_mut(5)));
        assert!(thread.has_context(&driver, 0));
        let asked = driver.calls("cuCtxGetCurrent");
        for _ in 0..100 {
            assert!(thread.has_context(&driver, 0));
        }
        assert_eq!(driver.calls("cuCtxGetCurrent"), asked);
    }

    #[test]
    fn a_thread_inside_a_host_function_leaves_the_driver_alone() {
        let (mut thread, driver) = (GpuThread::new(), FakeDriver::new());
        driver.break_call("cuCtxGetCurrent", 800);
        for _ in 0..64 {
            assert!(!thread.has_context(&driver, 0));
        }
        assert!(thread.backoff.is_active());
        assert_eq!(driver.calls("cuCtxGetCurrent"), 1);
    }

    #[test]
    fn an_open_scope_owns_the_current_stream_when_it_is_replaced() {
        let mut thread = GpuThread::new();
        let stream = Stream::unowned(StreamHandles {
            stream: RawStream::PER_THREAD,
            context: RawContext::NONE,
        });
        assert!(thread.replace_current(Some(stream.clone())).is_none());
        for serial in 1..=2 {
            let named_by = match serial {
                1 => NamedBy::Thread,
                _ => NamedBy::Call,
            };
            thread.stack.reserve();
            let opened = OpenGpuScope::new(GpuMeasurement::new(None), named_by);
            thread.stack.push(serial, opened);
        }
        let before = thread.replace_current(None).unwrap();
        assert!(before.can_replace(&stream) && thread.current().is_none());
        let borrowed = &thread.stack.take(2).unwrap().ownership;
        assert_eq!(format!("{borrowed:?}"), "Borrowed");
        let owned = &thread.stack.take(1).unwrap().ownership;
        assert!(format!("{owned:?}").starts_with("Owned"));
    }
}
