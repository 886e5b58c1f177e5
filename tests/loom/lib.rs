//! The profiler's hand-made protocols under [loom](https://docs.rs/loom): the files of the runtime, with loom's
//! atomics, locks and threads. Their tests stand beside them, in `mod loom_tests`.
//!
//! A file that is included here takes what threads share from `sync::primitive`, and imports nothing else of the
//! runtime but what stands here.

#![cfg(test)]
#![allow(dead_code, reason = "each file is included whole")]
#![allow(
    clippy::inline_always,
    reason = "as in the runtime, whose measured path depends on it"
)]

#[path = "../../profiler-runtime/src/sync"]
mod sync {
    pub(crate) mod primitive;
    pub(crate) mod request;
    pub(crate) mod ring;
    pub(crate) mod rings;
    pub(crate) mod wait;

    pub(crate) use lock::Lock;

    /// The lock of the runtime, without what it does after a fork.
    mod lock {
        use std::sync::PoisonError;

        use super::primitive::{Mutex, MutexGuard};

        pub(crate) struct Lock<T>(Mutex<T>);

        impl<T> Lock<T> {
            pub(crate) fn new(value: T) -> Self {
                Self(Mutex::new(value))
            }

            pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
                self.0.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }
}

#[path = "../../profiler-runtime/src/stats"]
mod stats {
    mod cell_buckets;
}

#[path = "../../profiler-runtime/src/collect"]
mod collect {
    mod takeover;
}
