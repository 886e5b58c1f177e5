//! Adding up work by scope.

use std::collections::{HashMap, HashSet};

use super::names::short_names;
use super::row::{CopyUse, FillUse, KernelRow, KernelRowKind, KernelUse};
use super::{Kernels, ScopeKernels};
use crate::gpu_work::{GpuWorkKind, MemoryKind};
use crate::idle::{DeviceSegment, DeviceState, union};
use crate::in_order::InOrder as _;
use crate::times::Times;
use crate::walk::NONE;

/// A kernel, a copy or a fill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'n> {
    pub(crate) name: &'n str,
    /// When it began and ended, in nanoseconds.
    pub(crate) span: (i64, i64),
    /// The number of its device.
    pub(crate) device: u32,
    /// The kind of work, if that is known.
    pub(crate) kind: Option<GpuWorkKind>,
    /// The name of its scope, and when the call began; [`NONE`] for no scope.
    pub(crate) scope: u32,
    pub(crate) call_start: i64,
    /// `true` if the call is among those that are counted: then its launches are too.
    pub(crate) is_counted: bool,
    /// The number of its launch, if it is known.
    pub(crate) launch: Option<u32>,
}

/// Which work has a row in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct RowKey<'n> {
    name: &'n str,
    from: Option<MemoryKind>,
    to: Option<MemoryKind>,
}

#[derive(Default)]
struct RowTally {
    times: Vec<f64>,
    kind: KernelRowKind,
}

#[derive(Default)]
struct ScopeTally<'n> {
    rows: HashMap<RowKey<'n>, RowTally>,
    launches: HashSet<u32>,
    /// Devices and times of all work, and of kernels.
    work: Vec<(u32, i64, i64)>,
    kernels: Vec<(u32, i64, i64)>,
    idle: i64,
    launch_gap: i64,
}

/// Adds up work. `devices` are the segments of each device, `scope` returns the name of a scope and the number of its calls.
pub(crate) fn gather(
    mut items: Vec<Item<'_>>,
    has_launches: bool,
    devices: &[&[DeviceSegment]],
    scope: impl Fn(u32) -> (String, u64),
) -> Kernels {
    // Of work that begins at once, that of the first launch ended the idle time before.
    items.order_by_key(|item| {
        let (start, end) = item.span;
        (item.device, start, item.launch.is_none(), item.launch, end)
    });
    let mut tallies: HashMap<u32, ScopeTally<'_>> = HashMap::new();
    let mut before: Option<(u32, i64)> = None;
    for item in &items {
        let (start, end) = item.span;
        let tally = tallies.entry(item.scope).or_default();
        let is_first = before != Some((item.device, start)) && start < end;
        if is_first && item.scope != NONE {
            let segments = devices.get(item.device as usize);
            tally.add_idle(segments.copied().unwrap_or_default(), item);
        }
        if start < end {
            before = Some((item.device, start));
        }
        tally.add(item);
    }
    let mut scopes: Vec<ScopeKernels> = tallies
        .into_iter()
        .map(|(number, tally)| {
            let named = (number != NONE).then(|| scope(number));
            tally.finish(named, has_launches)
        })
        .collect();
    scopes.order_by(|one, other| {
        let longest = other.busy_ns.total_cmp(&one.busy_ns);
        let is_named = other.scope.is_some().cmp(&one.scope.is_some());
        is_named
            .then(longest)
            .then_with(|| one.scope.cmp(&other.scope))
    });
    short_names(&mut scopes);
    Kernels {
        is_recorded: true,
        scopes,
        ..Kernels::default()
    }
}

impl<'n> ScopeTally<'n> {
    /// Adds the idle time that an item ended, since its call began.
    fn add_idle(&mut self, segments: &[DeviceSegment], item: &Item<'_>) {
        let (start, _) = item.span;
        let before = segments.partition_point(|segment| segment.end_ns <= start);
        let mut until = start;
        for segment in segments[..before].iter().rev() {
            if segment.end_ns != until || segment.end_ns <= item.call_start {
                break;
            }
            let is_launched = match segment.state {
                DeviceState::Busy | DeviceState::AfterLast => break,
                DeviceState::Host | DeviceState::LaunchCall => Some(false),
                DeviceState::Launched => Some(true),
                DeviceState::NotRecorded => None,
            };
            until = segment.start_ns;
            if let Some(is_launched) = is_launched {
                let from = segment.start_ns.max(item.call_start);
                let length = segment.end_ns.saturating_sub(from);
                self.idle = self.idle.saturating_add(length);
                if !is_launched {
                    self.launch_gap = self.launch_gap.saturating_add(length);
                }
            }
        }
    }

