//! One file per format, each a pure function of a summary.

mod columns;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod table;
