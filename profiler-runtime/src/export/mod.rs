//! One file per format, each a pure function of a summary.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod table;
