//! The thread that sorts recorded scopes into windows and decides when a window is complete.
//!
//! A window is complete when all scopes that ended before it closed have arrived, the GPU time of each of them has been
//! read, and the sample at its end was taken. No thread waits for the device.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use profiler_host::background::Background;
use profiler_host::sync::ReentrancyGuard;

use super::delivery::Delivery;
use super::late::LateScopes;
use super::queue::CompleteWindow;
use super::record::{ScopeRecord, ThreadInfo};
use super::registry::{RegisteredWindow, registry};
use super::window::WindowSpec;
use super::window_builder::WindowBuilder;
use super::work_joiner::WorkJoiner;
use super::{kernels, recording, ring};
use crate::clock::{clock, now};
use crate::cuda::GpuRecord;
use crate::cuda::{self, Flushed, ReadSoFar};
use crate::own_cost;

static THREAD: Background = Background::new("profiler-windows", run, || {});
/// `true` while the process is ending: windows are delivered without the GPU times that are missing.
static SKIP_UNREAD: AtomicBool = AtomicBool::new(false);

/// How long it may take from the end of a scope to its arrival in the ring.
const GRACE: Duration = Duration::from_millis(1);
/// The poll interval while a window waits to be complete.
const SHORT: Duration = Duration::from_millis(1);
/// The poll interval while scopes are recorded. A thread that fills half of its ring in less time wakes this one.
const LONG: Duration = Duration::from_millis(10);
/// How long a scope may arrive after its GPU time, when GPU times need to be discarded.
const SETTLED: Duration = Duration::from_millis(100);
/// How long a window waits for another record of work that it launched, after the GPU times of its scopes have been read.
const WORK_PATIENCE: Duration = Duration::from_millis(500);
/// How long it waits for all of them, and for CUPTI to return from a call.
const WORK_LIMIT: Duration = Duration::from_secs(2);
/// How long a window waits for a sample on a machine that is busy. It does not wait for a call of NVML that hangs.
const SAMPLE_LIMIT: Duration = WORK_LIMIT;
/// Closed windows of one session that may wait for the device.
const MAX_WAITING: usize = 4;

pub(super) fn ensure_started() -> std::io::Result<()> {
    THREAD.start()
}

/// Wakes the thread. Cheap to call repeatedly.
pub(super) fn wake() {
    THREAD.wake();
}

/// Announces that a session opens no more windows.
pub(super) fn ended(session: u64, delivery: &Arc<Delivery>) {
    let _busy = ReentrancyGuard::try_enter();
    registry().ended.push((session, Arc::clone(delivery)));
    wake();
}

/// Delivers windows without missing GPU times, or waits for them again.
pub(super) fn skip_unread(skip_unread: bool) {
    SKIP_UNREAD.store(skip_unread, Relaxed);
    wake();
}

fn run() {
    let mut sorter = WindowSorter::default();
    loop {
        THREAD.clear_wakeup();
        let nap = sorter.round();
        own_cost::note_background();
        match nap {
            Some(nap) => thread::park_timeout(nap),
            None => thread::park(),
        }
    }
}

#[derive(Default)]
struct WindowSorter {
    builders: HashMap<u64, WindowBuilder>,
    batch: Vec<ScopeRecord>,
    /// The threads that the scopes in `batch` come from.
    threads: Vec<Arc<ThreadInfo>>,
    late: LateScopes,
    work: WorkJoiner,
}

impl Drop for WindowSorter {
    /// After a panic, counts the scopes that are lost with this value. Windows that were not delivered are filled from
    /// the start again.
    fn drop(&mut self) {
        let filled: usize = self.builders.values().map(WindowBuilder::len).sum();
        let lost = (self.batch.len() + filled) as u64;
        let mut registry = registry();
        ring::lose(lost);
        // A closed window has read the counts already: add to its copy.
        let entries = registry.entries.iter_mut();
        for entry in entries.filter(|entry| entry.closing.is_some()) {
            entry.spec.lost_after.ring_full += lost;
        }
    }
}

