//! The arguments of slices that the command line reads.

use std::io::Write;

use super::event_writer::{EventLine, write_list};
use super::occupancy::Fill;
use crate::gpu_work::{GpuWork, GpuWorkKind};
use crate::{Slice, SliceDetails, SliceEnding, SliceKind};
use profiler_cuda_sys::driver::DeviceProperties;

/// Adds the length that was measured if another one is written, and the time without children if `has_own`: the slices do not
/// show it.
pub(super) fn with_times<'w, W: Write>(
    mut line: EventLine<'w, W>,
    slice: &Slice,
    written: i64,
    has_own: bool,
) -> EventLine<'w, W> {
    if written != slice.duration_ns {
        line = line.signed("ns", slice.duration_ns);
    }
    if has_own {
        line = line.signed("self_ns", slice.self_ns);
    }
    line
}

/// Adds how far the start of a GPU time may be off, and how far it was moved.
pub(super) fn with_uncertainty<'w, W: Write>(
    mut line: EventLine<'w, W>,
    slice: &Slice,
) -> EventLine<'w, W> {
    for (key, ns) in [
        ("uncertainty_ns", slice.uncertainty_ns),
        ("moved_ns", slice.moved_ns),
    ] {
        if let Some(ns) = ns {
            line = line.signed(key, ns);
        }
    }
    line
}

pub(super) fn with_kind<'w, W: Write>(
    mut line: EventLine<'w, W>,
    slice: &Slice,
) -> EventLine<'w, W> {
    line = match slice.kind {
        SliceKind::AsyncCall => line.set("future"),
        SliceKind::FuturePoll => line.set("poll"),
        _ => line,
    };
    line = match slice.ending {
        SliceEnding::Returned => line,
        SliceEnding::Panicked => line.set("panicked"),
        SliceEnding::Dropped => line.set("dropped"),
    };
    if let Some(bytes) = slice.allocated_bytes {
        line = line.whole("allocated bytes", bytes);
    }
    if let Some(bytes) = slice.device_bytes {
        line = line.signed("CUDA bytes", bytes);
    }
    line
}

/// Adds a correlation, and the one that CUPTI gave if that is another one.
pub(super) fn with_correlation<W: Write>(
    line: EventLine<'_, W>,
    correlation: u64,
    of_cupti: Option<u32>,
) -> EventLine<'_, W> {
    let line = line.whole("correlation", correlation);
    match of_cupti.map(u64::from) {
        Some(of_cupti) if of_cupti != correlation => line.whole("correlation of CUPTI", of_cupti),
        _ => line,
    }
}

/// Adds what is known of some slices only.
pub(super) fn with_details<'w, W: Write>(
    mut line: EventLine<'w, W>,
    details: &SliceDetails,
) -> EventLine<'w, W> {
    if let Some(memory) = &details.memory {
        line = line
            .signed("CPU Mem", memory.host_net)
            .whole("CPU Mem Peak", memory.host_peak)
            .whole("CPU Mem Allocated", memory.host_allocated)
            .whole("CPU Mem In Use", memory.host_total)
            .signed("Self CPU Mem", details.own_host_net);
        if let Some(net) = memory.device_net {
            line = line.signed("CUDA Mem", net);
        }
        for (key, bytes) in [
            ("CUDA Mem In Use", memory.device_total),
            ("CUDA Mem Reserved", memory.device_reserved),
        ] {
            if let Some(bytes) = bytes {
                line = line.whole(key, bytes);
            }
        }
    }
    for (key, text) in [
        ("no CUDA time", &details.no_gpu_time),
        ("Call stack", &details.call_stack),
        ("Native stack", &details.native_stack),
    ] {
        if let Some(text) = text {
            line = line.text(key, text);
        }
    }
    if details.is_bound {
        line = line.set("bound streams");
    }
    line
}

/// Adds how much of its device a kernel fills, if the properties of the device are known.
pub(super) fn with_fill<'w, W: Write>(
    line: EventLine<'w, W>,
    work: &GpuWork,
    device: Option<&DeviceProperties>,
) -> EventLine<'w, W> {
    let GpuWorkKind::Kernel(launch) = work.kind else {
        return line;
    };
    let Some(fill) = device.and_then(|device| Fill::of(device, launch)) else {
        return line;
    };
    let line = line
        .number("blocks per SM", fill.blocks_per_sm)
        .number("warps per SM", fill.warps_per_sm);
    match fill.occupancy {
        Some(percent) => line.whole("est. achieved occupancy %", percent),
        None => line,
    }
}

/// Adds shapes as the list that they are the text of, or else as text. Element types are not known; PyTorch writes an empty
/// text in that case too.
pub(super) fn with_shapes<'w, W: Write>(line: EventLine<'w, W>, shapes: &str) -> EventLine<'w, W> {
    if shapes.bytes().any(|byte| byte.is_ascii_digit()) && is_list(shapes) {
        line.json("Input Dims", |out| out.extend(shapes.bytes()))
            .json("Input type", |out| {
                write_list(out, 0..inputs(shapes), |out, _| out.extend(br#""""#));
            })
    } else {
        line.text("shapes", shapes)
    }
}

/// Returns the number of values in a list.
fn inputs(list: &str) -> usize {
    let mut depth = 0_usize;
    let commas = list.bytes().filter(|byte| {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *byte == b',' && depth == 1
    });
    commas.count() + 1
}

/// Returns `true` if a text is a list of whole numbers and of such lists, as JSON writes it.
fn is_list(text: &str) -> bool {
    let mut rest = text.as_bytes();
    let (mut depth, mut wants_value, mut is_empty) = (0_usize, true, false);
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b' ' => continue,
            b'[' if wants_value && (depth > 0 || !is_empty) => {
                depth += 1;
                is_empty = true;
                continue;
            }
            b']' if depth > 0 && (is_empty || !wants_value) => {
                depth -= 1;
                wants_value = false;
                if depth == 0 {
                    return rest.is_empty();
                }
            }
            b',' if !wants_value => wants_value = true,
            b'-' | b'0'..=b'9' if wants_value && depth > 0 => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let is_number = match first {
                    b'-' => digits > 0 && (rest[0] != b'0' || digits == 1),
                    b'0' => digits == 0,
                    _ => true,
                };
                if !is_number {
                    return false;
                }
                rest = &rest[digits..];
                wants_value = false;
            }
            _ => return false,
        }
        is_empty = false;
    }
    false
}
