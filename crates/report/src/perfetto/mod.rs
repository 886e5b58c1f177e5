//! Time lines in Perfetto's own format, protobuf messages.
//!
//! Compared with JSON, a scope takes a quarter of the bytes and a GPU scope a tenth, and times are whole nanoseconds. The
//! messages are written by hand: they are few, and their field numbers never change.
//!
//! Memory is needed for the order of the slices and for the arrows, some ten bytes for each slice. Packets are written one by
//! one: events of a sequence come in the order of their times, because each time is written as the difference to the one
//! before.

mod event;
mod fields;
mod layout;
mod packets;
mod slices;
mod tracks;
mod work;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::path::Path;

use self::layout::Layout;
use self::packets::Packets;
use self::slices::EventWriter;
use self::tracks::Tracks;
use super::ExportError;
use super::file::ExportFile;
use crate::Timeline;

impl Timeline {
    /// Writes the time line for Perfetto (<https://ui.perfetto.dev>) in its own format; compressed if the name ends with
    /// `.gz`. The usual ending is `.pftrace`. The file appears under its name when it is complete, and replaces a file of
    /// that name.
    ///
    /// | in the trace | meaning |
    /// |---|---|
    /// | a slice of a thread | a scope, or a poll of a future |
    /// | a slice of `futures N` | a future, from its first poll to its end |
    /// | a slice of a stream | the GPU time of a scope; it contains those of scopes inside |
    /// | a slice of a stream's kernels and copies | what ran there, with its launch parameters or its bytes |
    /// | inside a scope, a slice of the category `launch` | the call of CUDA that launched work |
    /// | an arrow | leads from a scope to its GPU time, from a parent to its children elsewhere, and from a launch to its work |
    /// | a slice of `idle because, GPU N` | why the device was idle: the function that it waited for, a launch call, or what is not known |
    /// | a slice of `steps` | a step |
    /// | a mark on `missing` | scopes or GPU times that are missing, and why |
    ///
    /// Slices of a function show the end of its path. Its whole name and its source location are in the arguments
    /// `source.function_name` and `source.file_name`. Slices that would cross others of their track are on a track below
    /// it.
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
    /// let path = std::env::temp_dir().join(format!("line-{}.pftrace", std::process::id()));
    /// timeline.export_perfetto(&path)?;
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_perfetto(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let path = path.as_ref();
        let write = || write_timeline(self, ExportFile::create(path)?)?.finish();
        write().map_err(|source| ExportError::io(path, source))
    }
}

/// Writes all packets. Descriptions of tracks come before the events on them.
fn write_timeline<W: Write>(timeline: &Timeline, out: W) -> io::Result<W> {
    let mut packets = Packets::new(out);
    let launches = timeline.launches.iter().map(|launch| launch.start_ns);
    let starts = timeline.slices.iter().map(|slice| slice.start_ns);
    let starts = starts.chain(launches);
    let mut writer = EventWriter {
        timeline,
        layout: Layout::new(timeline),
        tracks: Tracks::describe(timeline, &mut packets)?,
        packets,
        offset: starts.min().unwrap_or_default().min(0).saturating_neg(),
    };
    writer.write_all()?;
    Ok(writer.packets.into_inner())
}
