//! Aggregates of each name, whose size does not depend on the number of calls.

mod bucket;
mod call_node;
mod cell;
mod cell_buckets;
mod cell_fields;
mod cell_times;
mod chunk;
mod coverage;
mod fast_range;
mod gpu;
mod memory;
mod nesting;
mod newest;
mod octaves;
mod owner_cell;
mod pool;
mod rare;
mod rises;
mod single_writer;
mod stock;
mod totals;
mod window;

pub(crate) use call_node::{CallKind, NodeCell, NodeTotals};
pub(crate) use cell::{ENTERED, Ending, StatCell};
pub(crate) use coverage::Coverage;
pub(crate) use gpu::{GpuCall, GpuTimes, GpuTotals};
pub(crate) use memory::set_cell_memory;
pub(crate) use nesting::{Added, Inside, Nested};
pub use pool::cells_made;
pub(crate) use pool::{NoCellLeft, all_cells, mark_free, put_back, take, take_beyond_limit};
pub(crate) use totals::Totals;