    fn add(&mut self, item: &Item<'n>) {
        let (start, end) = item.span;
        self.work.push((item.device, start, end));
        let launch = item.launch.filter(|_| item.is_counted);
        self.launches.extend(launch);
        let (from, to) = match item.kind {
            Some(GpuWorkKind::Memcpy(copy)) => (Some(copy.from), Some(copy.to)),
            Some(GpuWorkKind::Memset(fill)) => (None, Some(fill.memory)),
            _ => {
                self.kernels.push((item.device, start, end));
                (None, None)
            }
        };
        let name = item.name;
        let row = self.rows.entry(RowKey { name, from, to }).or_default();
        row.times.push(end.saturating_sub(start).max(0) as f64);
        match (&mut row.kind, item.kind) {
            (KernelRowKind::Kernel(kernel), Some(GpuWorkKind::Kernel(launch))) => {
                kernel.add(&launch);
            }
            (KernelRowKind::Copy(copies), Some(GpuWorkKind::Memcpy(copy))) => {
                copies.bytes = copies.bytes.saturating_add(copy.bytes);
            }
            (KernelRowKind::Fill(fills), Some(GpuWorkKind::Memset(fill))) => {
                fills.bytes = fills.bytes.saturating_add(fill.bytes);
            }
            (kind, first) => {
                *kind = match first {
                    Some(GpuWorkKind::Kernel(launch)) => {
                        KernelRowKind::Kernel(KernelUse::of(&launch))
                    }
                    Some(GpuWorkKind::Memcpy(copy)) => KernelRowKind::Copy(CopyUse::of(&copy)),
                    Some(GpuWorkKind::Memset(fill)) => KernelRowKind::Fill(FillUse::of(&fill)),
                    Some(GpuWorkKind::Synchronization(_)) | None => *kind,
                };
            }
        }
    }

    fn finish(self, scope: Option<(String, u64)>, has_launches: bool) -> ScopeKernels {
        let busy = union(self.work);
        let kernels = union(self.kernels);
        let sum: f64 = self.rows.values().flat_map(|row| &row.times).sum();
        let mut rows: Vec<KernelRow> = self
            .rows
            .into_iter()
            .filter_map(|(key, row)| {
                let total_ns: f64 = row.times.iter().sum();
                let percent = if sum > 0.0 {
                    (1e4 * total_ns / sum).round() / 100.0
                } else {
                    0.0
                };
                let times = Times {
                    total_ns,
                    self_ns: total_ns,
                    total_percent: percent,
                    self_percent: percent,
                    ..Times::of_calls(row.times)?
                };
                Some(KernelRow {
                    name: key.name.to_owned(),
                    short: String::new(),
                    times,
                    kind: row.kind,
                })
            })
            .collect();
        rows.order_by(|one, other| {
            let longest = other.times.total_ns.total_cmp(&one.times.total_ns);
            longest.then_with(|| one.name.cmp(&other.name))
        });
        let is_named = scope.is_some();
        let (scope, calls) = scope.map_or((None, 0), |(name, calls)| (Some(name), calls));
        ScopeKernels {
            scope,
            calls,
            launches: has_launches.then_some(self.launches.len() as u64),
            busy_ns: busy as f64,
            copy_ns: (busy - kernels).max(0) as f64,
            idle_ns: (has_launches && is_named).then_some(self.idle as f64),
            launch_gap_ns: (has_launches && is_named).then_some(self.launch_gap as f64),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_length_are_added_up() {
        let item = |device, span| Item {
            name: "kernel",
            span,
            device,
            kind: None,
            scope: 0,
            call_start: i64::MIN,
            is_counted: true,
            launch: Some(0),
        };
        let items = (0..3).flat_map(|device| {
            [
                item(device, (i64::MIN, i64::MIN)),
                item(device, (0, i64::MAX)),
            ]
        });
        let segment = |start_ns, end_ns, state| DeviceSegment {
            start_ns,
            end_ns,
            state,
            call: None,
            function: None,
            is_before_first: false,
        };
        let device = vec![
            segment(i64::MIN, 0, DeviceState::Host),
            segment(0, i64::MAX, DeviceState::Busy),
        ];
        let devices = [&*device; 3];
        let kernels = gather(items.collect(), true, &devices, |_| ("call".to_owned(), 1));
        let scope = &kernels.scopes[0];
        let most = i64::MAX as f64;
        assert_eq!((scope.busy_ns, scope.idle_ns), (most, Some(most)));
        assert_eq!(scope.launch_gap_ns, Some(most));
    }
}
