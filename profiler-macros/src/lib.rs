//! The attribute and the macros of `profiler-runtime`. Depend on `profiler-runtime` instead of this
//! crate: it re-exports these macros, and their expansions call it.
//!
//! # What the attribute expands to
//!
//! ```text
//! #[measure_execution_time]
//! fn load(path: &Path) -> io::Result<Vec<u8>> {
//!     std::fs::read(path)
//! }
//! ```
//!
//! becomes
//!
//! ```text
//! fn load(path: &Path) -> io::Result<Vec<u8>> {
//!     let __profiler_scope = {
//!         enum Here {}
//!         static SITE: ::profiler_runtime::__private::CallSite =
//!             ::profiler_runtime::__private::NEW_SITE;
//!         SITE.enter::<Here>()
//!     };
//!     std::fs::read(path)
//! }
//! ```
//!
//! The statements are neither parsed nor moved. `return`, `?`, labels and `#[track_caller]` keep
//! their meaning, compiler errors keep their text, and editors can complete half-typed code.
//!
//! The call site derives its default name from `Here`, whose type name begins with the path of the
//! function. The local variables of the expansion are hygienic, so the user's code cannot
//! see them. Items are not hygienic, so the user's code never stands in the block that declares
//! them.
//!
//! An `async fn` without `.await` never waits. It keeps its statements after a guard of its only poll:
//!
//! ```text
//! async fn count(State(app): State<Arc<App>>) -> Json<usize> {
//!     let mut __profiler_task = { /* Here and SITE, as above */ SITE.task::<Here>() };
//!     let __profiler_scope = only_poll(&mut __profiler_task);
//!     /* the statements */
//! }
//! ```
//!
//! Any other `async fn` becomes
//!
//! ```text
//! async fn fetch(url: Url, _permit: Permit) -> Result<Page, Error> {
//!     measure_in_place(
//!         &mut { /* Here and SITE, as above */ SITE.task::<Here>() },
//!         pin!(async move {
//!             let _ = &url;
//!             let _permit = match _permit { value => value };
//!             if false { return never::<Result<Page, Error>>(); };
//!             { use {}; /* the statements */ }
//!         }),
//!     )
//!     .await
//! }
//! ```
//!
//! This future drops its parameters inside, while it is measured. A function that keeps its statements drops its parameters
//! after its guard.
//!
//! The module `parameters` says which parameters are captured and which are bound again, and why the destructors of all of them
//! then run in the usual order. The block inside has the edition of the user's braces, the one around it that of this crate.
//!
//! Neither the scope nor the future is moved after it is created: each move would reserve stack
//! space for another copy at every level of nested futures.
//!
//! With arguments such as `stream` and `log`, the expansion first creates a scope builder, and
//! `builder.task()` replaces `SITE.task(…)`. The arguments are evaluated between the two: the
//! stream only if the call is measured and there is a CUDA driver, the shapes only in an active
//! window of a session that records shapes, the parent only if the call is measured, the others
//! only if the call is logged, and the step also if a tool gets ranges. With a stream alone,
//! `SITE.begin_on_stream(…)` creates a smaller builder.
//!
//! ```text
//! let __profiler_scope = {
//!     let mut __profiler_builder = { /* Here and SITE */ SITE.begin::<Here>(1) };
//!     if __profiler_builder.wants_stream() { __profiler_builder.stream(&self.stream); }
//!     __profiler_builder.synchronous(); // `sync`; `cuda_graph` says `__profiler_builder.cuda_graph();` instead
//!     if __profiler_builder.wants_shapes() { __profiler_builder.shape(&(x.shape())); __profiler_builder.shape(&(w.shape())); }
//!     if __profiler_builder.wants_parent() { __profiler_builder.parent(&(handle)); }
//!     if __profiler_builder.wants_log() { __profiler_builder.log_in_place(&self.board); }
//!     if __profiler_builder.wants_step() { __profiler_builder.step(self.epoch); }
//!     __profiler_builder.start()
//! };
//! ```
//!
//! The logger above is in a field: an expression that names a place is borrowed, and cloned for a call that is logged, as is
//! `&self.board`. A closure is passed to `log_with`, which infers the types of its parameters, and any other logger to `log`.
//!
//! A function that returns an `async` block, boxed or not, still returns one. The user's block is
//! inside it:
//!
//! ```text
//! /* the statements before */
//! let __profiler_task = { /* Here and SITE, as above */ SITE.task::<Here>() };
//! Box::pin(async move {
//!     measure_in_place(&mut { __profiler_task }, pin!(async move { /* the statements */ })).await
//! })
//! ```
//!
//! Other attributes look for such a block: `tracing::instrument` enters its span at each poll of
//! it.
//!
//! Any other function that returns a future evaluates its statements to that future, and returns the measured future. A
//! `return` among the statements leaves a block with a label, or, if a macro may contain one, a closure.
//!
//! A `&CudaStream` stays borrowed until the guard is dropped, which a future does not allow. An
//! `Arc<CudaStream>`, or a reference to one, is borrowed only while the expression is evaluated.
//!
//! # The feature `strip`
//!
//! Arguments are checked and errors are reported as usual. Then each function is returned token for
//! token, and each section becomes its block. A measured `impl` or `mod` only loses the attributes
//! of this crate inside it, because their name may not be in scope there. A variable that only an
//! argument of the attribute mentions becomes unused.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod args;
mod asynchronous;
mod attributes;
mod block;
mod errors;
mod function;
mod futures;
mod item;
mod keys;
mod parameters;
mod reject;
mod section;
mod site;
mod split;
mod tail;
#[cfg(test)]
mod tests;
mod values;

