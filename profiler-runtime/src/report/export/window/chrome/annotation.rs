//! The GPU time of a scope, as an annotation of its stream.

use std::io::{self, Write};

use super::event_writer::{EventWriter, Track};
use super::names::Names;
use crate::report::export::window::place::GpuSlice;

/// The GPU time of a scope, as it is drawn.
pub(super) struct Annotation {
    pub(super) measured: GpuSlice,
    /// The `External id` of the scope.
    pub(super) id: u64,
    pub(super) track: Track,
    pub(super) extent: (i64, i64),
    /// The length to write, which may be a little less than that of the extent.
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
        let (measured, (start, end)) = (self.measured, self.extent);
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
        if end - start != measured.length {
            event = event.signed("ns", measured.length);
        }
        names.with_full_name(event, name).end()
    }
}
