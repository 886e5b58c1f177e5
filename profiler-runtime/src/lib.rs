//! Know how long your functions really take, without slowing them down.
//!
//! Put [`#[measure_execution_time]`](macro@measure_execution_time) on a function, run the program with
//! `PROFILER_SUMMARY=stderr`, and read the table:
//!
//! ```text
//! Name                     Calls  Total (ms)  Self (ms)  Mean (µs)  p50 (µs)  p95 (µs)  p99 (µs)  …
//! ──────────────────────────────────────────────────────────────────────────────────────────────────
//! app::Trainer::backward    1350      79.126     79.126     58.612    52.009    88.431   107.020
//! app::Trainer::forward     1350      44.610     44.610     33.044    29.154    45.832    72.177
//! ```
//!
//! # In a program
//!
//! ```
//! use profiler_runtime::{measure_execution_time, measure_execution_time_context, scope};
//!
//! #[measure_execution_time]
//! fn load(path: &str) -> String {
//!     path.repeat(3)
//! }
//!
//! fn main() -> Result<(), profiler_runtime::InitError> {
//!     let _profiler = profiler_runtime::init()?;
//!     for epoch in 0..2 {
//!         let data = load("data");
//!         let length = measure_execution_time_context!("train", global_step = epoch, { data.len() });
//!         let _scope = scope!("report");
//!         assert_eq!(length, 12);
//!     }
//!     println!("{}", profiler_runtime::summary());
//!     Ok(())
//! }
//! ```
//!
//! | to | use |
//! |---|---|
//! | measure a function, all of an `impl` block or a module | [`macro@measure_execution_time`] |
//! | measure a block; until a guard goes; a future | [`measure_execution_time_context!`], [`scope!`], [`MeasureFuture`] |
//! | see totals, self times, percentiles | [`summary`], `PROFILER_SUMMARY` |
//! | see GPU times | `stream = …`, [`cuda::with_stream`], [`cuda::status`] |
//! | see each call | `log = …` with a [`TensorBoardLogger`], a [`TracingLogger`], a closure or any [`ScalarLogger`]; `PROFILER_TENSORBOARD` |
//! | record windows of a run, by torch.profiler's names | [`Profile`], [`Schedule`], [`record_function!`], `PROFILER_TRACE` |
//! | look at a window | [`Trace::key_averages`], `Trace::export_chrome_trace`, `tensorboard_trace_handler` |
//! | turn it on and off | [`set_enabled`], [`bypass`], `PROFILER_ENABLED`, `PROFILER_FILTER`; the feature `strip` |
//! | set it up, and close it down in order | [`init`], [`builder`], [`flush`] |
//!
//! # What it costs
//!
//! Off, a measured call costs one relaxed load and a branch. On, it costs two readings of the clock (on
//! x86-64 of the processor's time-stamp counter) and some writes to memory of its own thread: no lock, no shared
//! cache line, no allocation, no I/O, and nothing grows with the number of calls. Calls that are
//! logged one by one go through a bounded ring to a thread of the profiler's; when that cannot keep
//! up, entries are dropped and counted, calls and times stay exact.
//!
//! A name takes 3 KiB for each thread that calls it and, once such a thread has ended, 6 KiB more; a
//! thread that ends gives its memory to the next. A thread that logs takes a ring of
//! `PROFILER_RING` entries.
//!
//! # On the GPU
//!
//! Where the program uses CUDA, a scope has a GPU time too: how long the work takes that it put into its stream.
//! Nothing waits for the device. [`cuda`] says how, and which stream.
//!
//! # Features
//!
//! - `cuda` (default): GPU times. The driver is looked for when the program runs.
//! - `cudarc` (default): streams and contexts of cudarc 0.19 are taken wherever a stream is.
//! - `tensorboard` (default): [`TensorBoardLogger`].
//! - `trace` (default): traces for Perfetto, TensorBoard's trace plugin and HTA.
//! - `validate`: `validate`, the checker of such traces.
//! - `tensorboard-rs`: accepts the writer of the crate of that name as a logger.
//! - `strip`: every annotated function is the function that was written, token for token; everything
//!   else is still here and does nothing. It wins over all other features, wherever in the program it
//!   is set. What only arguments of the attribute mention (`log = board.clone()`) is unused then.
//!
//! # Threads, futures, panics
//!
//! Scopes nest on each thread, and in each task: a future's scope is the innermost one while it is
//! polled, on whatever thread, and no scope of any thread between. A call that ends with a panic, or a
//! future that is dropped before it is done, is counted and flagged. Whatever runs in destructors of
//! thread-locals is counted too.
//!
//! What the numbers mean and how far to trust them stands in `docs/accuracy.md`.

