//! Shows how long functions really take, on the CPU and on the GPU, without slowing them down.
//!
//! Put [`#[measure_execution_time]`](macro@measure_execution_time) on a function, run the program with
//! `PROFILER_SUMMARY=stderr`, and read the table:
//!
//! ```text
//! Name                Calls    Total     Self  Self %     Mean      Min      Max
//! ──────────────────────────────────────────────────────────────────────────────
//! Trainer::backward    1350  79.1 ms  79.1 ms  63.95%  58.6 µs  50.2 µs   203 µs
//! Trainer::forward     1350  44.6 ms  44.6 ms  36.05%  33.0 µs  27.1 µs  81.8 µs
//! all names begin with `app::`, which is left out
//! ```
//!
//! # In a program
//!
//! ```
//! use profiler_runtime::{measure, measure_execution_time};
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
//!         let length = measure!("train", global_step = epoch, { data.len() });
//!         let _guard = measure!("report");
//!         assert_eq!(length, 12);
//!     }
//!     println!("{}", profiler_runtime::summary());
//!     Ok(())
//! }
//! ```
//!
//! | to | use |
//! |---|---|
//! | measure a function, an `impl` block or a module | [`macro@measure_execution_time`] |
//! | measure a block, the rest of a block, or a future | [`measure!`], [`MeasureFuture`] |
//! | measure the spans of `tracing`, of other crates too | `ProfilerLayer`, with the feature `tracing-layer` |
//! | measure work that a function passes to other threads | [`Handle::current`], `parent = handle` |
//! | see totals, self times, percentiles | [`summary`], `PROFILER_SUMMARY` |
//! | see GPU times | `stream = …`, [`cuda::with_stream`], [`cuda::status`] |
//! | log every call | `log = …` with a [`TensorBoardLogger`], a [`TracingLogger`], a closure or any [`ScalarLogger`]; the module [`log`]; `PROFILER_TENSORBOARD` |
//! | record windows of a run, as with torch.profiler | [`Profile`], [`Schedule`], the module [`session`], `PROFILER_TRACE` |
//! | evaluate a window | [`Trace::key_averages`], `Trace::export_chrome_trace`, `tensorboard_trace_handler`, the module [`report`] |
//! | see what the GPUs' sensors say now | [`report::sample_gpus`] |
//! | turn measuring on and off | [`set_enabled`], [`pause`], `PROFILER_ENABLED`, `PROFILER_FILTER`; the feature `strip` |
//! | set the profiler up, and shut it down in order | [`init`], [`builder`], [`flush`] |
//!
//! # Cost
//!
//! Off, a measured call costs one relaxed load and a branch. On, it costs two readings of the clock (on x86-64 and
//! aarch64, of the processor's counter) and a few writes to memory of its own thread. In the steady state, it takes no lock,
//! writes no shared cache line, does not allocate and does no I/O; memory does not grow with the number of calls. Calls that are logged
//! individually go through a bounded ring to a background thread of the profiler. If that thread cannot keep up,
//! entries are dropped and counted; calls and times remain exact.
//!
//! A name takes 3 KiB for each thread that calls it and, after the first such thread has ended, 6 KiB more. A new thread
//! reuses the memory of threads that have ended. Each thread that logs has a ring of `PROFILER_RING` entries.
//!
//! # On the GPU
//!
//! If the program uses CUDA, a scope also has a GPU time: how long the work takes that it submitted to its stream. The
//! program never waits for the device. The module [`cuda`] explains how this works and how the stream is chosen.
//!
//! # Features
//!
//! - `cuda` (default): GPU times; the kernels, copies and fills inside of scopes, by name
//!   ([`ProfileBuilder::kernels`](session::ProfileBuilder::kernels), `PROFILER_KERNELS`); samples of power, energy, clocks,
//!   temperature and load ([`Builder::gpu_samples`], `PROFILER_GPU_SAMPLES`); calls as ranges in tools that understand NVTX,
//!   such as Nsight Systems. The libraries are searched for when the program runs. Has no effect on WebAssembly.
//! - `cudarc-0_19` (default): accepts streams and contexts of cudarc 0.19 as streams.
//! - `export` (default): summaries and windows as files for pstats, SnakeViz, pprof and flame graphs, and as a page.
//! - `terminal` (default): tables as wide as the terminal.
//! - `trace` (default): windows as files for Perfetto, TensorBoard's trace plugin and HTA, and `PROFILER_TRACE`.
//! - `serde`: summaries, rows, call edges and traces implement the traits of serde.
//! - `tensorboard-rs`: accepts the writer of the crate of that name as a logger.
//! - `tracing-layer`: `ProfilerLayer`, which measures the spans of `tracing`, those of other crates too.
//! - `strip`: every annotated function is the function that was written, token for token. All other items still exist
//!   and do nothing. The feature applies to the whole build, whichever crate enables it. The compiler may warn about
//!   items that only attribute arguments use (`log = board.clone()`).
//!
//! Without the default features, statistics, summaries, windows and loggers remain, and 19 other crates are built instead of 30.
//!
//! # Platforms
//!
//! Linux, macOS and Windows. On WebAssembly there are no GPU times. WASI has no threads either: nothing is logged or
//! recorded, and the summary is complete. On `wasm32-unknown-unknown`, which has no clock, annotated functions run and
//! nothing is measured.
//!
//! # Threads, futures, panics
//!
//! Scopes nest within each thread and each task. While a future is polled, its scope is the innermost one of the polling
//! thread; between polls it is not part of any thread. With a [`Handle`], a scope is the parent of scopes on other
//! threads. A call that ends with a panic, or a future that is dropped before
//! it completes, is counted and flagged. Calls in destructors of thread-locals are counted too.
//!
//! # More
//!
//! [`manual`] has the [guide](manual::guide), a page for [users of torch.profiler, cProfile and
//! mdml-tools](manual::migration), the [environment variables](manual::environment), and what the numbers
//! mean and [how far to trust them](manual::accuracy).