impl WindowSorter {
    /// Runs one round. Returns how long to wait until the next one, or `None` while nothing is recorded.
    fn round(&mut self) -> Option<Duration> {
        let begun = now();
        // Ask before taking the GPU records: every time that was read up to now is among them.
        let read = cuda::read_so_far();
        // A GPU time may arrive before its scope; they are linked when the window is complete.
        let gpu = crate::cuda::take_records();
        let flushed = cuda::flushed();
        let work = cuda::take_work();
        ring::drain(|thread, scope| self.buffer(thread, scope));
        // Read the registry after the rings: the window of every scope taken is registered by now.
        let specs = specs();
        self.sort(&specs);
        self.work.sort(work, &specs, &mut self.builders);
        if !flushed.is_final() {
            self.work.read(&gpu);
        }
        let recent = begun.saturating_sub(clock().in_ticks(SETTLED));
        for spec in &specs {
            let builder = self.builders.entry(spec.id).or_default();
            let times = gpu.iter().filter(|gpu| !gpu.is_replay);
            times.for_each(|gpu| builder.add_gpu(spec, gpu));
            builder.discard_unrelated_gpu(spec, recent);
        }
        let replays = gpu.iter().filter(|gpu| gpu.is_replay);
        replays.for_each(|replay| self.add_replay(&specs, replay));
        let is_waiting = self.complete(&specs, begun, &read, flushed);
        self.builders
            .retain(|id, _| specs.iter().any(|spec| spec.id == *id));
        for session in release_ended() {
            self.late.end(session);
            self.work.end(session);
        }
        // Records of a session may come after its last window, until CUPTI has no more.
        let awaits_late = self.work.settle_ended(flushed.is_final());
        if is_waiting {
            Some(SHORT)
        } else {
            let is_recording = recording::is_recording();
            if is_recording {
                kernels::repeat();
            } else if !awaits_late {
                self.free();
            }
            (is_recording || awaits_late).then_some(LONG)
        }
    }

    /// Frees the memory of the last burst, while nothing is recorded.
    fn free(&mut self) {
        (self.batch, self.threads) = (Vec::new(), Vec::new());
        // A session may have stopped since this round took the windows. Its window, which was open then, still waits for
        // the records of its launches.
        if self.builders.is_empty() {
            self.work.free();
        }
    }

    /// Adds a replay to the first window of each session that the device may not have passed: a replay is noticed some
    /// time after its launch.
    fn add_replay(&mut self, specs: &[WindowSpec], replay: &GpuRecord) {
        let mut sessions = Vec::new();
        for spec in specs.iter().filter(|spec| spec.opened <= replay.cpu_end) {
            if !sessions.contains(&spec.session) {
                sessions.push(spec.session);
                let builder = self.builders.entry(spec.id).or_default();
                builder.add_replay(spec, replay);
            }
        }
    }

    /// Buffers a scope from a ring. If memory is short, sorts the buffered scopes into their windows first: a scope
    /// dropped here could not be attributed to a window.
    fn buffer(&mut self, thread: &Arc<ThreadInfo>, mut scope: ScopeRecord) {
        let has_room = self.batch.try_reserve(1).is_ok();
        if !has_room {
            self.sort(&specs());
        }
        let threads = &mut self.threads;
        if !threads.last().is_some_and(|last| Arc::ptr_eq(last, thread)) {
            threads.push(Arc::clone(thread));
        }
        scope.thread = u32::try_from(threads.len() - 1).unwrap_or_default();
        if self.batch.capacity() > 0 {
            self.batch.push(scope);
        } else {
            let scopes = [scope];
            sort_into(
                &mut self.builders,
                &self.threads,
                &mut self.late,
                &specs(),
                &scopes,
            );
        }
    }

    /// Sorts the buffered scopes into windows.
    fn sort(&mut self, specs: &[WindowSpec]) {
        let Self {
            builders,
            batch,
            threads,
            late,
            work: _,
        } = self;
        // Clear the batch only after sorting: the destructor counts it after a panic.
        sort_into(builders, threads, late, specs, batch);
        batch.clear();
        threads.clear();
    }

