//! What the benches share: the measured functions; many short, interleaved batches of all variants, so that noise affects
//! all equally; heap and resident memory; processes; tables, and JSON to compare runs.

pub mod background;
mod batches;
pub mod memory;
mod options;
mod paced;
pub mod process;
mod report;
mod samples;
pub mod subjects;

pub use batches::{Variant, batch, counted_calls, measure, settle};
pub use options::{Options, Outcome};
pub use paced::{measure_paced, paced_batch};
pub use report::{Cell, Report, Table};
pub use samples::{Samples, Spread, added, median};
