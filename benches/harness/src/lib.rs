//! How the benches measure: many short batches of all variants in turn, so that noise hits all alike;
//! heap and resident memory; tables, and JSON for whoever compares runs.

mod batches;
mod machine;
pub mod memory;
mod options;
mod samples;
mod table;

pub use batches::{Variant, batch, measure};
pub use machine::Machine;
pub use options::{Options, OptionsError};
pub use samples::{Samples, Spread, median};
pub use table::Table;
