//! A layer for `tracing-subscriber` that measures spans.
//!
//! - `forward`: the layer as `tracing-subscriber` sees it.
//! - `filter`: the spans that the layer asks for.
//! - `layers`: the layers that there are.
//! - `sites`: their call sites, with names and decisions as those of annotated functions.
//! - `open_spans`: the spans that are open, by id.
//! - `stack`: the spans that a thread has entered.
//! - `recorder`: what happens to a span; the scope that it opens is that of the [`scope`](crate::scope) module.
//! - `whole`: spans that are measured from the first enter to the last exit, as futures are.
//! - `futures`: which call sites have such spans.
//! - `held`: the times of the first spans of a call site, until that is known.

#[cfg(not(feature = "strip"))]
mod filter;
mod forward;
#[cfg(not(feature = "strip"))]
mod futures;
#[cfg(not(feature = "strip"))]
mod held;
#[cfg(not(feature = "strip"))]
mod layers;
#[cfg(not(feature = "strip"))]
mod measured;
#[cfg(not(feature = "strip"))]
mod naming;
#[cfg(not(feature = "strip"))]
mod open_spans;
#[cfg(not(feature = "strip"))]
mod recorder;
#[cfg(not(feature = "strip"))]
mod sites;
#[cfg(not(feature = "strip"))]
mod stack;
#[cfg(feature = "strip")]
mod stripped;
#[cfg(not(feature = "strip"))]
mod whole;

#[cfg(not(feature = "strip"))]
use measured as variant;
#[cfg(feature = "strip")]
use stripped as variant;

use variant::LayerState;

/// A layer for [`tracing_subscriber`] that measures spans: those of the program, and those of the crates that it uses.
///
/// A span is measured as a [`scope!`](crate::scope) would be that opens when the span is entered and closes when it is
/// exited. So spans and annotated functions are parents and children of each other, and spans have rows in summaries, are
/// in windows and their traces, and have GPU times on the current stream of the thread
/// ([`cuda::with_stream`](crate::cuda::with_stream)) or the default stream of the program
/// ([`cuda::set_default_stream`](crate::cuda::set_default_stream)).
///
/// # Names
///
/// A name is the target of the span, `::`, and the span's own name. For `#[tracing::instrument]` that is the path of the
/// function, as `#[measure_execution_time]` gives it too, but without the type of a method. File and line distinguish spans of
/// different places with the same name. Fields are ignored.
///
/// # Calls and times
///
/// Each time that a span is entered is a call: candle's layers create one span for each part of a model and enter it in each
/// `forward`. The span of a future, which [`Instrument`](tracing::Instrument) and `#[instrument]` enter in each poll, is one
/// call, from the first enter to the last exit, and the time for which it was entered is that in polls; it counts once it is
/// closed. `tracing` does not tell the two apart. The layer knows a future by its end, at which it is dropped inside its span
/// and closes it at once, and measures later spans of that call site so. Until a span of a call site has ended, or was entered 64
/// times, the times of its spans (256 at once) are held back, and they count as open; not with callers, a default logger or
/// `PROFILER_STEP`, and not for spans of candle, burn and CubeCL, where each time is a call until then.
///
/// Where that goes wrong, a note below the table counts the spans that were entered several times.
/// [`whole_spans`](Self::whole_spans) measures all spans as those of futures, [`entered_spans`](Self::entered_spans) none.
///
/// - Entered on several threads, also at once: each thread's time counts.
/// - Entered again inside itself: counts once.
/// - Exited in another order than entered, as with a guard that is held across an `.await`: counted, and the row reports
///   times that ended out of order.
/// - Never entered; entered and never exited, or exited on another thread; more than 688,128 open at once that are measured in
///   one way (or fewer, if their ids collide); more than 4,096 call sites; entered while the thread ends: counted by reason in
///   [`Summary::lost_spans`](crate::Summary::lost_spans) and below the table.
/// - Entered while measuring is off: not measured, and not counted as lost. A span that was created then is measured from
///   its next enter on.
///
/// A parent is the scope around a span on its thread. The parent that `tracing` knows of may be another one, and does not
/// count.
///
/// In a window, among callers, on the GPU and in logs, each time is a scope of its own.
///
/// A registry takes one such layer: with two, each span would be two scopes, so only the outermost measures, and a warning
/// says so. The layer cannot be the new value of a [`reload`](tracing_subscriber::reload) layer, which does not tell a
/// layer that it is part of the registry: `tracing-subscriber` panics then if debug assertions are on. No such thing can be
/// found out here without a check in each span.
///
/// # Filters
///
/// By default the layer does not ask for spans in which crates of the asynchronous ecosystem report on themselves (`tokio`,
/// `tokio_util`, `mio`, `hyper`, `hyper_util`, `h2`, `tower` and `want`), nor for those of the level `TRACE`, except of crates
/// whose names begin with `burn`, `candle` or `cubecl`. [`all_spans`](Self::all_spans) asks for all. A filter of the layer
/// ([`with_filter`](tracing_subscriber::Layer::with_filter)) restricts that further, as do `PROFILER_FILTER` and
/// [`Builder::filter`](crate::Builder::filter) by name. The layer decides nothing for other layers.
///
/// If it sees no span at all, the table says so. Usual causes are a filter of the whole registry
/// (`registry().with(filter)`), which hides spans from all layers, and a feature of `tracing` such as
/// `release_max_level_info`, which removes spans from the program when it is built.
///
/// # Cost
///
/// Some 310 instructions for each span, 254 of them in the profiler, beyond some 780 that the registry takes. Nothing is
/// allocated after each thread's first span of a call site, unless more spans are open than before, or the span is among the
/// first 64 of its name on the thread that were entered several times, which are looked at more closely. While measuring is off,
/// a span is not looked for: each function loads a word or two, finds that the thread has entered no span, and returns. Once
/// it has been off, entering a span that is not measured looks it up in the registry. The registry's own cost remains. In a
/// build with the feature `strip`, the layer is empty.
///
/// # Examples
///
/// ```
/// use profiler_runtime::ProfilerLayer;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// mod model {
///     // As it is in a crate that knows nothing of the profiler.
///     pub fn forward(x: f32) -> f32 {
///         tracing::info_span!("forward").in_scope(|| x * 2.0)
///     }
/// }
///
/// let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
/// tracing::subscriber::set_global_default(subscriber)?;
///
/// assert_eq!(model::forward(1.5), 3.0);
///
/// let summary = profiler_runtime::summary();
/// let row = summary.rows.iter().find(|row| row.name.ends_with("model::forward"));
/// # if profiler_runtime::is_enabled() {
/// assert_eq!(row.map(|row| row.calls), Some(1));
/// # }
/// # Ok::<(), tracing::subscriber::SetGlobalDefaultError>(())
/// ```
///
/// A layer that prints events, and shows none below its own level, beside it:
///
/// ```
/// use profiler_runtime::ProfilerLayer;
/// use tracing_subscriber::Layer;
/// use tracing_subscriber::filter::LevelFilter;
/// use tracing_subscriber::layer::{Identity, SubscriberExt};
///
/// # let printing = Identity::new();
/// // `printing` is a `tracing_subscriber::fmt::layer()`, say. Its filter is its own.
/// let subscriber = tracing_subscriber::registry()
///     .with(printing.with_filter(LevelFilter::INFO))
///     .with(ProfilerLayer::new());
/// # tracing::subscriber::with_default(subscriber, || ());
/// ```
pub struct ProfilerLayer<S> {
    state: LayerState<S>,
}

