//! Building the work of a window from launches and records.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use profiler_report::GpuWorkKind;
use profiler_report::internal::{RawStream, StreamKey};

use super::across_threads;
use super::clock_line::ClockLine;
use super::device_times::DeviceTime;
use super::record::{LinkedScope, NONE, RecordKind, ScopeRecord, ThreadInfo};
use super::window::WindowSpec;
use super::work::{LaunchRecord, ReportedTime, WindowWork, WorkRecord};
use super::work_elsewhere;
use super::work_losses::LostWork;
use crate::cuda::{self, Effect, Launch, NO_NAME, WorkActivity};

/// The launches and records of a window so far.
#[derive(Debug, Default)]
pub(super) struct WorkBuilder {
    launches: Vec<Launch>,
    /// Records, each with the first correlation of its launch; `None` if that is not known.
    activities: Vec<(Option<u32>, WorkActivity)>,
    /// Times of devices that the program reported, of this window or another one.
    reported: Vec<DeviceTime>,
    /// The first correlations of launches whose records have not arrived.
    waiting: HashSet<u32>,
    /// The places in `launches` of those that may have no record, by their first correlations.
    unsure: HashMap<u32, usize>,
    /// The names of kernels by their numbers.
    names: Vec<Arc<str>>,
    /// The counts of missing work so far.
    pub(super) lost: LostWork,
    /// When the GPU times of the window's scopes had been read, in ticks.
    pub(super) read_at: Option<u64>,
    /// Since when all launches without a record are known to have none, unless a flush gives it.
    pub(super) settled_at: Option<u64>,
    /// How many records had arrived at the last look, and when the first look after the last one was, in ticks.
    seen: (usize, u64),
}

/// The parts of a window that its work refers to.
pub(super) struct Around<'w> {
    /// Sorted and linked.
    pub(super) scopes: &'w [ScopeRecord],
    pub(super) nodes: &'w [LinkedScope],
    pub(super) threads: &'w [Arc<ThreadInfo>],
    /// How many of the threads ran scopes: these come first.
    pub(super) scope_threads: usize,
    pub(super) line: ClockLine,
}

impl WorkBuilder {
    pub(super) fn add_launch(&mut self, spec: &WindowSpec, launch: Launch) {
        if self.launches.len() >= spec.capacity {
            self.lost.over_capacity += 1;
            return;
        }
        let has_memory = self.launches.try_reserve(1).is_ok()
            && match launch.effect {
                Effect::Work => self.waiting.try_reserve(1).is_ok(),
                Effect::MaybeWork => self.unsure.try_reserve(1).is_ok(),
                _ => true,
            };
        if !has_memory {
            self.lost.no_memory += 1;
            return;
        }
        let correlation = launch.correlations[0];
        match launch.effect {
            Effect::Work => {
                self.waiting.insert(correlation);
            }
            Effect::MaybeWork => {
                self.unsure.insert(correlation, self.launches.len());
            }
            Effect::StreamFinished | Effect::ContextFinished | Effect::Nothing => {}
        }
        self.launches.push(launch);
    }

    pub(super) fn add_activity(
        &mut self,
        spec: &WindowSpec,
        correlation: u32,
        activity: WorkActivity,
    ) {
        // A copy that waits may have a record of its wait before that of its work.
        if !matches!(activity.details.kind, GpuWorkKind::Synchronization(_)) {
            self.waiting.remove(&correlation);
            self.unsure.remove(&correlation);
        }
        self.add(spec, Some(correlation), activity);
    }

    pub(super) fn add_without_launch(&mut self, spec: &WindowSpec, activity: WorkActivity) {
        self.add(spec, None, activity);
    }

    fn add(&mut self, spec: &WindowSpec, correlation: Option<u32>, activity: WorkActivity) {
        if self.activities.len() >= spec.capacity {
            self.lost.over_capacity += 1;
        } else if self.activities.try_reserve(1).is_err() {
            self.lost.no_memory += 1;
        } else {
            self.activities.push((correlation, activity));
        }
    }

    /// Adds a time that the program reported. It is in the window if its scope is.
    pub(super) fn add_reported(&mut self, spec: &WindowSpec, time: &DeviceTime) {
        if self.reported.len() >= spec.capacity {
            self.lost.over_capacity += 1;
        } else if self.reported.try_reserve(1).is_err() {
            self.lost.no_memory += 1;
        } else {
            self.reported.push(time.clone());
        }
    }

    /// Returns `true` if there are launches whose records have not arrived, and surely come.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the launches without a record that may have none.
    pub(super) fn unsure(&self) -> impl ExactSizeIterator<Item = &Launch> {
        self.unsure.values().map(|place| &self.launches[*place])
    }

