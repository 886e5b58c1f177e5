//! Ranges that Python code opens, as parents of what Rust measures below them.
//!
//! A context variable says which range the Python code is in. So each task of asyncio has its own, threads of
//! `asyncio.to_thread` have that of their caller, and the tasks that a task starts begin in its range. Each function that
//! Python calls begins with [`inside`], which enters the range.
//!
//! A range may be left, or dropped, on another thread than it was entered on, in another context, and in any order. So the
//! guards that belong to a thread stay with it, and what is shared is a mark that a range is left.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use profiler_runtime::{Entered, Handle, HandleId, MeasureFuture, scope};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{intern, types::PyTuple};

/// `with profiler.range("name"):` measures the block under the name, as the parent of all that Rust measures in it.
///
/// In a task of asyncio, a coroutine or a generator, the block may be left and resumed at each `await` and `yield`, and ended
/// by any thread. It is measured as a future is: its total is from its beginning to its end, and what Python does inside is
/// not known apart from what it waits for. Elsewhere it is a scope of its thread, and its self time is that of Python.
///
/// A scope of a thread ends there. If another thread leaves such a range, or drops it, then it ends when its own thread next
/// calls the extension and has nothing open inside, or ends. Until then it counts on, so its total is too long.
///
/// Leaving a range raises no errors, and neither does leaving one that is not open.
#[pyclass(name = "range", frozen)]
pub(crate) struct Range {
    name: String,
    /// Never locked while Python runs.
    open: Mutex<Option<Open>>,
}

struct Open {
    scope: OpenScope,
    value: Py<Current>,
    /// What resets the context variable.
    token: Py<PyAny>,
    is_reset: bool,
}

enum OpenScope {
    /// A scope that is among the [`SCOPES`] of a thread.
    OnThread(#[expect(dead_code, reason = "it is dropped")] LeftOnDrop),
    Anywhere(Pin<Box<dyn Future<Output = ()> + Send>>),
}

#[pymethods]
impl Range {
    #[new]
    fn new(name: String) -> Self {
        Self {
            name,
            open: Mutex::new(None),
        }
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        let py = this.py();
        if this.open().is_some() {
            return Err(PyRuntimeError::new_err("the range is open already"));
        }
        let outer = innermost(py);
        if let Some(outer) = &outer {
            outer.get().forget_over(py);
        }
        let (scope, handle) = if is_in_task(py) || is_in_generator(py) {
            let _around = inside(py);
            begin_anywhere(&this.name)
        } else {
            begin_on_thread(py, &this.name)
        };
        let is_over = AtomicBool::new(false);
        let value = Current {
            handle,
            outer: Mutex::new(outer),
            is_over,
        };
        let value = Py::new(py, value)?;
        let token = current(py)?.call_method1(intern!(py, "set"), (&value,))?;
        let open = Open {
            scope,
            value,
            token: token.unbind(),
            is_reset: false,
        };
        // If another thread has entered it meanwhile, that is over now.
        let _earlier = this.open().replace(open);
        Ok(this)
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) {
        let Some(mut open) = self.take() else {
            return;
        };
        if let OpenScope::Anywhere(range) = &mut open.scope {
            let _is_ready = range.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        // In another context than that in which the range was entered, or while one is open that was entered later, there is
        // nothing to reset.
        let is_innermost = value(py).is_some_and(|value| value.is(&open.value));
        let reset = || current(py)?.call_method1(intern!(py, "reset"), (&open.token,));
        open.is_reset = is_innermost && reset().is_ok();
    }
}

impl Range {
    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Open> {
        self.open().take()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_reset {
            self.value.get().is_over.store(true, Relaxed);
        }
    }
}

/// Returns `true` if the code that runs is that of a task, which other tasks interrupt at each `await`.
fn is_in_task(py: Python<'_>) -> bool {
    static CURRENT_TASK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current_task = CURRENT_TASK.import(py, "asyncio", "current_task");
    // Without a loop that runs, it raises an error.
    current_task
        .and_then(PyAnyMethods::call0)
        .is_ok_and(|task| !task.is_none())
}

/// Returns `true` if the calling Python function is a generator or a coroutine: others run until it goes on, and it may do so
/// on another thread.
fn is_in_generator(py: Python<'_>) -> bool {
    /// Those of generators, coroutines, coroutines of generators, and asynchronous generators.
    const FLAGS: u32 = 0x20 | 0x80 | 0x100 | 0x200;
    static GET_FRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let flags = || {
        let frame = GET_FRAME.import(py, "sys", "_getframe")?.call0()?;
        let code = frame.getattr(intern!(py, "f_code"))?;
        code.getattr(intern!(py, "co_flags"))?.extract::<u32>()
    };
    flags().is_ok_and(|flags| flags & FLAGS != 0)
}

/// Begins a scope that belongs to no thread: a future that is not ready until it is polled again.
fn begin_anywhere(name: &str) -> (OpenScope, Handle) {
    let handle = Arc::new(OnceLock::new());
    let of_future = Arc::clone(&handle);
    let mut range: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(
        poll_fn(move |_| match of_future.set(Handle::current()) {
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(()),
        })
        .measure_execution_time(name),
    );
    let _is_pending = range.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let handle = handle.get().cloned().unwrap_or_default();
    (OpenScope::Anywhere(range), handle)
}

/// Begins a scope of this thread.
fn begin_on_thread(py: Python<'_>, name: &str) -> (OpenScope, Handle) {
    let around = inside(py);
    let guard = Box::new(scope!(name));
    let handle = Handle::current();
    ENTERED.set(handle.id());
    let is_left = Arc::new(AtomicBool::new(false));
    let scope = ScopeOfThread {
        _guard: guard,
        _around: around,
        depth: DEPTH.get(),
        is_left: Arc::clone(&is_left),
    };
    // A thread that has ended keeps none.
    let _is_kept = SCOPES.try_with(|scopes| scopes.borrow_mut().0.push(scope));
    (OpenScope::OnThread(LeftOnDrop(is_left)), handle)
}

/// The scope of a range, which only its own thread may end.
struct ScopeOfThread {
    _guard: Box<dyn Any>,
    /// That of the range around it, which is left after the scope has ended.
    _around: Inside,
    /// The [`DEPTH`] right inside.
    depth: usize,
    is_left: Arc<AtomicBool>,
}

struct Scopes(Vec<ScopeOfThread>);

/// The innermost ends first.
impl Drop for Scopes {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}

/// Marks the scope of a range as left, on any thread.
struct LeftOnDrop(Arc<AtomicBool>);

impl Drop for LeftOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
        end_left();
    }
}

