//! Stands in for the module in builds without the feature `cuda`, and on WebAssembly: there is no tool.

use profiler_report::internal::RawStream;

use crate::config::Nvtx;
use crate::name::Name;
use crate::switch::SiteDecision;

/// The range of a future: none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FutureRange;

impl FutureRange {
    pub(crate) const NONE: Self = Self;
}

pub(crate) fn attach(_setting: Nvtx) {}

#[inline]
pub(crate) fn is_attached() -> bool {
    false
}

pub(crate) fn register(_name: &Name) {}

#[inline]
pub(crate) fn push(_decision: SiteDecision, _serial: u64, _step: Option<u64>) -> bool {
    false
}

#[inline]
pub(crate) fn pop(_serial: u64) {}

#[inline]
pub(crate) fn pop_inside(_poll: u64) {}

#[inline]
pub(crate) fn start(_decision: SiteDecision, _step: Option<u64>) -> FutureRange {
    FutureRange::NONE
}

#[inline]
pub(crate) fn end(_range: FutureRange) {}

#[inline]
pub(crate) fn name_stream(_stream: RawStream, _name: u32) {}