    /// Forgets launches that have no record. Those that are left count as incomplete.
    pub(super) fn have_no_record(&mut self, has_none: impl Fn(&Launch) -> bool) {
        let launches = &self.launches;
        self.unsure.retain(|_, place| !has_none(&launches[*place]));
    }

    /// Returns since when no record has arrived, in ticks.
    pub(super) fn quiet_since(&mut self, now: u64) -> u64 {
        if self.seen.0 != self.activities.len() {
            self.seen = (self.activities.len(), now);
        }
        self.seen.1
    }

    /// Returns the threads that launched for scopes which other threads may have, each once.
    pub(super) fn launching_threads(&self) -> Vec<u64> {
        let launches = self.launches.iter();
        let asked = launches.filter(|launch| launch.asker.is_some());
        let mut threads: Vec<u64> = asked.map(|launch| launch.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    pub(super) fn set_names(&mut self, names: &[Arc<str>]) {
        self.names = names.to_vec();
    }

    /// Returns the number of launches and records.
    pub(super) fn records(&self) -> usize {
        self.launches.len() + self.activities.len() + self.reported.len()
    }

    /// Drops all launches and records, and keeps the counts. Returns how many were dropped.
    pub(super) fn clear(&mut self) -> u64 {
        let dropped = self.records();
        *self = Self {
            lost: self.lost,
            read_at: self.read_at,
            ..Self::default()
        };
        dropped as u64
    }

    /// Builds the work of a complete window.
    pub(super) fn build(mut self, around: &Around<'_>) -> WindowWork {
        let mut lost = self.lost;
        lost.incomplete += (self.waiting.len() + self.unsure.len()) as u64;
        self.launches.sort_unstable_by_key(|launch| launch.start);
        let mut names = Names::default();
        let has_askers =
            !self.reported.is_empty() || self.launches.iter().any(|launch| launch.asker.is_some());
        let finder = ScopeFinder::new(around, has_askers);
        let threads: HashMap<u64, usize> = (around.threads.iter().enumerate())
            .map(|(index, thread)| (thread.number, index))
            .collect();
        let launches: Vec<LaunchRecord> = self
            .launches
            .iter()
            .map(|launch| {
                let thread = threads.get(&launch.thread);
                let thread = thread.map_or(NONE, |index| u32::try_from(*index).unwrap_or(NONE));
                LaunchRecord {
                    name: names.index(launch.name),
                    thread,
                    span: (
                        around.line.unix_ns(launch.start),
                        around.line.unix_ns(launch.end),
                    ),
                    scope: finder.scope_of(thread, launch),
                    since: (launch.asker).map(|asker| around.line.unix_ns(asker.since)),
                    correlation: launch.correlations[0],
                }
            })
            .collect();
        let by_correlation: HashMap<u32, u32> = (0..)
            .zip(&launches)
            .map(|(index, launch)| (launch.correlation, index))
            .collect();
        let contexts = cuda::context_numbers();
        let devices = devices(&self.activities);
        let mut work = Vec::with_capacity(self.activities.len());
        for (correlation, activity) in &self.activities {
            if activity.is_incomplete() {
                lost.incomplete += 1;
                continue;
            }
            let span = activity.span();
            lost.without_time += u64::from(span.is_none());
            let launch = correlation.and_then(|correlation| by_correlation.get(&correlation));
            let launch = launch.copied().unwrap_or(NONE);
            let mut details = activity.details;
            if matches!(details.kind, GpuWorkKind::Synchronization(_)) {
                details.device = devices.get(&details.context).copied().unwrap_or_default();
            }
            let name = match &self.names.get(activity.name as usize) {
                Some(name) => names.index(name),
                None => names.index(&details.kind.name()),
            };
            let call = self.launches.get(launch as usize);
            work.push(WorkRecord {
                name,
                span,
                launch,
                stream_key: call.and_then(|call| stream_key(call, &contexts)),
                details,
            });
        }
        work.sort_by_key(|work| work.span);
        let reported = self.reported.iter().filter_map(|time| {
            let scope = finder.owners.get(&time.shared)?;
            Some(ReportedTime {
                span: time.span,
                name: names.index(&time.name),
                scope: *scope,
            })
        });
        let mut reported: Vec<ReportedTime> = reported.collect();
        reported.sort_by_key(|time| time.span);
        let mut built = WindowWork {
            work,
            launches,
            reported,
            names: names.all,
            lost,
            ..WindowWork::default()
        };
        let thread_of = |launch: u32| Some(self.launches.get(launch as usize)?.thread);
        let label = |thread| cuda::launching_thread(thread)?.label();
        let elsewhere = work_elsewhere::note(
            &built,
            around.scope_threads,
            thread_of,
            label,
            cuda::has_launch_hook(),
        );
        built.notes.extend(elsewhere);
        built
    }
}

/// Returns the device of each context that some record names.
fn devices(activities: &[(Option<u32>, WorkActivity)]) -> HashMap<u32, u32> {
    let on_device = activities
        .iter()
        .map(|(_, activity)| activity.details)
        .filter(|details| !matches!(details.kind, GpuWorkKind::Synchronization(_)));
    on_device
        .map(|details| (details.context, details.device))
        .collect()
}

/// Returns the key of the stream that a call used. `None` if no GPU time was taken in its context, or on its thread's
/// own default stream.
pub(super) fn stream_key(launch: &Launch, contexts: &[(usize, u32)]) -> Option<StreamKey> {
    let stream = launch.stream?;
    let is_known = |(address, _): &&(usize, u32)| *address == launch.context;
    let (_, context) = contexts.iter().find(is_known)?;
    let thread = if stream == RawStream::PER_THREAD {
        Some(launch.gpu_thread).filter(|thread| *thread != 0)?
    } else {
        0
    };
    Some(StreamKey {
        context: *context,
        thread,
        stream,
    })
}

/// The names of a window's work, each once.
#[derive(Default)]
struct Names {
    all: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32>,
}

impl Names {
    fn index(&mut self, name: &str) -> u32 {
        if let Some(known) = self.places.get(name) {
            return *known;
        }
        let index = u32::try_from(self.all.len()).unwrap_or(NO_NAME);
        let name: Arc<str> = name.into();
        self.all.push(Arc::clone(&name));
        self.places.insert(name, index);
        index
    }
}

/// Finds the scope of a launch among the records of a window.
struct ScopeFinder<'w> {
    /// Scopes and polls by thread and serial.
    scopes: &'w [ScopeRecord],
    nodes: &'w [LinkedScope],
    /// The index of each future by its serial.
    futures: HashMap<u64, u32>,
    /// The index of each scope that launches of other threads were made for, by the id that these name it by.
    owners: HashMap<u64, u32>,
}

impl<'w> ScopeFinder<'w> {
    fn new(around: &Around<'w>, has_askers: bool) -> Self {
        let is_future = |scope: &ScopeRecord| matches!(scope.kind, RecordKind::Future { .. });
        let first = around.scopes.partition_point(|scope| !is_future(scope));
        let (scopes, futures) = around.scopes.split_at(first);
        let index = |place: usize| u32::try_from(first + place).unwrap_or(NONE);
        Self {
            scopes,
            nodes: around.nodes,
            futures: (futures.iter().enumerate())
                .map(|(place, future)| (future.serial, index(place)))
                .collect(),
            // Without memory for them, the launches belong to no scope.
            owners: has_askers
                .then(|| across_threads::owners(around.scopes))
                .flatten()
                .unwrap_or_default(),
        }
    }

