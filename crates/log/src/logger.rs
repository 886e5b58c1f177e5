//! A logger in any form.

use std::fmt;
use std::sync::Arc;

use super::ScalarLogger;

/// A logger in any of the forms that [`IntoLogger`](crate::IntoLogger) accepts.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use profiler_log::{IntoLogger, TracingLogger};
///
/// let logger = Arc::new(TracingLogger).into_logger();
/// logger.as_dyn().add_scalar("train/step", 12.5, 3)?;
/// # Ok::<(), profiler_log::LogError>(())
/// ```
pub struct Logger(pub(super) LoggerHandle);

/// A logger with its form of ownership.
pub(super) enum LoggerHandle {
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
            LoggerHandle::Shared(logger) => &**logger,
            LoggerHandle::Static(logger) => *logger,
            LoggerHandle::Owned(logger) => &**logger,
            #[cfg(feature = "tensorboard-rs")]
            LoggerHandle::TensorBoardRs(logger) => logger,
        }
    }

    /// Returns another handle to this logger, or `None` if the logger belongs to a single call.
    #[doc(hidden)]
    #[must_use]
    pub fn share(&self) -> Option<Self> {
        match &self.0 {
            LoggerHandle::Shared(logger) => Some(Self(LoggerHandle::Shared(Arc::clone(logger)))),
            LoggerHandle::Static(logger) => Some(Self(LoggerHandle::Static(*logger))),
            LoggerHandle::Owned(_) => None,
            #[cfg(feature = "tensorboard-rs")]
            LoggerHandle::TensorBoardRs(_) => None,
        }
    }

    /// Returns `true` if the logger belongs to several calls.
    #[doc(hidden)]
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self.0, LoggerHandle::Shared(_) | LoggerHandle::Static(_))
    }

    /// Converts the logger into a form that can be shared.
    #[doc(hidden)]
    #[must_use]
    pub fn into_shared(self) -> Self {
        match self.0 {
            LoggerHandle::Owned(logger) => Self(LoggerHandle::Shared(logger.into())),
            #[cfg(feature = "tensorboard-rs")]
            LoggerHandle::TensorBoardRs(logger) => Self(LoggerHandle::Shared(Arc::new(logger))),
            shared => Self(shared),
        }
    }

    /// Returns `true` if both are handles to one shared logger. It compares the vtable as well: loggers of different
    /// types without fields may have one address.
    #[doc(hidden)]
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_dyn(), other.as_dyn())
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IntoLogger, LogFn, TracingLogger};

    fn owned() -> Logger {
        let boxed: Box<dyn ScalarLogger> = Box::new(LogFn::new(|_: &str, _: f64, _: u64| ()));
        boxed.into_logger()
    }

    #[test]
    fn only_loggers_of_several_calls_can_be_shared() {
        assert!(Arc::new(TracingLogger).into_logger().share().is_some());
        assert!(TracingLogger.into_logger().share().is_some());
        assert!(owned().share().is_none());
        assert!(owned().into_shared().share().is_some());
    }

    #[test]
    fn handles_of_one_logger_are_the_same() {
        let shared = Arc::new(LogFn::new(
            |_: &str, _: f64, step: u64| {
                if step > 0 { Ok(()) } else { Err("zero") }
            },
        ));
        let [one, other] = [(); 2].map(|()| Arc::clone(&shared).into_logger());
        assert!(one.is_same(&other));
        assert!(one.share().is_some_and(|again| again.is_same(&one)));
        assert!(!one.is_same(&TracingLogger.into_logger()));
    }
}
