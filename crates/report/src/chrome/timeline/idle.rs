//! Why devices were idle.

use std::io::{self, Write};

use super::super::event_writer::Quoted;
use super::super::places::{Places, UNKNOWN as UNKNOWN_DEVICE};
use super::{TimelineWriter, UNKNOWN, with_name};
use crate::idle::{CATEGORY, Label};
use crate::text::json::string;

impl<W: Write> TimelineWriter<'_, W> {
    /// Writes why each device was idle, on a track of the device. It follows from the rest of the file, so readers of the time
    /// line leave it out.
    pub(super) fn write_idle(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        if self.on_gpu.iter().next().is_none() {
            return Ok(());
        }
        for device in &timeline.gpu_idle().devices {
            let reasons = device.reasons(timeline);
            if reasons.is_empty() {
                continue;
            }
            let ordinal = device.device.unwrap_or(UNKNOWN_DEVICE);
            let process = places.device(device.rank, ordinal);
            let place = places.further_of_device(process, device.rank, device.reasons_title());
            for reason in reasons {
                let start = reason.start_ns.saturating_add(self.offset);
                let length = reason.end_ns.saturating_sub(reason.start_ns);
                let (text, known) = match reason.label {
                    Label::Name(name) => (String::new(), self.names.get(name as usize)),
                    Label::Text(text) => (string(text), None),
                };
                let short = match reason.label {
                    Label::Name(_) => known.map_or(UNKNOWN, |name| &name.short),
                    Label::Text(_) => &text,
                };
                let line = self
                    .events
                    .slice(CATEGORY, Quoted::new(short), place, start, length);
                let mut line = with_name(line, known).rank(device.rank);
                let function = reason
                    .function
                    .and_then(|name| self.names.get(name as usize));
                if let Some(function) = function {
                    line = line.quoted("function", function.whole());
                }
                line.end()?;
            }
        }
        Ok(())
    }
}
