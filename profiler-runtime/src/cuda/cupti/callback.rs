//! CUPTI's callback around calls of CUDA, on the thread that makes them.
//!
//! It runs inside of the program's call, so it does little: it allocates nothing, takes no lock, and does not wait. It
//! reads the serial of the innermost open scope and the clock, and pushes one [`Launch`] for each call into a queue. A call
//! of the runtime that makes several of the driver, as a copy of an array may, pushes one for each of those.
//!
//! A thread that is directly inside of an entered handle launches for the scope of that; else the program's
//! [launch hook](hook) may name a scope. Such a launch has an [`Asker`].
//!
//! One queue serves all threads. A launch takes a microsecond or more, so threads rarely meet there (`docs/performance.md`
//! has the cost); a ring for each thread would have to be allocated here.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use profiler_cuda_sys::cupti::calls::{self, Call, Effect};
use profiler_cuda_sys::cupti::{CALL_BEGINS, CallbackData, Domain};
use profiler_cuda_sys::driver::{CaptureStatus, Driver};
use profiler_host::diagnostics::user_code;
use profiler_host::process::{fork, thread};
use profiler_host::sync::{Queue, RaceCell, ReentrancyGuard};
use profiler_report::internal::RawStream;

use super::hook::{self, LaunchCall};
use super::launch::{Asker, Launch};
use super::launching_threads;
use super::losses::{WorkLoss, lose};
use crate::clock::now;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library;
use crate::cuda::thread::state;
use crate::local::{self, HandleId};

/// The launches of some ten milliseconds at the highest rate of a program, with some of eight threads.
const MAX_LAUNCHES: usize = 1 << 15;

/// When calls began to be noted, in ticks.
static SINCE: AtomicU64 = AtomicU64::new(0);
static LAUNCHES: RaceCell<Queue<Launch>> = RaceCell::new();
/// `true` while calls are noted.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// Counts the times that calls began to be noted, so that a call that began before is not completed after.
static PERIOD: AtomicU32 = AtomicU32::new(0);
/// Called when the queue is half full.
static ON_HALF_FULL: RaceCell<fn()> = RaceCell::new();

thread_local! {
    /// The outermost call of CUDA that this thread is in.
    static CALL: Cell<Option<OpenCall>> = const { Cell::new(None) };
}

/// A call that has begun and not ended.
#[derive(Clone, Copy)]
struct OpenCall {
    launch: Launch,
    period: u32,
    /// How many calls are open: a call of the runtime has one of the driver inside of it.
    depth: u32,
    /// `true` if the work is captured into a graph, and runs when that is launched.
    is_captured: bool,
    /// The correlation of the call of the driver inside that launches and has not ended.
    inner: Option<u32>,
    /// How many calls of the driver inside have launched work.
    launched: u32,
}

/// Begins to note calls.
pub(super) fn start(on_half_full: fn()) {
    LAUNCHES.get_or_init(|| Queue::new(MAX_LAUNCHES));
    ON_HALF_FULL.get_or_init(|| on_half_full);
    SINCE.store(now(), Relaxed);
    local::note_times(true);
    PERIOD.fetch_add(1, Relaxed);
    IS_ACTIVE.store(true, Relaxed);
}

/// Stops noting calls.
pub(super) fn stop() {
    IS_ACTIVE.store(false, Relaxed);
    local::note_times(false);
}

/// Returns `true` while calls are noted.
#[inline]
pub(super) fn is_active() -> bool {
    IS_ACTIVE.load(Relaxed)
}

/// Calls `take` with the launches that are in the queue now.
pub(super) fn drain(mut take: impl FnMut(Launch)) {
    let Some(launches) = LAUNCHES.get() else {
        return;
    };
    for _ in 0..launches.len() {
        if let Some(launch) = launches.pop() {
            take(launch);
        }
    }
}

