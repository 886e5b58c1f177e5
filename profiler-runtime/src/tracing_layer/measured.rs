//! The layer where it measures.

use std::ptr;

use tracing::Dispatch;
use tracing_subscriber::filter::Filtered;

use super::filter::SpanFilter;
use super::open_spans::Kind;
use super::recorder::Recorder;

/// The recorder with its filter.
pub(super) struct LayerState<S> {
    pub(super) filtered: Filtered<Recorder, SpanFilter, S>,
}

impl<S> LayerState<S> {
    pub(super) fn new() -> Self {
        Self {
            filtered: Filtered::new(Recorder::new(), SpanFilter::new()),
        }
    }

    pub(super) fn measure_whole(&mut self) {
        self.filtered.inner_mut().measure(Kind::Whole);
    }

    pub(super) fn measure_entered(&mut self) {
        self.filtered.inner_mut().measure(Kind::Entered);
    }

    pub(super) fn take_all(&mut self) {
        self.filtered.filter_mut().takes_all = true;
    }

    /// Makes the layer do nothing if its subscriber has another one further out: each span would be two scopes. Called before
    /// the subscriber registers a call site.
    pub(super) fn refuse_second(&self, subscriber: &Dispatch) {
        let recorder = self.filtered.inner();
        // The outermost one of those that there are.
        let first = subscriber.downcast_ref::<Recorder>();
        if first.is_some_and(|first| !ptr::eq(first, recorder)) {
            self.filtered.filter().take_none();
            recorder.note_second();
        }
    }

    /// Returns `false` if the span may be one that was created while measuring was off: `Filtered` looks for it then.
    #[inline(always)]
    pub(super) fn enter(&self, id: u64) -> bool {
        self.filtered.inner().enter(id)
    }

    #[inline(always)]
    pub(super) fn exit(&self, id: u64) {
        self.filtered.inner().exit(id);
    }

    #[inline(always)]
    pub(super) fn close(&self, id: u64) {
        self.filtered.inner().close(id);
    }
}
