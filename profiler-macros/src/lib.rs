//! The attribute and the macros of `profiler-runtime`. Depend on that crate: it re-exports what is
//! here, and what is here expands to code that needs it.
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
//!             ::profiler_runtime::__private::CallSite::NEW;
//!         SITE.enter(::profiler_runtime::__private::type_name::<Here>())
//!     };
//!     std::fs::read(path)
//! }
//! ```
//!
//! The statements are neither parsed nor moved: `return`, `?`, labels and `#[track_caller]` mean what
//! they meant, mistakes are told in the same words, half-typed code completes. `Here` is what the
//! call site finds its name by: its type name begins with the path of the function. Local variables
//! of the expansion are invisible to the user's code, and what the user wrote never stands in the
//! block with the items.
//!
//! An `async fn` becomes
//!
//! ```text
//! async fn fetch(url: Url) -> Result<Page, Error> {
//!     measure_in_place(
//!         &mut { /* Here and SITE, as above */ SITE.task(type_name::<Here>()) },
//!         pin!(async move {
//!             let url = url;
//!             if false { return never::<Result<Page, Error>>(); };
//!             /* the statements */
//!         }),
//!     )
//!     .await
//! }
//! ```
//!
//! Neither the scope nor the future is moved once it is made: what is moved has room on the stack in each level of
//! nested futures.
//!
//! With arguments such as `stream` and `log` an entry is made before, and `entry.task()` stands for `SITE.task(…)`. The
//! arguments are evaluated between the two: the stream only for a call that
//! is measured where there is a driver, the shapes only in an active window of a session that records
//! them, the others only for a call that is logged.
//!
//! ```text
//! let mut __profiler_entry = { /* Here and SITE */ SITE.begin(type_name::<Here>(), 1) };
//! if __profiler_entry.wants_stream() { __profiler_entry.stream(&self.stream); }
//! __profiler_entry.synchronous(); // `sync`; `captured` says `__profiler_entry.captured();` instead
//! if __profiler_entry.wants_shapes() { __profiler_entry.shape(&(x.shape())); __profiler_entry.shape(&(w.shape())); }
//! if __profiler_entry.wants_log() { __profiler_entry.log(self.board.clone()); }
//! if __profiler_entry.wants_step() { __profiler_entry.step(self.epoch); }
//! let __profiler_scope = __profiler_entry.start();
//! ```
//!
//! A function that returns an `async` block, boxed or not, still does, with the user's inside:
//!
//! ```text
//! let __profiler_entry = { /* Here and SITE, as above */ SITE.begin(type_name::<Here>(), 1) };
//! /* the statements before */
//! let __profiler_task = __profiler_entry.task();
//! Box::pin(async move { measure(__profiler_task, async move { /* the statements */ }).await })
//! ```
//!
//! Other attributes look for such a block: `tracing::instrument` enters its span at each of its polls.
//!
//! A `&CudaStream` stays borrowed until the guard goes, which a future does not allow; an
//! `Arc<CudaStream>`, also behind a reference, is borrowed no longer than the expression takes.
//!
//! # The feature `strip`
//!
//! Arguments are checked, mistakes are told as ever; then each function comes back token for token
//! (from a block only this crate's own attributes are gone, which may not be known inside), and each
//! section is its block. A variable that only an argument of the attribute mentions is unused then.

mod args;
mod asynchronous;
mod attributes;
mod block;
mod errors;
mod function;
mod futures;
mod item;
mod keys;
mod refuse;
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

/// Whether functions come back as they were written.
const STRIP: bool = cfg!(feature = "strip");