/// The callback. CUPTI calls it at both ends of each call that it was enabled for.
///
/// # Safety
///
/// `data` must be null or point to the callback's data.
pub(super) unsafe extern "C" fn callback(
    _user: *mut c_void,
    domain: u32,
    number: u32,
    data: *const CallbackData,
) {
    // A forked child has none of the profiler's threads: nothing would take what is noted.
    if !IS_ACTIVE.load(Relaxed) || fork::is_child() {
        return;
    }
    let domain = match domain {
        1 => Domain::Driver,
        2 => Domain::Runtime,
        _ => return,
    };
    // SAFETY: as the caller promises. CUPTI's data has had these fields in all versions.
    let Some(data) = (unsafe { data.as_ref() }) else {
        return;
    };
    // No panic may leave a function that C calls.
    let _ = user_code::call(|| note(domain, number, data));
}

fn note(domain: Domain, number: u32, data: &CallbackData) {
    // Calls of the profiler itself are not noted, and nothing here is measured.
    let Some(_busy) = ReentrancyGuard::try_enter() else {
        return;
    };
    if data.site == CALL_BEGINS {
        begin(domain, number, data);
    } else {
        end(data);
    }
}

fn begin(domain: Domain, number: u32, data: &CallbackData) {
    let Some(call) = calls::find(domain, number) else {
        return;
    };
    let period = PERIOD.load(Relaxed);
    let mut open = if let Some(mut open) = CALL.get().filter(|open| open.period == period) {
        open.depth += 1;
        open
    } else {
        // First: neither is a time of the call. The hook is the program's, and takes as long as it likes.
        launching_threads::note();
        let named = call.is_work().then(|| named(call, data)).flatten();
        let start = now();
        // SAFETY: the parameters are those of this call, which has just begun.
        let effect = unsafe { call.effect(data.parameters) };
        let asker = call.is_work().then(|| asker(named, start)).flatten();
        OpenCall {
            launch: Launch {
                name: call.name,
                start,
                end: start,
                thread: thread::number(),
                scope: local::innermost().serial(),
                asker,
                correlations: [data.correlation; 2],
                is_part: false,
                context: data.context.addr(),
                stream: None,
                gpu_thread: 0,
                effect,
            },
            period,
            depth: 1,
            is_captured: false,
            inner: None,
            launched: 0,
        }
    };
    if domain == Domain::Driver {
        open.enter_driver(call, data);
    }
    CALL.set(Some(open));
}

/// Returns the scope that the program's hook names for a call which launches work. It is always asked, so that what it counts are
/// all launches.
fn named(call: Call, data: &CallbackData) -> Option<HandleId> {
    // SAFETY: CUPTI's name of the kernel is null or a string that lives as long as the call.
    hook::ask(|| unsafe { LaunchCall::new(call.name, data.kernel) })
}

/// Returns the scope that a call which launches work is made for, if it is not the innermost one of the thread.
fn asker(named: Option<HandleId>, start: u64) -> Option<Asker> {
    if let Some(entered) = local::entered() {
        return Some(Asker {
            shared: entered.id,
            // Since before calls were noted, if that is not known.
            since: entered.since.max(SINCE.load(Relaxed)).min(start),
        });
    }
    named.map(|id| Asker {
        shared: id.get(),
        since: start,
    })
}

impl OpenCall {
    /// Begins a call of the driver: the outermost one, or one inside.
    fn enter_driver(&mut self, call: Call, data: &CallbackData) {
        // SAFETY: the parameters are those of this call, which has just begun.
        let (effect, stream, context) = unsafe {
            let parameters = data.parameters;
            (
                call.effect(parameters),
                call.stream(parameters),
                call.context(parameters),
            )
        };
        let is_work = effect.is_work();
        if let Some(stream) = stream.filter(|_| call.is_work()) {
            self.is_captured |= is_capturing(library::driver(), stream);
        }
        let launch = &mut self.launch;
        let is_inner = self.depth > 1;
        if is_work && is_inner {
            self.inner = Some(data.correlation);
        }
        // A call of the runtime that copies may wait too. The first call of the driver that launches tells the stream.
        let is_first = is_work && self.launched == 0;
        if is_first || !(is_work || launch.effect.is_work()) {
            launch.context = context.map_or(data.context, |context| context.0).addr();
            launch.stream = stream;
            if stream.is_some_and(RawStream::is_per_thread) {
                launch.gpu_thread = state::known_number();
            }
        }
        launch.effect = match (launch.effect, effect) {
            (Effect::MaybeWork, Effect::Work) => effect,
            (known, _) if known.is_work() => known,
            (known, Effect::Nothing) if is_inner => known,
            _ => effect,
        };
    }

