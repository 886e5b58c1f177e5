//! Counters: GPU scopes in flight, memory in use.

use std::io::{self, Write};

use super::TraceWriter;
use super::event_writer::Quoted;
use crate::report::export::window::counters::memory_samples;

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
        Ok(())
    }
}
