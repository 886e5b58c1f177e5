//! Profiles as plain data, and everything that is written from them.
//!
//! A [`Summary`] has one [`Row`] for each name, of everything since the program started. A [`Timeline`] has every scope of a
//! window, with its kernels, and [`Timeline::key_averages`] makes rows of it. Both are tables, JSON and CSV, and files for
//! other tools. `profiler-runtime` measures, and fills these types; `profiler-runtime-cli` reads them from files. Nothing here
//! knows the running program.
//!
//! # Features
//!
//! - `export`: files for pstats, SnakeViz, pprof, Perfetto, OpenTelemetry and flame graphs, and the page.
//! - `trace`: time lines as PyTorch writes them.
//! - `terminal`: tables as wide as the terminal.
//! - `serde`: summaries, rows and call edges implement the traits of serde.
//!
//! # Examples
//!
//! ```
//! use profiler_report::{Slice, SliceName, TableOptions, Timeline, Track};
//!
//! let mut timeline = Timeline::default();
//! timeline.tracks.push(Track::default());
//! timeline.names.push(SliceName { text: "forward".into(), ..SliceName::default() });
//! timeline.slices.push(Slice { duration_ns: 1_500, self_ns: 1_500, ..Slice::default() });
//!
//! let averages = timeline.key_averages().sort_by("self_cpu_time_total");
//! assert_eq!(averages.rows[0].calls, 1);
//! println!("{}", averages.table(TableOptions::new().row_limit(10)));
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
// The measured path counts calls in buckets: it must compile to two functions, with everything inside of them.
#![allow(clippy::inline_always)]

mod among;
mod averages;
mod buckets;
mod call_table;
mod call_tree;
mod callers;
#[cfg(any(feature = "export", feature = "trace"))]
mod chrome;
mod columns;
mod covered;
mod cuda_health;
#[cfg(feature = "export")]
mod date;
mod demangle;
mod distinct;
mod energy;
mod environment;
#[cfg(any(feature = "export", feature = "trace"))]
mod error;
mod fields;
#[cfg(any(feature = "export", feature = "trace"))]
mod file;
#[cfg(test)]
mod golden;
#[cfg(feature = "export")]
mod gpu_csv;
mod gpu_sample;
mod gpu_use;
mod gpu_work;
mod group_by;
mod histogram;
mod history;
mod idle;
mod in_order;
mod kernels;
mod losses;
mod memory;
mod name;
mod options;
#[cfg(feature = "export")]
mod otlp;
mod overlap;
mod own_cost;
#[cfg(feature = "export")]
mod page;
#[cfg(feature = "export")]
mod perfetto;
mod place;
mod prometheus;
mod protobuf;
mod render;
mod reported;
mod restrict;
mod row;
mod sampled_gpu;
mod sampled_idle;
mod sentence;
mod share;
mod signature;
mod sort;
#[cfg(feature = "export")]
mod stack_metric;
mod stream_key;
mod summary;
mod text;
mod time_source;
mod timeline;
mod times;
mod verdict;
#[cfg(feature = "export")]
mod viewers;
mod walk;
mod well_known;
mod written;

