//! Summaries, key averages and traces as tables, JSON, CSV and files.
//!
//! [`summary`](crate::summary) reports everything since the program started, [`Trace::key_averages`](crate::Trace::key_averages) one
//! window of a session. Both have one [`Row`] for each name, and the same methods for sorting, filtering and printing
//! their rows. The types are those of the crate `profiler-report`, which a program that only reads profiles can
//! use alone: `profiler_report::Row` in its examples is `profiler_runtime::report::Row`.

pub use crate::cuda::nvml::sample_gpus;
pub use crate::name::SourceLocation;
#[cfg(feature = "export")]
pub use crate::snapshot::trace::export_gpu_samples;
#[cfg(feature = "trace")]
pub use crate::snapshot::trace::{TensorBoardTraces, tensorboard_trace_handler};
#[cfg(any(feature = "export", feature = "trace"))]
#[doc(inline)]
pub use profiler_report::ExportError;
#[cfg(feature = "trace")]
#[doc(inline)]
pub use profiler_report::LaunchCategory;
#[doc(inline)]
pub use profiler_report::{
    BusyTime, CallEdge, CallEdges, CallFunction, CallLabels, CallNode, CallTree, CallTreeOptions,
    Color, CopyUse, Counter, Device, DeviceFunction, DeviceIdle, DevicePairs, DeviceProperties,
    DeviceSegment, DeviceState, DeviceTimes, Drained, DropReason, EdgeTimes, Energy, Environment,
    FillUse, GpuDevice, GpuIdle, GpuPairs, GpuQuantity, GpuRanges, GpuReadings, GpuSample, GpuUse,
    GpuWork, GpuWorkKind, GroupBy, HeldBack, HiddenCalls, Histogram, HistogramBucket, HistoryPoint,
    IdleCharge, IdleStrip, KernelGap, KernelLaunch, KernelRow, KernelRowKind, KernelUse, Kernels,
    KeyAverages, Launch, LongestWork, Meanwhile, MemoryCopy, MemoryFill, MemoryKind, MemoryStats,
    MemoryUse, MinMax, OwnCost, ProcessGroup, ProcessorSample, ProcessorUse, Replay, Restriction,
    RestrictionError, Row, RowLimit, SampledCharge, SampledGpu, SampledIdle, ScopeKernels, Slice,
    SliceDetails, SliceEnding, SliceKind, SliceName, SortKey, SortKeyError, SpanLoss, Step,
    StripColumn, StripPart, Summary, TableOptions, ThrottleReasons, TimeSource, Timeline, Times,
    Track, TrackKind, Verdict, Wait, WaitKind, WaitsOfNamed,
};
#[cfg(feature = "export")]
#[doc(inline)]
pub use profiler_report::{Page, StackMetric, StackMetricError};
#[doc(inline)]
pub use profiler_sensors::{GpuState, SensorError};
