//! The states of a device over time.

use std::cmp::Reverse;

use super::threads::Threads;
use super::{DeviceSegment, DeviceState};
use crate::in_order::InOrder as _;
use crate::timeline::Launch;

/// From this length on, a launch alone does not explain that launched work has not begun, or that a call lasts.
pub(super) const LATE_NS: i64 = 10_000;

/// A kernel, a copy or a fill, and the call that launched it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'l> {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) launch: Option<&'l Launch>,
    /// The call that it belongs to.
    pub(super) call: Option<u32>,
    pub(super) is_kernel: bool,
}

/// An idle time between two works, as far as it is charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// When the device ran out of work, and when the call returned that launched the next one.
    pub(super) start: i64,
    pub(super) end: i64,
    /// The track of the thread that made this call, and when that began.
    pub(super) track: u32,
    pub(super) called: i64,
    /// How much of it is charged.
    pub(super) charged: i64,
}

/// The window of a device: its segments, and its charged idle times between the first work and the last.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) segments: Vec<DeviceSegment>,
    pub(super) pieces: Vec<Piece>,
}

/// Cuts the window of a device into times in one state each. `gaps` are the times in which nothing was recorded, in their
/// order and without overlaps.
pub(super) fn segments(
    mut works: Vec<Work<'_>>,
    (begin, end): (i64, i64),
    gaps: &[(i64, i64)],
    threads: &Threads,
) -> Window {
    // Of works that begin at once, the first one ends the idle time before: that of the earliest call.
    works.order_by_key(|work| {
        let launch = work.launch;
        let order = launch.map(|launch| (launch.start_ns, launch.correlation));
        // One without a call comes last.
        (work.start, order.is_none(), order, Reverse(work.end))
    });
    let mut cutter = Cutter {
        gaps,
        threads,
        is_before_first: true,
        charged: 0,
        window: Window::default(),
    };
    let mut at = begin;
    for work in works {
        let start = work.start.clamp(at, end);
        if start > at {
            cutter.idle(at, start, work.launch);
        }
        cutter.is_before_first = false;
        let until = work.end.clamp(start, end);
        cutter.push(start, until, DeviceState::Busy, work.call);
        at = until;
    }
    cutter.outside_of_gaps(at, end, |cutter, start, end| {
        cutter.push(start, end, DeviceState::AfterLast, None);
    });
    cutter.window
}

struct Cutter<'t> {
    gaps: &'t [(i64, i64)],
    threads: &'t Threads,
    is_before_first: bool,
    /// How long the piece is charged so far.
    charged: i64,
    window: Window,
}

impl Cutter<'_> {
    /// Cuts an idle piece, which work ended that this call launched.
    fn idle(&mut self, start: i64, end: i64, launch: Option<&Launch>) {
        let Some(launch) = launch else {
            return self.push(start, end, DeviceState::NotRecorded, None);
        };
        let called = launch.start_ns.clamp(start, end);
        let returned = launch.start_ns.saturating_add(launch.duration_ns.max(0));
        let returned = returned.clamp(called, end);
        self.charged = 0;
        self.outside_of_gaps(start, end, |cutter, from, to| {
            for (state, span) in [
                (DeviceState::Host, (start, called)),
                (DeviceState::LaunchCall, (called, returned)),
            ] {
                let (from, to) = (from.max(span.0), to.min(span.1));
                if from < to {
                    let threads = cutter.threads;
                    threads.during(launch.track, (from, to), |from, to, call| {
                        cutter.push(from, to, state, call);
                    });
                }
            }
            cutter.push(from.max(returned), to, DeviceState::Launched, None);
        });
        if self.charged > 0 && !self.is_before_first {
            self.window.pieces.push(Piece {
                start,
                end: returned,
                track: launch.track,
                called: launch.start_ns,
                charged: self.charged,
            });
        }
    }

    /// Calls `each` with the parts of an idle time in which work was recorded; the others are not recorded.
    fn outside_of_gaps(&mut self, start: i64, end: i64, each: impl Fn(&mut Self, i64, i64)) {
        let gaps = self.gaps;
        let first = gaps.partition_point(|(_, gap_end)| *gap_end <= start);
        let mut at = start;
        for (gap_start, gap_end) in &gaps[first..] {
            if *gap_start >= end {
                break;
            }
            if *gap_start > at {
                each(self, at, *gap_start);
            }
            let (from, to) = ((*gap_start).max(at), (*gap_end).min(end));
            self.push(from, to, DeviceState::NotRecorded, None);
            at = to.max(at);
        }
        if at < end {
            each(self, at, end);
        }
    }

    fn push(&mut self, start_ns: i64, end_ns: i64, state: DeviceState, call: Option<u32>) {
        if start_ns >= end_ns {
            return;
        }
        if matches!(state, DeviceState::Host | DeviceState::LaunchCall) {
            self.charged = self.charged.saturating_add(end_ns.saturating_sub(start_ns));
        }
        let is_before_first = self.is_before_first;
        let same = |last: &DeviceSegment| {
            last.end_ns == start_ns
                && last.state == state
                && last.call == call
                && last.is_before_first == is_before_first
        };
        match self.window.segments.last_mut() {
            Some(last) if same(last) => last.end_ns = end_ns,
            _ => self.window.segments.push(DeviceSegment {
                start_ns,
                end_ns,
                state,
                call,
                function: None,
                is_before_first,
            }),
        }
    }
}

/// Returns how long any of the spans lasted, added up over the devices.
pub(crate) fn union(mut spans: Vec<(u32, i64, i64)>) -> i64 {
    spans.order();
    let mut sum = 0_i64;
    let mut until: Option<(u32, i64)> = None;
    for (device, start, end) in spans {
        let before = until.filter(|(other, _)| *other == device);
        let start = before.map_or(start, |(_, ran)| ran.max(start));
        sum = sum.saturating_add(end.saturating_sub(start).max(0));
        until = Some((device, end.max(start)));
    }
    sum
}
