//! The profiler's hand-made protocols under [loom](https://docs.rs/loom): the files of `profiler-host` and of the runtime,
//! with loom's atomics, locks and threads. Their tests stand beside them, in `mod loom_tests`.
//!
//! A file that is included here takes what threads share from `sync::primitive`, and imports nothing else of the two
//! crates but what stands here.

#![cfg(test)]
#![allow(
    dead_code,
    missing_docs,
    reason = "each file is included whole, and is documented in its crate"
)]
#![allow(
    clippy::inline_always,
    clippy::len_without_is_empty,
    clippy::new_without_default,
    reason = "as in the two crates"
)]

// The runtime's files import what follows from this crate.
extern crate self as profiler_host;

#[path = "../../crates/host/src/sync"]
pub mod sync {
    pub mod doze;
    pub mod lock;
    pub mod once;
    pub mod padded;
    pub mod primitive;
    pub mod queue;
    pub mod request;
    pub mod ring;
    pub mod rings;
    pub mod wait;

    pub use lock::{Lock, Locked};

    /// Does nothing: no model calls back into the profiler.
    #[derive(Debug)]
    pub struct ReentrancyGuard;

    impl ReentrancyGuard {
        #[allow(clippy::unnecessary_wraps, reason = "the runtime's may refuse")]
        pub fn try_enter() -> Option<Self> {
            Some(Self)
        }

        pub fn enter() -> Self {
            Self
        }
    }
}

pub mod process {
    pub mod platform {
        pub use std::time::Instant;
    }

    /// Forks that a model pretends: it sets the generation, for all its threads.
    pub mod fork {
        use std::cell::Cell;

        thread_local! {
            // Loom runs all threads of a model on one thread.
            static GENERATION: Cell<u32> = const { Cell::new(0) };
        }

        pub fn watch() {}

        pub fn generation() -> u32 {
            GENERATION.get()
        }

        pub fn set_generation(generation: u32) {
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

#[path = "../../profiler-runtime/src/cuda/context"]
mod context {
    mod epoch;
}

#[path = "../../profiler-runtime/src/cuda/stream"]
mod stream {
    mod leaked_list;
}

#[path = "../../profiler-runtime/src/cuda/idle"]
mod idle {
    mod innermost;
}

#[path = "../../profiler-runtime/src/cuda/resolver"]
mod resolver {
    pub mod exit_gate;
    pub mod progress;
}
