//! Traces as files: the Chrome trace format, and a checker of such files.

#[cfg(feature = "trace")]
mod chrome;
#[cfg(feature = "validate")]
mod validate;

#[cfg(feature = "trace")]
pub(crate) use chrome::own_rank;
#[cfg(feature = "trace")]
pub use chrome::{ExportError, LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};
#[cfg(feature = "validate")]
pub use validate::{
    DEFAULT_MAX_TRACE_BYTES, Rule, ValidateError, ValidateOptions, Violation, validate,
    validate_with,
};