    /// Delivers complete windows, those of each session in the order in which they opened. Returns `true` if some window is not complete.
    fn complete(
        &mut self,
        specs: &[WindowSpec],
        begun: u64,
        read: &ReadSoFar,
        flushed: Flushed,
    ) -> bool {
        let grace = clock().in_ticks(GRACE);
        let mut blocked: Vec<(u64, usize)> = Vec::new();
        for spec in specs {
            let Some(closed) = spec.closed else { continue };
            let session = spec.session;
            // Windows of one session are delivered in order.
            let behind = blocked.iter().position(|(known, _)| *known == session);
            let has_come = begun >= closed + grace;
            let is_read = || {
                let has_cuda = self
                    .builders
                    .get(&spec.id)
                    .is_some_and(WindowBuilder::has_cuda)
                    || spec.options.cuda && cuda::graphs_are_watched();
                !has_cuda || SKIP_UNREAD.load(Relaxed) || read.has(closed, closed + grace)
            };
            if behind.is_none()
                && has_come
                && is_read()
                && self.has_work(spec, begun, flushed)
                && has_sample(spec, specs, begun)
            {
                self.deliver(spec.id);
                continue;
            }
            match behind {
                Some(place) => blocked[place].1 += usize::from(has_come),
                None => blocked.push((session, has_come.into())),
            }
        }
        // If too many windows wait, the oldest is delivered without its missing GPU times.
        for (session, waiting) in &blocked {
            let oldest = specs
                .iter()
                .filter(|spec| spec.session == *session && spec.closed.is_some())
                .find(|spec| self.builders.contains_key(&spec.id));
            if *waiting > MAX_WAITING
                && let Some(oldest) = oldest
            {
                self.deliver(oldest.id);
            }
        }
        !blocked.is_empty()
    }

    /// Returns `true` if the records of the window's kernels have arrived, or it has waited long enough for them. The GPU
    /// times of its scopes have been read.
    fn has_work(&mut self, spec: &WindowSpec, begun: u64, flushed: Flushed) -> bool {
        if !spec.has_kernels() || SKIP_UNREAD.load(Relaxed) {
            return true;
        }
        let work = &mut self.builders.entry(spec.id).or_default().work;
        let read_at = *work.read_at.get_or_insert(begun);
        let [patience, limit] = [WORK_PATIENCE, WORK_LIMIT].map(|time| clock().in_ticks(time));
        if begun - read_at > limit {
            return true;
        }
        let quiet_since = work.quiet_since(begun).max(read_at);
        if self.work.is_settled(work) {
            // A flush gives what is complete, also records of launches that seem to have none.
            let is_sure = work.unsure().len() == 0;
            let settled_at = if is_sure {
                read_at
            } else {
                *work.settled_at.get_or_insert(begun)
            };
            return flushed.includes(settled_at, false);
        }
        work.settled_at = None;
        // Work that the device has not finished needs another flush. If no more records come, what is there is taken.
        if begun - quiet_since <= patience {
            let recently = begun.saturating_sub(clock().in_ticks(LONG));
            let _ = flushed.includes(read_at.max(recently), false);
            return false;
        }
        flushed.includes(quiet_since + patience, true)
    }

    fn deliver(&mut self, id: u64) {
        let mut builder = self.builders.remove(&id).unwrap_or_default();
        let removed = registry().remove(id);
        if let Some(RegisteredWindow {
            spec,
            delivery,
            closing: Some(closing),
        }) = removed
        {
            builder.late = self.late.deliver(&spec);
            self.work.deliver(&spec, &mut builder);
            delivery.deliver(CompleteWindow {
                spec,
                closing,
                builder,
                windows: 1,
            });
        }
    }
}

/// Returns `true` if the sample that a window has asked for when it closed is there, or the window has waited long enough
/// for it: until the next one has closed, at most.
fn has_sample(spec: &WindowSpec, specs: &[WindowSpec], begun: u64) -> bool {
    let Some((sample, closed)) = spec.closing_sample.zip(spec.closed) else {
        return true;
    };
    let is_next = |other: &WindowSpec| {
        other.session == spec.session && other.id > spec.id && other.closed.is_some()
    };
    sample.has_come()
        || SKIP_UNREAD.load(Relaxed)
        || begun.saturating_sub(closed) > clock().in_ticks(SAMPLE_LIMIT)
        || specs.iter().any(is_next)
}

/// Sorts scopes into windows.
fn sort_into(
    builders: &mut HashMap<u64, WindowBuilder>,
    threads: &[Arc<ThreadInfo>],
    late: &mut LateScopes,
    specs: &[WindowSpec],
    scopes: &[ScopeRecord],
) {
    for spec in specs {
        let builder = builders.entry(spec.id).or_default();
        for scope in scopes {
            let thread = &threads[scope.thread as usize];
            builder.add(spec, thread, scope);
        }
    }
    late.look(scopes);
}

/// Returns the windows that are open, or closed and not delivered.
fn specs() -> Vec<WindowSpec> {
    let registry = registry();
    let specs = registry.entries.iter().map(|entry| entry.spec.clone());
    specs.collect()
}

