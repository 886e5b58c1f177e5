//! Sessions need the feature `session`, without which only the trait of the argument `shapes` is here.
//!
//! Measured threads ask the functions below whether to record, and the answer is always no.

mod ended;
mod shape;

use std::time::Duration;

pub(crate) use ended::{EndedScope, RecordEnding, Shapes};
pub use shape::{Dimension, ToShape};

/// The record of a future, which does not exist.
#[derive(Debug)]
pub(crate) enum FutureRecord {}

impl FutureRecord {
    pub(crate) fn begin(_parent: u64, _shapes: Shapes) -> Option<Box<Self>> {
        None
    }

    pub(crate) fn serial(&self) -> u64 {
        match *self {}
    }
}

/// The sessions that end with the guard of `init`.
pub(crate) enum FinishMode {
    Environment,
}

#[inline]
pub(crate) fn is_recording() -> bool {
    false
}

#[inline]
pub(crate) fn wants_details() -> bool {
    false
}

#[inline]
pub(crate) fn wants_shapes() -> bool {
    false
}

#[inline]
pub(crate) fn open(_name: u32, _serial: u64, _parent: u64, _shapes: Shapes) -> bool {
    false
}

pub(crate) fn opened(_serial: u64) {}

pub(crate) fn ending(_serial: u64) {}

#[inline]
pub(crate) fn close_early(_name: u32, _serial: u64, _parent: u64, _times: (u64, i64)) -> bool {
    true
}

pub(crate) fn close(_ended: &EndedScope) {}

pub(crate) fn lose() {}

pub(crate) fn close_poll(_ended: &EndedScope, _future: u64) {}

#[allow(
    clippy::boxed_local,
    clippy::needless_pass_by_value,
    reason = "as with sessions"
)]
pub(crate) fn close_future(future: Box<FutureRecord>, _ended: &EndedScope, _polled: i64) {
    match *future {}
}

pub(crate) fn finish(_timeout: Duration, _ending: FinishMode) {}

/// The session of the environment.
pub(crate) mod environment {
    pub(crate) fn step() {}

    pub(crate) fn was_started() -> bool {
        false
    }
}
