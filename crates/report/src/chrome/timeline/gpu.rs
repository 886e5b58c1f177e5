//! The GPU times of scopes, kernels, copies and fills on their streams, and waits for devices.

use std::io::{self, Write};

use super::{Place, TimelineWriter, TrackState, UNKNOWN, category_in, named};
use crate::chrome::CORRELATIONS;
use crate::chrome::args::{with_correlation, with_fill, with_times, with_uncertainty};
use crate::chrome::event_writer::{ArrowEnd, Quoted};
use crate::chrome::nesting::shows_own;
use crate::chrome::places::{GroupedTracks, Places};
use crate::chrome::stand_ins::SelfTimePiece;
use crate::chrome::times::{ReadEnd, length};
use crate::chrome::work_args::{category_of, with_work};
use crate::in_order::InOrder as _;
use crate::overlap::name_of_track;
use crate::text::json::string;
use crate::{KernelGap, Slice, SliceKind, Track, Wait};

impl<W: Write> TimelineWriter<'_, W> {
    pub(super) fn write_gpu(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        let mut tracks: Vec<TrackState> = Vec::new();
        tracks.resize_with(timeline.tracks.len(), TrackState::default);
        for (index, slice) in self.on_gpu.iter() {
            let Some(place) = places.of(slice.track) else {
                continue;
            };
            match slice.kind {
                SliceKind::GpuScope => {
                    let state = &mut tracks[slice.track as usize];
                    self.write_gpu_scope(index, place, state)?;
                }
                SliceKind::GpuRange => self.write_gpu_range(slice, place)?,
                SliceKind::GpuWork => {
                    let correlation = match slice.launch {
                        Some(launch) if (launch as usize) < timeline.launches.len() => {
                            CORRELATIONS + 1 + u64::from(launch)
                        }
                        _ => self.write_unknown_launch(slice, place, places)?,
                    };
                    let stream = places.stream(slice.track);
                    self.write_gpu_work(slice, place, stream, correlation)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a stand-in for the launch of some work, which is not known: the tools expect one. Returns its correlation.
    fn write_unknown_launch(
        &mut self,
        slice: &Slice,
        stream: Place,
        places: &mut Places,
    ) -> io::Result<u64> {
        let place = self.unknown_place(slice, places);
        let correlation = self.next_correlation();
        let name = Quoted::new(r#""launch that was not recorded""#);
        let start = slice.start_ns.saturating_add(self.offset);
        let id = self.id_inside(slice.parent);
        let line = self.events.slice(self.launches, name, place, start, 0);
        line.whole("External id", id)
            .whole("correlation", correlation)
            .set("stand-in")
            .end()?;
        let parent = slice.parent.map(|parent| parent as usize);
        let parent = parent.and_then(|parent| self.timeline.slices.get(parent));
        let parent = parent.filter(|parent| parent.start_ns <= slice.start_ns);
        let from = parent.and_then(|parent| Some((places.of(parent.track)?, parent.start_ns)));
        if let Some((from, at)) = from {
            let at = at.saturating_add(self.offset);
            self.events.arrow(ArrowEnd::Start, correlation, from, at)?;
            self.events
                .arrow(ArrowEnd::Finish, correlation, stream, start)?;
        }
        Ok(correlation)
    }

    fn next_correlation(&mut self) -> u64 {
        self.further += 1;
        CORRELATIONS + self.further
    }

    /// Returns the track for the launches of a process that are not known.
    fn unknown_place(&mut self, slice: &Slice, places: &mut Places) -> Place {
        let timeline = self.timeline;
        let track = timeline.tracks.get(slice.track as usize);
        let rank = track.and_then(|track| track.rank);
        *self.unknown.entry(rank).or_insert_with(|| {
            let name = "launches that were not recorded".to_owned();
            places.further(timeline, slice.track, name)
        })
    }

    /// Writes the GPU time of a scope.
    fn write_gpu_scope(
        &mut self,
        index: u32,
        place: Place,
        state: &mut TrackState,
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let slice = &timeline.slices[index as usize];
        // Perfetto attaches arrows to slices of length zero, if there are any.
        let parent = timeline.slice_of(slice.parent);
        let parent = parent.filter(|parent| self.gpu_of.get(parent) == Some(&index));
        if slice.duration_ns <= 0 && parent.is_some() {
            return Ok(());
        }
        let id = self.id_inside(slice.parent);
        let start = slice.start_ns.saturating_add(self.offset);
        let end = start.saturating_add(slice.duration_ns.max(0));
        let around = state.around(&timeline.slices, slice);
        let (length, read_end) = if self.are_stand_ins[slice.track as usize] {
            let (length, read_end) = length(start, end, around);
            self.read_ends.insert(index, read_end);
            (length, read_end)
        } else {
            (end - start, ReadEnd::sum(start, end - start))
        };
        state.push(index, read_end);
        let line = named(
            &mut self.events,
            ("gpu_user_annotation", self.names.get(slice.name as usize)),
            place,
            (start, length),
        );
        let mut line = with_uncertainty(line.whole("External id", id), slice);
        // Readers compute both from the lengths of slices otherwise.
        if slice.total_ns() != length {
            line = line.signed("ns", slice.total_ns());
        }
        line.signed("self_ns", slice.self_ns).end()
    }

    fn write_gpu_range(&mut self, slice: &Slice, place: Place) -> io::Result<()> {
        let id = self.id_inside(slice.parent);
        let start = slice.start_ns.saturating_add(self.offset);
        let line = named(
            &mut self.events,
            ("gpu_user_annotation", self.names.get(slice.name as usize)),
            place,
            (start, slice.duration_ns.max(0)),
        );
        line.whole("External id", id).set("range").end()
    }

    /// Writes a stretch of a stream that stands for a kernel, and its launch.
    pub(super) fn write_piece(
        &mut self,
        piece: SelfTimePiece,
        places: &mut Places,
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let slice = &timeline.slices[piece.slice as usize];
        let Some(stream) = places.of(slice.track) else {
            return Ok(());
        };
        let correlation = self.next_correlation();
        let parent = timeline.slice_of(slice.parent);
        let parent = parent.and_then(|parent| places.of(timeline.slices[parent as usize].track));
        let (host, launched) = match (parent, piece.launched) {
            (Some(host), Some(launched)) => (host, launched),
            _ => (self.unknown_place(slice, places), piece.start),
        };
        let id = self.id_inside(slice.parent);
        let at = launched.saturating_add(self.offset);
        let name = Quoted::new(r#""cudaLaunchKernel""#);
        let line = self.events.slice(self.launches, name, host, at, 0);
        line.whole("External id", id)
            .whole("correlation", correlation)
            .set("stand-in")
            .end()?;
        // An arrow must not lead back in time.
        let has_arrow = piece.is_first && launched <= piece.start;
        if has_arrow {
            self.events.arrow(ArrowEnd::Start, correlation, host, at)?;
        }
        let [start, end] = [piece.start, piece.end].map(|ns| ns.saturating_add(self.offset));
        let around = self.read_ends.get(&piece.slice).copied();
        let (length, _) = length(start, end, around.unwrap_or(ReadEnd::NEVER));
        let name = self.names.get(slice.name as usize);
        let line = named(&mut self.events, ("kernel", name), stream, (start, length));
        line.whole("External id", id)
            .whole("device", stream.pid)
            .whole("stream", places.stream(slice.track))
            .whole("correlation", correlation)
            .set("scope")
            .end()?;
        if has_arrow {
            self.events
                .arrow(ArrowEnd::Finish, correlation, stream, start)?;
        }
        Ok(())
    }

    /// Writes the waits for each device. They have no `stream`: HTA counts what has one as a kernel.
    pub(super) fn write_waits(&mut self, places: &mut Places) -> io::Result<()> {
        let mut waits: Vec<&Wait> = self.timeline.waits.iter().collect();
        waits.order_by_key(|wait| (wait.start_ns, wait.duration_ns));
        let mut lanes = GroupedTracks::default();
        for wait in waits {
            let start = wait.start_ns.saturating_add(self.offset);
            let length = wait.duration_ns.max(0);
            let device = places.device(wait.rank, wait.work.device);
            let place = lanes.take(device, (start, start.saturating_add(length)), |number| {
                places.further_of_device(device, wait.rank, format!("waits {number}"))
            });
            let name = self.names.get(wait.name as usize);
            let name = Quoted::new(name.map_or(UNKNOWN, |name| &name.short));
            let line = self.events.slice("cuda_sync", name, place, start, length);
            line.quoted("cuda_sync_kind", name)
                .whole("device", device)
                .whole("ordinal", wait.work.device.into())
                .whole("context", wait.work.context.into())
                .whole("waits for stream", wait.work.stream.into())
                .rank(wait.rank)
                .end()?;
        }
        Ok(())
    }

    /// Writes the times without kernels on a track of their process.
    pub(super) fn write_kernel_gaps(&mut self, places: &mut Places) -> io::Result<()> {
        let timeline = self.timeline;
        let mut gaps: Vec<&KernelGap> = timeline.kernel_gaps.iter().collect();
        gaps.order_by_key(|gap| gap.start_ns);
        let mut lanes = GroupedTracks::default();
        for gap in gaps {
            let start = gap.start_ns.saturating_add(self.offset);
            let length = gap.duration_ns.max(0);
            let span = (start, start.saturating_add(length));
            let place = lanes.take(gap.rank, span, |number| {
                let is_of_rank = |track: &Track| track.rank == gap.rank;
                let near = timeline.tracks.iter().position(is_of_rank);
                let near = near.and_then(|near| u32::try_from(near).ok());
                let name = name_of_track("kernels not recorded", number);
                places.further(timeline, near.unwrap_or(0), name)
            });
            let reason = string(&gap.reason);
            let name = Quoted::new(&reason);
            let line = self.events.slice("kernel_gap", name, place, start, length);
            line.rank(gap.rank).end()?;
        }
        Ok(())
    }

    fn write_gpu_work(
        &mut self,
        slice: &Slice,
        place: Place,
        stream: u64,
        correlation: u64,
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let launch = slice
            .launch
            .and_then(|launch| timeline.launches.get(launch as usize));
        // That of its launch, as the tools need it.
        let id = match launch {
            Some(launch) => self.id_of_launch(launch),
            None => self.id_inside(slice.parent),
        };
        let work = slice.work.and_then(|work| timeline.work.get(work as usize));
        let category = category_in(&self.categories, slice);
        let category = category.unwrap_or_else(|| work.map_or("kernel", category_of));
        let start = slice.start_ns.saturating_add(self.offset);
        let length = slice.duration_ns.max(0);
        let mut line = named(
            &mut self.events,
            (category, self.names.get(slice.name as usize)),
            place,
            (start, length),
        );
        line = line
            .whole("External id", id)
            .whole("device", place.pid)
            .whole("stream", stream);
        line = with_correlation(line, correlation, work.map(|work| work.correlation));
        line = with_times(line, slice, length, !shows_own(slice, 0));
        if let Some(work) = work {
            line = with_work(line.whole("context", work.context.into()), work, length);
            let track = timeline.tracks.get(slice.track as usize);
            if track.is_some_and(|track| track.id != u64::from(work.stream)) {
                line = line.whole("stream of CUPTI", work.stream.into());
            }
            let rank = track.and_then(|track| track.rank);
            let device = self.devices.get(&(rank, work.device)).copied();
            line = with_fill(line, work, device);
        }
        line.end()?;
        let first = slice.launch.map(|launch| launch as usize);
        let first = first.and_then(|launch| self.first_work.get_mut(launch));
        let is_first =
            first.is_some_and(|first| first.take_if(|at| *at == slice.start_ns).is_some());
        if is_first {
            self.events
                .arrow(ArrowEnd::Finish, correlation, place, start)?;
        }
        Ok(())
    }
}
