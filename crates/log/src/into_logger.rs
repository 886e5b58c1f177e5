//! The forms in which loggers are accepted.

use std::sync::{Arc, LazyLock};

use super::logger::{Logger, LoggerHandle};
use super::{LogFn, LogOutcome, ScalarLogger, TracingLogger};

/// Conversion into a [`Logger`], for `log = …` and `Builder::logger` of `profiler_runtime`.
///
/// | form | allocates when converted |
/// |---|---|
/// | `Arc<L>`, `Arc<dyn ScalarLogger>`, or a reference to one | no |
/// | `&'static L`, `&'static dyn ScalarLogger` | no |
/// | a reference to a `LazyLock` of any of these, such as a static one | the first time, if its initialiser does |
/// | a closure, or `fn`, `\|tag: &str, milliseconds: f64, step: u64\|` | only if it captures |
/// | `Arc<F>` of such a closure, or a reference to one | yes; `Arc<LogFn<F>>` does not |
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
/// `error[E0521]: borrowed data escapes`, E0373, E0597 or E0716 at a logger: it is borrowed for a shorter time than the program
/// runs. Keep it in an `Arc` and pass that, and let a closure own what it uses: `move`, with clones.
///
/// `Marker` distinguishes the forms, so that their implementations do not overlap. The compiler infers it.
///
/// # Examples
///
/// ```
/// use std::sync::{Arc, mpsc};
///
/// use profiler_log::{IntoLogger, Logger, TracingLogger};
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
/// # Ok::<(), profiler_log::LogError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a logger",
    label = "not a logger",
    note = "a logger is an `Arc<impl ScalarLogger>`, a `&'static impl ScalarLogger`, or a closure \
            `|tag: &str, milliseconds: f64, step: u64|` that is `Send + Sync + 'static` and \
            returns nothing or a `Result<(), E>` whose error can be displayed",
    note = "loggers are called on another thread: in a closure, write `Arc` for `Rc`, an atomic for `Cell`, and `Mutex` \
            for `RefCell`",
    note = "a logger of your own implements `ScalarLogger` and is passed in an `Arc`"
)]
pub trait IntoLogger<Marker> {
    /// Converts the value.
    fn into_logger(self) -> Logger;
}

/// A logger that a variable, a field or an element holds, for `log = self.board`.
///
/// The macros borrow such an expression and clone the logger for each call that is logged, so that nothing is moved out
/// of `self`. For an `Arc` this increments a counter. Any other expression is evaluated to a logger of the call.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a logger that calls can share",
    label = "not a shared logger",
    note = "keep the logger in an `Arc`: write `board: Arc<TensorBoardLogger>` for its type, `Arc::new(logger)` where it is \
            created, and `log = self.board`, which is `self.board.clone()` for each call that is logged; not `Rc`, because \
            loggers are called on another thread",
    note = "a shared logger is an `Arc<impl ScalarLogger>`, a `&'static impl ScalarLogger`, or a closure \
            `|tag: &str, milliseconds: f64, step: u64|` that is `Clone + Send + Sync + 'static` and returns nothing or \
            a `Result<(), E>` whose error can be displayed",
    note = "a logger for the whole program: `static BOARD: LazyLock<Arc<TensorBoardLogger>> = LazyLock::new(|| …);`, and then \
            `log = BOARD`",
    note = "a logger of your own implements `ScalarLogger`"
)]
pub trait LoggerInPlace<Marker> {
    /// Returns another handle to the logger.
    fn to_logger(&self) -> Logger;
}

// The compiler would report that `Clone` or a bound of one form is missing, without what to write instead.
#[diagnostic::do_not_recommend]
impl<L: IntoLogger<Marker> + Clone, Marker> LoggerInPlace<Marker> for L {
    #[inline]
    fn to_logger(&self) -> Logger {
        self.clone().into_logger()
    }
}

