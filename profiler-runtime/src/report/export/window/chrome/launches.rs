//! The calls of CUDA that launched work, on their threads, and the arrows to the work.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::TraceWriter;
use super::host::id_of;
use crate::report::export::chrome::CORRELATIONS;
use crate::report::export::chrome::event_writer::{ArrowEnd, Quoted, Track};
use crate::report::export::chrome::launch_names::known_name;
use crate::report::export::overlap::OverlapTracks;
use crate::report::export::window::among::place_among;
use crate::report::export::window::times::Times;
use crate::report::text::json::string;
use crate::session::{NONE, Trace, WorkRecord};

/// The launches of a window, with the first work of each.
pub(super) struct Launches {
    /// The indices of the launches on each thread, in the order of their starts.
    by_thread: BTreeMap<u32, Vec<u32>>,
    /// For each launch, when its first work began, for an arrow to it.
    first_work: Vec<Option<i64>>,
    /// The number of correlations beyond those of the launches.
    further: u64,
}

impl Launches {
    pub(super) fn new(trace: &Trace, times: Times<'_>) -> Self {
        let mut first_work: Vec<Option<i64>> = vec![None; trace.work.launches.len()];
        for work in trace.work.on_streams() {
            let start = work.span.map(|(start, _)| times.of_unix(start));
            if let Some(first) = first_work.get_mut(work.launch as usize) {
                *first = first.iter().copied().chain(start).min();
            }
        }
        let mut by_thread: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (index, launch) in (0..).zip(&trace.work.launches) {
            let is_known = (launch.thread as usize) < trace.threads.len();
            let thread = if is_known { launch.thread } else { NONE };
            by_thread.entry(thread).or_default().push(index);
        }
        Self {
            by_thread,
            first_work,
            further: 0,
        }
    }

    /// Returns a correlation that no launch of the window has.
    pub(super) fn new_correlation(&mut self) -> u64 {
        self.further += 1;
        CORRELATIONS + self.first_work.len() as u64 + self.further
    }

    /// Returns `true` for the first work of a launch that has an arrow, once.
    pub(super) fn take_arrow(&mut self, launch: u32, start: i64) -> bool {
        let first = self.first_work.get_mut(launch as usize);
        first.is_some_and(|first| first.take_if(|first| *first == start).is_some())
    }
}

/// Returns the correlation of a launch and its work. CUPTI's own numbers may be too low for HTA.
pub(super) fn correlation_of(launch: u32) -> u64 {
    CORRELATIONS + 1 + u64::from(launch)
}

impl<W: Write> TraceWriter<'_, W> {
    /// Writes the launches of a thread among the slices that were drawn for it, which come in the order of their starts.
    pub(super) fn write_launches(&mut self, thread: u32, drawn: &[(i64, i64)]) -> io::Result<()> {
        let Some(launches) = self.launches.by_thread.remove(&thread) else {
            return Ok(());
        };
        let track = self.tracks.thread(thread);
        let spans: Vec<(i64, i64)> = launches.iter().map(|launch| self.span(*launch)).collect();
        let placed = place_among(drawn, &spans);
        for (launch, span) in launches.into_iter().zip(placed) {
            self.write_launch(launch, track, span)?;
        }
        Ok(())
    }

    /// Writes the launches on threads without scopes.
    pub(super) fn write_launches_elsewhere(&mut self) -> io::Result<()> {
        let unknown = self.launches.by_thread.remove(&NONE);
        while let Some((thread, _)) = self.launches.by_thread.first_key_value() {
            self.write_launches(*thread, &[])?;
        }
        let mut lanes = OverlapTracks::default();
        for launch in unknown.into_iter().flatten() {
            let (start, end) = self.span(launch);
            let make = |number| self.tracks.other_thread(number).tid;
            let tid = lanes.take(start, end, make);
            let track = Track {
                pid: self.tracks.host,
                tid,
            };
            self.write_launch(launch, track, (start, end))?;
        }
        Ok(())
    }

    fn span(&self, launch: u32) -> (i64, i64) {
        let (start, end) = self.trace.work.launches[launch as usize].span;
        let start = self.times.of_unix(start);
        (start, self.times.of_unix(end).max(start))
    }

    fn write_launch(
        &mut self,
        index: u32,
        track: Track,
        (start, end): (i64, i64),
    ) -> io::Result<()> {
        let work = &self.trace.work;
        let call = work.name(work.launches[index as usize].name);
        let name = known_name(call);
        let (id, correlation) = (self.id_of_launch(index), correlation_of(index));
        let event = self.events.slice(
            self.launch_category,
            Quoted::new(&string(name)),
            track,
            start,
            end - start,
        );
        let event = event
            .whole("External id", id)
            .whole("correlation", correlation);
        let event = if name == call {
            event
        } else {
            event.text("call", call)
        };
        event.end()?;
        // An arrow must not lead back in time.
        let first_work = &mut self.launches.first_work[index as usize];
        *first_work = first_work.filter(|work| start <= *work);
        match first_work {
            Some(_) => self
                .events
                .arrow(ArrowEnd::Start, correlation, track, start),
            None => Ok(()),
        }
    }

    /// Returns the `External id` of a launch and its work: that of the innermost scope; 0 if there is none, or if its CPU
    /// time is not recorded.
    pub(super) fn id_of_launch(&self, launch: u32) -> u64 {
        let trace = self.trace;
        let launch = trace.work.launches.get(launch as usize);
        let scope = launch.map_or(NONE, |launch| launch.scope) as usize;
        let is_written = trace.scopes.get(scope).is_some_and(|scope| scope.has_cpu);
        if is_written { id_of(scope) } else { 0 }
    }

    /// Writes a stand-in for the launch of some work, which was not recorded: the tools expect one.
    pub(super) fn write_unknown_launch(
        &mut self,
        work: &WorkRecord,
        start: i64,
    ) -> io::Result<u64> {
        let correlation = self.launches.new_correlation();
        let track = match self.unknown_launches {
            Some(track) => track,
            None => *self.unknown_launches.insert(self.tracks.unknown_launches()),
        };
        let name = Quoted::new(r#""launch that was not recorded""#);
        let event = self
            .events
            .slice(self.launch_category, name, track, start, 0);
        event
            .whole("External id", 0)
            .whole("correlation", correlation)
            .whole("correlation of CUPTI", work.details.correlation.into())
            .end()?;
        Ok(correlation)
    }
}
