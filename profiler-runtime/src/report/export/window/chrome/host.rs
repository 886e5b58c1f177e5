//! Host events: scopes on their threads, futures on tracks of their own, steps.

use std::io::{self, Write};

use super::memory::{self, MemoryDelta};
use super::{TraceWriter, is_drawn};
use crate::report::export::chrome::event_writer::{EventLine, Quoted, Track, write_list};
use crate::report::export::chrome::times::{ReadEnd, length, write_whole};
use crate::report::export::overlap::OverlapTracks;
use crate::report::export::window::whole;
use crate::report::export::window::work_streams::WorkStream;
use crate::report::text::json::string;
use crate::session::{Event, Frame, NONE, RecordEnding, RecordKind, ScopeRecord};

/// An open scope that may enclose others, as drawn.
struct OpenSlice {
    scope: usize,
    track: Track,
    start: i64,
    length: i64,
    end: i64,
    read_end: ReadEnd,
    /// `false` for polls and for scopes without a slice.
    is_operator: bool,
    operators: Operators,
    /// The memory used by its children.
    inside: MemoryDelta,
}

/// The operators directly inside a scope, as TensorBoard's trace plugin sees them.
#[derive(Clone, Copy)]
enum Operators {
    None,
    One(Operator),
    Several,
}

/// An operator as drawn.
#[derive(Clone, Copy)]
struct Operator {
    name: u32,
    start: i64,
    end: i64,
}