use args::Args;
use errors::Errors;
use item::{Head, Kind};
use proc_macro2::TokenStream;

/// `true` if functions are returned as they were written, without measurement.
const STRIP: bool = cfg!(feature = "strip");

/// Measures how long each call of a function takes.
///
/// On an `impl` block or an inline `mod`, it measures every function inside that can be measured.
///
/// ```ignore
/// // Ignored because this crate cannot depend on the runtime, which depends on it. The runtime's
/// // documentation and the examples run this code.
/// use profiler_runtime::measure_execution_time;
///
/// #[measure_execution_time]
/// fn load() -> Vec<u8> {
///     vec![1, 2, 3]
/// }
/// ```
///
/// # Arguments
///
/// | argument | takes | meaning |
/// |---|---|---|
/// | `name = …` | a string, or a constant expression such as `Self::NAME` | the name of the measurements; default: the path of the function, with its type for a method (`app::model::Mlp::forward`) |
/// | `log = …` | a logger: an `Arc` of a `ScalarLogger` or a reference to one, a `&'static` of a `ScalarLogger`, a `static` `LazyLock` of an `Arc` of one, or a closure `\|tag, milliseconds, step\|` | logs each call, on another thread (with `sync`, on the calling thread); the expression may use `self` and the parameters, and is evaluated when the function begins; a variable, a field or an element (`self.board`) is only borrowed, and cloned for each call that is logged |
/// | `global_step = …` | an expression that returns an integer from 0 | the step at which the value is logged; default: this name's own counter, from 0 and without gaps |
/// | `bypass = …` | an expression that returns a `bool`, evaluated at each call | `true`: this call is not measured |
/// | `log_every = …` | an integer literal from 1 | logs only every n-th call; the call count and the statistics stay exact |
/// | `stream = …` | an expression that returns a CUDA stream: an `Arc<CudaStream>` or a reference to one, a `&CudaStream`, a context (its default stream), or the runtime's `cuda::Stream` | the stream on which the GPU time of the call is measured; evaluated when the function begins, for calls that are measured, if a CUDA driver is loaded; default: the thread's current stream (`cuda::with_stream`), else, if a context is current, its legacy default stream, else only CPU time is measured |
/// | `shapes = […]` | a list in brackets of values that have shapes: slices, arrays and vectors of integers, tuples, an integer, or your own `ToShape` | the shapes of the call's inputs, in the order of the list; evaluated when the function begins, only in an active window of a session that records shapes (`record_shapes(true)`); borrowed only while they are read |
/// | `parent = …` | an expression that returns a `Handle` of a scope on another thread, or a reference to one; it is only borrowed | that scope is the call's parent; evaluated when the function begins, for calls that are measured; default: the innermost open scope of the thread |
/// | `sync` | nothing, or `= true` or `= false` | waits at the end of the call until its work on the stream has finished, and logs immediately; intended for programs whose timers always synchronized, since waiting slows down the measured code |
/// | `cuda_graph` | nothing, or `= true` or `= false` | the stream is being captured into a graph: each launch of that graph is measured, and the capture is not |
/// | `per_instance` | nothing, or `= true` or `= false` | each instance of a generic function has its own name (`app::W<u8>::get`); by default they share one (`app::W<_>::get`) |
/// | `skip` | nothing | inside a measured block: does not measure this function, `impl` or module |
/// | `crate = …` | a path | the path of the runtime crate, if it has another name |
///
/// ```text
/// static BOARD: LazyLock<Arc<TensorBoardLogger>> =
///     LazyLock::new(|| Arc::new(TensorBoardLogger::new("runs/today").expect("a log")));
///
/// #[measure_execution_time(log = BOARD)]
/// fn load(path: &Path) -> Batch { … }
///
/// struct Trainer {
///     board: Arc<TensorBoardLogger>,
///     epoch: u64,
/// }
///
/// impl Trainer {
///     #[measure_execution_time(log = self.board, global_step = self.epoch, log_every = 10)]
///     fn train(&mut self, batch: &Batch) -> f32 { … }
/// }
/// ```
///
/// # Shapes
///
/// ```text
/// #[measure_execution_time(shapes = [x.shape(), w.shape()])]
/// fn linear(x: &Array2<f32>, w: &Array2<f32>) -> Array2<f32> { … }
/// ```
///
/// A shape is a slice, an array, a vector or a tuple of integers, as tensor libraries return it:
/// `x.shape()` in ndarray, `x.dims()` in candle and burn, `x.size()` in tch. For your own tensor
/// type, implement `ToShape` and write `shapes = [x, w]`.
///
/// # The GPU
///
/// ```text
/// impl Trainer {
///     #[measure_execution_time(stream = &self.stream)]
///     fn train(&mut self, batch: &Batch) -> Result<f32> { … }
/// }
/// ```
///
/// - Pass the `Arc<CudaStream>` that cudarc creates, or a reference to it, rather than the
///   `&CudaStream` inside. A `&CudaStream` stays borrowed to the end of the call, so the body can
///   neither change the `self` that holds it nor move the stream, and a future cannot hold it.
/// - `sync` and `cuda_graph` exclude each other: work that is captured into a graph does not run yet.
///   Neither can be used on an `async fn` or another function that returns a future: a future must
///   not block its executor, and a capture must not span an `.await`. Put a section around the
///   launch inside: `measure!("name", sync, { … })`.
/// - A function's own argument overrides that of its block: `cuda_graph` on the function replaces the
///   block's `sync`, and `sync = false` excludes a future from it.
///
/// # Functions of every kind
///
/// - However a call ends, its measurement ends with it: by its last expression, `return`, `?` or a
///   panic.
/// - An `async fn` is measured from its first poll to its end, and the time spent polling is
///   recorded separately. This also applies to a function whose return type names a future:
///   `Pin<Box<dyn Future<…>>>`, `BoxFuture`, `LocalBoxFuture`, `Box<dyn Future<…>>` or
///   `impl Future<…>`. `async_trait` generates such functions, so the attribute may be placed
///   inside or outside of it. If the return type is another alias or an associated type, or has a
///   trait beside `Future` that is not automatic (`impl Future + Clone`), only the creation of the
///   future is measured; measure such a future with `future.measure_execution_time("name")`. If a
///   function that returns a future calls macros other than the usual ones of std, write
///   `#[tracing::instrument]` above this attribute: below it, `tracing` cannot use parameters that
///   are not `Copy`.
/// - An `async fn` with an `.await` becomes two futures, one inside the other. If the compiler reports
///   an overflow in a deep chain of such functions, write `#![recursion_limit = "256"]` in the crate.
/// - Other attributes are kept, above or below: `#[inline]`, `#[track_caller]`, `#[test]`,
///   `#[tokio::main]`, `#[cfg(…)]`, `#[must_use]`, …
/// - A `const fn`, a naked function and a function without a body cannot be measured.
///
/// # Blocks
///
/// ```text
/// #[measure_execution_time(log_every = 100)]
/// impl Model {
///     pub fn forward(&self, input: &Tensor) -> Tensor { … }   // measured
///
///     #[measure_execution_time(log_every = 1)]
///     pub fn update(&mut self) { … }                           // measured; all calls are logged
///
///     #[measure_execution_time(skip)]
///     pub fn len(&self) -> usize { … }                         // not measured
///
///     pub const fn new() -> Self { … }                         // cannot be measured: unchanged
/// }
/// ```
///
/// Each argument of a function overrides the same argument of its block. In a module, the attribute
/// also measures the functions of `impl` blocks, trait methods with a body, and inline modules.
/// Functions nested in functions, and functions that a macro inside generates, are not measured.
///
/// Inside a block, the attribute is recognized by its names `measure_execution_time` and `measured`;
/// if it is imported under another name, put it on each function instead. An item in a syntax newer than
/// this crate, whose end the crate cannot find, is an error: no function is skipped silently.
#[proc_macro_attribute]
pub fn measure_execution_time(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let mut errors = Errors::default();
    let args = Args::of_attribute(arguments.into(), &mut errors);
    let mut item = expand(item.into(), &args, &mut errors);
    item.extend(errors.into_tokens());
    item.into()
}

