//! Summaries, key averages and traces as tables, JSON, CSV and files.
//!
//! [`summary`] reports everything since the program started, [`Trace::key_averages`](crate::Trace::key_averages) one
//! window of a session. Both have one [`Row`] for each name.

pub(crate) mod averages;
pub(crate) mod export;
mod own_cost;
pub(crate) mod summary;
#[cfg(feature = "tensorboard")]
mod tensorboard;
mod text;
mod times;

pub use crate::diagnostics::DropReason;
pub use crate::name::TimeSource;
pub use averages::{
    AverageMemory, AverageRow, AverageTimes, AveragesTable, CallEdge, CallEdges, EdgeTimes,
    GroupBy, KeyAverages, Restriction, RestrictionError, SortKey, SortKeyError,
};
#[cfg(feature = "trace")]
pub use export::{ExportError, LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};
pub use own_cost::OwnCost;
pub use summary::{CudaTimes, Row, SortBy, Summary, TableOptions, Verdict, summary};
