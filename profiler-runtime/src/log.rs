//! Loggers: they get the time of each call, under its tag and step.
//!
//! [`ScalarLogger`] is the trait; closures are loggers too, see [`IntoLogger`]. The types are those of the crate
//! `profiler-log`: `profiler_log::Scalar` in its examples is `profiler_runtime::log::Scalar`.

pub use crate::snapshot::trace::trace_handler;
#[cfg(feature = "tensorboard-rs")]
#[doc(inline)]
pub use profiler_log::TensorBoardRsLogger;
#[doc(inline)]
pub use profiler_log::{
    CudaSpan, IntoLogger, LogError, LogFn, LogOutcome, Logger, Scalar, ScalarLogger,
    TensorBoardLogger, TracingLogger,
};