    /// Ends a call of the driver inside. The first one that launches is noted with the outermost call, each further one
    /// by itself.
    fn leave_driver(&mut self, has_failed: bool) {
        let Some(correlation) = self.inner.take().filter(|_| !has_failed) else {
            return;
        };
        self.launched += 1;
        let launch = &mut self.launch;
        if self.launched == 1 {
            launch.correlations[1] = correlation;
        } else if !self.is_captured && self.period == PERIOD.load(Relaxed) {
            push(Launch {
                correlations: [launch.correlations[0], correlation],
                is_part: true,
                ..*launch
            });
        }
    }
}

/// Returns `true` if the stream captures. CUPTI allows such questions in a callback.
fn is_capturing(driver: Option<&Driver>, stream: RawStream) -> bool {
    driver.is_some_and(|driver| driver.capture_status(stream) == Ok(CaptureStatus::ACTIVE))
}

fn end(data: &CallbackData) {
    let Some(mut open) = CALL.get() else { return };
    // SAFETY: null, or the result of the call, which has ended.
    let has_failed = unsafe { data.result.as_ref() }.is_some_and(|result| *result != 0);
    if open.depth > 1 {
        open.depth -= 1;
        open.leave_driver(has_failed);
        return CALL.set(Some(open));
    }
    CALL.set(None);
    // A call of the runtime that fails may have launched a part of its work.
    let has_nothing = has_failed && open.launched == 0;
    if has_nothing || open.is_captured || open.period != PERIOD.load(Relaxed) {
        return;
    }
    open.launch.end = now();
    push(open.launch);
}

/// Queues a launch.
fn push(launch: Launch) {
    let Some(launches) = LAUNCHES.get() else {
        return;
    };
    if launches.push(launch).is_err() {
        lose(WorkLoss::LaunchQueueFull, 1);
    }
    // The length is that of a queue that other threads change, so it may be passed unseen; the recorder looks a hundred
    // times a second anyway.
    if launches.len() >= MAX_LAUNCHES / 2
        && let Some(on_half_full) = ON_HALF_FULL.get()
    {
        on_half_full();
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::ptr;

    use super::*;

    #[test]
    fn the_time_of_the_launch_hook_is_before_the_call() {
        thread_local! {
            static ASKED: Cell<u64> = const { Cell::new(0) };
        }
        hook::set_launch_hook(|_| {
            let first = now();
            while ASKED.get() <= first {
                ASKED.set(now());
            }
            None
        });
        let parameters = [0_u64; 16];
        // SAFETY: numbers and pointers may be zero.
        let mut data: CallbackData = unsafe { std::mem::zeroed() };
        data.parameters = parameters.as_ptr().cast();
        // `cuLaunchKernel`.
        begin(Domain::Driver, 307, &data);
        let launch = CALL.take().expect("a call").launch;
        assert_eq!(launch.name, "cuLaunchKernel");
        assert!(ASKED.get() > 0 && launch.start >= ASKED.get());
    }

    #[test]
    fn a_wait_is_for_the_context_that_the_call_names() {
        let context = |number: usize| ptr::without_provenance_mut::<c_void>(number);
        for (number, given, waited) in [
            // `cuCtxSynchronize`, and its form of CUDA 13.
            (17, 0, 0x10),
            (800, 0x20, 0x20),
            (800, 0, 0x10),
        ] {
            let parameters = [context(given)];
            // SAFETY: numbers and pointers may be zero.
            let mut data: CallbackData = unsafe { std::mem::zeroed() };
            data.parameters = parameters.as_ptr().cast();
            data.context = context(0x10);
            begin(Domain::Driver, number, &data);
            let launch = CALL.take().expect("a call").launch;
            let read = (launch.effect, launch.context);
            assert_eq!(read, (Effect::ContextFinished, waited), "{number}");
        }
    }
}