/// Measures how long each call of a function takes.
///
/// On an `impl` block or an inline `mod` it measures every function inside that can be measured.
///
/// ```ignore
/// // Not run here: this crate cannot depend on the runtime, which depends on it. The runtime's
/// // own documentation and the examples run the same.
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
/// | `name = …` | a string, or a constant expression such as `Self::NAME` | what the measurements are called; default: the path of the function, with its type for a method (`app::model::Mlp::forward`) |
/// | `log = …` | an expression that gives a logger: an `Arc` or a `&'static` of a `ScalarLogger`, or a closure `\|tag, milliseconds, step\|` | called for each call, on another thread (with `sync` on the one that called); the expression may use `self` and the arguments, and is evaluated when the function begins |
/// | `global_step = …` | an expression that gives an integer from 0 | the step that the value is logged at; default: this name's own counter, from 0 and without gaps |
/// | `bypass = …` | an expression that gives a `bool`, evaluated at each call | `true`: this call is not measured |
/// | `every = …` | an integer literal from 1 | logs one call in so many; calls and statistics stay exact |
/// | `stream = …` | an expression that gives a CUDA stream: an `Arc<CudaStream>` or a reference to one, a `&CudaStream`, a context (its default stream), or a `cuda::Stream` of the runtime's | the stream that the GPU time of the call is taken on; evaluated when the function begins, for calls that are measured, where there is a driver; default: the thread's current stream (`cuda::with_stream`), else, where a context is current, its legacy default stream, else the call has CPU time alone |
/// | `shapes = […]` | a list in brackets of what gives shapes: slices, arrays and vectors of integers, tuples, an integer, or a `ToShape` of your own | the shapes of what the call works on, in the order of the list; evaluated when the function begins, in an active window of a session that records shapes (`record_shapes(true)`), and nowhere else; borrowed only as long as it takes |
/// | `sync` | nothing, or `= true` or `= false` | waits at the end of the call until its work on the stream is done, and logs there and then; for a program whose timers always did so, since it slows down what it measures |
/// | `captured` | nothing, or `= true` or `= false` | the stream is captured into a graph meanwhile: each launch of that graph is measured, and not the capture |
/// | `per_instance` | nothing, or `= true` or `= false` | each instance of a generic function gets a name of its own (`app::W<u8>::get`), where by default they share one (`app::W<_>::get`) |
/// | `skip` | nothing | inside a measured block: leaves this function, `impl` or module out |
/// | `crate = …` | a path | where the runtime crate is, when it has another name |
///
/// ```text
/// impl Trainer {
///     #[measure_execution_time(log = self.board.clone(), global_step = self.epoch, every = 10)]
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
/// A shape is what the tensor's library calls so where that is a slice, an array, a vector or a tuple
/// of integers: `x.shape()` of ndarray, `x.dims()` of candle and of burn, `x.size()` of tch. For a
/// tensor of your own implement `ToShape` and write `shapes = [x, w]`.
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
/// - Give the `Arc<CudaStream>` that cudarc makes, or a reference to it, rather than the
///   `&CudaStream` inside: that one stays borrowed to the end of the call, and neither a `self` that
///   changes nor a stream that the body moves can be borrowed so long, nor anything by a future.
/// - `sync` and `captured` exclude each other: a graph that is captured does not run yet. Neither
///   suits an `async fn` or another function that returns a future, since a future must not block
///   its executor, nor pause a capture; put a section around the launch inside:
///   `measure_execution_time_context!("name", sync, { … })`.
/// - On a block, what a function says itself comes first: `captured` on it takes the place of the
///   block's `sync`, and `sync = false` is how a future stays out of it.
///
/// # Functions of every kind
///
/// - What ends a call ends its measurement: a value, `return`, `?`, a panic.
/// - An `async fn` is measured from its first poll to its end, and the time spent polling is kept
///   beside it. The same holds of a function whose return type says that it returns a future:
///   `Pin<Box<dyn Future<…>>>`, `BoxFuture`, `LocalBoxFuture`, `Box<dyn Future<…> + Unpin>`,
///   `impl Future<…>`; that is what `async_trait` makes, so the attribute may stand inside or
///   outside of it. A future behind another alias, or an associated type, is measured while it is
///   made, as any value is; measure it with `future.measure_execution_time("name")`.
///   Where `#[tracing::instrument]` is on such a function that leaves early (`return`, `?`) or calls other
///   macros, write it above this attribute: below, it cannot use arguments that are not `Copy`.
/// - Other attributes stay, above or below: `#[inline]`, `#[track_caller]`, `#[test]`,
///   `#[tokio::main]`, `#[cfg(…)]`, `#[must_use]`, …
/// - A `const fn` cannot be measured, nor a function without a body, nor a naked one.
///
/// # Blocks
///
/// ```text
/// #[measure_execution_time(every = 100)]
/// impl Model {
///     pub fn forward(&self, input: &Tensor) -> Tensor { … }   // measured
///
///     #[measure_execution_time(every = 1)]
///     pub fn update(&mut self) { … }                           // measured; all calls are logged
///
///     #[measure_execution_time(skip)]
///     pub fn len(&self) -> usize { … }                         // left out
///
///     pub const fn new() -> Self { … }                         // cannot be measured: left alone
/// }
/// ```
///
/// A function's own arguments take the place of the block's, one by one. In a module, the functions
/// of `impl` blocks, trait methods with a body and modules inside are measured too. Functions inside
/// functions are not, nor are those that a macro inside makes. The attribute is known inside a block
/// by its name; where it is imported under another, put it on each function instead. An item whose end
/// cannot be told, in a syntax that is newer than this crate, is an error: no function is left out
/// silently.
#[proc_macro_attribute]
pub fn measure_execution_time(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let mut errors = Errors::default();
    let args = Args::of_attribute(arguments.into(), &mut errors);
    let mut item = measured(item.into(), &args, &mut errors);
    item.extend(errors.into_tokens());
    item.into()
}

/// The item with what can be measured in it measured.
fn measured(item: TokenStream, args: &Args, errors: &mut Errors) -> TokenStream {
    let trees = item::trees(item);
    let head = Head::read(&trees);
    match head.kind {
        // What is left out is left out, also where no block around it is measured.
        _ if args.skip => trees.into_iter().collect(),
        Kind::Impl | Kind::Module => {
            refuse::name_on_block(args, head.kind, errors);
            refuse::module_elsewhere(&trees, errors);
            block::measured(trees, args, errors)
        }
        _ => refuse::or_measure(trees, head, args, false, errors),
    }
}

/// What `profiler_runtime::scope!` calls, with the path of the runtime in front.
#[doc(hidden)]
#[proc_macro]
pub fn scope(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::scope(input.into()).into()
}

/// What `profiler_runtime::record_function!` calls, with the path of the runtime in front.
#[doc(hidden)]
#[proc_macro]
pub fn record_function(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::record_function(input.into()).into()
}

/// What `profiler_runtime::measure_execution_time_context!` calls, with the path of the runtime in
/// front.
#[doc(hidden)]
#[proc_macro]
pub fn context(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    section::context(input.into()).into()
}
