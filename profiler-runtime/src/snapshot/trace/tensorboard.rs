//! Windows of a session in a TensorBoard log, as histograms, scalars of steps and a text.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use profiler_log::{LogError, Scalar, ScalarLogger, TensorBoardLogger};
use profiler_report::{TableOptions, TimeSource};

use crate::session::Trace;

/// The tag of the table.
const TABLE: &str = "key_averages";

/// The end of the tags of histograms. `TensorBoard` shows only one kind of data under a tag of a run: if histograms had
/// the tags of the scalars, one of the two would be missing.
const HISTOGRAM: &str = "histogram";

/// The width of the table in characters: that of a text card in a window of 1,600 pixels, whatever the terminal is.
const WIDTH: usize = 130;

/// The times of the calls of one name, in milliseconds.
#[derive(Default)]
struct Samples {
    cpu: Vec<f64>,
    cuda: Vec<f64>,
}

/// Returns a handler for [`on_trace_ready`](crate::session::ProfileBuilder::on_trace_ready) that writes each window to a
/// TensorBoard log, beside the scalars.
///
/// For each name of the window it writes histograms of the times of its calls in milliseconds. Their tags are those
/// of the scalars, followed by `/histogram`: `Trainer/forward/cpu_ms/histogram` and, if the name has GPU times,
/// `Trainer/forward/cuda_ms/histogram`. The table of [`key_averages`](Trace::key_averages) is written as the text
/// `key_averages`, with full names and a unit in each cell. The step is the window's [`step_num`](Trace::step_num), or
/// one more if the window was cut short; the wall time is the end of the window. The samples of devices that the
/// session took are scalars with their own times, such as `gpu0/power_w`; their steps count the samples. If kernels were
/// recorded, the scalars `gpu0/busy_percent` and `gpu0/idle_percent` say for each step of the window which part of its
/// recorded time the device was busy and idle, by the rules of [`GpuIdle`](crate::report::GpuIdle); their step is the
/// number of the step, and their time its end. A window without scopes writes nothing; any other window is flushed.
///
/// Give simultaneous sessions separate loggers with separate folders: `TensorBoard` discards earlier values of a
/// tag when its step goes back.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use profiler_runtime::log::trace_handler;
/// use profiler_runtime::{Profile, Schedule, TensorBoardLogger, scope};
///
/// # let dir = std::env::temp_dir().join(format!("tensorboard-window-{}", std::process::id()));
/// let board = Arc::new(TensorBoardLogger::new(&dir)?);
/// let profile = Profile::builder()
///     .schedule(Schedule::new().wait(1).warmup(1).active(3))
///     .on_trace_ready(trace_handler(&board))
///     .start()?;
/// for _batch in 0..10 {
///     let _scope = scope!("train");
///     profile.step();
/// }
/// profile.stop();
/// assert!(profile.wait(Duration::from_secs(10)));
/// # drop(board);
/// # std::fs::remove_dir_all(dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn trace_handler(
    board: &Arc<TensorBoardLogger>,
) -> impl Fn(&Trace) -> Result<(), LogError> + Send + Sync + use<> {
    let board = Arc::clone(board);
    let samples_so_far = AtomicU64::new(0);
    move |trace| log(&board, trace, &samples_so_far)
}

/// Writes a window to the log and flushes it. If the log refuses a value, the others are still written; returns the
/// first error.
fn log(
    board: &TensorBoardLogger,
    trace: &Trace,
    samples_so_far: &AtomicU64,
) -> Result<(), LogError> {
    if trace.is_empty() && trace.replays.is_empty() {
        return Ok(());
    }
    let (step, end) = (step_of(trace), trace.start() + trace.duration());
    let mut outcome = Ok(());
    for (name, samples) in samples(trace) {
        let tag = tag_of(trace, name);
        let times = [
            (TimeSource::Cpu, samples.cpu),
            (TimeSource::Cuda, samples.cuda),
        ];
        for (source, values) in times {
            if !values.is_empty() {
                let tag = format!("{}/{HISTOGRAM}", source.tag(tag));
                outcome = outcome.and(board.add_histogram_at(&tag, values, step, end));
            }
        }
    }
    outcome
        .and(add_table(board, trace, step, end))
        .and(add_gpu_samples(board, trace, samples_so_far))
        .and(add_steps(board, trace))
        .and(board.flush())
}

