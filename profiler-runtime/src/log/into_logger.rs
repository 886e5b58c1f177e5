use std::fmt;
use std::sync::Arc;

use super::{LogError, ScalarLogger, TracingLogger};

/// A logger in any of the forms that [`IntoLogger`] accepts.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use profiler_runtime::{IntoLogger, TracingLogger};
///
/// let logger = Arc::new(TracingLogger).into_logger();
/// logger.as_dyn().add_scalar("train/step", 12.5, 3)?;
/// # Ok::<(), profiler_runtime::LogError>(())
/// ```
pub struct Logger(Handle);

enum Handle {
    Shared(Arc<dyn ScalarLogger>),
    Static(&'static dyn ScalarLogger),
    Owned(Box<dyn ScalarLogger>),
    #[cfg(feature = "tensorboard-rs")]
    TensorBoardRs(super::TensorBoardRsLogger),
}

impl Logger {
    /// Returns the logger as a trait object.
    pub fn as_dyn(&self) -> &dyn ScalarLogger {
        match &self.0 {
            Handle::Shared(logger) => &**logger,
            Handle::Static(logger) => *logger,
            Handle::Owned(logger) => &**logger,
            #[cfg(feature = "tensorboard-rs")]
            Handle::TensorBoardRs(logger) => logger,
        }
    }
}

impl Logger {
    /// Returns another handle to this logger, or `None` if the logger belongs to a single call.
    pub(crate) fn share(&self) -> Option<Self> {
        match &self.0 {
            Handle::Shared(logger) => Some(Self(Handle::Shared(Arc::clone(logger)))),
            Handle::Static(logger) => Some(Self(Handle::Static(*logger))),
            Handle::Owned(_) => None,
            #[cfg(feature = "tensorboard-rs")]
            Handle::TensorBoardRs(_) => None,
        }
    }

    /// Converts the logger into a form that can be shared.
    pub(crate) fn into_shared(self) -> Self {
        match self.0 {
            Handle::Owned(logger) => Self(Handle::Shared(logger.into())),
            #[cfg(feature = "tensorboard-rs")]
            Handle::TensorBoardRs(logger) => Self(Handle::Shared(Arc::new(logger))),
            shared => Self(shared),
        }
    }

    /// Returns `true` if both are handles to one shared logger. It compares the vtable as well: loggers of different
    /// types without fields may have one address.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_dyn(), other.as_dyn())
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").finish_non_exhaustive()
    }
}

/// Conversion into a [`Logger`], for `log = …` and [`Builder::logger`](crate::Builder::logger).
///
/// | form | allocates when converted |
/// |---|---|
/// | `Arc<L>`, `Arc<dyn ScalarLogger>` | no |
/// | `&'static L`, `&'static dyn ScalarLogger` | no |
/// | a closure, or `fn`, `\|tag: &str, milliseconds: f64, step: u64\|` | only if it captures |
/// | `Arc<F>` of such a closure | yes; `Arc<LogFn<F>>` does not |
/// | `Box<dyn ScalarLogger>` | no more |
/// | the loggers of this crate, by value | `TensorBoardLogger` only |
/// | with the feature `tensorboard-rs`: `Arc<Mutex<SummaryWriter>>`, `SummaryWriter` | the latter |
///
/// A closure returns nothing, or a `Result<(), E>` whose error can be displayed. It must be
/// `Send + Sync + 'static`: it is called later, on a thread of the profiler. Outside of the macros
/// its parameters need their types, as in the table: without them the compiler says that an
/// "implementation of `Fn` is not general enough". With [`LogFn::new`] the types can be omitted.
///
/// For a logger of your own, implement [`ScalarLogger`] and pass it in an [`Arc`].
///
/// `Marker` distinguishes the forms, so that their implementations do not overlap. The compiler infers it.
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, mpsc};
///
/// use profiler_runtime::{IntoLogger, Logger, TracingLogger};
///
/// fn takes_a_logger<Marker>(logger: impl IntoLogger<Marker>) -> Logger {
///     logger.into_logger()
/// }
///
/// static TRACING: TracingLogger = TracingLogger;
/// let (sender, receiver) = mpsc::channel();
///
/// takes_a_logger(&TRACING);
/// takes_a_logger(Arc::new(TracingLogger));
/// takes_a_logger(|tag: &str, ms: f64, step: u64| println!("{tag} {step}: {ms} ms"));
/// let logger = takes_a_logger(move |_: &str, ms: f64, _: u64| sender.send(ms));
///
/// logger.as_dyn().add_scalar("load", 2.5, 0)?;
/// assert_eq!(receiver.recv(), Ok(2.5));
/// # Ok::<(), profiler_runtime::LogError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a logger",
    label = "not a logger",
    note = "a logger is an `Arc<impl ScalarLogger>`, a `&'static impl ScalarLogger`, or a closure \
            `|tag: &str, milliseconds: f64, step: u64|` that is `Send + Sync + 'static` and \
            returns nothing or a `Result<(), E>` whose error can be displayed",
    note = "a logger of your own implements `ScalarLogger` and is passed in an `Arc`"
)]
pub trait IntoLogger<Marker> {
    /// Converts the value.
    fn into_logger(self) -> Logger;
}