impl<W: Write> TraceWriter<'_, W> {
    /// Steps get their own tracks, because `step()` may be called anywhere between the scopes of a thread.
    pub(super) fn write_steps(&mut self) -> io::Result<()> {
        for step in &self.trace.steps {
            let track = self.tracks.steps(step.thread);
            let start = self.times.of_ticks(step.start);
            let end = self.times.of_ticks(step.end);
            let (length, _) = length(start, end, ReadEnd::NEVER);
            let name = string(&format!("ProfilerStep#{}", step.number));
            let category = "user_annotation";
            self.events
                .slice(category, Quoted::new(&name), track, start, length)
                .end()?;
        }
        Ok(())
    }

    pub(super) fn write_scopes(&mut self) -> io::Result<()> {
        let scopes = &self.trace.scopes;
        let first_future = scopes.partition_point(|scope| !is_future(scope));
        let (threads, futures) = scopes.split_at(first_future);
        let mut first = 0;
        for scopes in threads.chunk_by(|one, next| one.thread == next.thread) {
            self.write_thread(first, scopes)?;
            first += scopes.len();
        }
        self.write_launches_elsewhere()?;
        let mut lanes = OverlapTracks::default();
        for (scope, future) in (first_future..).zip(futures) {
            let (start, end) = self.extent(future);
            let tid = lanes.take(start, end, |number| self.tracks.future(number).tid);
            let track = Track {
                pid: self.tracks.host,
                tid,
            };
            let (length, _) = length(start, end, ReadEnd::NEVER);
            self.write_scope(scope, track, start, length)?;
        }
        Ok(())
    }

    fn extent(&self, scope: &ScopeRecord) -> (i64, i64) {
        (
            self.times.of_ticks(scope.start),
            self.times.of_ticks(scope.end()),
        )
    }

    /// Scopes of one thread come in the order of opening: each one lies inside the scopes that have not ended when it
    /// begins.
    fn write_thread(&mut self, first: usize, scopes: &[ScopeRecord]) -> io::Result<()> {
        let mut open: Vec<OpenSlice> = Vec::new();
        let mut lanes = OverlapTracks::default();
        let mut drawn = Vec::new();
        for (index, scope) in (first..).zip(scopes) {
            let (start, end) = self.extent(scope);
            while open.last().is_some_and(|top| top.end <= start) {
                self.close(&mut open)?;
            }
            let track = self.tracks.thread(scope.thread);
            let around = open.last().map(|top| (top.end, top.read_end));
            if around.is_some_and(|(top, _)| end > top) {
                // It ends after its parent: a guard was dropped late.
                let tid = lanes.take(start, end, |number| {
                    self.tracks.beside_thread(scope.thread, number).tid
                });
                let (length, _) = length(start, end, ReadEnd::NEVER);
                self.write_scope(index, Track { tid, ..track }, start, length)?;
                continue;
            }
            let around = around.map_or(ReadEnd::NEVER, |(_, read_end)| read_end);
            let is_operator = scope.kind == RecordKind::Scope && scope.has_cpu;
            let drawn_end = if is_operator {
                self.note_operator(&mut open, scope.name, (start, end))
            } else {
                end
            };
            let (length, read_end) = length(start, drawn_end, around);
            self.write_scope(index, track, start, length)?;
            if scope.has_cpu && self.trace.work.is_recorded {
                drawn.push((start, start + length));
            }
            open.push(OpenSlice {
                scope: index,
                track,
                start,
                length,
                end,
                read_end,
                is_operator,
                operators: Operators::None,
                inside: MemoryDelta::default(),
            });
        }
        while !open.is_empty() {
            self.close(&mut open)?;
        }
        match scopes.first() {
            Some(scope) => self.write_launches(scope.thread, &drawn),
            None => Ok(()),
        }
    }

    /// Closes the innermost scope and writes what depends on its children.
    fn close(&mut self, open: &mut Vec<OpenSlice>) -> io::Result<()> {
        let Some(ended) = open.pop() else {
            return Ok(());
        };
        if !self.trace.scopes[ended.scope].has_cpu {
            pass_on(open, ended.inside);
            return Ok(());
        }
        self.keep_recursion(&ended)?;
        let event = Event::new(self.trace, ended.scope);
        let Some(memory) = event.memory() else {
            // Memory that a child used is written for the child only.
            pass_on(open, ended.inside);
            return Ok(());
        };
        let taken = MemoryDelta::of(&memory);
        if ended.length == 0 {
            // Nothing can be drawn inside this scope: pass its memory on to its parent.
            pass_on(open, ended.inside);
            return Ok(());
        }
        pass_on(open, taken);
        let at = ended.start + ended.length - 1;
        let device = event
            .gpu_record()
            .map_or(self.memory_device, |gpu| self.tracks.device(gpu));
        let place = memory::Place {
            track: ended.track,
            at,
            device,
            id: id_of(ended.scope),
        };
        memory::write(
            &mut self.events,
            &place,
            &memory,
            taken.without(ended.inside),
        )
    }

    /// TensorBoard's trace plugin merges an operator with its parent if both have the same name and the operator is the
    /// only child. A marker as a second child prevents that.
    fn keep_recursion(&mut self, ended: &OpenSlice) -> io::Result<()> {
        let Operators::One(child) = ended.operators else {
            return Ok(());
        };
        let scope = &self.trace.scopes[ended.scope];
        if child.name != scope.name || !ended.is_operator {
            return Ok(());
        }
        let at = if child.start > ended.start {
            ended.start
        } else {
            child.end
        };
        self.events
            .slice(
                "python",
                Quoted::new(r#""[recursion]""#),
                ended.track,
                at,
                0,
            )
            .end()
    }

    /// Notes an operator in the operator around it. Returns the end to draw, which leaves room for the marker of a
    /// recursion if there is none before the operator.
    fn note_operator(&self, open: &mut [OpenSlice], name: u32, (start, end): (i64, i64)) -> i64 {
        let Some(around) = open.iter_mut().rev().find(|around| around.is_operator) else {
            return end;
        };
        let is_recursive = self.trace.scopes[around.scope].name == name;
        let end = if is_recursive && start == around.start {
            around.read_end.last_before(start, end)
        } else {
            end
        };
        let operator = Operator { name, start, end };
        around.operators = match around.operators {
            Operators::None => Operators::One(operator),
            // Readers put an operator of length zero into one that begins at that time.
            Operators::One(first) if first.end == around.start => Operators::One(operator),
            _ => Operators::Several,
        };
        end
    }

    fn write_scope(
        &mut self,
        index: usize,
        track: Track,
        start: i64,
        length: i64,
    ) -> io::Result<()> {
        let event = Event::new(self.trace, index);
        let scope = event.record();
        let node = &self.trace.nodes[index];
        if let Some(place) = self.track_of_gpu.get_mut(node.gpu as usize) {
            *place = track.tid;
        }
        if !scope.has_cpu {
            return Ok(());
        }
        let name = self.names.get(scope.name);
        let parent = self.parents.to_write(self.trace, index);
        let parent = parent.map(|parent| match parent {
            NONE => 0,
            parent => id_of(parent as usize),
        });
        if let RecordKind::Poll { .. } = scope.kind {
            // The future itself is an operator; a poll must not be counted as another one.
            let event = self
                .events
                .slice("user_annotation", name, track, start, length);
            let event = self.names.with_full_name(event, scope.name);
            return match parent {
                Some(future) => event.whole("parent", future).end(),
                None => event.end(),
            };
        }
        let gpu = event.gpu_record().filter(|gpu| !is_drawn(gpu));
        let not_drawn = gpu.map(|gpu| {
            let stream = WorkStream::Known(gpu.stream_key);
            self.tracks.stream(self.tracks.device(gpu), stream)
        });
        let line = self.events.slice("cpu_op", name, track, start, length);
        let line = line.whole("External id", id_of(index));
        let mut line = self.names.with_full_name(line, scope.name);
        // The command line reads both. Elsewhere, the nesting of slices shows them.
        if let Some(parent) = parent {
            line = line.whole("parent", parent);
        }
        if self.parents.needs_self_time(self.trace, index) {
            line = line.signed("self_ns", whole(event.self_cpu_ns()));
        }
        let line = with_shapes(
            with_memory(with_flags(line, event, not_drawn), event),
            event,
        );
        with_stacks(line, event, self.trace.meta.options.with_stack).end()
    }
}

