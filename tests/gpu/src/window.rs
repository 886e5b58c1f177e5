//! Windows of the profiler with kernels, for checks to assess.
//!
//! Only child processes record kernels: once CUPTI was turned on, it may slow down all later launches of a process.

use std::sync::Arc;
use std::time::Duration;

use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::report::{GpuWork, GpuWorkKind, SliceKind, Timeline};
use profiler_runtime::{Profile, Trace};

use crate::cupti::{Cupti, VARIABLE};
use crate::device::Gpu;
use crate::findings::Findings;
use crate::trouble::Trouble;

/// CUPTI's codes for machines on which it serves nobody: a virtual device, missing rights, confidential computing, MIG.
const NOT_ALLOWED: [u32; 4] = [33, 35, 41, 43];

/// Skips a check where there is no CUPTI for the device.
pub(crate) fn expect_cupti(gpu: &Gpu) -> Result<(), Trouble> {
    if gpu.simulated && std::env::var_os(VARIABLE).is_none() {
        return Err(Trouble::Skip(
            "CUPTI does not support a simulated device".to_owned(),
        ));
    }
    Ok(())
}

/// A window that has ended.
pub(crate) struct Window {
    pub(crate) trace: Arc<Trace>,
    pub(crate) line: Timeline,
}

/// A kernel, a copy or a fill of a window.
pub(crate) struct Work<'w> {
    pub(crate) name: &'w str,
    /// The name of the scope that it is under.
    pub(crate) scope: Option<&'w str>,
    /// When it began, in nanoseconds since the Unix epoch.
    pub(crate) start_ns: i64,
    pub(crate) ns: i64,
    pub(crate) details: GpuWork,
}

impl Work<'_> {
    pub(crate) fn end_ns(&self) -> i64 {
        self.start_ns + self.ns
    }

    /// Returns `true` for a kernel.
    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self.details.kind, GpuWorkKind::Kernel(_))
    }
}

impl Window {
    /// Records `work` with its kernels, and waits for the window.
    pub(crate) fn record(
        gpu: &Gpu,
        findings: &mut Findings,
        work: impl FnOnce() -> Result<(), Trouble>,
    ) -> Result<Self, Trouble> {
        let refused = |error: &dyn std::fmt::Display| Trouble::Missing(error.to_string());
        let profile = Profile::builder().kernels(true).start();
        let profile = profile.map_err(|error| refused(&error))?;
        let done = work();
        let finished = gpu.context.synchronize();
        profile.stop();
        findings.expect(profile.wait(Duration::from_secs(10)), || {
            "the session had not ended after 10 s".to_owned()
        });
        done?;
        finished?;
        let trace = profile.trace();
        let trace = trace.ok_or_else(|| Trouble::Missing("the session has no trace".to_owned()))?;
        if !trace.has_kernels() {
            return Err(why_none(trace.no_kernels_reason()));
        }
        for note in trace.kernel_notes() {
            findings.note(note);
        }
        let lost = trace.lost_work();
        findings.expect(lost.is_complete(), || {
            let counted = lost.counted().into_iter().filter(|(count, _)| *count > 0);
            let lost: Vec<String> = counted
                .map(|(count, reason)| format!("{count} {reason}"))
                .collect();
            format!("the window says: {}", lost.join("; "))
        });
        let line = trace.timeline();
        Ok(Self { trace, line })
    }

    /// Returns the kernels, copies and fills.
    pub(crate) fn work(&self) -> Vec<Work<'_>> {
        let line = &self.line;
        let name_of = |name: u32| &*line.names[name as usize].text;
        let slices = line.slices.iter();
        let work = slices.filter(|slice| slice.kind == SliceKind::GpuWork);
        work.filter_map(|slice| {
            let details = line.work[slice.work? as usize];
            let parent = slice.parent.map(|parent| line.slices[parent as usize]);
            Some(Work {
                name: name_of(slice.name),
                scope: parent.map(|parent| name_of(parent.name)),
                start_ns: line.start_unix_ns + slice.start_ns,
                ns: slice.duration_ns,
                details,
            })
        })
        .collect()
    }
}

/// Returns why a window has no kernels. The check is skipped only if the machine is the reason.
pub(crate) fn why_none(reason: Option<&str>) -> Trouble {
    let status = kernel_status();
    let said = status.to_string();
    let more = reason.filter(|reason| *reason != said);
    let more = more.map_or_else(String::new, |more| format!(" ({more})"));
    let reason = format!("the window has no kernels: {said}{more}");
    match status {
        KernelStatus::Taken { .. } => Trouble::Skip(reason),
        KernelStatus::Refused { code, .. } if NOT_ALLOWED.contains(&code) => Trouble::Skip(reason),
        // The suite searches on its own: if it finds the library, the profiler should have found it too.
        KernelStatus::NotFound { .. } => match Cupti::open() {
            Ok(cupti) => Trouble::Missing(format!("{reason}; but there is {}", cupti.path)),
            Err(_) => Trouble::Skip(reason),
        },
        _ => Trouble::Missing(reason),
    }
}
