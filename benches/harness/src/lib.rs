//! The measuring code of the benches: many short, interleaved batches of all variants, so that
//! noise affects all equally; heap and resident memory; tables, and JSON to compare runs.

mod batches;
mod machine;
pub mod memory;
mod options;
mod paced;
mod samples;
mod table;

pub use batches::{Variant, batch, measure};
pub use machine::Machine;
pub use options::{Options, OptionsError};
pub use paced::{PacedVariant, measure_paced, paced_batch};
pub use samples::{Samples, Spread, median};
pub use table::Table;
