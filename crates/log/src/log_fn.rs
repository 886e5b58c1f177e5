//! Closures as loggers.

use std::fmt;

use super::{LogError, ScalarLogger};

/// Wraps a closure as a [`ScalarLogger`], for places that need one, such as `Arc<dyn ScalarLogger>`.
///
/// [`IntoLogger`](crate::IntoLogger) accepts closures without it. Closures do not implement `ScalarLogger` themselves:
/// the trait is implemented for `Arc`s and references, and a blanket implementation for all closures
/// would overlap with these.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use profiler_log::{LogFn, ScalarLogger};
///
/// let log: Arc<dyn ScalarLogger> = Arc::new(LogFn::new(|tag, milliseconds, step| {
///     println!("{tag} {step}: {milliseconds} ms");
/// }));
/// log.add_scalar("load", 2.5, 0)?;
/// # Ok::<(), profiler_log::LogError>(())
/// ```
#[derive(Clone, Copy)]
pub struct LogFn<F>(pub(super) F);

impl<F> LogFn<F> {
    /// Wraps a closure. The compiler infers the types of its parameters.
    pub fn new<R>(log: F) -> Self
    where
        F: Fn(&str, f64, u64) -> R + Send + Sync,
        R: LogOutcome,
    {
        Self(log)
    }
}

impl<F> fmt::Debug for LogFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogFn").finish_non_exhaustive()
    }
}

impl<F, R> ScalarLogger for LogFn<F>
where
    F: Fn(&str, f64, u64) -> R + Send + Sync,
    R: LogOutcome,
{
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        self.0(tag, value, step).into_result()
    }
}

/// The return type of a logging closure or a trace handler: `()`, or a `Result<(), E>` whose error can be displayed.
///
/// # Examples
///
/// ```
/// use profiler_log::LogOutcome;
///
/// assert!(().into_result().is_ok());
/// let error = Err("the queue is full").into_result().unwrap_err();
/// assert_eq!(error.to_string(), "the queue is full");
/// ```
#[diagnostic::on_unimplemented(
    message = "a logger or a handler of traces cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "it returns nothing, or a `Result<(), E>` whose error can be displayed; \
            a `;` after its last expression makes it return nothing; if it never returns, write `|_| -> () {{ … }}`"
)]
pub trait LogOutcome {
    /// Converts the value into the result of a logger.
    ///
    /// # Errors
    ///
    /// Returns the closure's error as [`LogError::Other`].
    fn into_result(self) -> Result<(), LogError>;
}

impl LogOutcome for () {
    fn into_result(self) -> Result<(), LogError> {
        Ok(())
    }
}

impl<E: fmt::Display> LogOutcome for Result<(), E> {
    fn into_result(self) -> Result<(), LogError> {
        self.map_err(LogError::other)
    }
}
