//! Time lines as Chrome traces.
//!
//! Traces of the running program are written by `window::chrome`, with everything that other tools look for. This one writes
//! what a time line has.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::ExportError;
use super::file::ExportFile;
use crate::report::text::json::string;
use crate::report::{
    GpuWork, GpuWorkKind, KernelLaunch, Launch, Slice, SliceKind, Timeline, Track, TrackKind,
};

impl Timeline {
    /// Writes the time line in Chrome's trace format, for Perfetto and `chrome://tracing`; compressed if the name ends with
    /// `.gz`.
    ///
    /// Each rank's process, and each device of it, is a process of the trace. Arrows lead from calls to their work on the
    /// GPU, from the call of CUDA that launched it if that is known. Shapes and memory of single scopes are left out.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::report::{Slice, SliceName, Timeline, Track};
    ///
    /// let mut name = SliceName::default();
    /// name.text = "load".into();
    /// let mut slice = Slice::default();
    /// slice.duration_ns = 1000;
    /// let mut timeline = Timeline::default();
    /// timeline.names.push(name);
    /// timeline.tracks.push(Track::default());
    /// timeline.slices.push(slice);
    /// let path = std::env::temp_dir().join(format!("line-{}.json", std::process::id()));
    /// timeline.export_chrome_trace(&path)?;
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let path = path.as_ref();
        let write = || {
            let mut file = ExportFile::create(path)?;
            write(self, &mut file)?;
            file.finish()
        };
        write().map_err(|source| ExportError::io(path, source))
    }
}

/// A process of the trace: the threads of a process, or the streams of one of its devices.
type ProcessKey = (Option<u64>, u64, Option<u32>);

/// Where the events of a track go.
#[derive(Clone, Copy)]
struct Place {
    process: usize,
    thread: usize,
}

fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    write!(
        out,
        "{{\"schemaVersion\":1,\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":{}",
        timeline.start_unix_ns
    )?;
    // As in PyTorch's traces, which are of one rank each.
    let mut ranks: Vec<u64> = timeline
        .tracks
        .iter()
        .filter_map(|track| track.rank)
        .collect();
    ranks.dedup();
    if let [rank] = ranks[..] {
        write!(out, ",\"distributedInfo\":{{\"rank\":{rank}}}")?;
    }
    write!(out, ",\"traceEvents\":[")?;
    let places = places(timeline);
    let mut events = Events {
        out,
        is_first: true,
    };
    events.describe(timeline, &places)?;
    for (index, slice) in timeline.slices.iter().enumerate() {
        let Some(place) = places.get(slice.track as usize) else {
            continue;
        };
        events.slice(timeline, slice, *place)?;
        if let Some((from, start_ns)) = launched_from(timeline, slice)
            && let Some(from) = places.get(from as usize)
        {
            events.arrow(index, (start_ns, *from), (slice.start_ns, *place))?;
        }
    }
    for launch in &timeline.launches {
        if let Some(place) = places.get(launch.track as usize) {
            events.launch(timeline, launch, *place)?;
        }
    }
    events.counters(timeline)?;
    write!(events.out, "\n]}}\n")
}

/// Returns the track and the start of what launched a slice on the GPU: the call of CUDA if it is known, or else the scope.
fn launched_from(timeline: &Timeline, slice: &Slice) -> Option<(u32, i64)> {
    if !is_on_gpu(slice) {
        return None;
    }
    let launch = slice
        .launch
        .and_then(|launch| timeline.launches.get(launch as usize));
    if let Some(launch) = launch.filter(|launch| launch.start_ns <= slice.start_ns) {
        return Some((launch.track, launch.start_ns));
    }
    let parent = timeline.slices.get(slice.parent? as usize)?;
    Some((parent.track, parent.start_ns))
}

const fn is_on_gpu(slice: &Slice) -> bool {
    matches!(slice.kind, SliceKind::GpuScope | SliceKind::GpuWork)
}

fn process_of(track: &Track) -> ProcessKey {
    let device = (track.kind == TrackKind::GpuStream).then(|| track.device.unwrap_or(0));
    (track.rank, track.process, device)
}

