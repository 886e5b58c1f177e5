//! Ranges that Python code opens, as parents of what Rust measures below them.
//!
//! A context variable says which range the Python code is in. So each task of asyncio has its own, threads of
//! `asyncio.to_thread` have that of their caller, and the tasks that a task starts begin in its range. Each function that
//! Python calls begins with [`inside`], which enters the range.

use std::any::Any;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use profiler_runtime::{Entered, Handle, HandleId, MeasureFuture, scope};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{intern, types::PyTuple};

/// `with profiler.range("name"):` measures the block under the name, as the parent of all that Rust measures in it.
///
/// In a task of asyncio, the block may be left and resumed at each `await`. It is measured as a future is: its total is from
/// its beginning to its end, and what Python does inside is not known apart from what it waits for. Elsewhere it is a scope of
/// its thread, and its self time is that of Python.
#[pyclass(name = "range", unsendable)]
pub(crate) struct Range {
    name: String,
    open: Option<Open>,
}

struct Open {
    scope: OpenScope,
    /// What resets the context variable.
    token: Py<PyAny>,
}

enum OpenScope {
    /// The guard of a scope, and that of the range around it, which is left after the scope has ended.
    OnThread(
        Box<dyn Any>,
        #[allow(dead_code, reason = "it is dropped")] Inside,
    ),
    InTask(Pin<Box<dyn Future<Output = ()>>>),
}

#[pymethods]
impl Range {
    #[new]
    fn new(name: String) -> Self {
        Self { name, open: None }
    }

    fn __enter__(mut this: PyRefMut<'_, Self>) -> PyResult<PyRefMut<'_, Self>> {
        let py = this.py();
        if this.open.is_some() {
            return Err(PyRuntimeError::new_err("the range is open already"));
        }
        let around = inside(py);
        let (scope, handle) = if is_in_task(py) {
            let (range, handle) = begin_in_task(&this.name);
            (OpenScope::InTask(range), handle)
        } else {
            let guard = Box::new(scope!(&this.name));
            let handle = Handle::current();
            ENTERED.set(handle.id());
            (OpenScope::OnThread(guard, around), handle)
        };
        let value = Py::new(py, Current(handle))?;
        let token = current(py)?.call_method1(intern!(py, "set"), (value,))?;
        this.open = Some(Open {
            scope,
            token: token.unbind(),
        });
        Ok(this)
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&mut self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        let Some(Open { scope, token }) = self.open.take() else {
            return Ok(());
        };
        match scope {
            OpenScope::OnThread(guard, around) => {
                drop(guard);
                drop(around);
            }
            OpenScope::InTask(mut range) => {
                let _is_ready = range.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
        }
        // A generator that is closed late may be in another context, where there is nothing to reset.
        let _result = current(py)?.call_method1(intern!(py, "reset"), (token,));
        Ok(())
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

/// Begins a scope that belongs to no thread: a future that is not ready until it is polled again.
fn begin_in_task(name: &str) -> (Pin<Box<dyn Future<Output = ()>>>, Handle) {
    let handle = Arc::new(OnceLock::new());
    let of_future = Arc::clone(&handle);
    let mut range: Pin<Box<dyn Future<Output = ()>>> = Box::pin(
        poll_fn(move |_| match of_future.set(Handle::current()) {
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(()),
        })
        .measure_execution_time(name),
    );
    let _is_pending = range.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let handle = handle.get().cloned().unwrap_or_default();
    (range, handle)
}

/// The value of the context variable.
#[pyclass(frozen)]
struct Current(Handle);

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
}

/// Enters the range of the Python code that calls, until the guard is dropped.
///
/// Rust may call Python in turn, which calls Rust again. If Python has opened no range in between, then the innermost scope of
/// the thread is the parent.
pub(crate) fn inside(py: Python<'_>) -> Inside {
    let outer = ENTERED.get();
    let value =
        current(py).and_then(|variable| variable.call_method1(intern!(py, "get"), (py.None(),)));
    let value = value
        .ok()
        .and_then(|value| value.cast_into::<Current>().ok());
    let handle = value.as_ref().map(|value| &value.get().0);
    let entered = handle.filter(|handle| !handle.is_none() && handle.id() != outer);
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
    }
}
