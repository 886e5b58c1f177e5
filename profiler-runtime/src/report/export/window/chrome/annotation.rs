//! The GPU time of a scope, as an annotation of its stream.

use std::io::{self, Write};

use super::names::Names;
use crate::report::export::chrome::event_writer::{EventWriter, Track};
use crate::report::export::window::place::GpuSlice;

/// The GPU time of a scope, as it is drawn.
pub(super) struct Annotation {
    pub(super) measured: GpuSlice,
    /// How long the scope took on the GPU itself.
    pub(super) self_ns: i64,
    /// The `External id` of the scope.
    pub(super) id: u64,
    pub(super) track: Track,
    pub(super) start: i64,
    /// The length to write, which may be a little less than what it took.
    pub(super) length: i64,
}

impl Annotation {
    /// Writes it; `name` is the number of the scope's name.
    pub(super) fn write<W: Write>(
        self,
        events: &mut EventWriter<W>,
        names: &Names,
        name: u32,
    ) -> io::Result<()> {
        let (measured, start) = (self.measured, self.start);
        let quoted = names.get(name);
        let event = events.slice(
            "gpu_user_annotation",
            quoted,
            self.track,
            start,
            self.length,
        );
        let mut event = event
            .whole("External id", self.id)
            .signed("uncertainty_ns", measured.uncertainty);
        if (start - measured.start).abs() > measured.uncertainty {
            event = event.signed("moved_ns", start - measured.start);
        }
        // Readers compute both from the lengths of slices otherwise.
        if self.length != measured.length {
            event = event.signed("ns", measured.length);
        }
        event = event.signed("self_ns", self.self_ns);
        names.with_full_name(event, name).end()
    }
}