/// Numbers processes by rank, and threads by the order of the tracks: system ids may occur several times.
fn places(timeline: &Timeline) -> Vec<Place> {
    let keys = timeline.tracks.iter().map(|track| (process_of(track), 0));
    let mut numbers: BTreeMap<ProcessKey, usize> = keys.collect();
    for (number, place) in numbers.values_mut().enumerate() {
        *place = number + 1;
    }
    let tracks = timeline.tracks.iter().enumerate();
    tracks
        .map(|(thread, track)| Place {
            process: numbers.get(&process_of(track)).copied().unwrap_or(0),
            thread: thread + 1,
        })
        .collect()
}

struct Events<'o, W> {
    out: &'o mut W,
    is_first: bool,
}

impl<W: Write> Events<'_, W> {
    fn event(&mut self, event: &str) -> io::Result<()> {
        let separator = if self.is_first { "\n" } else { ",\n" };
        self.is_first = false;
        self.out.write_all(separator.as_bytes())?;
        self.out.write_all(event.as_bytes())
    }

    fn metadata(&mut self, kind: &str, place: Place, argument: &str) -> io::Result<()> {
        let Place { process, thread } = place;
        self.event(&format!(
            "{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{process},\"tid\":{thread},\"args\":{{{argument}}}}}"
        ))
    }

    /// Names the processes and the threads.
    fn describe(&mut self, timeline: &Timeline, places: &[Place]) -> io::Result<()> {
        let mut named = 0;
        let mut by_process: Vec<(&Track, Place)> =
            timeline.tracks.iter().zip(places.iter().copied()).collect();
        by_process.sort_by_key(|(_, place)| place.process);
        for (track, place) in by_process {
            if place.process > named {
                named = place.process;
                let name = match process_of(track).2 {
                    Some(device) => {
                        format!("{} GPU {device} {}", track.process_name, track.device_name)
                    }
                    None => track.process_name.clone(),
                };
                let name = string(name.trim());
                self.metadata("process_name", place, &format!("\"name\":{name}"))?;
                self.metadata(
                    "process_sort_index",
                    place,
                    &format!("\"sort_index\":{named}"),
                )?;
            }
            let name = string(&track.name);
            self.metadata("thread_name", place, &format!("\"name\":{name}"))?;
            let place_in_order = place.thread;
            self.metadata(
                "thread_sort_index",
                place,
                &format!("\"sort_index\":{place_in_order}"),
            )?;
        }
        Ok(())
    }

    fn slice(&mut self, timeline: &Timeline, slice: &Slice, place: Place) -> io::Result<()> {
        let work = slice.work.and_then(|work| timeline.work.get(work as usize));
        let category = match slice.kind {
            SliceKind::Call => "scope",
            SliceKind::FuturePoll => "poll",
            SliceKind::AsyncCall => "future",
            SliceKind::GpuScope => "gpu_user_annotation",
            SliceKind::GpuWork => work.map_or("kernel", category_of),
        };
        let arguments =
            work.map_or_else(String::new, |work| work_arguments(work, slice.duration_ns));
        let times = (slice.start_ns, slice.duration_ns);
        self.span(timeline, (category, slice.name), place, times, arguments)
    }

    fn launch(&mut self, timeline: &Timeline, launch: &Launch, place: Place) -> io::Result<()> {
        let name = timeline.names.get(launch.name as usize);
        let is_runtime = name.is_some_and(|name| name.text.starts_with("cuda"));
        let category = if is_runtime {
            "cuda_runtime"
        } else {
            "cuda_driver"
        };
        let arguments = format!("\"correlation\":{}", launch.correlation);
        let times = (launch.start_ns, launch.duration_ns);
        self.span(timeline, (category, launch.name), place, times, arguments)
    }

    /// Writes a slice with its category and name; `arguments` are members of a JSON object.
    fn span(
        &mut self,
        timeline: &Timeline,
        (category, name): (&str, u32),
        place: Place,
        (start_ns, duration_ns): (i64, i64),
        mut arguments: String,
    ) -> io::Result<()> {
        let name = timeline.names.get(name as usize);
        let text = name.map_or("", |name| &name.text);
        let location = name.map_or("", |name| &name.location);
        if !location.is_empty() {
            let comma = if arguments.is_empty() { "" } else { "," };
            arguments = format!("{arguments}{comma}\"location\":{}", string(location));
        }
        if !arguments.is_empty() {
            arguments = format!(",\"args\":{{{arguments}}}");
        }
        self.event(&format!(
            "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}{arguments}}}",
            string(text),
            place.process,
            place.thread,
            microseconds(start_ns),
            microseconds(duration_ns.max(0))
        ))
    }

    fn arrow(&mut self, id: usize, from: (i64, Place), to: (i64, Place)) -> io::Result<()> {
        for (phase, (at, place)) in [("\"s\"", from), ("\"f\",\"bp\":\"e\"", to)] {
            self.event(&format!(
                "{{\"ph\":{phase},\"id\":{id},\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":{},\"tid\":{},\"ts\":{}}}",
                place.process,
                place.thread,
                microseconds(at)
            ))?;
        }
        Ok(())
    }

    fn counters(&mut self, timeline: &Timeline) -> io::Result<()> {
        for counter in &timeline.counters {
            let name = string(&match counter.device {
                Some(_) => counter.title(),
                None => counter.name.clone(),
            });
            let unit = string(if counter.unit.is_empty() {
                "count"
            } else {
                &counter.unit
            });
            for (at, value) in counter
                .samples
                .iter()
                .filter(|(_, value)| value.is_finite())
            {
                self.event(&format!(
                    "{{\"ph\":\"C\",\"name\":{name},\"pid\":0,\"ts\":{},\"args\":{{{unit}:{value}}}}}",
                    microseconds(*at)
                ))?;
            }
        }
        Ok(())
    }
}

