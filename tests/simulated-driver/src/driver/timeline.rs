//! Computes when operations start and end: immediately if the ends of all earlier ones are known,
//! else as soon as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::code::Code;
use super::cupti;
use super::event::Recorded;
use super::ffi::{self, HostFunction};
use super::state::DriverState;
use super::task::{Effect, Join, Location, Point, Source, Task, TaskDuration};
use super::thread::{self, WorkFault};
use crate::report::Activity;

/// An operation whose end is not known yet.
#[derive(Debug)]
struct Pending {
    work: Work,
    /// The number of operations it waits for whose ends are not known.
    waiting: usize,
    dependents: Vec<u64>,
    stalls: bool,
}

#[derive(Debug)]
struct Work {
    order: u64,
    task: Box<Task>,
    place: Location,
    thread: u64,
    enqueued: u64,
    /// The earliest start, as far as it is known.
    start: u64,
    fails: Option<Code>,
    /// The call that CUPTI traces.
    origin: Option<cupti::Origin>,
}

/// All operations whose ends are not known yet.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    order: u64,
    pending: BTreeMap<u64, Pending>,
    /// Host functions that are ready to run at a time, ordered by time.
    scheduled: BTreeSet<(u64, u64)>,
    /// The host function that is running.
    pub(crate) running: Option<u64>,
    stalled: Vec<u64>,
    /// Ends that threads wait for: the number of threads, and the end once it is known.
    watched: BTreeMap<u64, (usize, Option<u64>)>,
    /// The ends of the operations in the launch queue, if its depth is limited.
    queue: Vec<Point>,
}

impl Timeline {
    /// Returns the next sequence number.
    pub(crate) fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    pub(crate) fn unfinished(&self) -> u64 {
        self.pending.len() as u64
    }

    /// Returns the earliest known end of an operation in the launch queue.
    pub(crate) fn first_end(&self) -> Option<u64> {
        let ends = self.queue.iter().filter_map(|point| match point {
            Point::At(at) => Some(*at),
            Point::After(_) => None,
        });
        ends.min()
    }

    /// Returns when the next host function is due.
    pub(crate) fn next_host_function(&self) -> Option<u64> {
        self.scheduled.first().map(|(start, _)| *start)
    }

    /// Removes the next host function if it is due at `now`. Returns its operation, function and
    /// context.
    pub(crate) fn take_host_function(&mut self, now: u64) -> Option<(u64, HostFunction, usize)> {
        let (start, work) = *self.scheduled.first()?;
        if start > now {
            return None;
        }
        self.scheduled.pop_first();
        let Work { task, place, .. } = &self.pending.get(&work)?.work;
        let TaskDuration::Host(function) = task.duration else {
            return None;
        };
        let context = place.context;
        self.running = Some(work);
        Some((work, function, context))
    }

    pub(crate) fn watch(&mut self, work: u64) {
        self.watched.entry(work).or_default().0 += 1;
    }

    /// Returns the end of an operation that is waited for, and counts one thread less. Returns
    /// `None` while the end is not known.
    pub(crate) fn end_of(&mut self, work: u64) -> Option<u64> {
        let (watchers, end) = self.watched.get_mut(&work)?;
        let end = (*end)?;
        *watchers -= 1;
        if *watchers == 0 {
            self.watched.remove(&work);
        }
        Some(end)
    }
}

impl DriverState {
    /// Queues `task` after `after`, and returns its end.
    pub(crate) fn submit(&mut self, after: &Join, task: Box<Task>, place: Location) -> Point {
        let enqueued = self.clock.now();
        let fault = thread::take_work_fault();
        let event = task.event;
        let origin = cupti::origin(task.kind);
        let work = Work {
            order: self.timeline.next_order(),
            task,
            place,
            thread: thread::id(),
            enqueued,
            start: enqueued.max(after.at),
            fails: if let Some(WorkFault::Fail(code)) = fault {
                Some(code)
            } else {
                None
            },
            origin,
        };
        let stalls = fault == Some(WorkFault::Stall);
        let point = match (&work.task.duration, after.pending.is_empty() && !stalls) {
            (TaskDuration::Ns(ns), true) => {
                let end = work.start + ns;
                self.finish(work, end);
                Point::At(end)
            }
            _ => Point::After(self.defer(after, work, stalls)),
        };
        if let Some(event) = event
            && let Ok(event) = self.events.get_mut(event)
        {
            event.recorded = Recorded::At(point);
        }
        point
    }

    /// Occupies a slot of the launch queue until `end`.
    pub(crate) fn occupy_slot(&mut self, end: Point) {
        if self.settings.launch_queue.is_some() {
            self.timeline.queue.push(end);
        }
    }

    /// Returns `true` if the launch queue has a free slot.
    pub(crate) fn has_free_slot(&mut self) -> bool {
        let Some(depth) = self.settings.launch_queue else {
            return true;
        };
        let now = self.clock.now();
        let is_there = |point: &Point| !matches!(point, Point::At(at) if *at <= now);
        self.timeline.queue.retain(is_there);
        self.timeline.queue.len() < depth
    }

    fn defer(&mut self, after: &Join, work: Work, stalls: bool) -> u64 {
        let id = work.order;
        for before in &after.pending {
            if let Some(before) = self.timeline.pending.get_mut(before) {
                before.dependents.push(id);
            }
        }
        let waiting = after.pending.len();
        let pending = Pending {
            work,
            waiting,
            dependents: Vec::new(),
            stalls,
        };
        self.timeline.pending.insert(id, pending);
        if waiting == 0 {
            // Nothing completes this operation but a release of the stall or its own host function.
            self.begin(id);
        }
        id
    }

