//! Summaries, key averages and traces as tables, JSON, CSV and files.
//!
//! [`summary`] reports everything since the program started, [`Trace::key_averages`](crate::Trace::key_averages) one
//! window of a session. Both have one [`Row`] for each name, and the same methods for sorting, filtering and printing
//! their rows.

pub(crate) mod averages;
mod call_table;
mod call_tree;
mod callers;
mod columns;
mod covered;
mod distinct;
mod energy;
mod environment;
#[cfg(any(feature = "export", feature = "trace"))]
pub(crate) mod export;
mod fields;
#[cfg(test)]
mod golden;
mod histogram;
pub(crate) mod history;
mod kernels;
mod options;
mod own_cost;
mod prometheus;
pub(crate) mod rank;
mod render;
mod restrict;
mod row;
mod sampled_gpu;
mod share;
mod sort;
pub(crate) mod summary;
#[cfg(all(feature = "session", feature = "tensorboard"))]
mod tensorboard;
pub(crate) mod text;
mod timeline;
mod times;
mod verdict;
mod walk;

pub use crate::diagnostics::{DropReason, SpanLoss};
pub use crate::gpu_sample::{GpuDevice, GpuQuantity, GpuReadings, GpuSample, ThrottleReasons};
pub use crate::gpu_work::{
    GpuWork, GpuWorkKind, KernelLaunch, MemoryCopy, MemoryFill, MemoryKind, WaitKind,
};
pub use crate::name::{SourceLocation, TimeSource};
pub use averages::{GroupBy, KeyAverages};
pub use call_tree::{CallFunction, CallLabels, CallNode, CallTree, CallTreeOptions, HiddenCalls};
pub use callers::{CallEdge, CallEdges, EdgeTimes};
pub use energy::Energy;
pub use environment::Environment;
#[cfg(any(feature = "export", feature = "trace"))]
pub use export::ExportError;
#[cfg(feature = "trace")]
pub use export::{LaunchCategory, TensorBoardTraces, tensorboard_trace_handler};
#[cfg(feature = "export")]
pub use export::{Page, export_gpu_samples};
#[cfg(feature = "export")]
pub use export::{StackMetric, StackMetricError};
pub use histogram::{Histogram, HistogramBucket};
pub use history::HistoryPoint;
pub use kernels::{
    CopyUse, FillUse, KernelRow, KernelRowKind, KernelUse, Kernels, MinMax, ScopeKernels,
};
pub use options::{Color, RowLimit, TableOptions};
pub use own_cost::OwnCost;
pub use restrict::{Restriction, RestrictionError};
pub use row::{MemoryStats, Row};
pub use sampled_gpu::{HeldBack, SampledGpu};
pub use sort::{SortKey, SortKeyError};
pub use summary::{Summary, summary};
pub use timeline::{
    Counter, Launch, Replay, Slice, SliceEnding, SliceKind, SliceName, Step, Timeline, Track,
    TrackKind,
};
pub use times::Times;
pub use verdict::Verdict;
