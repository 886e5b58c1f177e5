//! Text formats: tables, JSON and CSV. They know nothing of summaries and averages.

pub(super) mod cells;
pub(super) mod csv;
mod field;
pub(super) mod json;
pub(super) mod table;

pub(super) use field::{Field, nanoseconds};
