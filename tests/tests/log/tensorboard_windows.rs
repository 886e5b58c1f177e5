//! Each window of a session stands in the log beside the scalars: a histogram of each name's times, and the table.
#![allow(clippy::float_cmp, reason = "counts are exact")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};

use profiler_runtime::log::{LogError, trace_handler};
use profiler_runtime::report::SliceKind;
use profiler_runtime::{
    Activity, Profile, ScalarLogger, Schedule, TensorBoardLogger, Trace, flush, init, scope,
    summary,
};
use profiler_tests::child;
use profiler_tests::event_files;
use profiler_tests::event_files::ReadHistogram;
use profiler_tests::full_disk;
use profiler_tests::gpu::{Gpu, driver};
use profiler_tests::stop;

type Outcome = Result<(), Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(59);

/// The expected log of a window: by tag, the milliseconds of the calls.
#[derive(Debug)]
struct Expected {
    step: u64,
    end: SystemTime,
    cpu_ms: BTreeMap<String, Vec<f64>>,
}

impl Expected {
    fn of(trace: &Trace) -> Self {
        let mut cpu_ms = BTreeMap::<String, Vec<f64>>::new();
        for event in trace.events() {
            let tag = summary().row(event.name()).map(|row| row.tag.clone());
            let times = cpu_ms.entry(format!("{}/cpu_ms/histogram", tag.unwrap_or_default()));
            times.or_default().push(event.cpu_ns() / 1e6);
        }
        Self {
            step: trace.step_num(),
            end: trace.start() + trace.duration(),
            cpu_ms,
        }
    }
}

#[track_caller]
fn assert_holds(read: &ReadHistogram, milliseconds: &[f64]) {
    let sum: f64 = milliseconds.iter().sum();
    assert_eq!(read.count, milliseconds.len() as f64, "{}", read.tag);
    assert!(
        (read.sum / sum - 1.0).abs() < 1e-9,
        "{}: {} for {sum}",
        read.tag,
        read.sum
    );
    let counted: f64 = read.buckets.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, read.count, "{}", read.tag);
}

#[test(measuring)]
fn each_window_has_a_histogram_of_each_name_and_a_table() -> Outcome {
    let dir = tempfile::tempdir()?;
    let board = Arc::new(TensorBoardLogger::new(dir.path())?);
    let (windows, told) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().wait(1).warmup(1).active(2).repeat(3))
        .on_trace_ready(trace_handler(&board))
        .on_trace_ready(move |trace| windows.send(Expected::of(trace)))
        .start()?;
    let odd = "board: `odd` ``` <b>\"größe\"</b> | 1";
    for step in 0..20_u64 {
        let train = scope!("board::train", log = board.clone(), global_step = step);
        for _ in 0..step {
            let _batch = scope!(odd);
        }
        drop(train);
        profile.step();
    }
    stop(&profile);

    // The handler has written all of it out.
    let mut file = event_files::only_file(dir.path());
    let windows: Vec<Expected> = told.try_iter().collect();
    let steps: Vec<u64> = windows.iter().map(|window| window.step).collect();
    assert_eq!(steps, [4, 8, 12]);
    for window in &windows {
        assert_eq!(window.cpu_ms.len(), 2, "{window:?}");
        let of_step = |step: i64| step.cast_unsigned() == window.step;
        let end = window
            .end
            .duration_since(SystemTime::UNIX_EPOCH)?
            .as_secs_f64();
        let found = file.histograms.iter().filter(|read| of_step(read.step));
        let found: BTreeMap<_, _> = found.map(|read| (read.tag.as_str(), read)).collect();
        assert!(
            found.keys().eq(window.cpu_ms.keys()),
            "{found:?} for {window:?}"
        );
        for (tag, milliseconds) in &window.cpu_ms {
            assert_holds(found[tag.as_str()], milliseconds);
            assert!((found[tag.as_str()].wall_time - end).abs() < 0.002, "{tag}");
        }
        let texts: Vec<_> = file
            .texts
            .iter()
            .filter(|read| of_step(read.step))
            .collect();
        let [table] = texts[..] else {
            panic!("one text: {texts:?}");
        };
        assert_eq!(table.tag, "key_averages");
        assert!(
            table.text.contains("board::train") && table.text.contains("`odd`"),
            "{}",
            table.text
        );
        let fence = "````\n";
        assert!(
            table.text.starts_with(fence) && table.text.ends_with(fence.trim_end()),
            "{}",
            table.text
        );
    }
    assert_eq!(file.histograms.len(), 6);
    assert_eq!(file.texts.len(), 3);

    assert_eq!(flush(PATIENCE).left, 0);
    file = event_files::only_file(dir.path());
    assert!(file.scalars.iter().map(|scalar| scalar.step).eq(0..20));
    // A histogram's tag is that of the scalars, and its kind: no tag has two kinds of data.
    assert!(
        file.scalars
            .iter()
            .all(|read| read.tag == "board::train/cpu_ms")
    );
    let histogram = "board::train/cpu_ms/histogram";
    assert!(file.histograms.iter().any(|read| read.tag == histogram));
    Ok(())
}