// The measured path is two functions, whatever it is written in.
#![allow(clippy::inline_always)]

mod background;
mod clock;
mod collect;
mod config;
pub mod cuda;
mod diagnostics;
mod local;
mod log;
mod memory;
mod name;
mod own_cost;
mod process;
mod report;
mod scope;
mod session;
mod site;
mod startup;
mod stats;
mod step;
mod stream_key;
mod switch;
mod sync;

pub use config::{Action, ActionFn, Backend, IntoSchedule, Schedule, ScheduleError, SummaryTarget};
pub use diagnostics::DropReason;
#[cfg(feature = "tensorboard")]
pub use log::TensorBoardLogger;
#[cfg(feature = "tensorboard-rs")]
pub use log::TensorBoardRsLogger;
pub use log::{
    CudaSpan, IntoLogger, LogError, LogFn, LogOutcome, Logger, Scalar, ScalarLogger, TracingLogger,
};
pub use memory::{MemoryUse, ProfilerAllocator};
pub use name::TimeSource;
/// # Examples
///
/// ```
/// use std::sync::mpsc;
/// use std::time::Duration;
///
/// use profiler_runtime::{flush, measure_execution_time};
///
/// struct Model {
///     times: mpsc::Sender<(String, u64)>,
/// }
///
/// impl Model {
///     #[measure_execution_time(
///         name = "forward",
///         log = { let times = self.times.clone(); move |tag: &str, _: f64, step| times.send((tag.to_owned(), step)) },
///     )]
///     fn forward(&self, x: f32) -> f32 {
///         x * 2.0
///     }
/// }
///
/// let (times, logged) = mpsc::channel();
/// assert_eq!(Model { times }.forward(1.5), 3.0);
/// flush(Duration::from_secs(5));
/// # if profiler_runtime::is_enabled() {
/// assert_eq!(logged.recv(), Ok(("forward".to_owned(), 0)));
/// # }
/// ```
pub use profiler_macros::measure_execution_time;
pub use report::OwnCost;
pub use report::averages::{
    AverageMemory, AverageRow, AverageTimes, AveragesTable, CallEdge, CallEdges, EdgeTimes,
    GroupBy, KeyAverages, Restriction, RestrictionError, SortKey, SortKeyError,
};
#[cfg(feature = "validate")]
pub use report::export::{
    DEFAULT_MAX_TRACE_BYTES, Rule, ValidateError, ValidateOptions, Violation, validate,
    validate_with,
};
#[cfg(feature = "trace")]
pub use report::export::{
    ExportError, LaunchCategory, TensorBoardTraces, tensorboard_trace_handler,
};
pub use report::summary::{CudaTimes, Row, SortBy, Summary, TableOptions, Verdict, summary};
pub use scope::task::Measured;
pub use session::{
    Activity, DEFAULT_CAPACITY, Event, Extent, Frame, GpuSpan, Profile, ProfileBuilder,
    ProfileError, ToShape, Trace, Truncation,
};
pub use site::MeasureFuture;
pub use startup::{Builder, FlushReport, InitError, Profiler, builder, flush, init, step};
pub use step::IntoStep;
pub use switch::{bypass, is_enabled, set_enabled};

