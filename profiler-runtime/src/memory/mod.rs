//! The memory that scopes use while a session profiles memory.

mod allocator;
mod counters;
mod scope;

pub use allocator::ProfilerAllocator;
pub(crate) use counters::{is_installed, set_wanted};
pub(crate) use scope::ScopeMemory;
