//! Windows of a run: sessions that record each scope for some steps, and hand over what they recorded.

mod assemble;
mod at_exit;
mod control;
mod environment;
mod event;
mod handing;
mod handler;
mod inbox;
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
mod said;
#[cfg(test)]
pub(crate) mod sample;
mod schedule;
mod shape;
mod timeline;
mod trace;
mod transition;
mod window;
mod worker;

pub(crate) use at_exit::{Ending, finish};
pub(crate) use environment::begin as begin_from_environment;
pub use environment::step;
pub use event::{Event, Frame, GpuSpan};
pub(crate) use inbox::deliver;
pub(crate) use opening::{
    Ended, FutureRecord, Shapes, close, close_future, close_poll, ending, lose, open, opened,
};
pub use options::Activity;
pub(crate) use options::Options;
pub use profile::{DEFAULT_CAPACITY, Profile, ProfileBuilder, ProfileError};
#[cfg(test)]
pub(crate) use record::Extra;
pub use record::MemoryUse;
pub(crate) use record::{GpuRecord, Kind, RecordEnding, ScopeRecord};
pub(crate) use recording::{is_recording, wants_memory, wants_shapes};
pub(crate) use registry::wants_gpu;
pub use schedule::{Action, ActionFn, IntoSchedule, Schedule, ScheduleError};
pub use shape::{Extent, ToShape};
pub(crate) use timeline::Timeline;
pub(crate) use trace::NONE;
#[cfg(test)]
pub(crate) use trace::Step;
pub use trace::{Trace, Truncation};
