//! What ran on devices: the GPU times of scopes on their streams, as annotations and as what scopes took themselves.
//!
//! Scopes are measured, not kernels. The tools count kernels, though: TensorBoard's trace plugin adds up what the
//! launches of an operator took, HTA what is busy on a stream. So each stretch of a stream in which one scope is the
//! innermost is written as one event of the category `kernel`, with the scope's name, and with a launch of length
//! zero in the scope on the CPU; an arrow leads from there to the first of them. Together they are exactly what the
//! scope took itself, but where scopes of several threads or futures share a stream: then each instant is one scope's
//! here, and counts for each that was open in the tables. All of them have `"scope": true`.

use std::collections::HashMap;
use std::io::{self, Write};

use super::Writing;
use super::counters::InFlight;
use super::host::id_of;
use super::json::{ArrowEnd, Events, Quoted, Track};
use super::names::Names;
use super::place::{self, Draw, Item, Piece, Placed};
use super::times::{ReadEnd, length};
use super::tracks::{Lanes, Tracks};
use super::{is_placed, whole};
use crate::cuda::GpuRecord;
use crate::session::{NONE, Trace};

/// Before the first correlation. HTA (0.5) puts places among the events into a column that is as wide as the
/// correlations ask for, and fails where 16 bits are not enough.
const CORRELATIONS: u64 = 100_000;

/// A GPU time, and the scope it is of.
#[derive(Clone, Copy)]
struct Timed {
    gpu: u32,
    scope: u32,
}

impl<W: Write> Writing<'_, W> {
    pub(super) fn write_gpu(&mut self) -> io::Result<()> {
        let timed = self.timed();
        let mut items = Vec::new();
        let mut place_of: Vec<u32> = vec![
            NONE;
            if timed.is_empty() {
                0
            } else {
                self.trace.gpu.len()
            }
        ];
        let (trace, mut correlation) = (self.trace, CORRELATIONS);
        let same = |one: &Timed, next: &Timed| {
            let [one, next] = [one, next].map(|timed| &trace.gpu[timed.gpu as usize]);
            (one.device, one.stream_key) == (next.device, next.stream_key)
        };
        for stream in timed.chunk_by(same) {
            items.clear();
            for timed in stream {
                items.push(self.item(*timed, &place_of));
                place_of[timed.gpu as usize] = u32::try_from(items.len() - 1).unwrap_or(NONE);
            }
            let mut drawing = Drawing {
                trace,
                stream,
                items: &items,
                track: self.tracks.stream(&trace.gpu[stream[0].gpu as usize]),
                lanes: Lanes::default(),
                drawn: Drawn::default(),
                beside: HashMap::new(),
                names: &self.names,
                category: self.launch_category,
                track_of_gpu: &self.track_of_gpu,
                tracks: &mut self.tracks,
                events: &mut self.events,
                in_flight: &mut self.in_flight,
                correlation,
            };
            place::place(&items, &mut drawing)?;
            correlation = drawing.correlation;
            // Parents on another stream are none.
            for timed in stream {
                place_of[timed.gpu as usize] = NONE;
            }
        }
        self.write_replays()
    }

    /// All GPU times that have a place, by stream; on each, a scope comes after the one around it.
    fn timed(&self) -> Vec<Timed> {
        let trace = self.trace;
        let mut timed: Vec<Timed> = (0..)
            .zip(&trace.nodes)
            .map(|(scope, node)| Timed {
                gpu: node.gpu,
                scope,
            })
            .filter(|timed| trace.gpu.get(timed.gpu as usize).is_some_and(is_placed))
            .collect();
        timed.sort_unstable_by_key(|timed| {
            let gpu = &trace.gpu[timed.gpu as usize];
            let start = trace.scopes[timed.scope as usize].start;
            let began_together = self
                .around(timed.scope)
                .take_while(|around| trace.scopes[*around as usize].start >= start);
            (
                gpu.device,
                gpu.stream_key,
                start,
                began_together.count(),
                timed.scope,
            )
        });
        timed
    }

    /// The scopes around one, innermost first.
    fn around(&self, scope: u32) -> impl Iterator<Item = u32> {
        let nodes = &self.trace.nodes;
        let up = |scope: u32| Some(nodes[scope as usize].parent).filter(|parent| *parent != NONE);
        std::iter::successors(up(scope), move |scope| up(*scope))
    }

    fn item(&self, timed: Timed, place_of: &[u32]) -> Item {
        let trace = self.trace;
        let gpu = &trace.gpu[timed.gpu as usize];
        let scope = &trace.scopes[timed.scope as usize];
        let parent = self
            .around(timed.scope)
            .filter_map(|around| place_of.get(trace.nodes[around as usize].gpu as usize))
            .find(|place| **place != NONE);
        Item {
            start: self.times.of_unix(gpu.start.unwrap_or_default()),
            length: whole(gpu.ns),
            uncertainty: whole(gpu.uncertainty_ns.into()),
            host: (
                self.times.of_ticks(scope.start),
                self.times.of_ticks(scope.end()),
            ),
            thread: scope.thread,
            parent: parent.map_or(place::NONE, |place| *place as usize),
        }
    }

    /// Nothing tells when a graph was replayed; when that was noticed is known.
    fn write_replays(&mut self) -> io::Result<()> {
        if self.trace.replays.is_empty() {
            return Ok(());
        }
        let track = self.tracks.replays();
        for replay in &self.trace.replays {
            let at = self.times.of_ticks(replay.cpu_end);
            let name = self.names.get(replay.name);
            let event = self.events.instant("replay", name, track, at);
            event
                .signed("ns", whole(replay.ns))
                .signed("self_ns", whole(replay.own))
                .text("stream", &replay.stream_key.to_string())
                .end()?;
        }
        Ok(())
    }
}

