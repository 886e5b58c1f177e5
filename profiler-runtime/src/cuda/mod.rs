//! GPU time: how long the work that a scope launched takes on the device.
//!
//! Kernels run asynchronously: a function that launches them returns long before they are done, and its CPU
//! time says nothing about them. So a scope puts an event of the driver's into the stream when it begins and
//! one when it ends. The device notes the time when it comes to them; a thread of the profiler's reads it
//! later. Nothing waits for the device, and the events come from a pool.
//!
//! # Which stream
//!
//! 1. The one that the call names: `#[measure_execution_time(stream = …)]`, `scope!("name", stream = …)`,
//!    [`Measured::stream`](crate::Measured::stream).
//! 2. Else the thread's current stream: [`with_stream`], [`set_current_stream`], [`StreamFuture`].
//! 3. Else the process's default stream: [`set_default_stream`].
//! 4. Else, where `PROFILER_CUDA_STREAM` asks for it and a CUDA context is current on the thread, the legacy or
//!    the per-thread default stream of that context.
//! 5. Else there is no GPU time, and the driver is not called, but to ask now and then whether the thread has a
//!    context.
//!
//! The legacy default stream is not taken unasked: it waits for every blocking stream, and they wait for it, so
//! that an event in it slows independent streams down and invalidates their captures. It says nothing about work
//! on streams that do not wait for it, which are all that cudarc makes: name those.
//!
//! # When there is CUDA
//!
//! The profiler uses the driver library that the program has loaded; it loads it itself only when it is
//! handed a stream or told to (`PROFILER_BACKEND=cuda`, `PROFILER_CUDA_LIBRARY`). Without one, all is timed on
//! the CPU. [`status`] says what there is.
//!
//! # Examples
//!
//! ```no_run
//! # #[cfg(feature = "cudarc")] {
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
//! # #[cfg(feature = "cudarc")]
//! # Ok::<(), cudarc::driver::DriverError>(())
//! ```

mod context;
mod ffi;
mod health;
mod loss;
mod memory;
mod resolver;
mod status;
mod stream;
mod thread;

pub use crate::stream_key::StreamId;
pub(crate) use context::measurement::CpuSpan;
pub(crate) use ffi::discovery::{
    is_discovering, poll_discovery, poll_discovery_if_active, scan_loaded,
};
pub(crate) use ffi::library::{DiscoveryReason, apply_backend, find, is_in_use};
pub use health::CudaHealth;
pub(crate) use health::health;
pub use loss::CudaLoss;
pub(crate) use memory::{DeviceMemory, device_memory};
pub(crate) use resolver::are_watched as graphs_are_watched;
pub(crate) use resolver::gpu_record::{GpuRecord, take_records, want_records};
pub(crate) use resolver::{ReadSoFar, read_so_far, shut_down, wait_until_read};
pub use status::{CudaError, Status, status};
pub(crate) use stream::current::make_current;
pub use stream::current::{
    OnStream, StreamFuture, clear_current_stream, set_current_stream, with_stream,
};
pub use stream::default::{clear_default_stream, default_stream, set_default_stream};
pub use stream::{IntoStream, Stream, StreamRef};
pub(crate) use thread::beginning::{Begun, begin, begin_task};
pub(crate) use thread::ending::{
    context_became_current, count_without_stream, end, end_task, end_without_context, has_no_stream,
};
pub use thread::record_times::RecordTimes;
pub(crate) use thread::scope::{ExplicitStream, GpuOptions, Mode, TaskGpuScope, abandon};
pub use thread::state::current_stream;
pub(crate) use thread::state::{key_of, pop_poll, push_poll, return_magazines};
