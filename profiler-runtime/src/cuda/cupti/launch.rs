//! A call of CUDA that launches work, as the callback notes it.

use profiler_cuda_sys::cupti::calls::Effect;
use profiler_report::internal::RawStream;

/// A scope on any thread that work was launched for: that of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    /// The id by which its record names it.
    pub(crate) shared: u64,
    /// Since when the launching thread worked for it, in ticks.
    pub(crate) since: u64,
}

/// A call of CUDA that launched work or waited for some, on the thread that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    /// The name of the outermost call, as `cudaLaunchKernel`.
    pub(crate) name: &'static str,
    /// Ticks of the clock around the outermost call.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The number of its thread: see [`number`](profiler_host::process::thread::number).
    pub(crate) thread: u64,
    /// The serial of the innermost scope that was open on the thread; 0 for none.
    pub(crate) scope: u64,
    /// The scope that the launch was made for, if it is not that one.
    pub(crate) asker: Option<Asker>,
    /// CUPTI's numbers of the outermost call and of the driver's call inside of it, which are equal if that is the same
    /// call. The records of the work have one of them.
    pub(crate) correlations: [u32; 2],
    /// `true` for a further call of the driver inside of the same outermost call: its work belongs to the launch of that
    /// call, which follows.
    pub(crate) is_part: bool,
    /// The address of the context, and the stream in it. `None` if the call has no stream.
    pub(crate) context: usize,
    pub(crate) stream: Option<RawStream>,
    /// The number of the thread among those with GPU times, for the per-thread default stream; 0 if it has none.
    pub(crate) gpu_thread: u32,
    pub(crate) effect: Effect,
}
