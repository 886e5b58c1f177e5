//! Sessions: they record every scope for some steps, and deliver what they recorded in windows.
//!
//! A [`Profile`] follows a [`Schedule`] of steps. When a window of steps is complete, its handlers get a [`Trace`].

mod across_threads;
mod assemble;
mod at_exit;
mod deferred_notices;
mod delivery;
mod ended;
pub(crate) mod environment;
mod event;
mod gpu_event;
mod handler;
mod kernels;
mod late;
mod live;
mod opening;
mod options;
mod profile;
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
mod timeline;
mod trace;
mod transition;
mod window;
mod window_sorter;
mod work;
mod work_builder;
mod work_check;
mod work_joiner;
mod work_losses;
mod work_progress;

pub use crate::config::{Action, ActionFn, IntoSchedule, Schedule, ScheduleError};
pub use crate::memory::MemoryUse;
pub(crate) use at_exit::{FinishMode, finish};
pub(crate) use ended::{EndedScope, RecordEnding, Shapes};
pub use event::{Event, Frame, GpuSpan};
pub use gpu_event::{GpuEvent, GpuLaunch};
pub(crate) use opening::{
    FutureRecord, close, close_early, close_future, close_poll, ending, lose, open, opened,
};
pub use options::Activity;
pub(crate) use options::Options;
pub use profile::{DEFAULT_CAPACITY, Profile, ProfileBuilder, ProfileError};
#[cfg(test)]
pub(crate) use record::ScopeDetails;
pub(crate) use record::{RecordKind, ScopeRecord, ThreadInfo};
pub(crate) use recording::{is_recording, wants_details, wants_shapes};
pub use shape::{Dimension, ToShape};
pub(crate) use timeline::Timeline;
#[cfg(test)]
pub(crate) use trace::Step;
pub(crate) use trace::{CUT_SHORT, NONE};
pub use trace::{Trace, Truncation};
#[allow(
    unused_imports,
    reason = "reports are built from them, in builds with reports"
)]
pub(crate) use work::{LaunchRecord, WindowWork, WorkRecord};
pub use work_losses::LostWork;
