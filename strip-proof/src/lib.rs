//! Compares the assembly of two crates function by function.
//!
//! `twins/annotated.rs` and `twins/bare.rs` contain the same functions, with and without
//! annotations. The program of this package builds both and compares them:
//!
//! ```text
//! cargo run -p strip-proof                       # stripped: every function must be identical
//! cargo run -p strip-proof -- --without-strip    # measured: every annotated one must differ
//! ```
//!
//! The second command shows that the first one can fail. Both need assembly for an ELF target, such
//! as Linux.

mod assembly;
mod comparison;
mod labels;

pub use assembly::{Assembly, AssemblyError, Function};
pub use comparison::{Comparison, Pair, Verdict};
