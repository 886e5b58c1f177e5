//! A call with a stream and no other argument, before its scope opens.
//!
//! It is what [`ScopeBuilder`](super::builder::ScopeBuilder) is for all other arguments, but small, so that the compiler
//! keeps it in registers.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use super::ScopeWithArgs;
use crate::cuda::{self, DiscoveryReason, GpuOptions, IntoStream};
use crate::switch::SiteDecision;

/// A call whose site has decided, and whose only argument is a stream. `'s` is the lifetime of the stream, which the guard
/// borrows.
#[derive(Debug)]
pub struct StreamBuilder<'s> {
    /// `None` if the call is not measured.
    decision: Option<SiteDecision>,
    /// `None` if the stream was not wanted. Never dropped in place: with a destructor, the builder would be in memory and not
    /// in registers. Nothing can unwind between setting the stream and opening the scope, which takes it.
    options: ManuallyDrop<Option<GpuOptions>>,
    borrowed_stream: PhantomData<&'s ()>,
}

impl<'s> StreamBuilder<'s> {
    #[inline(always)]
    pub(crate) const fn new(decision: Option<SiteDecision>) -> Self {
        Self {
            decision,
            options: ManuallyDrop::new(None),
            borrowed_stream: PhantomData,
        }
    }

    /// Returns `true` if the call's stream is wanted: the call is measured, and there is a CUDA driver, which this loads if it
    /// is not loaded.
    #[inline(always)]
    pub fn wants_stream(&self) -> bool {
        self.decision.is_some() && cuda::find(DiscoveryReason::ExplicitRequest).is_some()
    }

    /// Sets the stream on which the GPU time is measured.
    #[inline(always)]
    pub fn stream(&mut self, stream: impl IntoStream<'s>) {
        self.options = ManuallyDrop::new(Some(GpuOptions::on(stream.into_stream())));
    }

    /// Opens the scope. Reads the clock last.
    #[inline(always)]
    pub fn start(self) -> ScopeWithArgs<'s> {
        let Some(decision) = self.decision else {
            return ScopeWithArgs::off();
        };
        match ManuallyDrop::into_inner(self.options) {
            Some(options) => ScopeWithArgs::on_stream::<true>(decision, options),
            None => ScopeWithArgs::without_args(decision),
        }
    }
}
