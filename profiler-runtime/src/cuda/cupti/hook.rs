//! The launch hook: names the scope that a launch is made for, where the thread that makes it cannot enter a handle.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::OnceLock;

use profiler_host::diagnostics::user_code;
use profiler_host::sync::ReentrancyGuard;

use super::recorder;
use crate::local::HandleId;

type Hook = Box<dyn Fn(&LaunchCall<'_>) -> Option<HandleId> + Send + Sync>;

static HOOK: OnceLock<Hook> = OnceLock::new();

/// A call of CUDA that is about to launch work: see [`set_launch_hook`].
#[derive(Clone, Copy)]
pub struct LaunchCall<'a> {
    name: &'static str,
    kernel: Option<&'a CStr>,
}

impl<'a> LaunchCall<'a> {
    /// # Safety
    ///
    /// `kernel` must be null, or a string that ends with a zero and lives for `'a`.
    #[cfg_attr(
        not(feature = "cuda"),
        allow(dead_code, reason = "nothing is recorded")
    )]
    pub(super) unsafe fn new(name: &'static str, kernel: *const c_char) -> Self {
        // SAFETY: as the caller promises.
        let kernel = (!kernel.is_null()).then(|| unsafe { CStr::from_ptr(kernel) });
        Self { name, kernel }
    }

    /// Returns the name of the function of CUDA: `cuLaunchKernel`, `cudaMemcpyAsync`, `cuGraphLaunch`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name of the kernel as the compiler wrote it, which is mangled for C++ and Rust. `None` for copies, fills
    /// and graphs, and if it is no UTF-8.
    #[must_use]
    pub fn kernel(&self) -> Option<&'a str> {
        self.kernel.and_then(|name| name.to_str().ok())
    }
}

impl fmt::Debug for LaunchCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchCall")
            .field("name", &self.name)
            .field("kernel", &self.kernel())
            .finish()
    }
}

/// Installs the launch hook of the process: it names the scope that a launch is made for. Returns `false` if there is one
/// already, which stays.
///
/// A kernel, a copy or a fill belongs to the innermost scope of the thread that launches it. Where another thread launches
/// than the one that asks for the work, [`Handle::enter`](crate::Handle::enter) around the launch makes it the asker's. The
/// hook is for programs whose launching thread belongs to a framework and runs no code of theirs: it is called there.
///
/// *When it is called.* Once for each call of CUDA that launches work, on the thread that makes the call, just before the
/// launch, while a session records kernels. That includes calls that fail or are captured into a graph. It is not called at
/// other times: a hook that counts launches must bear that some are never announced to it. [`launch_hook_state`] says when
/// nothing needs to be noted for it.
///
/// *What it returns.* The number of the scope that asked for the work ([`Handle::id`](crate::Handle::id)), or `None` if it
/// does not know one: then the work belongs to the innermost scope of the thread, as without a hook. A handle that the
/// thread is directly inside of counts before the hook. A scope that has ended, on any thread, gets the work too, if it is in
/// the window. If it is not, the work belongs to no scope.
///
/// *What it may do.* It runs inside of the program's call and inside of the profiler. It must not take a lock that
/// another thread may hold, must not allocate or free memory, must not wait, and must not call CUDA. So keep the
/// numbers of scopes in atomics or in memory of the thread that was made before. Scopes that it opens are not measured. If it
/// panics, it counts as having returned `None`.
///
/// Installing one costs nothing while no session records kernels. A launch takes some nanoseconds longer than its body.
///
/// # Examples
///
/// A runner that launches what it is told through a channel, and says for whom in a variable of its thread:
///
/// ```
/// use std::cell::Cell;
/// use std::sync::mpsc;
/// use std::thread;
///
/// use profiler_runtime::{Handle, HandleId, cuda, measured};
///
/// thread_local! {
///     static ASKER: Cell<Option<HandleId>> = const { Cell::new(None) };
/// }
///
/// #[measured]
/// fn forward(runner: &mpsc::Sender<Option<HandleId>>) {
///     // Taken where the work is asked for.
///     runner.send(Handle::current().id()).unwrap();
/// }
///
/// cuda::set_launch_hook(|_launch| ASKER.get());
/// let (runner, asked) = mpsc::channel();
/// let launching = thread::spawn(move || {
///     for asker in asked {
///         ASKER.set(asker);
///         // launch the kernels
///     }
/// });
/// forward(&runner);
/// drop(runner);
/// launching.join().unwrap();
/// ```
pub fn set_launch_hook(
    hook: impl Fn(&LaunchCall<'_>) -> Option<HandleId> + Send + Sync + 'static,
) -> bool {
    // A measured allocator must not attribute the profiler's allocations to the program.
    let _guard = ReentrancyGuard::try_enter();
    HOOK.set(Box::new(hook)).is_ok()
}

/// Whether a [launch hook](set_launch_hook) is called: see [`launch_hook_state`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchHookState {
    /// No session records kernels.
    #[default]
    Unused,
    /// A session wants kernels, but CUPTI does not record, or not yet. Work that is asked for now may be launched when it does.
    Starting,
    /// CUPTI records.
    Called,
}

/// Returns whether the [launch hook](set_launch_hook) is called for each launch, or may be for work that is asked for now.
///
/// It reads one or two atomics. Sessions begin and end on other threads, so that the next launch may find another state.
///
/// # Examples
///
/// ```
/// use profiler_runtime::cuda::{LaunchHookState, launch_hook_state};
///
/// assert_eq!(launch_hook_state(), LaunchHookState::Unused);
/// ```
#[must_use]
pub fn launch_hook_state() -> LaunchHookState {
    recorder::launch_hook_state()
}

/// Returns `true` if the program has a launch hook.
pub(crate) fn has_launch_hook() -> bool {
    HOOK.get().is_some()
}

/// Returns what the hook says of a call. The caller is inside of the profiler.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
pub(super) fn ask<'a>(call: impl FnOnce() -> LaunchCall<'a>) -> Option<HandleId> {
    let hook = HOOK.get()?;
    let call = call();
    user_code::call(|| hook(&call)).flatten()
}