/// Opens a scope that lasts until its guard is dropped.
///
/// `scope!(name, key = value, …)` takes the name, then any of the attribute's arguments `log`,
/// `global_step`, `bypass`, `every`, `stream`, `shapes`, `sync` and `captured`. A literal is looked up once; any other expression that gives a
/// string is looked up at each call (some 20 ns), and `PROFILER_MAX_NAMES` bounds how many such names
/// there can be.
///
/// # Examples
///
/// ```
/// use profiler_runtime::scope;
///
/// for layer in 0..3 {
///     let _scope = scope!(format!("layer {layer}"), global_step = layer);
///     // the layer
/// }
/// # if profiler_runtime::is_enabled() {
/// assert_eq!(profiler_runtime::summary().row("layer 2").map(|row| row.calls), Some(1));
/// # }
/// ```
#[macro_export]
macro_rules! scope {
    ($($arguments:tt)*) => { $crate::__private::scope!([$crate] $($arguments)*) };
}

/// Measures a block, and gives its value.
///
/// `measure_execution_time_context!(name, key = value, …, { block })` takes what [`scope!`] takes, and a
/// block. `return`, `?`, `break` and `continue` in the block mean what they mean around it.
///
/// # Examples
///
/// ```
/// use profiler_runtime::measure_execution_time_context;
///
/// fn parse(text: &str) -> Result<i32, std::num::ParseIntError> {
///     let number = measure_execution_time_context!(
///         "parse",
///         log = |tag, milliseconds, step| println!("{tag} {step}: {milliseconds} ms"),
///         { text.trim().parse::<i32>()? }
///     );
///     Ok(number + 1)
/// }
/// assert_eq!(parse(" 41 "), Ok(42));
/// ```
#[macro_export]
macro_rules! measure_execution_time_context {
    ($($arguments:tt)*) => { $crate::__private::context!([$crate] $($arguments)*) };
}

/// Measures a block, and gives its value, or what runs until a guard goes: by the name that
/// `torch.profiler` has for both.
///
/// With a block it is [`measure_execution_time_context!`], without one [`scope!`], with the same arguments.
///
/// # Examples
///
/// ```
/// use profiler_runtime::record_function;
///
/// fn model(inputs: &[f32]) -> f32 {
///     let _forward = record_function!("forward");
///     inputs.iter().sum()
/// }
///
/// let inputs = [1.0, 2.0];
/// let output = record_function!("model_inference", shapes = [inputs.len()], { model(&inputs) });
/// assert_eq!(output, 3.0);
/// # if profiler_runtime::is_enabled() {
/// assert_eq!(profiler_runtime::summary().row("model_inference").map(|row| row.calls), Some(1));
/// # }
/// ```
#[macro_export]
macro_rules! record_function {
    ($($arguments:tt)*) => { $crate::__private::record_function!([$crate] $($arguments)*) };
}

/// Ends a step of the session that the environment asked for (`PROFILER_TRACE`), and begins the next one:
/// [`step`](fn@step), for a program that otherwise only has macros. Sessions of the program's own have
/// [`Profile::step`].
///
/// # Examples
///
/// ```
/// use profiler_runtime::{record_function, step};
///
/// for batch in [[1.0, 2.0], [3.0, 4.0]] {
///     let loss: f64 = record_function!("train", { batch.iter().sum() });
///     assert!(loss > 0.0);
///     step!();
/// }
/// ```
#[macro_export]
macro_rules! step {
    () => {
        $crate::step()
    };
}

/// What the macros expand to. Not for direct use: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use std::any::type_name;
    pub use std::pin::pin;

    pub use profiler_macros::{context, record_function, scope};

    pub use crate::config::{VARIABLES, Variable};
    pub use crate::local::blocks_made;
    pub use crate::scope::boxed::{BoxedFuture, call_once, measure_boxed};
    pub use crate::scope::builder::Entry;
    pub use crate::scope::task::{InPlace, PlainTask, TaskScope, measure, measure_in_place};
    pub use crate::scope::{LoggedScope, Scope};
    pub use crate::site::{CallSite, GivenSite, begin_dynamic};
    pub use crate::stats::cells_made;

    /// `bool`, whatever the name means where the macro is used.
    pub type Bool = bool;
    /// The same for strings.
    pub type Str = &'static str;

    /// What `scope!` gives in a stripped build.
    #[derive(Debug)]
    pub struct Stripped;

    /// Like the guard it stands for, so that `drop(scope!("…"))` means something in any build.
    impl Drop for Stripped {
        #[inline]
        fn drop(&mut self) {}
    }

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