impl<S> ProfilerLayer<S> {
    /// Creates a layer. The type of the subscriber below it follows from where it is added.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: LayerState::new(),
        }
    }

    /// Measures all spans from the first enter to the last exit, as a measured future is measured from its first poll to its
    /// end.
    ///
    /// A span then is one call with one time, which counts when the span is closed; among callers and in logs too. The time
    /// for which it was entered is that in polls; self times are parts of that. In a window and on the GPU, each time from
    /// enter to exit remains a scope of its own.
    ///
    /// It takes some 1,200 instructions more for each span.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::ProfilerLayer;
    /// use tracing_subscriber::layer::SubscriberExt;
    ///
    /// let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new().whole_spans());
    /// tracing::subscriber::with_default(subscriber, || {
    ///     let request = tracing::info_span!("request");
    ///     request.in_scope(|| ());
    ///     request.in_scope(|| ());
    /// });
    /// let summary = profiler_runtime::summary();
    /// let row = summary.rows.iter().find(|row| row.name.ends_with("::request"));
    /// # if profiler_runtime::is_enabled() {
    /// assert_eq!(row.and_then(|row| row.cpu).map(|cpu| cpu.calls), Some(1));
    /// # }
    /// ```
    #[must_use]
    pub fn whole_spans(mut self) -> Self {
        self.state.measure_whole();
        self
    }

    /// Counts each time that a span is entered as a call, also for the spans of futures, of which it then is a poll.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::ProfilerLayer;
    /// use tracing_subscriber::layer::SubscriberExt;
    ///
    /// let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new().entered_spans());
    /// tracing::subscriber::with_default(subscriber, || {
    ///     let layer = tracing::info_span!("layer");
    ///     layer.in_scope(|| ());
    ///     layer.in_scope(|| ());
    /// });
    /// let summary = profiler_runtime::summary();
    /// let row = summary.rows.iter().find(|row| row.name.ends_with("::layer"));
    /// # if profiler_runtime::is_enabled() {
    /// assert_eq!(row.map(|row| row.calls), Some(2));
    /// # }
    /// ```
    #[must_use]
    pub fn entered_spans(mut self) -> Self {
        self.state.measure_entered();
        self
    }

    /// Measures all spans, also those that a layer leaves out by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::ProfilerLayer;
    /// use tracing_subscriber::Layer;
    /// use tracing_subscriber::filter::{LevelFilter, Targets};
    /// use tracing_subscriber::layer::SubscriberExt;
    ///
    /// // All spans of one crate, and none of others.
    /// let filter = Targets::new().with_target("hyper", LevelFilter::TRACE);
    /// let layer = ProfilerLayer::new().all_spans().with_filter(filter);
    /// let subscriber = tracing_subscriber::registry().with(layer);
    /// # tracing::subscriber::with_default(subscriber, || ());
    /// ```
    #[must_use]
    pub fn all_spans(mut self) -> Self {
        self.state.take_all();
        self
    }
}

impl<S> Default for ProfilerLayer<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> std::fmt::Debug for ProfilerLayer<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProfilerLayer").finish_non_exhaustive()
    }
}
