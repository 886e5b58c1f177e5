//! Whether there is memory for a summary.
//!
//! Its rows, and the text that is made of them, are thousands of strings and lists, and the program would be aborted if one
//! of them could not be allocated. So all of their memory is asked for at once before, and given back. Another thread may
//! take it meanwhile. Where the system promises more memory than it has, it never refuses, and ends a process instead.

use std::hint::black_box;

use profiler_host::sync::ReentrancyGuard;

use crate::local::callers;
use crate::name;

/// The bytes of a summary without rows, with its notices and samples, as text too.
const FIXED: usize = 1 << 19;
/// The bytes of a row with two histograms and its history, and of its text in JSON. The lists of rows are twice as long as
/// needed while they grow.
const ROW: usize = 16 << 10;
/// The bytes of a node of the call tree, and of its text.
const NODE: usize = 1 << 10;

/// Returns a note if the system refuses the memory for a summary.
pub(super) fn missing() -> Option<String> {
    let (names, nodes) = (name::count(), callers::nodes());
    let bytes = FIXED + names * ROW + nodes * NODE;
    is_refused(bytes).then(|| {
        format!(
            "no rows: the system refused the {} KiB of memory that a summary of {names} names takes; what was measured is \
             kept, samples of GPUs too: call `summary` again when memory is free",
            bytes >> 10
        )
    })
}

/// Asks the system for memory and gives it back, which is no memory of the program.
fn is_refused(bytes: usize) -> bool {
    let _reentrancy = ReentrancyGuard::try_enter();
    let mut memory = Vec::<u8>::new();
    let is_refused = memory.try_reserve_exact(bytes).is_err();
    // Otherwise the compiler leaves out an allocation that nobody uses.
    black_box(&memory);
    is_refused
}
