//! The names of work, and what kernels fill of their device.

use std::io::Write;

use super::occupancy::Fill;
use crate::cuda::DeviceProperties;
use crate::gpu_work::{GpuWork, GpuWorkKind};
use crate::report::export::chrome::STEP_NAMES;
use crate::report::export::chrome::event_writer::{EventLine, Quoted};
use crate::report::export::chrome::work_args::{category_of, with_work};
use crate::report::text::json::string;
use crate::session::{Trace, WorkRecord};

/// The names of work, as JSON strings.
pub(super) struct WorkNames(Vec<String>);

impl WorkNames {
    pub(super) fn new(trace: &Trace) -> Self {
        let (step, spelled) = STEP_NAMES;
        let names = trace.work.names.iter();
        Self(
            names
                .map(|name| string(&name.replace(step, spelled)))
                .collect(),
        )
    }

    /// Returns the category and the name of some work.
    pub(super) fn of(&self, work: &WorkRecord) -> (&'static str, Quoted<'_>) {
        let name = self.0.get(work.name as usize);
        let name = name.map_or(r#""(unknown)""#, |name| name);
        (category_of(&work.details), Quoted::new(name))
    }
}

/// Adds the arguments that depend on the kind of work; `ns` is how long it took, and `devices` holds the properties of the
/// devices by ordinal.
pub(super) fn with_fields<'w, W: Write>(
    event: EventLine<'w, W>,
    work: &GpuWork,
    ns: i64,
    devices: &[DeviceProperties],
) -> EventLine<'w, W> {
    let event = with_work(event, work, ns);
    let GpuWorkKind::Kernel(launch) = work.kind else {
        return event;
    };
    let device = devices.get(work.device as usize);
    let Some(fill) = device.and_then(|device| Fill::of(device, launch)) else {
        return event;
    };
    let event = event
        .number("blocks per SM", fill.blocks_per_sm)
        .number("warps per SM", fill.warps_per_sm);
    match fill.occupancy {
        Some(percent) => event.whole("est. achieved occupancy %", percent),
        None => event,
    }
}
