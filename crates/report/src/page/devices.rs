//! The devices at the top of the page: which of them have a strip, and whose bars and sentences are folded.

use std::fmt::Write;

use super::escape::Text;
use super::overview::counted;
use super::strip::{Fold, hatchings, push_device, push_tiles};
use crate::idle::{DeviceIdle, GpuIdle};
use crate::in_order::InOrder as _;
use crate::sentence::percent;

/// Of more devices, the strips are low, and all bars and sentences but those of one device are folded.
pub(super) const DEVICES: usize = 4;
/// The most devices that have a strip.
const STRIPS: usize = 8;
/// The most devices that a folded list has.
pub(super) const FOLDED: usize = 60;

/// Writes the strips of the devices, in the order of their numbers. Without any, it writes nothing.
pub(super) fn push(html: &mut String, idle: &GpuIdle) {
    let all = &idle.devices;
    if all.is_empty() {
        return;
    }
    let least = |count| least_busy(all.iter().map(recorded_busy), count);
    let (shown, first) = (least(STRIPS), least(1));
    let devices: Vec<&DeviceIdle> = shown.iter().map(|place| &all[*place]).collect();
    let hatchings = hatchings(&devices);
    let class = if all.len() > DEVICES {
        " class=many"
    } else {
        ""
    };
    let _ = writeln!(
        html,
        "<section id=strips{class} aria-label=\"What the GPUs did\">"
    );
    push_tiles(html, &hatchings);
    if all.len() > STRIPS {
        let _ = writeln!(
            html,
            "<p class=note>The {STRIPS} GPUs of {} that were busy least, in the order of their numbers.</p>",
            all.len()
        );
    }
    for ((number, device), hatchings) in shown.iter().zip(&devices).zip(&hatchings) {
        let fold = (all.len() > DEVICES).then_some(Fold {
            is_open: first.contains(number),
        });
        push_device(html, device, *number, hatchings, fold);
    }
    let others = (0..).zip(all).filter(|(place, _)| !shown.contains(place));
    push_others(html, &others.map(|(_, device)| device).collect::<Vec<_>>());
    html.push_str("</section>\n");
}

/// Returns the share of the time of a device in which it was busy, as far as it was recorded.
pub(super) fn recorded_busy(device: &DeviceIdle) -> f64 {
    let recorded = device.window_ns() - device.not_recorded_ns;
    if recorded > 0 {
        device.busy_ns as f64 / recorded as f64
    } else {
        f64::INFINITY
    }
}

/// Returns the places of the devices that were busy least, in their order.
pub(super) fn least_busy(busy: impl Iterator<Item = f64>, count: usize) -> Vec<usize> {
    let mut sorted: Vec<(usize, f64)> = busy.enumerate().collect();
    sorted.order_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut places: Vec<usize> = sorted.iter().map(|(place, _)| *place).take(count).collect();
    places.order();
    places
}

/// Lists the devices that have no strip.
fn push_others(html: &mut String, devices: &[&DeviceIdle]) {
    if devices.is_empty() {
        return;
    }
    let others = counted(devices.len() as u64, "busier GPU");
    let _ = write!(
        html,
        "<details class=parts><summary>{others}</summary>\n<ol>\n"
    );
    for device in devices.iter().take(FOLDED) {
        let busy = device.busy_ns as f64 / device.window_ns().max(1) as f64;
        let _ = writeln!(
            html,
            "<li><em>{}</em><svg aria-hidden=true><rect class=busy width=\"{:.2}%\" height=100% /></svg><span>{} busy</span>",
            Text(&device.title()),
            100.0 * busy,
            percent(busy)
        );
    }
    html.push_str("</ol>\n");
    if devices.len() > FOLDED {
        html.push_str("<p class=note>The rest is left out here: <code>profiler explain</code> shows all.</p>\n");
    }
    html.push_str("</details>\n");
}
