//! Settings that had no effect in this run, and are likely mistakes. Only the end of the program shows them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_host::diagnostics;
use profiler_host::process::{fork, privileges};

use crate::config::SummaryTarget;
use crate::cuda;
use crate::name;
use crate::session;
use crate::switch::{self, with_control};

/// Warns of globs that match no name, of a recording that never began, of an interval without a summary, of outputs that are
/// not written because measuring was off, of a libtorch that is not there, and of what traces lack. Called before the last
/// summary is written, which repeats the warnings.
pub(super) fn warn() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !fork::is_own_process() || WARNED.swap(true, Relaxed) {
        return;
    }
    if switch::is_off_by_environment() {
        return outputs_while_off()
            .into_iter()
            .for_each(|mistake| diagnostics::warn_once(&mistake));
    }
    for mistake in globs_without_effect()
        .into_iter()
        .chain(recording_never_began())
        .chain(interval_without_effect())
        .chain(missed_libtorch())
        .chain(lost_scopes())
    {
        diagnostics::warn_once(&mistake);
    }
}

/// Returns a warning if the settings ask for outputs, which are not written because `PROFILER_ENABLED` turned measuring off.
fn outputs_while_off() -> Option<String> {
    let outputs = with_control(|control| {
        let settings = &control.settings;
        let has_trace = cfg!(feature = "trace") && settings.session.trace.is_some();
        let summary = settings.origin("PROFILER_SUMMARY", "`Builder::summary`");
        let log = settings.origin("PROFILER_TENSORBOARD", "`Builder::tensorboard`");
        [
            (summary, settings.summary != SummaryTarget::Off),
            (log, settings.tensorboard.is_some()),
            ("PROFILER_TRACE", has_trace),
        ]
    });
    let asked = outputs.iter().filter(|(_, is_asked)| *is_asked);
    let asked: Vec<&str> = asked.map(|(output, _)| *output).collect();
    (!asked.is_empty()).then(|| {
        format!(
            "PROFILER_ENABLED turns measuring off, so nothing is written for {}: set PROFILER_ENABLED=1, or call \
             `set_enabled(true)`",
            asked.join(", ")
        )
    })
}

fn globs_without_effect() -> Vec<String> {
    let names = name::all();
    // No call site has decided: nothing ran, or measuring was off.
    if names.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = names.iter().map(|name| &*name.text).collect();
    let (filter, origin) = with_control(|control| {
        let settings = &control.settings;
        let origin = settings.origin("PROFILER_FILTER", "`Builder::filter`");
        (settings.filter.clone(), origin)
    });
    let mistakes = filter.mistakes(&names).into_iter();
    mistakes
        .map(|mistake| format!("{origin}: {mistake}"))
        .collect()
}

/// Returns a warning if there is no summary that the interval could apply to.
fn interval_without_effect() -> Option<String> {
    const INTERVAL: &str = "PROFILER_SUMMARY_INTERVAL";
    let (interval, summary) = with_control(|control| {
        let settings = &control.settings;
        let has_no_effect =
            settings.summary_interval.is_some() && settings.summary == SummaryTarget::Off;
        has_no_effect.then(|| {
            let interval = settings.origin(INTERVAL, "`Builder::summary_interval`");
            let summary = match settings.origin("PROFILER_SUMMARY", "") {
                "" if interval == INTERVAL => "PROFILER_SUMMARY is not",
                "" => "`Builder::summary` is not",
                _ => "PROFILER_SUMMARY is `off`",
            };
            (interval, summary)
        })
    })?;
    // With raised privileges the target may have been ignored, which has a warning of its own.
    (!privileges::are_raised()).then(|| {
        format!("{interval} is set and {summary}, so nothing was written: set it to a file")
    })
}

/// Returns a warning if `PROFILER_CUDA_STREAM` asks for the stream of a library that the process does not have.
fn missed_libtorch() -> Option<String> {
    cuda::has_missed_libtorch().then(|| {
        "PROFILER_CUDA_STREAM: the process has loaded no libtorch that tells its stream (`aoti_torch_get_current_cuda_stream` in \
         `libtorch_cuda.so`), so calls without a stream have no GPU time: builds for the CPU and old releases lack it"
            .to_owned()
    })
}

/// Returns warnings for what the traces of the environment's session lack.
#[cfg(feature = "trace")]
fn lost_scopes() -> Vec<String> {
    super::lost_scopes::warnings()
}

#[cfg(not(feature = "trace"))]
fn lost_scopes() -> Vec<String> {
    Vec::new()
}

/// Returns a warning if the recording waited for a command that never came.
fn recording_never_began() -> Option<String> {
    let settings = with_control(|control| control.settings.session.clone());
    let command = match (&settings.control, settings.signal) {
        (Some(_), None) => "`start` was never written to the file in PROFILER_CONTROL",
        (None, Some(_)) => "the signal in PROFILER_SIGNAL never came",
        (Some(_), Some(_)) => {
            "`start` was never written to the file in PROFILER_CONTROL, nor did the signal in PROFILER_SIGNAL come"
        }
        (None, None) => return None,
    };
    let was_reported = || {
        let of_control = ["PROFILER_CONTROL", "PROFILER_SIGNAL"];
        let notices = diagnostics::notices();
        let is_about = |notice: &String| of_control.iter().any(|name| notice.starts_with(name));
        notices.iter().any(is_about)
    };
    // Without the feature there is another warning.
    let is_missing = cfg!(feature = "trace")
        && settings.trace.is_some()
        && !session::environment::was_started()
        && !was_reported();
    is_missing.then(|| format!("PROFILER_TRACE: nothing was recorded, since {command}"))
}