/// A static `LazyLock` is made when the first call is logged. A panic of its initialiser is one of the call.
#[diagnostic::do_not_recommend]
impl<T, F, Marker> LoggerInPlace<form::Lazy<Marker>> for LazyLock<T, F>
where
    T: LoggerInPlace<Marker>,
    F: FnOnce() -> T,
{
    fn to_logger(&self) -> Logger {
        T::to_logger(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T, F, Marker> IntoLogger<form::LazyReference<Marker>> for &LazyLock<T, F>
where
    T: LoggerInPlace<Marker>,
    F: FnOnce() -> T,
{
    fn into_logger(self) -> Logger {
        self.to_logger()
    }
}

/// A logging closure can be called on a thread of the profiler.
#[diagnostic::on_unimplemented(
    message = "this logger cannot be called on another thread",
    label = "holds a value that is not `Send + Sync`",
    note = "loggers are called on a thread of the profiler: write `Arc` for `Rc`, an atomic for `Cell`, and `Mutex` for \
            `RefCell`"
)]
pub trait CalledOnAnotherThread<R>: Send + Sync {}

// Only for loggers: else the compiler would advise to call a closure whose result is `Send + Sync`.
#[diagnostic::do_not_recommend]
impl<F: Fn(&str, f64, u64) -> R + Send + Sync, R> CalledOnAnotherThread<R> for F {}

/// One uninhabited type for each accepted form: the `Marker` of its implementation.
mod form {
    /// `Arc<impl ScalarLogger>`.
    #[derive(Debug)]
    pub enum ArcLogger {}
    /// `Arc<dyn ScalarLogger>`.
    #[derive(Debug)]
    pub enum ArcDyn {}
    /// `Arc` of a closure.
    #[derive(Debug)]
    pub enum ArcClosure {}
    /// `&'static impl ScalarLogger`.
    #[derive(Debug)]
    pub enum StaticLogger {}
    /// `&'static dyn ScalarLogger`.
    #[derive(Debug)]
    pub enum StaticDyn {}
    /// `Box<dyn ScalarLogger>`.
    #[derive(Debug)]
    pub enum BoxDyn {}
    /// A closure or `fn`.
    #[derive(Debug)]
    pub enum Closure {}
    /// A logger of this crate, by value.
    #[derive(Debug)]
    pub enum OwnLogger {}
    /// A reference to an `Arc` of the form `Marker`.
    #[derive(Debug)]
    pub struct ArcReference<Marker>(std::marker::PhantomData<Marker>);
    /// A `LazyLock` of the form `Marker`.
    #[derive(Debug)]
    pub struct Lazy<Marker>(std::marker::PhantomData<Marker>);
    /// A reference to a `LazyLock` of the form `Marker`.
    #[derive(Debug)]
    pub struct LazyReference<Marker>(std::marker::PhantomData<Marker>);
}

/// A reference of any lifetime: the logger is another handle to what the `Arc` holds.
impl<T: ?Sized, Marker> IntoLogger<form::ArcReference<Marker>> for &Arc<T>
where
    Arc<T>: IntoLogger<Marker>,
{
    fn into_logger(self) -> Logger {
        Arc::clone(self).into_logger()
    }
}

impl<L: ScalarLogger + 'static> IntoLogger<form::ArcLogger> for Arc<L> {
    fn into_logger(self) -> Logger {
        Logger(LoggerHandle::Shared(self))
    }
}

impl IntoLogger<form::ArcDyn> for Arc<dyn ScalarLogger> {
    fn into_logger(self) -> Logger {
        Logger(LoggerHandle::Shared(self))
    }
}

impl<F, R> IntoLogger<form::ArcClosure> for Arc<F>
where
    F: Fn(&str, f64, u64) -> R + Send + Sync + 'static,
    R: LogOutcome,
{
    fn into_logger(self) -> Logger {
        (move |tag: &str, value: f64, step: u64| self(tag, value, step)).into_logger()
    }
}

impl<L: ScalarLogger> IntoLogger<form::StaticLogger> for &'static L {
    fn into_logger(self) -> Logger {
        Logger(LoggerHandle::Static(self))
    }
}

impl IntoLogger<form::StaticDyn> for &'static dyn ScalarLogger {
    fn into_logger(self) -> Logger {
        Logger(LoggerHandle::Static(self))
    }
}

impl IntoLogger<form::BoxDyn> for Box<dyn ScalarLogger> {
    fn into_logger(self) -> Logger {
        Logger(LoggerHandle::Owned(self))
    }
}

// The compiler would report each bound of this form for anything that is not a logger.
#[diagnostic::do_not_recommend]
impl<F, R> IntoLogger<form::Closure> for F
where
    F: Fn(&str, f64, u64) -> R + Send + Sync + 'static,
    R: LogOutcome,
{
    fn into_logger(self) -> Logger {
        LogFn(self).into_logger()
    }
}

impl<F, R> IntoLogger<form::OwnLogger> for LogFn<F>
where
    F: Fn(&str, f64, u64) -> R + Send + Sync + 'static,
    R: LogOutcome,
{
    fn into_logger(self) -> Logger {
        // The box of a closure that captures nothing allocates no memory.
        Logger(LoggerHandle::Owned(Box::new(self)))
    }
}

impl IntoLogger<form::OwnLogger> for Logger {
    fn into_logger(self) -> Logger {
        self
    }
}

impl IntoLogger<form::OwnLogger> for TracingLogger {
    fn into_logger(self) -> Logger {
        Logger(LoggerHandle::Static(&Self))
    }
}

impl IntoLogger<form::OwnLogger> for super::TensorBoardLogger {
    fn into_logger(self) -> Logger {
        Logger(LoggerHandle::Owned(Box::new(self)))
    }
}

#[cfg(feature = "tensorboard-rs")]
mod tensorboard_rs_forms {
    use std::sync::{Arc, Mutex};

    use tensorboard_rs::summary_writer::SummaryWriter;

    use super::super::TensorBoardRsLogger;
    use super::{IntoLogger, Logger, LoggerHandle, form};

    impl IntoLogger<form::OwnLogger> for TensorBoardRsLogger {
        fn into_logger(self) -> Logger {
            Logger(LoggerHandle::TensorBoardRs(self))
        }
    }

    impl IntoLogger<form::OwnLogger> for SummaryWriter {
        fn into_logger(self) -> Logger {
            Arc::new(Mutex::new(self)).into_logger()
        }
    }

    impl IntoLogger<form::OwnLogger> for Arc<Mutex<SummaryWriter>> {
        fn into_logger(self) -> Logger {
            TensorBoardRsLogger::unchecked(self).into_logger()
        }
    }
}
