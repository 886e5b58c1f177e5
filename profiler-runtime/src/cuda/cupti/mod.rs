//! Kernels, copies, fills and waits by name, as CUPTI records them: NVIDIA's interface for profilers.
//!
//! CUPTI records while a session with [`Activity::Cuda`](crate::Activity::Cuda) does, and at no other time. One thread of
//! the profiler makes all calls of CUPTI, except for the two that CUPTI's own threads need to walk a buffer.
//!
//! - [`callback`]: CUPTI calls it on the thread that calls CUDA, at both ends of a call. It notes the innermost scope in
//!   a [`Launch`], in a bounded queue. [`hook`] lets the program name another scope.
//! - [`buffers`]: the memory that CUPTI writes its records to. [`record`] reads them into [`WorkActivity`] values, [`names`]
//!   keeps the names of kernels, which belong to CUPTI, and [`record_clock`] relates their times to the profiler's.
//! - [`recorder`]: the thread: subscribes, enables, flushes, and ends all that after the last window.
//! - [`ready`]: launches and activities on their way to the windows, which join them by their correlation.

mod activity;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod buffers;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod callback;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod discovery;
mod hook;
mod launch;
mod launching_threads;
mod losses;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod names;
mod ready;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod record;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod record_clock;
#[cfg(not(all(feature = "cuda", not(target_family = "wasm"))))]
#[path = "not_built.rs"]
mod recorder;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
mod recorder;
mod status;

pub(crate) use profiler_cuda_sys::cupti::calls::Effect;

pub(crate) use activity::{NO_NAME, WorkActivity};
pub(crate) use hook::has_launch_hook;
pub use hook::{LaunchCall, LaunchHookState, launch_hook_state, set_launch_hook};
pub(crate) use launch::Launch;
pub(crate) use launching_threads::launching_thread;
pub(crate) use losses::{WorkLoss, WorkLosses, lose as lose_work};
pub(crate) use ready::{Ready, take_work};
pub(crate) use recorder::{
    Demand, Flushed, Recording, flushed, is_beginning, recording, shut_down, wait_until_ready,
    want_kernels,
};
pub(crate) use status::why_no_kernels;
pub use status::{KernelStatus, kernel_status};
