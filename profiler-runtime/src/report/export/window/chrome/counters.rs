//! Counters: GPU scopes in flight, memory in use, samples of the devices.

use std::io::{self, Write};

use super::TraceWriter;
use crate::report::export::chrome::event_writer::Quoted;
use crate::report::export::window::counters::memory_samples;
use crate::report::export::window::gpu_counters::gpu_counters;
use crate::report::text::json::string;

impl<W: Write> TraceWriter<'_, W> {
    /// Perfetto names a counter after the event and the key.
    pub(super) fn write_counters(&mut self) -> io::Result<()> {
        let (pid, times, events) = (self.tracks.host, self.times, &mut self.events);
        for (at, count) in self.in_flight.samples() {
            let counter = events.counter(Quoted::new(r#""GPU""#), pid, at);
            counter.signed("scopes in flight", count).end()?;
        }
        let memory = memory_samples(self.trace, self.extent, |event| {
            times.of_ticks(event.record().end())
        });
        for (at, memory) in memory {
            let counter = events.counter(Quoted::new(r#""host memory""#), pid, at);
            counter.whole("bytes", memory.host_total).end()?;
            if let (Some(used), Some(reserved)) = (memory.device_total, memory.device_reserved) {
                let counter = events.counter(Quoted::new(r#""CUDA memory""#), pid, at);
                counter
                    .whole("bytes", used)
                    .whole("reserved", reserved)
                    .end()?;
            }
        }
        for counter in gpu_counters(self.trace, self.extent, |at| times.of_unix(at)) {
            let name = string(&counter.title());
            let unit = if counter.unit.is_empty() {
                "value"
            } else {
                &counter.unit
            };
            for (at, value) in &counter.samples {
                let event = events.counter(Quoted::new(&name), pid, *at);
                event.number(unit, *value).end()?;
            }
        }
        Ok(())
    }
}
