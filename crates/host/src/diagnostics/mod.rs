//! Warnings, and code that may panic.

mod own_panic;
mod printable;
mod similar;
pub mod user_code;
mod warnings;

pub use own_panic::{catch_own_panic, warn_of_own_panic};
pub use printable::{is_harmful, printable};
pub use similar::{did_you_mean, similar};
/// Returns how many edits make one word of the other: changed, added and removed letters, and swaps of two neighbours.
pub use strsim::osa_distance as edit_distance;
pub use warnings::{is_on_stderr, notices, warn_of_report, warn_once};
