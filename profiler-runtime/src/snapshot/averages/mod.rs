//! The key averages of windows.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use profiler_report::internal::{Measured, gather, share_energy};
use profiler_report::{GroupBy, KeyAverages, SampledGpu};

use super::timeline::{for_tables, why_empty};
use crate::clock::clock;
use crate::name;
use crate::own_cost;
use crate::session::{Activity, Trace};

impl Trace {
    /// Averages the scopes of the window over all calls of the same name, as
    /// [`Timeline::key_averages`](crate::report::Timeline::key_averages) does. Kernels, copies and fills outside of the GPU
    /// times of scopes have rows of their own.
    #[must_use]
    pub fn key_averages(&self) -> KeyAverages {
        self.key_averages_by(GroupBy::new())
    }

    /// Averages the scopes of the window, with separate rows for different input shapes or enclosing scopes.
    #[must_use]
    pub fn key_averages_by(&self, by: GroupBy) -> KeyAverages {
        let timeline = for_tables(self, by);
        let mut averages = gather(&timeline, by, &measured(self));
        if self.has(Activity::Cpu) {
            averages.self_cpu_time_total_ns.get_or_insert(0.0);
        }
        let names = self.names.iter();
        let tags: HashMap<&str, &str> = names
            .map(|name| (name.text.as_str(), name.tag.as_str()))
            .collect();
        for row in &mut averages.rows {
            if let Some(tag) = tags.get(&*row.name) {
                (*tag).clone_into(&mut row.tag);
            }
        }
        let samples = &self.gpu_samples;
        share_energy(&mut averages.rows, &samples.devices, |id| {
            name::by_id(id).map(|name| &*name.text)
        });
        averages.gpus = SampledGpu::all(samples);
        averages.notes.extend(samples.notes.iter().cloned());
        averages
    }
}

/// Returns how a window was measured.
fn measured(trace: &Trace) -> Measured {
    let line = &trace.clock_line;
    let lost = trace.lost_work().counted().into_iter();
    let lost = lost.filter(|(count, _)| *count > 0);
    let lost = lost.map(|(count, what)| format!("{count} {what}"));
    let why = trace.no_kernels_reason().filter(|_| !trace.has_kernels());
    let why = why.map(|reason| format!("no kernels: {reason}"));
    let notes = trace.kernel_notes().map(str::to_owned);
    Measured {
        shortest_ns: line.ns(clock().too_short().cast_signed()),
        gpu_cost_ns: 2.0 * own_cost::GPU_SCOPES.least(),
        when_empty: why_empty(trace).is_none().then_some(
            "no scope began and ended in the window: measure what runs in it, and see that measuring is on",
        ),
        has_handles: true,
        kernel_notes: why.into_iter().chain(lost).chain(notes).collect(),
    }
}
