//! For how long threads were on a processor.

use std::io::{self, Write};

use super::super::event_writer::Quoted;
use super::super::places::Places;
use super::TimelineWriter;
use crate::text::json::string;

/// The category of these counters.
const CATEGORY: &str = "on_processor";

impl<W: Write> TimelineWriter<'_, W> {
    /// Writes for each thread which part of the time it was on a processor, and ready for one, from one sample to the next. The last
    /// value says where the samples end.
    pub(super) fn write_processor(&mut self, places: &Places) -> io::Result<()> {
        let timeline = self.timeline;
        for of_thread in &timeline.processor {
            let (Some(place), Some(track)) = (
                places.of(of_thread.track),
                timeline.tracks.get(of_thread.track as usize),
            ) else {
                continue;
            };
            let name = string(&format!("processor of thread {} (%)", track.id));
            let mut write = |at: i64, running, ready| {
                let at = at.saturating_add(self.offset);
                let line = self
                    .events
                    .counter_of(CATEGORY, Quoted::new(&name), place, at);
                line.number("running", running).number("ready", ready).end()
            };
            let mut end = None;
            for span in of_thread.spans() {
                let [running, ready] = [span.running, span.ready].map(|ns| span.percent(ns));
                write(span.start, running, ready)?;
                end = Some(span.end);
            }
            if let Some(end) = end {
                write(end, 0.0, 0.0)?;
            }
        }
        Ok(())
    }
}
