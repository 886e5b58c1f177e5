//! A layer for `tracing-subscriber` that measures spans.
//!
//! - `filter`: the spans that the layer asks for.
//! - `sites`: their call sites, with names and decisions as those of annotated functions.
//! - `open_spans`: the spans that are open, by id.
//! - `stack`: the spans that a thread has entered.
//! - `recorder`: what happens to a span; the scope that it opens is that of the [`scope`](crate::scope) module.
//! - `whole`: spans that are measured from the first enter to the last exit, as futures are.

#[cfg(not(feature = "strip"))]
mod filter;
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

use variant::State;

/// Measures the spans of [`tracing`], those of other crates too, without a change of their code.
pub struct ProfilerLayer<S> {
    state: State<S>,
}

impl<S> ProfilerLayer<S> {
    /// Creates a layer.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: State::new(),
        }
    }

    /// Measures spans from the first enter to the last exit.
    #[must_use]
    pub fn whole_spans(mut self) -> Self {
        self.state.measure_whole();
        self
    }

    /// Measures all spans, also those that a layer leaves out by default.
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