/// Ends the scopes of this thread that were left, and inside of which nothing is open.
fn end_left() {
    let next = || {
        let is_over =
            |scope: &mut ScopeOfThread| scope.is_left.load(Relaxed) && scope.depth >= DEPTH.get();
        let pop = |scopes: &RefCell<Scopes>| scopes.borrow_mut().0.pop_if(is_over);
        SCOPES.try_with(pop).ok().flatten()
    };
    while let Some(scope) = next() {
        drop(scope);
    }
}

/// The value of the context variable.
#[pyclass(frozen)]
struct Current {
    handle: Handle,
    /// The range around it. Never locked while Python runs.
    outer: Mutex<Option<Py<Current>>>,
    /// `true` if the range is over, and its context may still have this value.
    is_over: AtomicBool,
}

impl Current {
    fn outer(&self) -> MutexGuard<'_, Option<Py<Current>>> {
        self.outer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets ranges around it that are over. If each of many ranges began inside of the one before, and outlived it, then
    /// the last would keep all of them otherwise.
    fn forget_over(&self, py: Python<'_>) {
        let outer = self.outer().as_ref().map(|outer| outer.clone_ref(py));
        let outer = outer.and_then(|outer| not_over(py, outer));
        let _forgotten = mem::replace(&mut *self.outer(), outer);
    }
}

/// Returns a range, or the innermost one around it that is not over.
fn not_over(py: Python<'_>, mut range: Py<Current>) -> Option<Py<Current>> {
    while range.get().is_over.load(Relaxed) {
        let outer = range.get().outer().as_ref()?.clone_ref(py);
        range = outer;
    }
    Some(range)
}

/// Returns the value of the context variable.
fn value(py: Python<'_>) -> Option<Py<Current>> {
    let value = current(py).and_then(|it| it.call_method1(intern!(py, "get"), (py.None(),)));
    Some(value.ok()?.cast_into::<Current>().ok()?.unbind())
}

/// Returns the range that the Python code is in.
fn innermost(py: Python<'_>) -> Option<Py<Current>> {
    not_over(py, value(py)?)
}

/// Returns the context variable.
fn current(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let variable = VARIABLE.get_or_try_init(py, || {
        let class = py.import("contextvars")?.getattr("ContextVar")?;
        Ok::<_, PyErr>(class.call1(("profiler_range",))?.unbind())
    })?;
    Ok(variable.bind(py))
}

thread_local! {
    /// The range that this thread is inside of: all that it measures is below that.
    static ENTERED: Cell<Option<HandleId>> = const { Cell::new(None) };
    /// How many guards of [`inside`] this thread has.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The scopes of ranges of this thread, the innermost last.
    static SCOPES: RefCell<Scopes> = const { RefCell::new(Scopes(Vec::new())) };
}

/// Enters the range of the Python code that calls, until the guard is dropped.
///
/// Rust may call Python in turn, which calls Rust again. If Python has opened no range in between, then the innermost scope of
/// the thread is the parent.
pub(crate) fn inside(py: Python<'_>) -> Inside {
    end_left();
    let outer = ENTERED.get();
    let value = innermost(py);
    let handle = value.as_ref().map(|value| &value.get().handle);
    let entered = handle.filter(|handle| !handle.is_none() && handle.id() != outer);
    DEPTH.set(DEPTH.get() + 1);
    Inside {
        entered: entered.map(|handle| {
            ENTERED.set(handle.id());
            handle.enter()
        }),
        outer,
    }
}

/// The guard of [`inside`].
#[must_use = "the range is left when the guard is dropped"]
pub(crate) struct Inside {
    entered: Option<Entered>,
    outer: Option<HandleId>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        drop(self.entered.take());
        ENTERED.set(self.outer);
        DEPTH.set(DEPTH.get() - 1);
    }
}
