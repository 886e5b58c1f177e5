//! The layer as `tracing-subscriber` sees it.

use std::any::TypeId;

use tracing::span::{Attributes, Id};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::ProfilerLayer;

// All that has to do with filtering goes to `Filtered`.
impl<S> Layer<S> for ProfilerLayer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span> + 'static,
{
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        self.state.filtered.on_register_dispatch(subscriber);
        self.state.refuse_second(subscriber);
    }

    fn on_layer(&mut self, subscriber: &mut S) {
        self.state.filtered.on_layer(subscriber);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        self.state.filtered.register_callsite(metadata)
    }

    fn enabled(&self, metadata: &Metadata<'_>, context: Context<'_, S>) -> bool {
        self.state.filtered.enabled(metadata, context)
    }

    fn event_enabled(&self, event: &Event<'_>, context: Context<'_, S>) -> bool {
        self.state.filtered.event_enabled(event, context)
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        self.state.filtered.on_event(event, context);
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.state.filtered.on_new_span(attributes, id, context);
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if !self.state.enter(id.into_u64()) {
            // Not for spans that the filter leaves out.
            self.state.filtered.on_enter(id, context);
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        self.state.exit(id.into_u64());
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        self.state.close(id.into_u64());
    }

    unsafe fn downcast_raw(&self, id: TypeId) -> Option<*const ()> {
        if id == TypeId::of::<Self>() {
            return Some(std::ptr::from_ref(self).cast());
        }
        // SAFETY: what the caller promises is passed on. By this, `tracing-subscriber` finds out that the layer has a filter
        // of its own.
        unsafe { self.state.filtered.downcast_raw(id) }
    }
}
