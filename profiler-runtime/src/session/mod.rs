//! Sessions: they record every scope for some steps, and deliver what they recorded in windows.
//!
//! A [`Profile`] follows a [`Schedule`] of steps. When a window of steps is complete, its handlers get a [`Trace`].

mod across_threads;
mod assemble;
mod at_exit;
mod clock_line;
mod deferred_notices;
mod delivery;
mod device_times;
mod ended;
pub(crate) mod environment;
mod event;
mod gpu_event;
mod handler;
mod kernels;
mod late;
mod live;
mod measured_thread;
mod options;
mod processor;
mod profile;
mod profile_builder;
mod queue;
mod record;
mod recording;
mod registry;
mod ring;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(feature = "serde")]
mod serialize;
mod shape;
mod thread_ring;
mod trace;
mod transition;
mod window;
mod window_builder;
mod window_sorter;
mod windows;
mod work;
mod work_builder;
mod work_check;
mod work_elsewhere;
mod work_joiner;
mod work_losses;
mod work_progress;

use std::time::Instant;

pub use crate::config::{Action, ActionFn, IntoSchedule, Schedule, ScheduleError};
pub(crate) use at_exit::{FinishMode, finish};
pub(crate) use clock_line::ClockLine;
pub(crate) use ended::{EndedScope, RecordEnding, Shapes};
pub use event::{Event, Frame, GpuSpan};
pub use gpu_event::{GpuEvent, GpuLaunch};
pub(crate) use measured_thread::{
    FutureRecord, close, close_early, close_future, close_poll, ending, lose, open, opened,
};
pub use options::Activity;
pub(crate) use options::SessionOptions;
#[cfg(test)]
pub(crate) use processor::ProcessorSample;
pub use profile::{Profile, ProfileError};
pub use profile_builder::{DEFAULT_CAPACITY, ProfileBuilder};
pub use profiler_report::MemoryUse;
#[cfg(test)]
pub(crate) use record::ScopeDetails;
pub(crate) use record::{NONE, RecordKind, ScopeRecord, ThreadInfo, cost_of_record};
pub(crate) use recording::{is_recording, wants_details, wants_shapes};
pub(crate) use ring::recorded;
pub use shape::{Dimension, ToShape};
pub(crate) use trace::CUT_SHORT;
#[cfg(test)]
pub(crate) use trace::Step;
pub use trace::{Trace, Truncation};
#[allow(
    unused_imports,
    reason = "reports are built from them, in builds with reports"
)]
pub(crate) use work::{GapReason, LaunchRecord, WindowWork, WorkGap, WorkRecord};
pub use work_losses::LostWork;

/// Adds a time of a device for the windows that are open, or closed and not delivered. The caller is inside of the profiler.
pub(crate) fn report_device_time(shared: u64, name: &str, span: (Instant, Instant)) {
    device_times::add(shared, name, span);
    window_sorter::wake_if_dozing();
}