#![cfg_attr(docsrs, feature(doc_cfg))]
// The measured path must compile to two functions: one opens a scope, one closes it. The helpers inside are always
// inlined.
#![allow(clippy::inline_always)]
// Modules have items that only traces and NVIDIA's libraries for tools use, which WebAssembly does not have. Builds with
// all of them find the code that is dead.
#![cfg_attr(
    any(not(all(feature = "cuda", feature = "trace")), target_family = "wasm"),
    allow(dead_code, unused_imports, unreachable_pub)
)]

mod clock;
mod collect;
mod config;
pub mod cuda;
#[cfg(all(test, unix, not(miri)))]
#[path = "../../crates/host/src/process/fork_and.rs"]
mod fork_and;
#[cfg(test)]
#[path = "../../crates/report/src/golden.rs"]
mod golden;
mod local;
pub mod log;
mod log_record;
mod losses;
mod snapshot;
// Its examples leave out code, so they are no tests.
#[cfg(all(doc, not(doctest)))]
pub mod manual;
mod memory;
mod name;
mod own_cost;
pub mod report;
mod scope;
pub mod session;
mod site;
mod startup;
mod stats;
mod switch;
#[cfg(feature = "tracing-layer")]
mod tracing_layer;

pub use config::{Action, Schedule};
pub use config::{Backend, SummaryTarget};
pub use local::HandleId;
pub use log::TensorBoardLogger;
#[cfg(feature = "tensorboard-rs")]
pub use log::TensorBoardRsLogger;
pub use log::{ScalarLogger, TracingLogger};
pub use memory::ProfilerAllocator;
pub use profiler_log::IntoStep;
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
/// assert_eq!(logged.recv(), Ok(("forward/cpu_ms".to_owned(), 0)));
/// # }
/// ```
pub use profiler_macros::measure_execution_time;
pub use profiler_macros::measured;
#[doc(inline)]
pub use profiler_report::SummaryFileError;
#[cfg(feature = "trace")]
pub use report::tensorboard_trace_handler;
pub use report::{GroupBy, SortKey, Summary, TableOptions};
pub use scope::future::Measured;
pub use scope::handle::{Entered, Handle};
pub use session::{Activity, Profile, Trace};
// The names of `torch.profiler`.
#[doc(no_inline)]
pub use config::Action as ProfilerAction;
#[doc(no_inline)]
pub use session::Activity as ProfilerActivity;
pub use site::MeasureFuture;
pub use snapshot::summary;
pub use startup::{
    Builder, FlushReport, InitError, ProfilerGuard, builder, flush, init, is_enabled, pause,
    set_enabled, step,
};
#[cfg(feature = "tracing-layer")]
#[cfg_attr(docsrs, doc(cfg(feature = "tracing-layer")))]
pub use tracing_layer::ProfilerLayer;

