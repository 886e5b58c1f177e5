//! Compares what two crates compile to, function by function.
//!
//! `twins/annotated.rs` and `twins/bare.rs` hold the same functions, with and without annotations.
//! The program of this package builds both and compares them with what is here:
//!
//! ```text
//! cargo run -p strip-proof                       # stripped: every function must be identical
//! cargo run -p strip-proof -- --without-strip    # measured: every annotated one must differ
//! ```
//!
//! The second shows that the first one can fail. Both take assembly for ELF targets, such as Linux.

mod assembly;
mod comparison;
mod labels;

pub use assembly::{Assembly, AssemblyError, Function};
pub use comparison::{Comparison, Pair, Verdict};
