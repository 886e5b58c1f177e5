//! The profiler for a process of Python: scopes, and a session whose trace is written. `beside_torch.py` calls it.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
use std::time::Duration;

use profiler_runtime::{Profile, scope};

/// How long the end of a session may take.
const PATIENCE: Duration = Duration::from_secs(60);

thread_local! {
    static SESSION: RefCell<Option<Profile>> = const { RefCell::new(None) };
    static SCOPES: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Reads a text of C; empty if it is none of UTF-8.
///
/// # Safety
///
/// The pointer must be null or point to a text that ends with a zero.
unsafe fn read<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    // SAFETY: the caller promises a text.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default()
}

/// Starts a session that records kernels. Returns 0, or 1 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn beside_start() -> c_int {
    let session = match Profile::builder().kernels(true).start() {
        Ok(session) => session,
        Err(error) => {
            eprintln!("the session does not start: {error}");
            return 1;
        }
    };
    SESSION.set(Some(session));
    0
}

/// Begins a scope on this thread.
///
/// # Safety
///
/// `name` must point to a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beside_scope_begin(name: *const c_char) {
    // SAFETY: as the caller promises.
    let name = unsafe { read(name) };
    // The type of a scope has no public name.
    let scope: Box<dyn Any> = Box::new(scope!(name.to_owned()));
    SCOPES.with_borrow_mut(|scopes| scopes.push(scope));
}

/// Ends the innermost scope of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn beside_scope_end() {
    let scope = SCOPES.with_borrow_mut(Vec::pop);
    drop(scope);
}

/// Ends the session and writes its trace, if there is a path. Returns 0, or 1 if something is missing, which is said.
///
/// # Safety
///
/// `path` must be null or point to a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beside_stop(path: *const c_char) -> c_int {
    let Some(session) = SESSION.take() else {
        eprintln!("no session was started");
        return 1;
    };
    session.stop();
    let trace = session.wait(PATIENCE).then(|| session.trace()).flatten();
    let Some(trace) = trace else {
        eprintln!("the session has no trace");
        return 1;
    };
    if !trace.has_kernels() {
        eprintln!("no kernels were recorded: {:?}", trace.no_kernels_reason());
        return 1;
    }
    // SAFETY: as the caller promises.
    let path = unsafe { read(path) };
    if !path.is_empty()
        && let Err(error) = trace.export_chrome_trace(Path::new(path))
    {
        eprintln!("{path} cannot be written: {error}");
        return 1;
    }
    0
}
