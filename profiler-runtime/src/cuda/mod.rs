//! GPU time: how long the device takes for the work that a scope launches.
//!
//! Kernels run asynchronously. A function that launches them returns long before they are complete, and its CPU time
//! says nothing about theirs. So a scope records a CUDA event in its stream when it begins, and another one when it
//! ends. The device notes the time when it passes each event, and a thread of the profiler reads both times later. No
//! call waits for the device, and the events are reused.
//!
//! # Which stream is measured
//!
//! The first of these that applies:
//!
//! 1. The stream of the call: `#[measure_execution_time(stream = …)]`, `scope!("name", stream = …)`, or
//!    [`Measured::stream`](crate::Measured::stream).
//! 2. The current stream of the thread: [`with_stream`], [`set_current_stream`], [`StreamFuture`].
//! 3. The default stream of the process: [`set_default_stream`].
//! 4. The legacy or per-thread default stream of the CUDA context that is current on the thread, if
//!    `PROFILER_CUDA_STREAM` requests it.
//! 5. Those that are bound while the scope is open: [`bind_stream`].
//! 6. None: the scope has no GPU time. The driver is only asked now and then whether the thread has a context, to note
//!    in the summary that a stream should be named.
//!
//! The profiler does not use the legacy default stream unless requested. That stream synchronizes with all blocking
//! streams, so an event in it would slow independent streams down and invalidate their captures. It also shows nothing
//! of non-blocking streams, which are all that cudarc creates: name those streams.
//!
//! # When CUDA is used
//!
//! The profiler uses the driver library that the program has loaded. It loads the library itself only if it is given a
//! stream, or if `PROFILER_BACKEND=cuda` or `PROFILER_CUDA_LIBRARY` requests it. Without a driver, all times are CPU
//! times. [`status()`] returns the state of CUDA in the process.
//!
//! # Examples
//!
//! ```no_run
//! # #[cfg(feature = "cudarc-0_19")] {
//! use std::sync::Arc;
//!
//! use cudarc::driver::{CudaContext, CudaStream, DriverError};
//! use profiler_runtime::measure_execution_time;
//!
//! struct Model {
//!     stream: Arc<CudaStream>,
//! }
//!
//! impl Model {
//!     #[measure_execution_time(stream = &self.stream)]
//!     fn forward(&self) -> Result<(), DriverError> {
//!         // launch kernels on self.stream
//!         Ok(())
//!     }
//! }
//!
//! let context = CudaContext::new(0)?;
//! let model = Model { stream: context.new_stream()? };
//! model.forward()?;
//! # }
//! # #[cfg(feature = "cudarc-0_19")]
//! # Ok::<(), cudarc::driver::DriverError>(())
//! ```

mod context;
mod cupti;
mod ffi;
mod health;
mod idle;
mod loss;
mod memory;
pub(crate) mod nvml;
#[cfg(all(feature = "cuda", not(target_family = "wasm")))]
pub(crate) mod nvtx;
#[cfg(not(all(feature = "cuda", not(target_family = "wasm"))))]
#[path = "nvtx/not_built.rs"]
pub(crate) mod nvtx;
mod resolver;
mod stream;
mod thread;

pub use profiler_cuda_sys::driver::DeviceProperties;

pub(crate) use context::measurement::CpuSpan;
pub(crate) use cupti::{
    Demand, Effect, Flushed, Launch, NO_NAME, Ready, Recording, WorkActivity, WorkLoss, WorkLosses,
    flushed, has_launch_hook, is_beginning, launching_thread, lose_work, recording, take_work,
    wait_until_ready, want_kernels, why_no_kernels,
};
pub use cupti::{
    KernelStatus, LaunchCall, LaunchHookState, kernel_status, launch_hook_state, set_launch_hook,
};
pub(crate) use ffi::discovery::{begin_search, scan_loaded};
#[cfg(all(test, not(feature = "strip")))]
pub(crate) use ffi::library::may_be_found;
pub use ffi::library::status;
pub(crate) use ffi::library::{
    DiscoveryReason, apply_backend, device_properties, find, is_in_use, known_status, when_found,
};
pub(crate) use ffi::status::version_text;
pub use ffi::status::{CudaError, Status};
pub(crate) use health::health;
pub(crate) use idle::{SelfTime, devices as gpu_idle};
pub(crate) use memory::{DeviceMemory, device_memory};
pub use profiler_report::StreamId;
pub use profiler_report::{CudaHealth, CudaLoss, RecordTimes};
pub(crate) use resolver::are_watched as graphs_are_watched;
pub(crate) use resolver::gpu_record::{GpuRecord, take_records, want_records};
pub(crate) use resolver::{ReadSoFar, read_so_far, times_may_come, wait_until_read};
pub use stream::default::{clear_default_stream, default_stream, set_default_stream};
pub(crate) use stream::libtorch::was_missed as has_missed_libtorch;
pub use stream::{IntoStream, Stream, StreamRef};
pub(crate) use thread::beginning::{Begun, begin_plain, begin_task, begin_with};
pub use thread::bound::bind_stream;
pub(crate) use thread::bound::{BoundCall, end_segment_of};
pub(crate) use thread::current_stream::make_current;
pub use thread::current_stream::{
    OnStream, StreamFuture, clear_current_stream, current_stream, set_current_stream, with_stream,
};
pub(crate) use thread::ending::{end, end_task, end_unlogged, end_without_context};
pub(crate) use thread::scope::{GpuOptions, Mode, TaskGpuScope, abandon};
pub(crate) use thread::state::{
    key_of, name_stream, name_stream_of_task, pop_poll, push_poll, return_magazines,
};
pub(crate) use thread::unmeasured::{context_became_current, count_without_stream, has_no_stream};

/// Keeps the profiler out of the driver and of CUPTI from now on, because the process exits.
pub(crate) fn shut_down() {
    cupti::shut_down();
    resolver::shut_down();
}

/// Returns the address of each context that GPU times have been taken in, with the profiler's number of it.
pub(crate) fn context_numbers() -> Vec<(usize, u32)> {
    let contexts = context::all().into_iter();
    contexts
        .map(|context| (context.raw.0.addr(), context.index))
        .collect()
}
