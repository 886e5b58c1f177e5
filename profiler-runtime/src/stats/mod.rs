//! Aggregates of each name, whose size does not depend on the number of calls.

mod bucket;
mod call_node;
mod cell;
mod cell_buckets;
mod cell_fields;
mod cell_times;
mod chunk;
mod coverage;
mod gpu;
mod histogram;
mod newest;
mod octaves;
mod owner_cell;
mod pool;
mod single_writer;
mod totals;
mod window;

pub(crate) use call_node::{CallKind, NodeCell, NodeTotals};
pub(crate) use cell::{Ending, StatCell};
pub(crate) use coverage::Coverage;
pub(crate) use gpu::{GpuCall, GpuTimes, GpuTotals};
pub(crate) use histogram::{BUCKETS, BucketRange, Buckets, RELATIVE_ERROR, bucket_of};
pub use pool::cells_made;
pub(crate) use pool::{all_cells, put_back, take};
pub(crate) use totals::Totals;
