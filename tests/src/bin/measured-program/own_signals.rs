//! Programs that handle SIGTERM themselves, by the means that there are. Each says `handled` and exits with 5.

use std::mem::{MaybeUninit, zeroed};
use std::process::exit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

static HANDLED: AtomicBool = AtomicBool::new(false);
/// The handler before that of the program.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note(_signal: libc::c_int) {
    HANDLED.store(true, SeqCst);
}

/// As handlers in C do that leave the one before in place.
extern "C" fn chain(signal: libc::c_int) {
    HANDLED.store(true, SeqCst);
    let before = BEFORE.load(SeqCst);
    if ![libc::SIG_DFL, libc::SIG_IGN].contains(&before) {
        // SAFETY: the system returned it as the handler that was installed.
        let before: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(before) };
        before(signal);
    }
}

fn install(handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the structures live longer than the call, and all zeros is a value of them; the handler stores to atomics.
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        assert_eq!(
            libc::sigaction(libc::SIGTERM, &raw const action, before.as_mut_ptr()),
            0
        );
        BEFORE.store(before.assume_init().sa_sigaction, SeqCst);
    }
}

/// As tokio, ctrlc and signal-hook do.
fn register() {
    // SAFETY: the action stores to an atomic.
    let registered =
        unsafe { signal_hook_registry::register(libc::SIGTERM, || HANDLED.store(true, SeqCst)) };
    registered.expect("a handler");
}

fn sigterm() -> libc::sigset_t {
    // SAFETY: the set is initialised by the first call.
    unsafe {
        let mut set = zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        set
    }
}

fn block() {
    let set = sigterm();
    // SAFETY: the set is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
}

fn wait_for_descriptor() {
    let set = sigterm();
    // SAFETY: the set is initialised, and the buffer is as large as the kernel's structure.
    unsafe {
        let descriptor = libc::signalfd(-1, &raw const set, 0);
        let mut information: libc::signalfd_siginfo = zeroed();
        let size = size_of_val(&information);
        let read = libc::read(descriptor, (&raw mut information).cast(), size);
        assert_eq!(usize::try_from(read), Ok(size));
    }
    HANDLED.store(true, SeqCst);
}

/// Runs as the first argument says; `false` if it says something else.
pub(crate) fn run(mode: &str) -> bool {
    let measure = || {
        super::steps(1);
        println!("ready");
    };
    match mode {
        "handles-before" => {
            install(note);
            measure();
        }
        "handles-after" => {
            super::steps(1);
            install(chain);
            println!("ready");
        }
        "registers-before" => {
            register();
            measure();
        }
        "registers-after" => {
            super::steps(1);
            register();
            println!("ready");
        }
        "reads-a-descriptor" => {
            block();
            measure();
            wait_for_descriptor();
        }
        _ => return false,
    }
    while !HANDLED.load(SeqCst) {
        sleep(Duration::from_millis(1));
    }
    println!("handled");
    exit(5);
}
