//! Handles: parents of scopes on other threads.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use profiler_host::sync::ReentrancyGuard;

use crate::local::{self, HandleId, SharedScope};
use crate::losses;
use crate::session;

/// A handle of an open scope, which makes it the parent of scopes on other threads.
///
/// A scope normally is a child of the innermost open scope of its own thread. Work that a function passes to other
/// threads (`std::thread::scope`, rayon, a channel) would therefore have no parent, and waiting for it would count as
/// the function's self time. Take a handle before, and either give it to a scope as its argument `parent`, or
/// [`enter`](Self::enter) it on the other thread.
///
/// - *Callers.* The handle's scope is the caller of such scopes: in [`Event::parent`](crate::session::Event::parent),
///   stacks, callers and callees. A call inside of another call of its name is recursive, across threads too.
/// - *Self time.* The self time of the handle's scope excludes the time in which such a scope runs, on any number of
///   threads. Its total does not change. A scope that outlives its parent counts until the parent ends.
///
/// - *Work on devices.* What a thread launches directly inside of an entered handle belongs to the handle's scope, in windows
///   that have kernels. So a thread that launches for others enters the handle of who asked; see
///   [`set_launch_hook`](crate::cuda::set_launch_hook) for a thread that cannot.
///
/// Any thread may use a handle, any number of times, also after its scope has ended. Clones are handles of the same
/// scope. A handle of a future is taken inside its polls; what other threads do between two polls is not the future's
/// self time anyway.
///
/// Taking the first handle of a scope allocates and costs some 100 ns, a clone and another handle of the same scope some
/// 10 ns. Opening a scope with a parent costs some 100 ns more than opening another one.
///
/// # Examples
///
/// ```
/// use std::thread;
///
/// use profiler_runtime::{Handle, measure};
///
/// let numbers = [1, 2, 3, 4];
/// let sum: i32 = measure!("sum", {
///     let parent = Handle::current();
///     thread::scope(|threads| {
///         let halves = numbers.chunks(2).map(|half| {
///             let parent = &parent;
///             threads.spawn(move || measure!("half", parent = parent, { half.iter().sum::<i32>() }))
///         });
///         let halves: Vec<_> = halves.collect();
///         halves.into_iter().map(|half| half.join().unwrap()).sum()
///     })
/// });
/// assert_eq!(sum, 10);
/// # if profiler_runtime::is_enabled() {
/// let summary = profiler_runtime::summary();
/// assert_eq!(summary.row("half").map(|row| row.calls), Some(2));
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Handle(Option<Arc<SharedScope>>);

impl Handle {
    /// Returns a handle of the innermost open scope of this thread, or of the future that it polls.
    ///
    /// If no scope is open, or the profiler is off, the handle is [`none`](Self::none). Inside of an entered handle, and
    /// outside of scopes there, it is that handle.
    #[must_use]
    pub fn current() -> Self {
        Self(local::share_innermost())
    }

    /// Returns a handle of no scope. It has no effect as a parent.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Returns `true` if it is a handle of no scope.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the number of the handle's scope; `None` for a handle of no scope.
    ///
    /// A [launch hook](crate::cuda::set_launch_hook) names scopes by their numbers, which are cheaper to pass than handles.
    #[must_use]
    pub fn id(&self) -> Option<HandleId> {
        self.0.as_deref().and_then(HandleId::of)
    }

    /// Makes the handle's scope the parent of scopes that this thread opens until the guard is dropped.
    ///
    /// Scopes that are open already keep their parents. The handles that a thread is inside of, and its open scopes that
    /// have handles, are at most 1,024 together; further ones have no effect, which a warning reports. As with [`tracing::Span::enter`], do not hold the guard across
    /// an `.await`: measure the future with the argument `parent` instead.
    ///
    /// [`tracing::Span::enter`]: https://docs.rs/tracing/latest/tracing/struct.Span.html#method.enter
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{Handle, measured};
    ///
    /// #[measured]
    /// fn square(number: &mut i32) {
    ///     *number *= *number;
    /// }
    ///
    /// #[measured]
    /// fn squares(numbers: &mut [i32]) {
    ///     let parent = Handle::current();
    ///     // With rayon: `numbers.par_iter_mut().for_each(|number| …)`.
    ///     std::thread::scope(|threads| {
    ///         for number in numbers {
    ///             threads.spawn(|| {
    ///                 let _parent = parent.enter();
    ///                 square(number);
    ///             });
    ///         }
    ///     });
    /// }
    ///
    /// let mut numbers = [1, 2, 3];
    /// squares(&mut numbers);
    /// assert_eq!(numbers, [1, 4, 9]);
    /// ```
    #[inline]
    pub fn enter(&self) -> Entered {
        Entered {
            serial: self.enter_unguarded(),
            not_send: PhantomData,
        }
    }