/// Measures a block, or the rest of the enclosing block.
///
/// `measure!(name, key = value, …, { block })` measures the block and returns its value. `return`, `?`, `break` and
/// `continue` inside the block refer to the enclosing function and loops.
///
/// `measure!(name, key = value, …)` returns a guard, which measures until it is dropped. Bind it to a variable
/// (`let _guard = measure!("load");`): `let _ = …` drops it at once.
///
/// The arguments are those of the attribute: `log`, `global_step`, `bypass`, `log_every`, `stream`, `shapes`, `parent`,
/// `sync` and `cuda_graph`. A literal name is looked up once. Any other string expression is looked up at each call (some 20 ns);
/// `PROFILER_MAX_NAMES` limits the number of such names.
///
/// # Examples
///
/// ```
/// use profiler_runtime::measure;
///
/// fn parse(text: &str) -> Result<i32, std::num::ParseIntError> {
///     let number = measure!(
///         "parse",
///         log = |tag, milliseconds, step| println!("{tag} {step}: {milliseconds} ms"),
///         { text.trim().parse::<i32>()? }
///     );
///     Ok(number + 1)
/// }
/// assert_eq!(parse(" 41 "), Ok(42));
///
/// for layer in 0..3 {
///     let _guard = measure!(format!("layer {layer}"), global_step = layer);
///     // compute the layer
/// }
/// # if profiler_runtime::is_enabled() {
/// assert_eq!(profiler_runtime::summary().row("layer 2").map(|row| row.calls), Some(1));
/// # }
/// ```
#[macro_export]
macro_rules! measure {
    ($($arguments:tt)*) => { $crate::__private::measure!([$crate] $($arguments)*) };
}

/// An alias of [`measure!`] without a block.
///
/// # Examples
///
/// ```
/// use profiler_runtime::scope;
///
/// let _scope = scope!("load");
/// ```
#[macro_export]
macro_rules! scope {
    ($($arguments:tt)*) => { $crate::__private::scope!([$crate] $($arguments)*) };
}

/// An alias of [`measure!`] with a block, under the name that mdml-tools uses.
///
/// # Examples
///
/// ```
/// use profiler_runtime::measure_execution_time_context;
///
/// assert_eq!(measure_execution_time_context!("sum", { 1 + 2 }), 3);
/// ```
#[macro_export]
macro_rules! measure_execution_time_context {
    ($($arguments:tt)*) => { $crate::__private::context!([$crate] $($arguments)*) };
}

/// An alias of [`measure!`], under the name that `torch.profiler` uses.
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

/// Ends a step of the session that `PROFILER_TRACE` started, and begins the next step.
///
/// The macro calls [`step`](fn@step). It exists for programs that otherwise use only macros. Sessions that the program
/// starts have [`Profile::step`].
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

/// Items that the macros expand to. Not part of the public API: they change without notice.
#[doc(hidden)]
pub mod __private {
    pub use std::boxed::Box;
    pub use std::pin::pin;

    pub use profiler_macros::{context, measure, record_function, scope};

    pub use crate::config::{VARIABLES, Variable};
    pub use crate::local::blocks_made;
    pub use crate::scope::boxed::{BoxedFuture, NotBoxed, Returned, call_once};
    pub use crate::scope::builder::ScopeBuilder;
    pub use crate::scope::future::{
        FutureScope, FutureScopeWithArgs, InPlace, OnlyPoll, measure, measure_in_place, only_poll,
    };
    pub use crate::scope::handle::AsHandle;
    pub use crate::scope::on_stream::StreamBuilder;
    pub use crate::scope::{Scope, ScopeWithArgs};
    pub use crate::site::{
        CallSite, MultiNameSite, NEW_MULTI_NAME_SITE, NEW_SITE, begin_dynamic, enter_dynamic,
        no_scope, wants_name,
    };
    pub use crate::stats::cells_made;
    pub use profiler_log::{CalledOnAnotherThread, LoggerInPlace};

    /// `bool` under a name that the program cannot shadow where the macro is used.
    pub type Bool = bool;
    /// `&'static str` under a name that the program cannot shadow.
    pub type Str = &'static str;

    /// The guard that `measure!` returns in a stripped build.
    #[derive(Debug)]
    #[must_use = "the section ends when its guard is dropped; to measure the rest of the block, write \
                  `let _guard = measure!(\"name\");`, and not `let _ = …`, which drops the guard at once"]
    pub struct Stripped;

    /// Keeps `drop(measure!("…"))` free of warnings about dropping a value without a destructor.
    impl Drop for Stripped {
        #[inline]
        fn drop(&mut self) {}
    }

    /// Returns the type's name; for a closure it contains the instance of the generic function around it.
    pub fn type_name_of<T>(_: &T) -> &'static str {
        std::any::type_name::<T>()
    }

    /// Gives the block of an asynchronous function its type. Never called.
    pub fn never<R>() -> R {
        loop {
            std::thread::park();
        }
    }
}
