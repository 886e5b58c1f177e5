//! The measured thread's view of a scope that ends while a session records.

use crate::local::Place;

/// The CPU side of a scope that has ended.
pub(crate) struct EndedScope {
    pub(crate) name: u32,
    pub(crate) serial: u64,
    pub(crate) place: Place,
    /// The id by which scopes of other threads name it as their parent; 0 for none.
    pub(crate) shared: u64,
    pub(crate) start: u64,
    pub(crate) elapsed: i64,
    pub(crate) ending: RecordEnding,
    /// The key of its GPU time; 0 for none.
    pub(crate) cuda: u64,
}

/// How a recorded scope ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RecordEnding {
    #[default]
    Returned,
    Panicked,
    Dropped,
}

/// The shapes that a call was given. Boxed twice, because every call has space for it and few calls use it.
#[allow(clippy::box_collection, reason = "one word where there is none")]
pub(crate) type Shapes = Option<Box<Vec<Box<[usize]>>>>;