/// Ends the handlers' threads of sessions whose last window is delivered. Returns the ids of these sessions.
fn release_ended() -> Vec<u64> {
    let mut guard = registry();
    let registry = &mut *guard;
    let entries = &registry.entries;
    let has_windows = |session: u64| entries.iter().any(|entry| entry.spec.session == session);
    let released: Vec<_> = registry
        .ended
        .extract_if(.., |(session, _)| !has_windows(*session))
        .collect();
    // Drop them with the lock released: one may hold a large trace.
    drop(guard);
    let finish = |(session, delivery): (u64, Arc<Delivery>)| {
        delivery.finish();
        session
    };
    released.into_iter().map(finish).collect()
}

#[cfg(test)]
mod tests {
    use super::super::SessionOptions;
    use super::super::ended::RecordEnding;
    use super::super::record::RecordKind;
    use super::super::window::WindowClose;
    use super::super::work_joiner::tests::{launch, ready, record};
    use super::*;
    use crate::clock::WallAnchor;
    use crate::cuda::WorkLosses;
    use profiler_host::diagnostics::catch_own_panic;

    fn scope() -> ScopeRecord {
        ScopeRecord {
            name: 0,
            ending: RecordEnding::Returned,
            thread: 0,
            has_cpu: true,
            serial: 1,
            parent: 0,
            start: 1,
            elapsed: 1,
            cuda: 0,
            kind: RecordKind::Scope,
            extra: None,
        }
    }

    #[test]
    fn records_that_are_lost_in_a_panic_are_counted() {
        let before = ring::lost().ring_full;
        let panicked = catch_own_panic("a test panicked", || {
            let mut sorter = WindowSorter::default();
            sorter.batch.extend([scope(), scope()]);
            std::panic::panic_any("a test panics");
        });
        assert!(panicked.is_none());
        // Other tests lose scopes too.
        assert!(ring::lost().ring_full >= before + 2);
    }

    /// Adds a window that has not been delivered. Returns its id.
    fn closed_window() -> u64 {
        let anchor = WallAnchor::narrow();
        let spec = WindowSpec {
            id: 0,
            // No session has this id.
            session: 0,
            cycle: 0,
            capacity: 10,
            options: SessionOptions::DEFAULT,
            opened: now(),
            // Without its end, the thread of all sessions does not deliver it.
            closed: None,
            toggles: Vec::new(),
            first: anchor,
            lost_before: ring::lost(),
            lost_after: ring::lost(),
            lost_work_before: WorkLosses::now(),
            closing_sample: None,
        };
        let closing = WindowClose {
            cut_short: false,
            step_num: 0,
            steps: Vec::new(),
            metadata: Vec::new(),
            last: anchor,
            recording: None,
        };
        let mut registry = registry();
        let id = registry.add(&Arc::new(Delivery::new(true)), spec);
        if let Some(entry) = registry.get(id) {
            entry.closing = Some(closing);
        }
        id
    }

    #[test]
    fn launches_are_known_until_the_last_window_is_delivered() {
        let id = closed_window();
        let specs: Vec<_> = specs().into_iter().filter(|spec| spec.id == id).collect();
        let mut sorter = WindowSorter::default();
        let launches = [launch(specs[0].opened, 7)];
        sorter
            .work
            .sort(ready(&launches, &[]), &specs, &mut sorter.builders);
        assert!(sorter.builders[&id].work.is_waiting());
        // The session stops after the round has found the window open.
        sorter.free();
        sorter
            .work
            .sort(ready(&[], &[record(7)]), &specs, &mut sorter.builders);
        assert!(!sorter.builders[&id].work.is_waiting());
        registry().remove(id);
    }

    #[test]
    fn records_that_are_lost_in_a_panic_are_missing_in_closed_windows_too() {
        let id = closed_window();
        let panicked = catch_own_panic("a test panicked", || {
            let mut sorter = WindowSorter::default();
            sorter.batch.extend([scope(), scope()]);
            std::panic::panic_any("a test panics");
        });
        assert!(panicked.is_none());
        let entry = registry().remove(id).expect("it was not handed over");
        let lost = entry.spec.lost_after.since(entry.spec.lost_before);
        // Other tests lose scopes too.
        assert!(lost.ring_full >= 2, "{lost:?}");
    }
}