/// One uninhabited type for each accepted form: the `Marker` of its implementation.
mod form {
    /// `Arc<impl ScalarLogger>`.
    #[derive(Debug)]
    pub enum Shared {}
    /// `Arc<dyn ScalarLogger>`.
    #[derive(Debug)]
    pub enum SharedDyn {}
    /// `Arc` of a closure.
    #[derive(Debug)]
    pub enum SharedClosure {}
    /// `&'static impl ScalarLogger`.
    #[derive(Debug)]
    pub enum Static {}
    /// `&'static dyn ScalarLogger`.
    #[derive(Debug)]
    pub enum StaticDyn {}
    /// `Box<dyn ScalarLogger>`.
    #[derive(Debug)]
    pub enum Boxed {}
    /// A closure or `fn`.
    #[derive(Debug)]
    pub enum Closure {}
    /// A logger of this crate, by value.
    #[derive(Debug)]
    pub enum Value {}
}

impl<L: ScalarLogger + 'static> IntoLogger<form::Shared> for Arc<L> {
    fn into_logger(self) -> Logger {
        Logger(Handle::Shared(self))
    }
}

impl IntoLogger<form::SharedDyn> for Arc<dyn ScalarLogger> {
    fn into_logger(self) -> Logger {
        Logger(Handle::Shared(self))
    }
}

impl<F, R> IntoLogger<form::SharedClosure> for Arc<F>
where
    F: Fn(&str, f64, u64) -> R + Send + Sync + 'static,
    R: LogOutcome,
{
    fn into_logger(self) -> Logger {
        (move |tag: &str, value: f64, step: u64| self(tag, value, step)).into_logger()
    }
}

impl<L: ScalarLogger> IntoLogger<form::Static> for &'static L {
    fn into_logger(self) -> Logger {
        Logger(Handle::Static(self))
    }
}

impl IntoLogger<form::StaticDyn> for &'static dyn ScalarLogger {
    fn into_logger(self) -> Logger {
        Logger(Handle::Static(self))
    }
}

impl IntoLogger<form::Boxed> for Box<dyn ScalarLogger> {
    fn into_logger(self) -> Logger {
        Logger(Handle::Owned(self))
    }
}

impl<F, R> IntoLogger<form::Closure> for F
where
    F: Fn(&str, f64, u64) -> R + Send + Sync + 'static,
    R: LogOutcome,
{
    fn into_logger(self) -> Logger {
        LogFn(self).into_logger()
    }
}

impl<F, R> IntoLogger<form::Value> for LogFn<F>
where
    F: Fn(&str, f64, u64) -> R + Send + Sync + 'static,
    R: LogOutcome,
{
    fn into_logger(self) -> Logger {
        // The box of a closure that captures nothing allocates no memory.
        Logger(Handle::Owned(Box::new(self)))
    }
}

impl IntoLogger<form::Value> for Logger {
    fn into_logger(self) -> Logger {
        self
    }
}

impl IntoLogger<form::Value> for TracingLogger {
    fn into_logger(self) -> Logger {
        Logger(Handle::Static(&Self))
    }
}

#[cfg(feature = "tensorboard")]
impl IntoLogger<form::Value> for super::TensorBoardLogger {
    fn into_logger(self) -> Logger {
        Logger(Handle::Owned(Box::new(self)))
    }
}

#[cfg(feature = "tensorboard-rs")]
mod tensorboard_rs_forms {
    use std::sync::{Arc, Mutex};

    use tensorboard_rs::summary_writer::SummaryWriter;

    use super::super::TensorBoardRsLogger;
    use super::{Handle, IntoLogger, Logger, form};

    impl IntoLogger<form::Value> for TensorBoardRsLogger {
        fn into_logger(self) -> Logger {
            Logger(Handle::TensorBoardRs(self))
        }
    }

    impl IntoLogger<form::Value> for SummaryWriter {
        fn into_logger(self) -> Logger {
            Arc::new(Mutex::new(self)).into_logger()
        }
    }

    impl IntoLogger<form::Value> for Arc<Mutex<SummaryWriter>> {
        fn into_logger(self) -> Logger {
            TensorBoardRsLogger::unchecked(self).into_logger()
        }
    }
}

/// Wraps a closure as a [`ScalarLogger`], for places that need one, such as `Arc<dyn ScalarLogger>`.
///
/// [`IntoLogger`] accepts closures without it. Closures do not implement `ScalarLogger` themselves:
/// the trait is implemented for `Arc`s and references, and a blanket implementation for all closures
/// would overlap with these.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use profiler_runtime::{LogFn, ScalarLogger};
///
/// let log: Arc<dyn ScalarLogger> = Arc::new(LogFn::new(|tag, milliseconds, step| {
///     println!("{tag} {step}: {milliseconds} ms");
/// }));
/// log.add_scalar("load", 2.5, 0)?;
/// # Ok::<(), profiler_runtime::LogError>(())
/// ```
#[derive(Clone, Copy)]
pub struct LogFn<F>(F);

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
/// use profiler_runtime::LogOutcome;
///
/// assert!(().into_result().is_ok());
/// let error = Err("the queue is full").into_result().unwrap_err();
/// assert_eq!(error.to_string(), "the queue is full");
/// ```
#[diagnostic::on_unimplemented(
    message = "a logger or a handler of traces cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "it returns nothing, or a `Result<(), E>` whose error can be displayed; \
            a `;` after its last expression makes it return nothing"
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
