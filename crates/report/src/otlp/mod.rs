//! Time lines as OpenTelemetry's spans: OTLP in JSON, as its file exporter writes it.
//!
//! <https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/> states the format: each line is one request. In
//! OTLP's JSON, ids are hexadecimal and integers of 64 bits are strings. Slices are written one by one, so that memory is
//! needed for their ids only.

mod attributes;
mod ids;
mod parents;
mod span;

use std::io::{self, Write};
use std::path::Path;

use self::attributes::Attributes;
use self::ids::Ids;
use self::span::Span;
use super::ExportError;
use super::file::ExportFile;
use crate::text::json::string;
use crate::{Timeline, Track};

/// The most spans of a line. A collector reads a line as a whole.
const SPANS_OF_LINE: usize = 512;

impl Timeline {
    /// Writes the time line as OpenTelemetry's spans: lines of OTLP in JSON, which the collector's receiver
    /// `otlpjsonfile` reads. Compressed if the name ends with `.gz`; the usual ending is `.otlp.jsonl`. The file appears
    /// under its name when it is complete, and replaces a file of that name.
    ///
    /// | in the file | meaning |
    /// |---|---|
    /// | a trace | a step, or everything outside of steps |
    /// | a span with `profiler.kind` `call`, `future`, `poll` | a scope, a future from its first poll to its end, one of its polls |
    /// | `gpu_scope`, `gpu_work` | the GPU time of a scope; a kernel, a copy or other work |
    /// | `step`, `window` | a step; the whole time line, with what is missing in it |
    /// | a link | leads from GPU times to the scope that launched them, where that is not the parent |
    ///
    /// The parent of a GPU time is the scope that launched it if that was open as long. Otherwise it is the GPU time
    /// around it on its stream or the step, if these contain it: a span that outlives its parent is drawn across what
    /// follows. Spans without a parent begin beside that of their step.
    /// Calls of CUDA that launched work are left out.
    ///
    /// A span takes some 600 bytes, uncompressed: export windows of few steps. A time line has the same ids
    /// whenever it is written.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_report::{Slice, SliceName, Timeline, Track};
    ///
    /// let mut name = SliceName::default();
    /// name.text = "load".into();
    /// let mut slice = Slice::default();
    /// slice.duration_ns = 1000;
    /// let mut timeline = Timeline::default();
    /// timeline.names.push(name);
    /// timeline.tracks.push(Track::default());
    /// timeline.slices.push(slice);
    /// let path = std::env::temp_dir().join(format!("line-{}.otlp.jsonl", std::process::id()));
    /// timeline.export_otlp(&path)?;
    /// assert!(std::fs::read_to_string(&path)?.contains(r#""name":"load""#));
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_otlp(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let path = path.as_ref();
        let write = || {
            let mut file = ExportFile::create(path)?;
            write(self, &mut file)?;
            file.finish()
        };
        write().map_err(|source| ExportError::io(path, source))
    }
}

fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let ids = Ids::of(timeline);
    let mut lines = Lines::new(out);
    let window = std::iter::once(Span::of_window(timeline, &ids));
    let steps = (0..timeline.steps.len()).map(|step| Span::of_step(timeline, &ids, step));
    let first = timeline.tracks.first();
    for span in window.chain(steps) {
        lines.add(timeline, first, &span)?;
    }
    let slices = timeline.slices.iter().enumerate();
    for (index, slice) in slices.filter(|(_, slice)| slice.is_placed()) {
        let track = timeline.tracks.get(slice.track as usize);
        lines.add(
            timeline,
            track,
            &Span::of_slice(timeline, &ids, index, slice),
        )?;
    }
    lines.end()
}

/// The process that spans belong to.
type ProcessKey = (Option<u64>, u64);

/// The lines of a file, each with the spans of one process.
struct Lines<'w, W> {
    out: &'w mut W,
    /// The process of the open line, and how many spans it has.
    open: Option<(ProcessKey, usize)>,
}

impl<'w, W: Write> Lines<'w, W> {
    const fn new(out: &'w mut W) -> Self {
        Self { out, open: None }
    }

    fn add(&mut self, timeline: &Timeline, track: Option<&Track>, span: &Span) -> io::Result<()> {
        let process = track.map_or((None, 0), |track| (track.rank, track.process));
        let before = match self.open {
            Some((open, spans)) if open == process && spans < SPANS_OF_LINE => Some(spans),
            _ => None,
        };
        if let Some(spans) = before {
            self.open = Some((process, spans + 1));
            self.out.write_all(b",")?;
        } else {
            self.end()?;
            self.begin(timeline, track)?;
            self.open = Some((process, 1));
        }
        self.out.write_all(span.to_json().as_bytes())
    }

    fn begin(&mut self, timeline: &Timeline, track: Option<&Track>) -> io::Result<()> {
        let process_name = track.map_or("", |track| &track.process_name);
        let service = [process_name, &timeline.title, "unknown_service"];
        let service = service.into_iter().find(|name| !name.is_empty());
        let mut attributes = Attributes::default();
        attributes.text("service.name", service.unwrap_or_default());
        if let Some(track) = track {
            attributes.number("process.pid", track.process);
            attributes.optional("profiler.rank", track.rank);
        }
        write!(
            self.out,
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":{}}},\"scopeSpans\":[{{\"scope\":{{\"name\":\"profiler-runtime\",\
             \"version\":{}}},\"spans\":[",
            attributes.to_json(),
            string(env!("CARGO_PKG_VERSION"))
        )
    }

    /// Ends the open line, if there is one.
    fn end(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some(_) => self.out.write_all(b"]}]}]}\n"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