/// Adds the samples of devices that were taken while the window was open. The first step follows the last one of the
/// window before.
fn add_gpu_samples(
    board: &TensorBoardLogger,
    trace: &Trace,
    samples_so_far: &AtomicU64,
) -> Result<(), LogError> {
    let window = trace.start()..=trace.start() + trace.duration();
    let first = samples_so_far.load(Relaxed);
    let mut outcome = Ok(());
    for (device, samples) in trace.gpu_samples() {
        let samples = samples.iter();
        let inside = samples.filter(|sample| window.contains(&sample.wall_time()));
        for (step, sample) in (first..).zip(inside) {
            samples_so_far.fetch_max(step + 1, Relaxed);
            for (tag, value) in sample.scalars(device) {
                let scalar = Scalar::new(&tag, value, step, sample.wall_time());
                outcome = outcome.and(board.add(&scalar));
            }
        }
    }
    outcome
}

/// Adds how busy each device was in each step, if kernels were recorded.
fn add_steps(board: &TensorBoardLogger, trace: &Trace) -> Result<(), LogError> {
    if !trace.has_kernels() || trace.steps.is_empty() {
        return Ok(());
    }
    let line = trace.timeline();
    let idle = line.gpu_idle();
    let mut outcome = Ok(());
    for step in &line.steps {
        let end = u64::try_from(step.end_ns).unwrap_or_default();
        let end = trace.start() + Duration::from_nanos(end);
        for device in &idle.devices {
            let times = device.within(step.start_ns, step.end_ns);
            let Some(busy) = times.busy_share() else {
                continue;
            };
            let ordinal = device
                .device
                .map_or_else(String::new, |ordinal| ordinal.to_string());
            for (state, share) in [("busy", busy), ("idle", 1.0 - busy)] {
                let tag = format!("gpu{ordinal}/{state}_percent");
                let scalar = Scalar::new(&tag, 100.0 * share, step.number, end);
                outcome = outcome.and(board.add(&scalar));
            }
        }
    }
    outcome
}

/// Returns the step of a window. A window that was cut short gets the next step, because the window before it has the
/// current one.
fn step_of(trace: &Trace) -> u64 {
    trace.step_num() + u64::from(trace.truncation().cut_short)
}

/// Returns the times by name id, which is the order of first use.
fn samples(trace: &Trace) -> BTreeMap<u32, Samples> {
    let mut names = BTreeMap::<u32, Samples>::new();
    for event in trace.events() {
        let samples = names.entry(event.record().name).or_default();
        if event.has_cpu() {
            samples.cpu.push(event.cpu_ns() / 1e6);
        }
        samples.cuda.extend(event.gpu().map(|gpu| gpu.ns / 1e6));
    }
    for replay in trace.replays.iter().filter(|replay| replay.loss.is_none()) {
        names
            .entry(replay.name)
            .or_default()
            .cuda
            .push(replay.ns / 1e6);
    }
    names
}

fn tag_of(trace: &Trace, name: u32) -> &str {
    let name = trace.names.get(name as usize);
    name.map_or("(unknown)", |name| &name.tag)
}

fn add_table(
    board: &TensorBoardLogger,
    trace: &Trace,
    step: u64,
    end: SystemTime,
) -> Result<(), LogError> {
    let table = TableOptions::new().width(WIDTH).note_limit(None);
    let text = code_block(&trace.key_averages().table(&table));
    board.add_text_at(TABLE, &text, step, end)
}

/// Formats text so that Markdown leaves it unchanged, whatever names are in it.
fn code_block(text: &str) -> String {
    let ticks = text.split(|letter| letter != '`').map(str::len).max();
    let fence = "`".repeat(ticks.unwrap_or_default().max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::code_block;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(code_block("a\n"), "```\na\n```");
        assert_eq!(code_block("a ```` b ` c"), "`````\na ```` b ` c\n`````");
    }
}