const fn category_of(work: &GpuWork) -> &'static str {
    match work.kind {
        GpuWorkKind::Kernel(_) => "kernel",
        GpuWorkKind::Memcpy(_) => "gpu_memcpy",
        GpuWorkKind::Memset(_) => "gpu_memset",
        GpuWorkKind::Synchronization(_) => "cuda_sync",
    }
}

/// Returns the arguments of work that took `ns` nanoseconds, as members of a JSON object with PyTorch's names.
fn work_arguments(work: &GpuWork, ns: i64) -> String {
    let own = match work.kind {
        GpuWorkKind::Kernel(launch) => kernel_arguments(launch),
        GpuWorkKind::Memcpy(copy) => byte_arguments(copy.bytes, ns),
        GpuWorkKind::Memset(fill) => byte_arguments(fill.bytes, ns),
        GpuWorkKind::Synchronization(_) => String::new(),
    };
    let GpuWork {
        device,
        context,
        stream,
        correlation,
        ..
    } = work;
    format!(
        "{own}\"device\":{device},\"context\":{context},\"stream\":{stream},\"correlation\":{correlation}"
    )
}

fn kernel_arguments(launch: KernelLaunch) -> String {
    let KernelLaunch {
        grid,
        block,
        registers,
        static_shared_bytes,
        dynamic_shared_bytes,
    } = launch;
    let shared = u64::from(static_shared_bytes) + u64::from(dynamic_shared_bytes);
    format!(
        "\"grid\":{grid:?},\"block\":{block:?},\"registers per thread\":{registers},\"shared memory\":{shared},"
    )
}

/// Bytes in a nanosecond are gigabytes in a second.
fn byte_arguments(bytes: u64, ns: i64) -> String {
    let rate = if ns > 0 {
        format!(",\"memory bandwidth (GB/s)\":{}", bytes as f64 / ns as f64)
    } else {
        String::new()
    };
    format!("\"bytes\":{bytes}{rate},")
}