    /// Returns the index of the scope that a call was made for: the one that it names, or else the innermost one around it.
    fn scope_of(&self, thread: u32, launch: &Launch) -> u32 {
        match launch.asker {
            Some(asker) => self.owners.get(&asker.shared).copied().unwrap_or(NONE),
            None => self.innermost(thread, launch),
        }
    }

    /// Returns the index of the innermost scope around a call. If that is not in the window, returns the innermost one in
    /// the window that was open around both.
    fn innermost(&self, thread: u32, launch: &Launch) -> u32 {
        let mut serial = launch.scope;
        while serial != 0 {
            // The record with this serial, or the last one that opened before it.
            let beyond = self
                .scopes
                .partition_point(|scope| (scope.thread, scope.serial) <= (thread, serial));
            let Some(place) = beyond.checked_sub(1) else {
                return NONE;
            };
            let scope = &self.scopes[place];
            if scope.thread != thread {
                return NONE;
            }
            let contains = scope.start <= launch.start && scope.end() >= launch.start;
            if scope.serial == launch.scope || contains {
                return self.of_record(place);
            }
            // Serials of enclosing scopes are smaller, so this ends.
            serial = scope.parent.min(scope.serial.saturating_sub(1));
        }
        NONE
    }

    /// Returns the scope that a record belongs to: for a poll its future, or if that is not in the window, the scope
    /// around the poll.
    fn of_record(&self, place: usize) -> u32 {
        match self.scopes[place].kind {
            RecordKind::Poll { future } => match self.futures.get(&future) {
                Some(future) => *future,
                None => self.nodes.get(place).map_or(NONE, |node| node.parent),
            },
            _ => u32::try_from(place).unwrap_or(NONE),
        }
    }
}
