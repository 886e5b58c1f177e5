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
    pub(crate) mod lock;
    pub(crate) mod once;
    pub(crate) mod padded;
    pub(crate) mod primitive;
    pub(crate) mod queue;
    pub(crate) mod request;
    pub(crate) mod ring;
    pub(crate) mod rings;
    pub(crate) mod wait;

    pub(crate) use lock::Lock;

    /// Does nothing: no model calls back into the profiler.
    pub(crate) struct ReentrancyGuard;

    impl ReentrancyGuard {
        #[allow(clippy::unnecessary_wraps, reason = "the runtime's may refuse")]
        pub(crate) fn try_enter() -> Option<Self> {
            Some(Self)
        }
    }
}

mod process {
    pub(crate) mod platform {
        pub(crate) use std::time::Instant;
    }

    /// Forks that a model pretends: it sets the generation, for all its threads.
    pub(crate) mod fork {
        use std::cell::Cell;

        thread_local! {
            // Loom runs all threads of a model on one thread.
            static GENERATION: Cell<u32> = const { Cell::new(0) };
        }

        pub(crate) fn watch() {}

        pub(crate) fn generation() -> u32 {
            GENERATION.get()
        }

        pub(crate) fn set_generation(generation: u32) {
            GENERATION.set(generation);
        }
    }
}

#[path = "../../profiler-runtime/src/stats"]
mod stats {
    mod bucket;
    mod coverage;
    mod newest;
    mod rare;
}

#[path = "../../profiler-runtime/src/collect"]
mod collect {
    mod takeover;
}

#[path = "../../profiler-runtime/src/cuda/context"]
mod context {
    mod epoch;
}

#[path = "../../profiler-runtime/src/cuda/stream"]
mod stream {
    mod leaked_list;
}

#[path = "../../profiler-runtime/src/cuda/resolver"]
mod resolver {
    pub(crate) mod exit_gate;
    pub(crate) mod progress;
}