/// An alias of [`macro@measure_execution_time`].
#[proc_macro_attribute]
pub fn measured(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    measure_execution_time(arguments, item)
}

/// Expands the attribute on an item.
fn expand(item: TokenStream, args: &Args, errors: &mut Errors) -> TokenStream {
    let trees = item::trees(item);
    let head = Head::read(&trees);
    match head.kind {
        // `skip` also applies to an item that is in no measured block.
        _ if args.skip => trees.into_iter().collect(),
        Kind::Impl | Kind::Module => {
            reject::name_on_block(args, head.kind, errors);
            reject::module_in_another_file(&trees, head.kind, errors);
            block::measured(trees, args, errors)
        }
        _ => reject::measure_or_reject(trees, head, args, false, errors),
    }
}

/// Implements `profiler_runtime::measure!`, which prepends the path of the runtime to its arguments.
#[doc(hidden)]
#[proc_macro]
pub fn measure(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::measure(input.into()).into()
}

/// Implements `profiler_runtime::scope!`, which prepends the path of the runtime to its arguments.
#[doc(hidden)]
#[proc_macro]
pub fn scope(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::guard(input.into()).into()
}

/// Implements `profiler_runtime::record_function!`, which prepends the path of the runtime to its
/// arguments.
#[doc(hidden)]
#[proc_macro]
pub fn record_function(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::measure(input.into()).into()
}

/// Implements `profiler_runtime::measure_execution_time_context!`, which prepends the path of the
/// runtime to its arguments.
#[doc(hidden)]
#[proc_macro]
pub fn context(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::block(input.into()).into()
}