#[test(on = driver())]
fn gpu_times_have_histograms_of_their_own() -> Outcome {
    let _profiler = init()?;
    let dir = tempfile::tempdir()?;
    let board = Arc::new(TensorBoardLogger::new(dir.path())?);
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    for activities in [vec![Activity::Cpu, Activity::Cuda], vec![Activity::Cuda]] {
        let profile = Profile::builder()
            .activities(activities)
            .on_trace_ready(trace_handler(&board))
            .start()?;
        for microseconds in [10, 20, 70] {
            let _scope = scope!("board: on the gpu", stream = &stream);
            gpu.spin(&stream, microseconds * 1000);
        }
        drop(scope!("board: on the cpu", bypass = false));
        stream.synchronize()?;
        stop(&profile);
    }

    let file = event_files::only_file(dir.path());
    let cuda: Vec<_> = file
        .histograms
        .iter()
        .filter(|read| read.tag == "board: on the gpu/cuda_ms/histogram")
        .collect();
    assert_eq!(cuda.len(), 2);
    for read in cuda {
        assert_eq!(read.count, 3.0);
        assert!((read.sum - 0.1).abs() < 1e-6, "{}", read.sum);
        assert!((read.smallest - 0.01).abs() < 1e-6 && (read.largest - 0.07).abs() < 1e-6);
    }
    let cpu = file
        .histograms
        .iter()
        .filter(|read| read.tag.ends_with("/cpu_ms/histogram"));
    assert_eq!(cpu.count(), 2, "of the session that records CPU times");
    Ok(())
}

#[test(measuring)]
fn a_window_that_is_cut_short_takes_no_other_windows_place() -> Outcome {
    let dir = tempfile::tempdir()?;
    let board = Arc::new(TensorBoardLogger::new(dir.path())?);
    // Windows of three steps; nothing happens in the one that is open at the end, or a little.
    for leftover in [0, 1, 4] {
        let profile = Profile::builder()
            .schedule(Schedule::new().active(3))
            .on_trace_ready(trace_handler(&board))
            .start()?;
        for call in 0..6 + leftover {
            drop(scope!("board: step"));
            if call < 6 {
                profile.step();
            }
        }
        stop(&profile);
    }

    let file = event_files::only_file(dir.path());
    let steps: Vec<i64> = file.texts.iter().map(|read| read.step).collect();
    assert_eq!(steps, [3, 6, 3, 6, 7, 3, 6, 7]);
    assert!(file.histograms.iter().map(|read| read.step).eq(steps));
    let counts: Vec<f64> = file.histograms.iter().map(|read| read.count).collect();
    assert_eq!(counts, [3.0, 3.0, 3.0, 3.0, 1.0, 3.0, 3.0, 4.0]);
    Ok(())
}

#[test(measuring)]
fn a_window_waits_for_room_on_a_full_disk() -> Outcome {
    let Some(dir) = child::dir() else {
        return Ok(full_disk::passes()?);
    };
    let board = Arc::new(TensorBoardLogger::new(&dir)?);
    let ((), trace) = Profile::builder().run(|_| drop(scope!("board: full")));
    let trace = trace?;
    full_disk::limit_files(fs::metadata(board.path())?.len())?;
    let error = trace_handler(&board)(&trace).expect_err("there is no room");
    assert!(matches!(error, LogError::Io { .. }), "{error}");
    assert!(board.unsaved() > 0 && board.lost() == 0);
    let file = event_files::only_file(&dir);
    assert_eq!((file.histograms.len(), file.texts.len()), (0, 0));

    full_disk::limit_files(u64::MAX)?;
    board.flush()?;
    let file = event_files::only_file(&dir);
    assert_eq!((file.histograms.len(), file.texts.len()), (1, 1));
    Ok(())
}

/// Returns for each step of a window its number, and which part of it kernels ran, in percent, of which none overlap.
fn busy_by_step(trace: &Trace) -> Vec<(u64, f64)> {
    let line = trace.timeline();
    let busy_in = |from: i64, to: i64| {
        let kernels = line
            .slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::GpuWork);
        let inside = kernels.map(|kernel| {
            let end = kernel.start_ns + kernel.duration_ns;
            (end.min(to) - kernel.start_ns.max(from)).max(0)
        });
        100.0 * inside.sum::<i64>() as f64 / (to - from) as f64
    };
    let steps = line.steps.iter();
    steps
        .map(|step| (step.number, busy_in(step.start_ns, step.end_ns)))
        .collect()
}

#[test(on = driver().kernels())]
fn each_step_of_a_window_with_kernels_has_the_share_in_which_the_gpu_was_busy() -> Outcome {
    let _profiler = init()?;
    let dir = tempfile::tempdir()?;
    let board = Arc::new(TensorBoardLogger::new(dir.path())?);
    let gpu = Gpu::new(0);
    let stream = gpu.stream();
    let (windows, told) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(3).repeat(2))
        .kernels(true)
        .on_trace_ready(trace_handler(&board))
        .on_trace_ready(move |trace| windows.send(busy_by_step(trace)))
        .start()?;
    for step in 0..8 {
        {
            let _forward = scope!("forward");
            gpu.spin(&stream, 100_000 * (1 + step % 3));
        }
        stream.synchronize()?;
        std::thread::sleep(Duration::from_millis(1));
        profile.step();
    }
    stop(&profile);
    let expected: Vec<(u64, f64)> = told.try_iter().flatten().collect();
    let numbers: Vec<u64> = expected.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    assert!(expected.iter().any(|(_, busy)| *busy > 0.0), "{expected:?}");
    let file = event_files::only_file(dir.path());
    let of_tag = |tag: &str| -> Vec<(u64, f64)> {
        let scalars = file.scalars.iter().filter(|scalar| scalar.tag == tag);
        scalars
            .map(|scalar| (scalar.step.cast_unsigned(), f64::from(scalar.value)))
            .collect()
    };
    let (busy, idle) = (of_tag("gpu0/busy_percent"), of_tag("gpu0/idle_percent"));
    assert_eq!((busy.len(), idle.len()), (expected.len(), expected.len()));
    for (place, (number, percent)) in expected.into_iter().enumerate() {
        for (found, percent) in [(busy[place], percent), (idle[place], 100.0 - percent)] {
            assert_eq!(found.0, number);
            assert!((found.1 - percent).abs() < 0.001, "{found:?} {percent}");
        }
    }
    Ok(())
}
