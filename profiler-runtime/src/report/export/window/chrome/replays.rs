//! Replays of CUDA graphs.

use std::io::{self, Write};

use super::TraceWriter;
use crate::report::export::window::whole;

impl<W: Write> TraceWriter<'_, W> {
    /// The time of a replay is not known; write the time at which it was noticed.
    pub(super) fn write_replays(&mut self) -> io::Result<()> {
        if self.trace.replays.is_empty() {
            return Ok(());
        }
        let track = self.tracks.replays();
        for replay in &self.trace.replays {
            let at = self.times.of_ticks(replay.cpu_end);
            let name = self.names.get(replay.name);
            let event = self.events.instant("replay", name, track, at);
            let event = self.names.with_full_name(event, replay.name);
            event
                .signed("ns", whole(replay.ns))
                .signed("self_ns", whole(replay.own))
                .text("stream", &replay.stream_key.to_string())
                .end()?;
        }
        Ok(())
    }
}
