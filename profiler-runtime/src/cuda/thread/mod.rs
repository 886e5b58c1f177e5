//! Measured threads: what happens at both ends of a scope that has a GPU time.
//!
//! When a scope begins, [`beginning`] takes an event pair from the thread's magazine, records the first event, and
//! pushes an [`OpenGpuScope`](scope::OpenGpuScope) on the thread's stack. When it ends, [`ending`] records the second
//! event and sends a [`GpuMeasurement`](crate::cuda::context::measurement::GpuMeasurement) through the thread's ring to
//! the resolver. In the steady state that is three driver calls at each end: the context's id, the stream's capture
//! state, and the record. None of them waits for the device.

mod accounting;
mod backoff;
pub(crate) mod beginning;
pub(crate) mod bound;
mod context_cache;
mod context_seen;
pub(crate) mod current_stream;
mod end_event;
pub(crate) mod ending;
pub(crate) mod record_times;
mod recording;
pub(crate) mod scope;
mod stack;
pub(crate) mod state;
mod synchronous;
mod target;
#[cfg(test)]
mod tests;
pub(crate) mod unmeasured;
