//! Entry points: each call is counted, checked against faults and policies, and then run.

use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::clock::ClockMode;
use super::code::{Code, CudaResult, DEINITIALIZED, NOT_INITIALIZED, NOT_PERMITTED, SUCCESS};
use super::fault::{Fault, Plan};
use super::state::LockedState;
use super::{policy, script, thread};

/// The call makes the host wait for a device.
pub(crate) const WAITS: u8 = 1;
/// The call is potentially unsafe while another thread captures.
pub(crate) const UNSAFE_IN_CAPTURE: u8 = 2;
/// The call works before `cuInit`.
pub(crate) const BEFORE_INIT: u8 = 4;
/// The call occupies a slot of the launch queue, and waits for one while the queue is full.
pub(crate) const QUEUES: u8 = 8;

/// The address of a C function.
#[derive(Debug)]
pub(crate) struct Address(pub(crate) *const ());

// SAFETY: the address of a function is the same, and valid, on all threads.
unsafe impl Sync for Address {}

/// A function that the driver exports.
#[derive(Debug)]
pub(crate) struct EntryPoint {
    pub(crate) name: &'static str,
    /// The first CUDA version that has it, in the format of `cuDriverGetVersion`.
    pub(crate) since: i32,
    pub(crate) traits: u8,
    pub(crate) address: Address,
    /// The number of its CUPTI callback, or 0.
    pub(crate) callback: u32,
    calls: AtomicU64,
    armed: AtomicBool,
    faults: Mutex<Vec<Fault>>,
}

