//! Know how long your functions really take, without slowing them down.

// The measured path is two functions, whatever it is written in.
#![allow(clippy::inline_always)]

mod clock;
mod collect;
mod config;
mod entry;
mod error;
mod exit;
mod export;
mod health;
mod init;
mod local;
mod log;
mod name;
mod record;
mod scope;
mod site;
mod stats;
mod step;
mod summary;
mod switch;
mod task;

pub use collect::{FlushReport, flush};
pub use config::SummaryTarget;
pub use error::InitError;
pub use health::DropReason;
pub use init::{Builder, Profiler, builder, init};
#[cfg(feature = "tensorboard")]
pub use log::TensorBoardLogger;
#[cfg(feature = "tensorboard-rs")]
pub use log::TensorBoardRsLogger;
pub use log::{
    IntoLogger, LogError, LogFn, LogOutcome, Logger, Scalar, ScalarLogger, TracingLogger,
};
pub use profiler_macros::measure_execution_time;
pub use step::IntoStep;
pub use summary::{Row, SortBy, Summary, TableOptions, summary};
pub use switch::{bypass, is_enabled, set_enabled};
pub use task::{MeasureFuture, Measured};

/// Opens a scope that lasts until its guard is dropped.
#[macro_export]
macro_rules! scope {
    ($($arguments:tt)*) => { $crate::__private::scope!([$crate] $($arguments)*) };
}

/// Measures a block.
#[macro_export]
macro_rules! measure_execution_time_context {
    ($($arguments:tt)*) => { $crate::__private::context!([$crate] $($arguments)*) };
}

/// What the macros expand to. Not for direct use: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use profiler_macros::{context, scope};

    pub use crate::config::{VARIABLES, Variable};
    pub use crate::entry::Entry;
    pub use crate::scope::{LoggedScope, Scope};
    pub use crate::site::{CallSite, begin_dynamic};
    pub use crate::stats::cells_made;
    pub use crate::task::{TaskScope, measure};

    /// `bool`, whatever the name means where the macro is used.
    pub type Bool = bool;
    /// The same for strings.
    pub type Str = &'static str;

    /// What `scope!` gives in a stripped build.
    #[derive(Debug)]
    pub struct Stripped;

    /// The type's name; of a closure it shows which instance of a generic function it is in.
    pub fn type_name_of<T>(_: &T) -> &'static str {
        std::any::type_name::<T>()
    }

    /// Gives the block of an asynchronous function its type; never called.
    pub fn never<R>() -> R {
        loop {
            std::thread::park();
        }
    }
}
