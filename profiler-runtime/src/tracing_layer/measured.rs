//! The layer where it measures.

use tracing_subscriber::filter::Filtered;

use super::filter::SpanFilter;
use super::recorder::Recorder;

/// The recorder with its filter.
pub(super) struct State<S> {
    pub(super) filtered: Filtered<Recorder, SpanFilter, S>,
}

impl<S> State<S> {
    pub(super) fn new() -> Self {
        Self {
            filtered: Filtered::new(Recorder::new(), SpanFilter { takes_all: false }),
        }
    }

    pub(super) fn measure_whole(&mut self) {
        self.filtered.inner_mut().measure_whole();
    }

    pub(super) fn take_all(&mut self) {
        self.filtered.filter_mut().takes_all = true;
    }

    #[inline(always)]
    pub(super) fn enter(&self, id: u64) {
        self.filtered.inner().enter(id);
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
