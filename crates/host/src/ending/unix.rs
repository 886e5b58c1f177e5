//! The handler, and the thread that it wakes.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use libc::c_int;

use self::wakeup::Wakeup;
use crate::background::{self, Calls};
use crate::diagnostics;
use crate::process::exit::{self, Phase};
use crate::process::platform;
use crate::process::signals::unblock;

/// The signals by which a person or a service manager ends a program.
const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// How long the process may live on.
const PATIENCE: Duration = Duration::from_secs(2);
/// After this time, the summary is written while sessions and loggers are still at work.
const BEFORE_SUMMARY: Duration = Duration::from_millis(1200);

/// The signal that ends the process; 0 before it came.
static PENDING: AtomicI32 = AtomicI32::new(0);
/// The process whose thread waits for it.
static HOME: AtomicU32 = AtomicU32::new(0);
static WAKEUP: Wakeup = Wakeup::new();

/// Has the hooks of the exit run before SIGINT, SIGTERM or SIGHUP ends the process, if the program does nothing about the signal
/// itself. The first call decides. `excepted` has a use of its own.
pub fn write_before_ending(excepted: Option<c_int>) {
    static IS_DONE: AtomicBool = AtomicBool::new(false);

    if IS_DONE.swap(true, Relaxed) || !SIGNALS.iter().any(|signal| is_default(*signal)) {
        return;
    }
    HOME.store(platform::process_id(), Relaxed);
    let started = WAKEUP
        .prepare()
        .and_then(|()| background::spawn("profiler-ending", Calls::Unmeasured, wait, || ()));
    if let Err(error) = started {
        return diagnostics::warn_once(&format!(
            "the thread that writes before a signal ends the program cannot be started ({error}): signals end it at once"
        ));
    }
    for signal in SIGNALS {
        if Some(signal) != excepted && is_default(signal) {
            install(signal);
        }
    }
}

/// Returns what is done about a signal.
fn action(signal: c_int) -> Option<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the structure is valid for writes, and all bits zero is a value of it. Nothing is changed.
    unsafe {
        let result = libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        (result == 0).then(|| action.assume_init())
    }
}

fn is_default(signal: c_int) -> bool {
    action(signal).is_some_and(|action| action.sa_sigaction == libc::SIG_DFL)
}

fn is_own(signal: c_int) -> bool {
    action(signal).is_some_and(|action| action.sa_sigaction == own_handler())
}

fn own_handler() -> libc::sighandler_t {
    let handler: extern "C" fn(c_int) = handle;
    handler as libc::sighandler_t
}

/// Sets what is done about a signal, and returns what was done before.
fn set(signal: c_int, handler: libc::sighandler_t, flags: c_int) -> Option<libc::sigaction> {
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all bits zero is a value of the structure: no flags, and no signals blocked meanwhile.
    let mut action = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    action.sa_sigaction = handler;
    action.sa_flags = flags;
    // SAFETY: both structures live longer than the call. The handler is the default action, or `handle`, which is
    // async-signal-safe and exists until the process ends.
    unsafe {
        let result = libc::sigaction(signal, &raw const action, before.as_mut_ptr());
        (result == 0).then(|| before.assume_init())
    }
}

fn install(signal: c_int) {
    let flags = libc::SA_RESTART | libc::SA_ONSTACK;
    let before = set(signal, own_handler(), flags);
    if let Some(before) = before.filter(|before| before.sa_sigaction != libc::SIG_DFL) {
        // The program has installed one since it was looked at.
        // SAFETY: the structure is what the system has returned for this signal.
        unsafe { libc::sigaction(signal, &raw const before, ptr::null_mut()) };
    }
}

/// Notes the signal and wakes the thread. Calls only what a signal handler may call.
extern "C" fn handle(signal: c_int) {
    let _errno = Errno::save();
    if !is_own(signal) {
        return;
    }
    let is_first = || {
        PENDING
            .compare_exchange(0, signal, Release, Relaxed)
            .is_ok()
    };
    // A forked child has no thread that would write; the second signal is to end the process at once.
    if platform::process_id() == HOME.load(Relaxed) && is_first() {
        WAKEUP.post();
        return;
    }
    set(signal, libc::SIG_DFL, 0);
    // SAFETY: sends a signal to the calling thread, which blocks it until the handler returns.
    unsafe { libc::raise(signal) };
}

