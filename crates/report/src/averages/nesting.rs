//! Finding outermost calls.

/// The number of open calls of one kind at a point of a walk, in total and on each stream.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenCalls {
    calls: u32,
    streams: Vec<(u32, u32)>,
}

impl OpenCalls {
    /// Enters a call. Returns `true` if it is outermost.
    pub(super) fn enter(&mut self) -> bool {
        self.calls += 1;
        self.calls == 1
    }

    /// Enters the GPU side of a call. Returns `true` if it is outermost on its stream.
    pub(super) fn enter_stream(&mut self, stream: u32) -> bool {
        if let Some((_, calls)) = self.streams.iter_mut().find(|(known, _)| *known == stream) {
            *calls += 1;
            return *calls == 1;
        }
        self.streams.push((stream, 1));
        true
    }

    /// Leaves a call. Returns `true` if it was outermost.
    pub(super) fn leave(&mut self, stream: Option<u32>) -> bool {
        self.calls = self.calls.saturating_sub(1);
        let known = self
            .streams
            .iter_mut()
            .find(|(known, _)| Some(*known) == stream);
        if let Some((_, calls)) = known {
            *calls = calls.saturating_sub(1);
        }
        self.calls == 0
    }
}