    /// Starts an operation that has nothing left to wait for. Returns its end, if that is known.
    fn begin(&mut self, id: u64) -> Option<u64> {
        let pending = self.timeline.pending.get(&id)?;
        let start = pending.work.start;
        if pending.stalls {
            self.timeline.stalled.push(id);
            return None;
        }
        match pending.work.task.duration {
            TaskDuration::Ns(ns) => Some(start + ns),
            TaskDuration::Host(_) => {
                self.timeline.scheduled.insert((start, id));
                super::worker::wake();
                None
            }
        }
    }

    /// Ends a pending operation at `end`, and all operations that waited for nothing else.
    pub(crate) fn complete(&mut self, id: u64, end: u64) {
        let mut ended = BTreeMap::new();
        let mut todo = vec![(id, end)];
        while let Some((id, end)) = todo.pop() {
            let Some(pending) = self.timeline.pending.remove(&id) else {
                continue;
            };
            self.finish(pending.work, end);
            ended.insert(id, end);
            for next in pending.dependents {
                let Some(dependent) = self.timeline.pending.get_mut(&next) else {
                    continue;
                };
                dependent.work.start = dependent.work.start.max(end);
                dependent.waiting -= 1;
                if dependent.waiting == 0
                    && let Some(end) = self.begin(next)
                {
                    todo.push((next, end));
                }
            }
        }
        self.resolve_points(&ended);
    }

    /// Replaces each pending point by its time, if `ended` has it.
    fn resolve_points(&mut self, ended: &BTreeMap<u64, u64>) {
        let resolve_point = |point: &mut Point| {
            if let Point::After(work) = *point
                && let Some(end) = ended.get(&work)
            {
                *point = Point::At(*end);
            }
        };
        let resolve_join = |join: &mut Join| {
            let pending = std::mem::take(&mut join.pending);
            for work in pending {
                join.add(
                    ended
                        .get(&work)
                        .map_or(Point::After(work), |end| Point::At(*end)),
                );
            }
        };
        self.streams
            .values_mut()
            .for_each(|stream| resolve_point(&mut stream.tail));
        self.contexts
            .values_mut()
            .for_each(|context| resolve_join(&mut context.orphaned_work));
        self.execs
            .values_mut()
            .for_each(|exec| resolve_point(&mut exec.last));
        for event in self.events.values_mut() {
            if let Recorded::At(point) = &mut event.recorded {
                resolve_point(point);
            }
        }
        self.timeline.queue.iter_mut().for_each(resolve_point);
        for (work, (_, end)) in &mut self.timeline.watched {
            *end = end.or(ended.get(work).copied());
        }
    }

    /// Ends stalled work now.
    pub(crate) fn release_stalled(&mut self) {
        let now = self.clock.now();
        for id in std::mem::take(&mut self.timeline.stalled) {
            let Some(pending) = self.timeline.pending.get_mut(&id) else {
                continue;
            };
            pending.stalls = false;
            pending.work.start = pending.work.start.max(now);
            if let Some(end) = self.begin(id) {
                self.complete(id, end);
            }
        }
    }

    /// Makes CUPTI record the operations whose ends are not known, without an end. They get no other
    /// record.
    pub(crate) fn record_unfinished_operations(&mut self) {
        for Pending { work, .. } in self.timeline.pending.values_mut() {
            if let Some(origin) = &mut work.origin {
                let by = (work.thread, work.order);
                cupti::operation_ended(*origin, &work.task, &work.place, by, (work.start, None));
                origin.recorded = false;
            }
        }
    }

    /// Applies the effects of an operation, and logs it.
    fn finish(&mut self, work: Work, end: u64) {
        let Work {
            order,
            task,
            place,
            thread,
            enqueued,
            start,
            fails,
            origin,
        } = work;
        if let Some(origin) = origin {
            let times = (start, Some(end));
            cupti::operation_ended(origin, &task, &place, (thread, order), times);
        }
        match &task.effect {
            Effect::None => {}
            Effect::Copy {
                to,
                from,
                bytes,
                known,
            } => {
                let from = match from {
                    Source::Address(address) => *address,
                    Source::Kept(kept) => kept.as_ptr() as usize,
                };
                let there =
                    |address: usize, known: bool| !known || self.memory.holds(address, *bytes);
                if there(*to, known[0]) && there(from, known[1]) {
                    ffi::copy(*to, from, *bytes);
                }
            }
            Effect::Fill {
                to,
                pattern,
                width,
                count,
            } => {
                if self.memory.holds(*to, width * count) {
                    ffi::fill(*to, *pattern, *width, *count);
                }
            }
            Effect::Free { address } => {
                self.memory.free(*address);
            }
            Effect::Stamp { to } => {
                let times = [start, end];
                if self.memory.holds(*to, size_of_val(&times)) {
                    ffi::copy(*to, times.as_ptr() as usize, size_of_val(&times));
                }
            }
        }
        if let Some(code) = fails {
            self.fail_context(place.context, end, code);
        }
        if let Some(kind) = task.kind {
            self.log.push(|| Activity {
                order,
                kind,
                name: task.name.as_deref().map(str::to_owned),
                device: place.device as u64,
                context: place.context_id,
                stream: place.stream,
                stream_id: place.stream_id,
                thread,
                graph: place.graph.map(|graph| graph as u64),
                event: task.event.map(|event| event as u64),
                correlation: origin.map(|origin| origin.correlation),
                enqueued,
                start,
                end,
            });
        }
    }
}