impl EntryPoint {
    pub(crate) const fn new(
        name: &'static str,
        since: i32,
        traits: u8,
        address: *const (),
    ) -> Self {
        Self {
            name,
            since,
            traits,
            callback: super::cupti::callback_of(name),
            address: Address(address),
            calls: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            faults: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn is(&self, marked: u8) -> bool {
        self.traits & marked != 0
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    pub(crate) fn forget_calls(&self) {
        self.calls.store(0, Relaxed);
    }

    /// Adds a fault, which sees every call that is counted from now on.
    pub(crate) fn add_fault(&self, fault: Fault) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order, and `SeqCst` as in `enter`: a call that `since` does not include then finds the flag
        // set, and waits for the lock. Otherwise it could be the one that the fault is for, and not see it.
        self.armed.store(true, SeqCst);
        let since = self.calls.load(SeqCst);
        faults.push(Fault { since, ..fault });
    }

    pub(crate) fn clear_faults(&self) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        self.armed.store(false, SeqCst);
        faults.clear();
    }

    /// Counts a call. Returns its number.
    pub(crate) fn count(&self) -> u64 {
        self.calls.fetch_add(1, SeqCst) + 1
    }

    /// Returns the combined effect of all faults on a call, or `None` if there are no faults.
    pub(crate) fn plan(&self, call: u64) -> Option<Plan> {
        if !self.armed.load(SeqCst) {
            return None;
        }
        // Before the faults are read. A call that finds the fault that makes it hang is then ended by each
        // `release` after `clear-faults`, even if it has not begun to wait.
        let releases = LockedState::new().releases;
        let mut plan = Plan::of(
            &self.faults.lock().unwrap_or_else(PoisonError::into_inner),
            call,
        );
        plan.releases = releases;
        Some(plan)
    }
}

/// Runs one call of `entry`.
pub(crate) fn enter(
    entry: &'static EntryPoint,
    body: impl FnOnce(&mut LockedState) -> CudaResult,
) -> Code {
    script::run_environment();
    let call = entry.count();
    if policy::SHUT_DOWN.load(Relaxed) {
        return DEINITIALIZED;
    }
    if !entry.is(BEFORE_INIT) && policy::must_refuse_host_call(entry) {
        LockedState::new().log.host_function_calls += 1;
        return NOT_PERMITTED;
    }
    if entry.is(WAITS) {
        policy::check_waiting(entry);
    }
    let done = match entry.plan(call) {
        None => run(entry, body),
        Some(plan) => run_with(entry, &plan, body),
    };
    done.err().unwrap_or(SUCCESS)
}

fn run(
    entry: &'static EntryPoint,
    body: impl FnOnce(&mut LockedState) -> CudaResult,
) -> CudaResult {
    let mut state = LockedState::new();
    state.call = entry.name;
    if !state.initialised && state.settings.current_context_everywhere {
        state.initialise()?;
    }
    if !state.initialised && !entry.is(BEFORE_INIT) {
        return Err(NOT_INITIALIZED);
    }
    if entry.is(UNSAFE_IN_CAPTURE) {
        state.check_unsafe_call()?;
    }
    if entry.is(QUEUES) {
        state.wait_for_slot();
    }
    body(&mut state)
}

/// Runs a call that is affected by faults.
fn run_with(
    entry: &'static EntryPoint,
    plan: &Plan,
    body: impl FnOnce(&mut LockedState) -> CudaResult,
) -> CudaResult {
    if plan.hang {
        LockedState::new().wait_for_release(plan.releases);
    }
    if plan.delay_ns > 0 {
        delay(plan.delay_ns);
    }
    if let (Some(code), false) = (plan.code, plan.after) {
        return Err(code);
    }
    thread::plan_work_fault(plan.work);
    thread::plan_sticky(plan.sticky);
    thread::plan_time(plan.time);
    let done = run(entry, body);
    thread::plan_work_fault(None);
    thread::plan_sticky(None);
    thread::plan_time(None);
    match plan.code.or(plan.sticky) {
        Some(code) => Err(code),
        None => done,
    }
}

/// Makes a call take `ns` nanoseconds longer.
pub(crate) fn delay(ns: u64) {
    let mut state = LockedState::new();
    if state.clock.pace() == ClockMode::Real {
        drop(state);
        std::thread::sleep(Duration::from_nanos(ns));
    } else {
        let at = state.clock.now() + ns;
        state.advance_to(at);
    }
}

/// Declares exported functions and a `TABLE` of them.
///
/// Each function is safe to call if its arguments keep the guarantees of their types in `ffi`.
macro_rules! entry_points {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) since $since:literal
        $(, $marked:ident)* => $body:expr;)*) => {
        $(
            // SAFETY: the names are those of the CUDA driver, which this library replaces. The
            // linker separates them from those of any other driver (see build.rs).
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),*) -> $crate::driver::code::Code {
                /// As CUPTI shows the arguments to its client.
                #[allow(dead_code, reason = "the client reads them")]
                #[repr(C)]
                struct Arguments {
                    $($argument: std::mem::MaybeUninit<$type>),*
                }
                let arguments = $crate::driver::cupti::is_active().then(|| Arguments {
                    $($argument: $crate::driver::ffi::shadow(&$argument)),*
                });
                let call = arguments.as_ref().and_then(|arguments| {
                    let arguments = std::ptr::from_ref(arguments).cast();
                    $crate::driver::cupti::ApiCall::begin(&entries::$name, arguments)
                });
                let code = $crate::driver::entry::enter(&entries::$name, $body);
                if let Some(call) = call {
                    call.end(code);
                }
                code
            }
        )*

        #[allow(non_upper_case_globals)]
        mod entries {
            use $crate::driver::entry::EntryPoint;
            $(pub(super) static $name: EntryPoint = EntryPoint::new(
                stringify!($name),
                $since,
                0 $(| $crate::driver::entry::$marked)*,
                super::$name as *const (),
            );)*
        }

        /// The entry points declared here.
        pub(crate) static TABLE: &[&$crate::driver::entry::EntryPoint] = &[$(&entries::$name),*];

        /// Returns the functions as they are declared here.
        #[cfg(test)]
        pub(crate) fn declared() -> Vec<header_check::Item> {
            vec![$(header_check::Item::function::<extern "C" fn($($type),*) -> $crate::driver::code::Code>(
                stringify!($name),
            )),*]
        }
    };
}
pub(crate) use entry_points;