/// Formats nanoseconds as microseconds, with all digits.
fn microseconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1_000, ns % 1_000)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::{Counter, SliceName};

    fn line() -> Timeline {
        let name = |text: &str| SliceName {
            text: text.into(),
            ..SliceName::default()
        };
        let track = |kind, rank, name: &str| Track {
            kind,
            rank: Some(rank),
            process: 7,
            process_name: format!("rank {rank}"),
            name: name.to_owned(),
            ..Track::default()
        };
        let slice = |track, name, start_ns, kind, parent| Slice {
            track,
            name,
            start_ns,
            duration_ns: 1_500,
            kind,
            parent,
            ..Slice::default()
        };
        Timeline {
            start_unix_ns: 1_700_000_000_000_000_001,
            names: vec![
                name("a \"quoted\" name"),
                name("kernel"),
                name("cuLaunchKernel"),
            ],
            tracks: vec![
                track(TrackKind::HostThread, 0, "main"),
                track(TrackKind::GpuStream, 0, "stream 7"),
                track(TrackKind::HostThread, 1, "main"),
            ],
            slices: vec![
                slice(0, 0, 1_234_567, SliceKind::Call, None),
                slice(2, 0, -20, SliceKind::Call, None),
                Slice {
                    work: Some(0),
                    launch: Some(0),
                    ..slice(1, 1, 1_235_000, SliceKind::GpuWork, Some(0))
                },
            ],
            work: vec![GpuWork {
                kind: GpuWorkKind::Kernel(KernelLaunch {
                    grid: [4, 2, 1],
                    ..KernelLaunch::default()
                }),
                ..GpuWork::default()
            }],
            launches: vec![Launch {
                name: 2,
                start_ns: 1_234_600,
                duration_ns: 300,
                parent: Some(0),
                ..Launch::default()
            }],
            counters: vec![Counter {
                name: "memory".to_owned(),
                unit: "bytes".to_owned(),
                samples: vec![(5, 1.5), (9, f64::NAN)],
                ..Counter::default()
            }],
            ..Timeline::default()
        }
    }

    fn events() -> Vec<Value> {
        let mut text = Vec::new();
        write(&line(), &mut text).expect("it is written");
        let whole: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(
            whole["baseTimeNanoseconds"].as_i64(),
            Some(line().start_unix_ns)
        );
        whole["traceEvents"].as_array().expect("a list").clone()
    }

    fn of_phase(phase: &str) -> Vec<Value> {
        events()
            .into_iter()
            .filter(|event| event["ph"] == phase)
            .collect()
    }

    #[test]
    fn each_slice_has_its_name_its_time_and_the_process_of_its_rank() {
        let slices = of_phase("X");
        assert_eq!(slices.len(), 4);
        assert_eq!(slices[0]["name"], "a \"quoted\" name");
        assert_eq!(
            (&slices[0]["ts"], &slices[0]["dur"]),
            (&1234.567.into(), &1.5.into())
        );
        assert_eq!(slices[1]["ts"], -0.02);
        let processes: Vec<_> = slices.iter().map(|slice| slice["pid"].as_u64()).collect();
        assert_eq!(
            processes,
            [Some(1), Some(3), Some(2), Some(1)],
            "rank 0, rank 1, the GPU of rank 0, a launch on rank 0"
        );
        assert_eq!(slices[2]["cat"], "kernel");
        assert_eq!(slices[2]["args"]["grid"], serde_json::json!([4, 2, 1]));
        assert_eq!(slices[3]["cat"], "cuda_driver");
    }

    #[test]
    fn an_arrow_leads_from_the_launch_to_its_work() {
        let (starts, ends) = (of_phase("s"), of_phase("f"));
        assert_eq!((starts.len(), ends.len()), (1, 1));
        assert_eq!(starts[0]["id"], ends[0]["id"]);
        assert_eq!((&starts[0]["pid"], &ends[0]["pid"]), (&1.into(), &2.into()));
        assert_eq!(starts[0]["ts"], 1234.6);
    }

    #[test]
    fn processes_and_threads_have_names_and_counters_only_finite_values() {
        let names = of_phase("M");
        let names: Vec<_> = names
            .iter()
            .filter_map(|event| event["args"]["name"].as_str())
            .collect();
        assert_eq!(
            names,
            [
                "rank 0",
                "main",
                "rank 0 GPU 0",
                "stream 7",
                "rank 1",
                "main"
            ]
        );
        let counters = of_phase("C");
        assert_eq!(counters.len(), 1);
        assert_eq!(counters[0]["args"]["bytes"], 1.5);
    }
}