pub use averages::KeyAverages;
pub use call_tree::{CallFunction, CallLabels, CallNode, CallTree, CallTreeOptions, HiddenCalls};
pub use callers::{CallEdge, CallEdges, EdgeTimes};
#[cfg(feature = "trace")]
pub use chrome::LaunchCategory;
pub use cuda_health::{CudaHealth, RecordTimes};
pub use energy::Energy;
pub use environment::Environment;
#[cfg(any(feature = "export", feature = "trace"))]
pub use error::ExportError;
pub use gpu_sample::{GpuDevice, GpuQuantity, GpuReadings, GpuSample, ThrottleReasons};
pub use gpu_use::GpuUse;
pub use gpu_work::{
    GpuWork, GpuWorkKind, KernelLaunch, MemoryCopy, MemoryFill, MemoryKind, WaitKind,
};
pub use group_by::GroupBy;
pub use histogram::{Histogram, HistogramBucket};
pub use history::HistoryPoint;
pub use idle::{
    BusyTime, DeviceFunction, DeviceIdle, DevicePairs, DeviceSegment, DeviceState, DeviceTimes,
    Drained, GpuIdle, GpuPairs, IdleCharge, IdleStrip, LongestWork, Meanwhile, StripColumn,
    StripPart, WaitsOfNamed,
};
pub use kernels::{
    CopyUse, FillUse, KernelRow, KernelRowKind, KernelUse, Kernels, MinMax, ScopeKernels,
};
pub use losses::{CudaLoss, DropReason, SpanLoss};
pub use memory::MemoryUse;
pub use options::{Color, RowLimit, TableOptions};
pub use own_cost::OwnCost;
#[cfg(feature = "export")]
pub use page::Page;
pub use profiler_cuda_sys::driver::DeviceProperties;
pub use restrict::{Restriction, RestrictionError};
pub use row::{GpuRanges, MemoryStats, Row};
pub use sampled_gpu::{HeldBack, SampledGpu};
pub use sampled_idle::{SampledCharge, SampledIdle};
pub use sort::{SortKey, SortKeyError};
#[cfg(feature = "export")]
pub use stack_metric::{StackMetric, StackMetricError};
pub use stream_key::StreamId;
pub use summary::{Summary, SummaryFileError};
pub use time_source::TimeSource;
pub use timeline::{
    Counter, Device, KernelGap, Launch, ProcessGroup, ProcessorSample, ProcessorUse, Replay, Slice,
    SliceDetails, SliceEnding, SliceKind, SliceName, Step, Timeline, Track, TrackKind, Wait,
};
pub use times::Times;
pub use verdict::Verdict;

/// What other crates of the project need beside the types above. It changes without notice.
#[doc(hidden)]
pub mod internal {
    pub use crate::among::place_among;
    pub use crate::averages::{Measured, gather, missing as missing_of_timeline};
    pub use crate::buckets::{
        BUCKETS, Buckets, RELATIVE_ERROR, bucket_of, bucket_of_short, first_of,
    };
    pub use crate::callers::OTHER_CALLERS;
    #[cfg(any(feature = "export", feature = "trace"))]
    pub use crate::chrome::timeline::{export as export_chrome_trace, write as write_chrome_trace};
    #[cfg(any(feature = "export", feature = "trace"))]
    pub use crate::chrome::{CORRELATIONS, LAUNCHES};
    #[cfg(feature = "export")]
    pub use crate::date::utc;
    pub use crate::demangle::demangle;
    pub use crate::distinct::distinct;
    #[cfg(feature = "export")]
    pub use crate::gpu_csv::write as write_gpu_samples;
    pub use crate::gpu_sample::{
        DeviceEnergy, DeviceSamples, EnergySource, GpuSamples, Merged, NameEnergy,
    };
    pub use crate::histogram::Unsaved;
    pub use crate::in_order::InOrder;
    pub use crate::name::{Buffer, MAX_LENGTH, truncate, truncate_into};
    pub use crate::overlap::{NestedTrack, OverlapTracks};
    pub use crate::own_cost::gpu_times;
    pub use crate::place::{GpuSlice, NONE as NO_PARENT, PlacedSlice, place};
    pub use crate::protobuf::Message;
    pub use crate::sampled_gpu::energy::fill as share_energy;
    pub use crate::sampled_gpu::{label as device_label, missing as missing_samples};
    pub use crate::share::{share_cpu, share_cuda};
    pub use crate::sort::sort as sort_rows;
    pub use crate::stream_key::{RawStream, StreamKey};
    pub use crate::summary::{Schema, SummaryFormat, busy, second_file, write as write_summary};
    pub use crate::text::json::escape as escape_json;
    pub use crate::text::shorten as shorten_names;
    #[cfg(feature = "terminal")]
    pub use crate::text::shorten_in_the_middle as shorten_names_in_the_middle;
    pub use crate::text::terminal::OutputStream;
    pub use crate::text::terminal::width as table_width;
    pub use crate::text::units::{mean_bytes as format_bytes, time as format_time};
    pub use crate::text::{leave_out_shared_path, shared_path};
    pub use crate::times::Counters;
    pub use crate::walk::NONE;
    pub use crate::well_known::{NO_STEP, STEP, STEPS, is_collective, is_step, step_number};
    pub use crate::written::is_written_by_profiler;
}
