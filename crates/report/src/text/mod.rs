//! Text formats: tables, JSON and CSV. They know nothing of summaries and averages.

pub(super) mod csv;
mod field;
mod fill;
pub(super) mod json;
pub(crate) mod list;
mod shorten;
pub(super) mod style;
pub(super) mod table;
pub(crate) mod terminal;
pub(super) mod units;

pub(super) use field::{Field, nanoseconds};
pub(super) use fill::fill;
#[cfg(feature = "export")]
pub(super) use shorten::last_segment;
#[cfg(feature = "terminal")]
pub use shorten::shorten_in_the_middle;
pub(super) use shorten::width;
pub use shorten::{leave_out_shared_path, shared_path, shorten};