/// Waits for the signal, writes, and dies of it.
fn wait() {
    WAKEUP.wait();
    let signal = PENDING.load(Acquire);
    write();
    end(signal);
}

/// Runs the hooks of the exit, for a bounded time: loggers and disks may not answer.
fn write() {
    let run = |phases: &'static [Phase]| {
        let (ended, has_ended) = mpsc::channel();
        let work = move || {
            exit::run_before_signal(phases);
            let _ = ended.send(());
        };
        // Without a thread nothing is sent, and nothing waited for.
        let _ = background::spawn("profiler-writing", Calls::Unmeasured, work, || ());
        has_ended
    };
    let all = run(&[Phase::Sessions, Phase::Summary]);
    if all.recv_timeout(BEFORE_SUMMARY) == Err(mpsc::RecvTimeoutError::Timeout) {
        let summary = run(&[Phase::Summary]);
        let is_whole = all
            .recv_timeout(PATIENCE.saturating_sub(BEFORE_SUMMARY))
            .is_ok();
        if !is_whole {
            let _ = summary.try_recv();
            diagnostics::warn_once(&format!(
                "a signal ends the program, and not everything was written within {PATIENCE:?}: have the program handle the \
                 signal and return from `main`"
            ));
        }
    }
}

/// Lets the signal do what it would have done.
fn end(signal: c_int) {
    if is_own(signal) {
        set(signal, libc::SIG_DFL, 0);
        // The profiler's threads block all signals.
        unblock(signal);
        // SAFETY: sends a signal to the calling thread.
        unsafe { libc::raise(signal) };
    } else if let Ok(process) = c_int::try_from(platform::process_id()) {
        // The program has begun to handle it: it gets it.
        // SAFETY: sends a signal to this process.
        unsafe { libc::kill(process, signal) };
    }
    // It is ignored, or handled: the program goes on.
    thread::park();
}

/// Restores the error of the interrupted code's last call.
struct Errno(c_int);

#[cfg(target_os = "linux")]
impl Errno {
    fn save() -> Self {
        // SAFETY: the address points to the calling thread's own number.
        Self(unsafe { *libc::__errno_location() })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: see above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

#[cfg(not(target_os = "linux"))]
impl Errno {
    /// Saves nothing: calls that succeed leave it alone.
    fn save() -> Self {
        Self(0)
    }
}

mod wakeup {
    use std::cell::UnsafeCell;
    use std::io;
    use std::mem::MaybeUninit;

    /// A semaphore: it may be posted in a signal handler, and has no descriptor that the program could close.
    pub(super) struct Wakeup(UnsafeCell<MaybeUninit<libc::sem_t>>);

    // SAFETY: the semaphore is initialised once, before the handler is installed and the thread started, and the system
    // synchronises what is done with it afterwards.
    unsafe impl Sync for Wakeup {}

    impl Wakeup {
        pub(super) const fn new() -> Self {
            Self(UnsafeCell::new(MaybeUninit::uninit()))
        }

        /// Initialises it. Called once, before anything else.
        pub(super) fn prepare(&self) -> io::Result<()> {
            // SAFETY: the memory is valid for writes, lives as long as the process, and nothing uses it yet.
            match unsafe { libc::sem_init(self.0.get().cast(), 0, 0) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }

        pub(super) fn post(&self) {
            // SAFETY: it was initialised before the handler was installed, and a handler may call this.
            unsafe { libc::sem_post(self.0.get().cast()) };
        }

        pub(super) fn wait(&self) {
            // SAFETY: it was initialised before the thread was started.
            while unsafe { libc::sem_wait(self.0.get().cast()) } != 0 {}
        }
    }
}
