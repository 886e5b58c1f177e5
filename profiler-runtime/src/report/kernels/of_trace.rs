//! The kernels of a window.

use std::collections::HashMap;

use super::gather::{Item, gather};
use super::{AllKernels, Kernels};
use crate::report::walk::NONE;
use crate::session::{Event, RecordKind, ScopeRecord, Trace};

/// Returns the kernels of a window whose averages have this many rows; `None` if it was not to have any.
pub(in crate::report) fn of_trace(trace: &Trace, rows: usize) -> Option<AllKernels> {
    if !trace.has_kernels() {
        let reason = trace.no_kernels_reason()?;
        let kernels = Kernels {
            notes: vec![format!("no kernels: {reason}")],
            ..Kernels::default()
        };
        return Some(AllKernels { kernels, rows });
    }
    // The launches of a call are known if it began while they were recorded.
    let is_counted = |scope: &ScopeRecord| scope.start >= trace.work.since;
    let items = trace.work.on_streams().filter_map(|work| {
        let launch = trace.work.launch_of(work);
        let scope = trace.work.scope_of(work);
        let scope = scope.filter(|scope| *scope < trace.scopes.len());
        let event = scope.map(|scope| Event::new(trace, scope));
        Some(Item {
            name: trace.work.name(work.name),
            span: work.span?,
            device: work.details.device,
            kind: Some(work.details.kind),
            scope: event.map_or(NONE, |event| event.record().name),
            call_start: event.map_or(i64::MIN, Event::start_ns),
            is_counted: event.is_none_or(|event| is_counted(event.record())),
            launch: launch.map(|launch| (work.launch, launch.span.1)),
        })
    });
    let mut calls: HashMap<u32, u64> = HashMap::new();
    for scope in &trace.scopes {
        if !matches!(scope.kind, RecordKind::Poll { .. }) && is_counted(scope) {
            *calls.entry(scope.name).or_default() += 1;
        }
    }
    let mut kernels = gather(items.collect(), true, |name| {
        let calls = calls.get(&name).copied().unwrap_or_default();
        (trace.name_of(name).to_owned(), calls)
    });
    let lost = trace.lost_work().counted().into_iter();
    let lost = lost.filter(|(count, _)| *count > 0);
    let lost = lost.map(|(count, what)| format!("{count} {what}"));
    let notes = trace.kernel_notes().map(str::to_owned);
    kernels.notes = lost.chain(notes).collect();
    Some(AllKernels { kernels, rows })
}