/// One stream on its way to the file.
struct Drawing<'d, 't, W> {
    trace: &'t Trace,
    stream: &'d [Timed],
    items: &'d [Item],
    track: Track,
    lanes: Lanes,
    drawn: Drawn,
    /// The tracks of items that stand beside the stream, and their ends as a reader has them: what they took themselves
    /// is shown inside of them.
    beside: HashMap<usize, (Track, ReadEnd)>,
    names: &'d Names,
    category: &'static str,
    track_of_gpu: &'d [u64],
    tracks: &'d mut Tracks,
    events: &'d mut Events<W>,
    in_flight: &'d mut InFlight,
    correlation: u64,
}

/// What is drawn on the stream's own track: times that nest or follow each other. Threads that share a stream
/// may have theirs moved past each other; what crosses, readers drop.
#[derive(Default)]
struct Drawn {
    /// The ends of what is open, the innermost last: as they are, and as a reader has them.
    open: Vec<(i64, ReadEnd)>,
    last_start: i64,
}

impl Drawn {
    /// The length to write for a time that can be drawn there; none for one that crosses what is.
    fn take(&mut self, start: i64, end: i64) -> Option<i64> {
        if start < self.last_start {
            return None;
        }
        while self.open.last().is_some_and(|(open, _)| *open <= start) {
            self.open.pop();
        }
        let around = match self.open.last() {
            Some((open, _)) if *open < end => return None,
            Some((_, read)) => *read,
            None => ReadEnd::NEVER,
        };
        let (length, read) = length(start, end, around);
        self.last_start = start;
        self.open.push((end, read));
        Some(length)
    }
}

impl<'t, W> Drawing<'_, 't, W> {
    /// The stream's own track where an item has a place on it, else one beside it that is free from `start` to
    /// `end`; and the length to write.
    fn track_for(&mut self, placed: Placed) -> (Track, i64) {
        let Placed {
            item,
            start,
            end,
            is_beside,
        } = placed;
        let (tracks, stream) = (&mut *self.tracks, self.track);
        if !is_beside && let Some(length) = self.drawn.take(start, end) {
            return (stream, length);
        }
        let make = |number| tracks.beside_stream(stream, number).tid;
        let tid = self.lanes.take(start, end, make);
        let track = Track { tid, ..stream };
        let (length, read) = length(start, end, ReadEnd::NEVER);
        self.beside.insert(item, (track, read));
        (track, length)
    }

    /// The track of the item that a piece is of; and the length to write.
    fn track_of(&mut self, piece: Piece) -> (Track, i64) {
        let Piece {
            item, start, end, ..
        } = piece;
        if let Some((track, around)) = self.beside.get(&item) {
            return (*track, length(start, end, *around).0);
        }
        let on_stream = self.drawn.take(start, end);
        (self.track, on_stream.unwrap_or(end - start))
    }

    fn gpu(&self, item: usize) -> &'t GpuRecord {
        &self.trace.gpu[self.stream[item].gpu as usize]
    }

    /// The scope's `External id`; none where the CPU is not recorded.
    fn id(&self, item: usize) -> u64 {
        if self.trace.meta.options.cpu {
            id_of(self.stream[item].scope as usize)
        } else {
            0
        }
    }
}

impl<W: Write> Draw for Drawing<'_, '_, W> {
    fn item(&mut self, placed: Placed) -> io::Result<()> {
        let Placed {
            item, start, end, ..
        } = placed;
        let (track, length) = self.track_for(placed);
        let (gpu, id, measured) = (self.gpu(item), self.id(item), self.items[item]);
        self.in_flight.add(measured.host.0, end);
        let name = self.names.get(gpu.name);
        let event = self
            .events
            .slice("gpu_user_annotation", name, track, start, length);
        let mut event = event
            .whole("External id", id)
            .signed("uncertainty_ns", measured.uncertainty);
        if (start - measured.start).abs() > measured.uncertainty {
            event = event.signed("moved_ns", start - measured.start);
        }
        if end - start != measured.length {
            event = event.signed("ns", measured.length);
        }
        event.end()
    }

    fn piece(&mut self, piece: Piece) -> io::Result<()> {
        self.correlation += 1;
        let (id, correlation, stream) = (self.id(piece.item), self.correlation, self.track);
        let gpu = self.gpu(piece.item);
        let tid = self
            .track_of_gpu
            .get(self.stream[piece.item].gpu as usize)
            .copied();
        let host = Track {
            pid: self.tracks.host,
            tid: tid.unwrap_or_default(),
        };
        let name = Quoted::new(r#""cudaLaunchKernel""#);
        let event = self
            .events
            .slice(self.category, name, host, piece.launched, 0);
        event
            .whole("External id", id)
            .whole("correlation", correlation)
            .end()?;
        // No arrow leads back in time.
        let has_arrow = piece.is_first && piece.launched <= piece.start;
        if has_arrow {
            self.events
                .arrow(ArrowEnd::Start, correlation, host, piece.launched)?;
        }
        let name = self.names.get(gpu.name);
        let (track, length) = self.track_of(piece);
        let event = self
            .events
            .slice("kernel", name, track, piece.start, length);
        event
            .whole("External id", id)
            .whole("device", stream.pid)
            .whole("stream", stream.tid)
            .whole("correlation", correlation)
            .set("scope")
            .end()?;
        if has_arrow {
            self.events
                .arrow(ArrowEnd::Finish, correlation, track, piece.start)?;
        }
        Ok(())
    }
}
