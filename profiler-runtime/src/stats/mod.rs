//! Bounded aggregates: what is kept for each name, however many calls there are.

mod cell;
mod gpu;
mod histogram;
mod pool;
mod sum;
mod totals;

pub(crate) use cell::{Ending, StatCell};
pub(crate) use gpu::{GpuCall, GpuTotals};
pub(crate) use histogram::{BUCKETS, Buckets, RELATIVE_ERROR, bucket_of};
pub use pool::cells_made;
pub(crate) use pool::{all_cells, put_back, take};
pub(crate) use totals::Totals;