    /// Adds a time of a device to the handle's scope that something else has measured: a framework that times its own kernels,
    /// or a program with a device that CUDA does not know.
    ///
    /// The time may come late, from any thread, also after the scope has ended. It counts as GPU time of the scope's name, in
    /// the total and in the self time, and as no call: the mean and the extremes of single calls are without it. Times that
    /// overlap are added up. In a window that has the scope, it is a GPU time called `name`, from `start` to `end`, unless it
    /// comes after the window was delivered. A window that has kernels itself (`Trace::has_kernels`) leaves it out.
    ///
    /// Do not report what the profiler measures anyway: the times of a scope that names a stream. A handle of no scope ignores
    /// it, and so does one whose `end` is before `start`. It takes a lock for a moment, and some 150 ns in a
    /// window (`benches/README.md` says how that was measured).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use profiler_runtime::{Handle, scope};
    ///
    /// let asker = {
    ///     let _scope = scope!("infer");
    ///     Handle::current()
    /// };
    /// // Later, the framework says when its kernel ran.
    /// let end = Instant::now();
    /// if let Some(start) = end.checked_sub(Duration::from_micros(250)) {
    ///     asker.report_device_time("softmax", start, end);
    ///     # if profiler_runtime::is_enabled() {
    ///     let summary = profiler_runtime::summary();
    ///     let infer = summary.row("infer").expect("it was called");
    ///     assert_eq!(infer.cuda.map(|cuda| (cuda.total_ns, cuda.calls)), Some((250_000.0, 0)));
    ///     # }
    /// }
    /// ```
    pub fn report_device_time(&self, name: &str, start: Instant, end: Instant) {
        let (Some(scope), Some(time)) = (&self.0, end.checked_duration_since(start)) else {
            return;
        };
        // A logger may report too, on a thread of the profiler's own.
        let Some(_reentrancy) = ReentrancyGuard::try_enter_unless_busy() else {
            return losses::count_refused();
        };
        scope.report(time.as_nanos() as f64);
        session::report_device_time(scope.id, name, (start, end));
    }

    /// Enters the handle without a guard. Returns the serial for [`local::leave`], or 0 if there is nothing to leave.
    #[inline]
    pub(super) fn enter_unguarded(&self) -> u64 {
        self.0.as_ref().map_or(0, local::enter)
    }
}

/// Frees the memory inside the profiler, so that it is not attributed to the program's scopes.
impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(scope) = self.0.take() {
            let _reentrancy = ReentrancyGuard::try_enter();
            drop(scope);
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0.as_ref().map(|scope| scope.id);
        f.debug_tuple("Handle").field(&id).finish()
    }
}

/// The guard of [`Handle::enter`]: while it exists, scopes of this thread are children of the handle's scope.
#[must_use = "a handle is left when its guard is dropped: bind it, as in `let _parent = handle.enter();`"]
#[derive(Debug)]
pub struct Entered {
    /// The serial of the entered handle; 0 if there is nothing to leave.
    serial: u64,
    not_send: PhantomData<*const ()>,
}

impl Entered {
    /// Returns a guard that does nothing.
    pub(crate) const fn none() -> Self {
        Self {
            serial: 0,
            not_send: PhantomData,
        }
    }

    /// Returns `true` if there is nothing to leave.
    #[inline(always)]
    pub(super) fn is_none(&self) -> bool {
        self.serial == 0
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if self.serial != 0 {
            local::leave(self.serial);
        }
    }
}

/// A value of the argument `parent`: a [`Handle`], or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no handle of a scope",
    label = "`parent` takes a `Handle`",
    note = "take the handle on the parent's thread, `let handle = profiler_runtime::Handle::current();`, and \
            write `parent = handle` on the other thread"
)]
pub trait AsHandle {
    /// Returns the handle.
    fn as_handle(&self) -> &Handle;
}

impl AsHandle for Handle {
    fn as_handle(&self) -> &Handle {
        self
    }
}

impl<H: AsHandle + ?Sized> AsHandle for &H {
    fn as_handle(&self) -> &Handle {
        (**self).as_handle()
    }
}

impl<H: AsHandle + ?Sized> AsHandle for Arc<H> {
    fn as_handle(&self) -> &Handle {
        (**self).as_handle()
    }
}
