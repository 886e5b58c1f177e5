//! Times of devices that the program reported (`Handle::report_device_time`).
//!
//! They are in the sums of the call that they belong to, and no call: nobody knows how many of its kernels they are of, or what
//! the host did meanwhile.

use crate::timeline::{Slice, SliceKind, Timeline};

/// Returns `true` if a GPU time was reported. It has another name than the call that it belongs to.
pub(crate) fn is_reported(timeline: &Timeline, slice: &Slice, call: u32) -> bool {
    let text = |slice: &Slice| {
        let name = timeline.names.get(slice.name as usize);
        name.map(|name| &*name.text)
    };
    let call = timeline.slices.get(call as usize);
    slice.kind == SliceKind::GpuScope && call.is_some_and(|call| text(call) != text(slice))
}
