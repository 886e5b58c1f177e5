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
use crate::report::{Slice, SliceKind, Timeline, Track, TrackKind};

impl Timeline {
    /// Writes the time line in Chrome's trace format, for Perfetto and `chrome://tracing`; compressed if the name ends with
    /// `.gz`.
    ///
    /// Each rank's process, and each device of it, is a process of the trace. Arrows lead from calls to their work on the
    /// GPU. Shapes and memory of single scopes are left out.
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
        let parent = slice
            .parent
            .and_then(|parent| timeline.slices.get(parent as usize));
        if let Some(parent) = parent.filter(|_| is_on_gpu(slice))
            && let Some(from) = places.get(parent.track as usize)
        {
            events.arrow(index, (parent.start_ns, *from), (slice.start_ns, *place))?;
        }
    }
    events.counters(timeline)?;
    write!(events.out, "\n]}}\n")
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
        let name = timeline.names.get(slice.name as usize);
        let text = name.map_or("", |name| &name.text);
        let location = name.map_or("", |name| &name.location);
        let category = match slice.kind {
            SliceKind::Call => "scope",
            SliceKind::FuturePoll => "poll",
            SliceKind::AsyncCall => "future",
            SliceKind::GpuScope => "gpu_user_annotation",
            SliceKind::GpuWork => "kernel",
        };
        let arguments = if location.is_empty() {
            String::new()
        } else {
            format!(",\"args\":{{\"location\":{}}}", string(location))
        };
        self.event(&format!(
            "{{\"ph\":\"X\",\"cat\":\"{category}\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}{arguments}}}",
            string(text),
            place.process,
            place.thread,
            microseconds(slice.start_ns),
            microseconds(slice.duration_ns.max(0))
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
            names: vec![name("a \"quoted\" name"), name("kernel")],
            tracks: vec![
                track(TrackKind::HostThread, 0, "main"),
                track(TrackKind::GpuStream, 0, "stream 7"),
                track(TrackKind::HostThread, 1, "main"),
            ],
            slices: vec![
                slice(0, 0, 1_234_567, SliceKind::Call, None),
                slice(2, 0, -20, SliceKind::Call, None),
                slice(1, 1, 1_235_000, SliceKind::GpuWork, Some(0)),
            ],
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
        assert_eq!(slices.len(), 3);
        assert_eq!(slices[0]["name"], "a \"quoted\" name");
        assert_eq!(
            (&slices[0]["ts"], &slices[0]["dur"]),
            (&1234.567.into(), &1.5.into())
        );
        assert_eq!(slices[1]["ts"], -0.02);
        let processes: Vec<_> = slices.iter().map(|slice| slice["pid"].as_u64()).collect();
        assert_eq!(
            processes,
            [Some(1), Some(3), Some(2)],
            "rank 0, rank 1, the GPU of rank 0"
        );
    }

    #[test]
    fn an_arrow_leads_from_the_call_to_its_work() {
        let (starts, ends) = (of_phase("s"), of_phase("f"));
        assert_eq!((starts.len(), ends.len()), (1, 1));
        assert_eq!(starts[0]["id"], ends[0]["id"]);
        assert_eq!((&starts[0]["pid"], &ends[0]["pid"]), (&1.into(), &2.into()));
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