/// The values that connect a scope with its launches.
pub(super) fn id_of(scope: usize) -> u64 {
    scope as u64 + 1
}

fn is_future(scope: &ScopeRecord) -> bool {
    matches!(scope.kind, RecordKind::Future { .. })
}

fn pass_on(open: &mut [OpenSlice], taken: MemoryDelta) {
    if let Some(top) = open.last_mut() {
        top.inside = top.inside.with(taken);
    }
}

/// Adds how a scope ended, and its GPU time if that is not drawn on `not_drawn`, its stream.
fn with_flags<'w, W: Write>(
    mut line: EventLine<'w, W>,
    event: Event<'_>,
    not_drawn: Option<Track>,
) -> EventLine<'w, W> {
    let scope = event.record();
    line = match scope.ending {
        RecordEnding::Returned => line,
        RecordEnding::Panicked => line.set("panicked"),
        RecordEnding::Dropped => line.set("dropped"),
    };
    if event.is_future() {
        line = line.set("future");
    }
    match (event.gpu_loss(), event.gpu_record()) {
        (Some(loss), _) => line.text("no CUDA time", loss.as_str()),
        (None, Some(gpu)) => match not_drawn {
            Some(stream) => line
                .signed("cuda_ns", whole(gpu.ns))
                .signed("cuda_self_ns", whole(gpu.own))
                .whole("cuda_device", stream.pid)
                .whole("cuda_stream", stream.tid),
            None => line,
        },
        (None, None) if scope.cuda != 0 => line.text("no CUDA time", "not read in time"),
        _ => line,
    }
}

fn with_memory<'w, W: Write>(line: EventLine<'w, W>, event: Event<'_>) -> EventLine<'w, W> {
    let Some(memory) = event.memory() else {
        return line;
    };
    let line = line
        .signed("CPU Mem", memory.host_net)
        .whole("CPU Mem Peak", memory.host_peak);
    match memory.device_net {
        Some(net) => line.signed("CUDA Mem", net),
        None => line,
    }
}

/// Element types are not known; PyTorch writes an empty string in that case too.
fn with_shapes<'w, W: Write>(line: EventLine<'w, W>, event: Event<'_>) -> EventLine<'w, W> {
    let Some(shapes) = event.shapes() else {
        return line;
    };
    let dims = |out: &mut Vec<u8>| {
        write_list(out, shapes, |out, shape| {
            write_list(out, shape, |out, extent| write_whole(out, *extent as u64));
        });
    };
    let types = |out: &mut Vec<u8>| write_list(out, shapes, |out, _| out.extend(br#""""#));
    line.json("Input Dims", dims).json("Input type", types)
}

fn with_stacks<'w, W: Write>(
    mut line: EventLine<'w, W>,
    event: Event<'_>,
    with_stack: bool,
) -> EventLine<'w, W> {
    if with_stack {
        line = line.text("Call stack", &call_stack(event));
    }
    match event.native_stack() {
        Some(native) => line.text("Native stack", &native),
        None => line,
    }
}

/// Innermost first: `src/model.rs(51): matmul;src/main.rs(10): main`.
fn call_stack(event: Event<'_>) -> String {
    let own = Frame {
        name: event.name(),
        location: event.location(),
    };
    let frames = std::iter::once(own).chain(event.stack());
    let texts: Vec<String> = frames
        .map(|frame| {
            let name = frame.name.replace(';', ",");
            match frame.location {
                Some(location) => format!("{}({}): {name}", location.file(), location.line()),
                None => name,
            }
        })
        .collect();
    texts.join(";")
}
