//! The thread that sorts recorded scopes into windows and decides when a window is complete.
//!
//! A window is complete when all scopes that ended before it closed have arrived, the GPU time of each of them has been
//! read, and the sample at its end was taken. No thread waits for the device.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use profiler_host::background::Background;
use profiler_host::sync::ReentrancyGuard;

use super::delivery::Delivery;
use super::device_times;
use super::late::LateScopes;
use super::processor::Processors;
use super::queue::CompleteWindow;
use super::record::{ScopeRecord, ThreadInfo};
use super::registry::{ClosedWindow, registry};
use super::window::WindowSpec;
use super::window_builder::WindowBuilder;
use super::windows::{FilledWindow, WindowState, Windows};
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
/// After this many rounds that found nothing, the thread sleeps until a scope is pushed, or a window closes: a thread that
/// records a scope now and then should not pay for the wakeup.
const QUIET_ROUNDS: u32 = 50;
/// How long a scope may arrive after its GPU time, when GPU times need to be discarded.
const SETTLED: Duration = Duration::from_millis(100);
/// How long a window waits for another record of work that it launched, after the GPU times of its scopes have been read.
const WORK_PATIENCE: Duration = Duration::from_millis(500);
/// How long it waits for a record of work that has finished and may have none: CUPTI completes records some time after that,
/// and a flush gives no other.
const LATE_RECORD: Duration = Duration::from_millis(100);
/// How long it waits for all of them, and for CUPTI to return from a call.
const WORK_LIMIT: Duration = Duration::from_secs(2);
/// How long a window waits for a sample on a machine that is busy. It does not wait for a call of NVML that hangs.
const SAMPLE_LIMIT: Duration = WORK_LIMIT;
/// Closed windows of one session that may wait for the device: beyond that, one is delivered in each round.
const MAX_WAITING: usize = 4;
/// The same for windows that close faster than there are rounds: all beyond that are delivered.
const MAX_SHORT_WAITING: usize = 1024;

pub(super) fn ensure_started() -> std::io::Result<()> {
    // Kernels are recorded from then on, also inside of a scope that is open already.
    cuda::when_found(wake);
    THREAD.start()
}

/// Wakes the thread. Cheap to call repeatedly.
pub(super) fn wake() {
    THREAD.wake();
}

/// Wakes the thread if it does not look by itself. Called after something was pushed for it.
#[inline(always)]
pub(super) fn wake_if_dozing() {
    THREAD.wake_if_dozing();
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
    let mut sleeper = THREAD.sleeper();
    loop {
        THREAD.clear_wakeup();
        let nap = sorter.round();
        own_cost::note_background();
        sleeper.sleep_or_doze(nap);
    }
}

#[derive(Default)]
struct WindowSorter {
    windows: Windows,
    batch: Vec<ScopeRecord>,
    /// The threads that the scopes in `batch` come from.
    threads: Vec<Arc<ThreadInfo>>,
    late: LateScopes,
    work: WorkJoiner,
    processors: Processors,
    /// How many rounds in succession found nothing to sort.
    quiet_rounds: u32,
}

impl Drop for WindowSorter {
    /// After a panic, counts the scopes that are lost with this value. Windows that were not delivered are filled from
    /// the start again.
    fn drop(&mut self) {
        let filled: usize = self.windows.all().map(|window| window.builder.len()).sum();
        let lost = (self.batch.len() + filled) as u64;
        let mut registry = registry();
        ring::lose(lost);
        registry.put_back(self.windows.take_closed());
        // A closed window has read the counts already: add to its copy.
        for window in registry.closed_mut() {
            window.spec.lost_after.ring_full += lost;
        }
    }
}

impl WindowSorter {
    /// Runs one round. Returns how long to wait until the next one, or `None` if there is nothing to do until a scope is pushed
    /// or a window closes.
    fn round(&mut self) -> Option<Duration> {
        let begun = now();
        // Ask before taking the GPU records: every time that was read up to now is among them.
        let read = cuda::read_so_far();
        // A GPU time may arrive before its scope; they are linked when the window is complete.
        let gpu = crate::cuda::take_records();
        let flushed = cuda::flushed();
        let work = cuda::take_work();
        let reported = device_times::take();
        let mut is_quiet = gpu.is_empty() && reported.0.is_empty();
        ring::drain(|thread, scope| {
            is_quiet = false;
            self.buffer(thread, scope);
        });
        // Read the registry after the rings: the window of every scope taken is registered by now.
        self.windows.update();
        self.sort();
        self.sample_processors();
        self.work.sort(work, &mut self.windows);
        self.work.sort_reported(reported, &mut self.windows);
        if !flushed.is_final() {
            self.work.read(&gpu);
        }
        self.sort_gpu(&gpu, begun);
        self.complete(begun, &read, flushed);
        for session in release_ended() {
            self.late.end(session);
            self.work.end(session);
        }
        // Records of a session may come after its last window, until CUPTI has no more.
        let awaits_late = self.work.settle_ended(flushed.is_final());
        // Who opens or closes a window wakes this thread only if the registry has no other.
        let (has_windows, has_waiting) = {
            let registry = registry();
            (registry.has_windows(), registry.has_waiting())
        };
        if has_waiting {
            return Some(SHORT);
        }
        let is_recording = recording::is_recording();
        if is_recording {
            kernels::repeat();
        }
        if awaits_late {
            return Some(LONG);
        }
        if !is_recording && !has_windows {
            self.free();
            return None;
        }
        self.quiet_rounds = if is_quiet {
            self.quiet_rounds.saturating_add(1)
        } else {
            0
        };
        let more_may_come = self.quiet_rounds <= QUIET_ROUNDS
            || cuda::is_beginning()
            || cuda::recording().is_some()
            || cuda::times_may_come();
        more_may_come.then_some(LONG)
    }

    /// Frees the memory of the last burst, while nothing is recorded.
    fn free(&mut self) {
        (self.batch, self.threads) = (Vec::new(), Vec::new());
        // A session may have stopped since this round took the windows. Its window, which was open then, still waits for
        // the records of its launches.
        if self.windows.sessions.is_empty() {
            self.work.free();
        }
    }

    /// Samples which threads are on a processor, for windows with kernels: that tells why a device was idle.
    fn sample_processors(&mut self) {
        if cuda::recording().is_none() {
            return;
        }
        let samples = self.processors.sample();
        for window in self.windows.all_mut().filter(|_| !samples.is_empty()) {
            let (spec, builder) = window.parts();
            if spec.has_kernels() {
                builder.processor.add(&samples, spec.closed);
            }
        }
    }

    /// Sorts GPU times into windows. `begun` is when the round began.
    fn sort_gpu(&mut self, gpu: &[GpuRecord], begun: u64) {
        for time in gpu.iter().filter(|gpu| !gpu.is_replay) {
            self.windows
                .around_end(time.cpu_end, |spec, builder| builder.add_gpu(spec, time));
        }
        if !gpu.is_empty() {
            let recent = begun.saturating_sub(clock().in_ticks(SETTLED));
            for window in self.windows.all_mut() {
                let (spec, builder) = window.parts();
                builder.discard_unrelated_gpu(spec, recent);
            }
        }
        // A replay is noticed some time after its launch: it belongs to the first window of each session that the device
        // may not have passed.
        for replay in gpu.iter().filter(|gpu| gpu.is_replay) {
            for window in self.windows.oldest() {
                let (spec, builder) = window.parts();
                if spec.opened <= replay.cpu_end {
                    builder.add_replay(spec, replay);
                }
            }
        }
    }

    /// Buffers a scope from a ring. If memory is short, sorts the buffered scopes into their windows first: a scope
    /// dropped here could not be attributed to a window.
    fn buffer(&mut self, thread: &Arc<ThreadInfo>, mut scope: ScopeRecord) {
        let has_room = self.batch.try_reserve(1).is_ok();
        if !has_room {
            self.windows.update();
            self.sort();
        }
        let threads = &mut self.threads;
        if !threads.last().is_some_and(|last| Arc::ptr_eq(last, thread)) {
            self.processors.note(thread);
            threads.push(Arc::clone(thread));
        }
        scope.thread = u32::try_from(threads.len() - 1).unwrap_or_default();
        if self.batch.capacity() > 0 {
            self.batch.push(scope);
        } else {
            let scopes = [scope];
            sort_into(&mut self.windows, &self.threads, &mut self.late, &scopes);
        }
    }

    /// Sorts the buffered scopes into windows.
    fn sort(&mut self) {
        let Self {
            windows,
            batch,
            threads,
            late,
            work: _,
            processors: _,
            quiet_rounds: _,
        } = self;
        // Clear the batch only after sorting: the destructor counts it after a panic.
        sort_into(windows, threads, late, batch);
        batch.clear();
        threads.clear();
    }

    /// Delivers complete windows, those of each session in the order in which they opened.
    fn complete(&mut self, begun: u64, read: &ReadSoFar, flushed: Flushed) {
        let grace = clock().in_ticks(GRACE);
        for place in 0..self.windows.sessions.len() {
            while self.is_complete(place, begun, read, flushed) {
                self.deliver(place);
            }
            // If too many windows wait, the oldest is delivered without its missing GPU times.
            let windows = &self.windows.sessions[place].windows;
            let has_come = |window: &FilledWindow| {
                let closed = window.spec().closed;
                closed.is_some_and(|closed| begun >= closed + grace)
            };
            let waiting = windows.partition_point(has_come);
            let surplus = waiting.saturating_sub(MAX_SHORT_WAITING);
            for _ in 0..surplus.max(usize::from(waiting > MAX_WAITING)) {
                self.deliver(place);
            }
        }
    }

    /// Returns `true` if the oldest window of the session at this place is closed and has all its records.
    fn is_complete(
        &mut self,
        place: usize,
        begun: u64,
        read: &ReadSoFar,
        flushed: Flushed,
    ) -> bool {
        let grace = clock().in_ticks(GRACE);
        let windows = &mut self.windows.sessions[place].windows;
        let has_next = windows.get(1).is_some_and(FilledWindow::is_closed);
        let Some(oldest) = windows.front_mut() else {
            return false;
        };
        let (spec, builder) = oldest.parts();
        let Some(closed) = spec.closed.filter(|closed| begun >= closed + grace) else {
            return false;
        };
        let is_read = || {
            let has_cuda = builder.has_cuda() || spec.options.cuda && cuda::graphs_are_watched();
            !has_cuda || SKIP_UNREAD.load(Relaxed) || read.has(closed, closed + grace)
        };
        is_read()
            && has_work(&self.work, spec, builder, begun, flushed)
            && has_sample(spec, has_next, begun)
    }

    /// Delivers the oldest window of the session at this place, which is closed.
    fn deliver(&mut self, place: usize) {
        let oldest = self.windows.sessions[place].windows.pop_front();
        let Some(FilledWindow {
            state: WindowState::Closed(closed),
            mut builder,
        }) = oldest
        else {
            return;
        };
        let ClosedWindow {
            spec,
            delivery,
            closing,
        } = *closed;
        registry().delivered(spec.session);
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

/// Returns `true` if the records of the window's kernels have arrived, or it has waited long enough for them. The GPU times
/// of its scopes have been read.
fn has_work(
    joiner: &WorkJoiner,
    spec: &WindowSpec,
    builder: &mut WindowBuilder,
    begun: u64,
    flushed: Flushed,
) -> bool {
    if !spec.has_kernels() || SKIP_UNREAD.load(Relaxed) {
        return true;
    }
    let work = &mut builder.work;
    let read_at = *work.read_at.get_or_insert(begun);
    let [patience, limit] = [WORK_PATIENCE, WORK_LIMIT].map(|time| clock().in_ticks(time));
    if begun - read_at > limit {
        return true;
    }
    let recently = begun.saturating_sub(clock().in_ticks(LONG));
    let quiet_since = work.quiet_since(begun).max(read_at);
    if joiner.is_settled(work) {
        if work.unsure().len() == 0 {
            return flushed.includes(read_at, false);
        }
        // A flush gives what is complete by then, also records of launches that seem to have none.
        let settled_at = *work.settled_at.get_or_insert(begun);
        let late = settled_at + clock().in_ticks(LATE_RECORD);
        if begun < late {
            let _ = flushed.includes(settled_at.max(recently), false);
            return false;
        }
        return flushed.includes(late, false);
    }
    work.settled_at = None;
    // Work that the device has not finished needs another flush. If no more records come, what is there is taken.
    if begun - quiet_since <= patience {
        let _ = flushed.includes(read_at.max(recently), false);
        return false;
    }
    flushed.includes(quiet_since + patience, true)
}

/// Returns `true` if the sample that a window has asked for when it closed is there, or the window has waited long enough
/// for it: until the next one has closed, at most.
fn has_sample(spec: &WindowSpec, has_next: bool, begun: u64) -> bool {
    let Some((sample, closed)) = spec.closing_sample.zip(spec.closed) else {
        return true;
    };
    sample.has_come()
        || SKIP_UNREAD.load(Relaxed)
        || begun.saturating_sub(closed) > clock().in_ticks(SAMPLE_LIMIT)
        || has_next
}

/// Sorts scopes into windows.
fn sort_into(
    windows: &mut Windows,
    threads: &[Arc<ThreadInfo>],
    late: &mut LateScopes,
    scopes: &[ScopeRecord],
) {
    for scope in scopes {
        let thread = &threads[scope.thread as usize];
        for window in windows.at(scope.start) {
            let (spec, builder) = window.parts();
            builder.add(spec, thread, scope);
        }
    }
    late.look(scopes);
}

/// Ends the handlers' threads of sessions whose last window is delivered. Returns the ids of these sessions.
fn release_ended() -> Vec<u64> {
    let mut guard = registry();
    let registry = &mut *guard;
    let ended = std::mem::take(&mut registry.ended);
    let has_windows = |(session, _): &(u64, _)| registry.windows_of(*session) > 0;
    let (left, released): (Vec<_>, Vec<_>) = ended.into_iter().partition(has_windows);
    registry.ended = left;
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
    use profiler_host::diagnostics::user_code;

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
        let panicked = user_code::call(|| {
            let mut sorter = WindowSorter::default();
            sorter.batch.extend([scope(), scope()]);
            std::panic::panic_any("a test panics");
        });
        assert!(panicked.is_none());
        // Other tests lose scopes too.
        assert!(ring::lost().ring_full >= before + 2);
    }

    /// A window of a session that no other test has.
    fn window(session: u64, opened: u64, closed: Option<u64>) -> WindowSpec {
        WindowSpec {
            id: 0,
            session,
            cycle: 0,
            skipped: 0,
            capacity: 10,
            options: SessionOptions {
                cuda: false,
                ..SessionOptions::DEFAULT
            },
            opened,
            closed,
            toggles: Vec::new(),
            first: WallAnchor::narrow(),
            lost_before: ring::lost(),
            lost_after: ring::lost(),
            had_warmup: false,
            lost_work_before: WorkLosses::now(),
            closing_sample: None,
        }
    }

    fn closing() -> WindowClose {
        WindowClose {
            cut_short: false,
            step_num: 0,
            steps: Vec::new(),
            metadata: Vec::new(),
            last: WallAnchor::narrow(),
            recording: None,
            why_off: None,
        }
    }

    #[test]
    fn launches_are_known_until_the_last_window_is_delivered() {
        let opened = now();
        let spec = WindowSpec {
            options: SessionOptions::DEFAULT,
            ..window(u64::MAX, opened, None)
        };
        let mut sorter = WindowSorter::default();
        sorter.windows = Windows::of([spec]);
        let is_waiting = |sorter: &WindowSorter| {
            let mut windows = sorter.windows.all();
            windows.any(|window| window.builder.work.is_waiting())
        };
        let launches = ready(&[launch(opened, 7)], &[]);
        sorter.work.sort(launches, &mut sorter.windows);
        assert!(is_waiting(&sorter));
        // The session stops after the round has found the window open.
        sorter.free();
        let records = ready(&[], &[record(7)]);
        sorter.work.sort(records, &mut sorter.windows);
        assert!(!is_waiting(&sorter));
    }

    #[test]
    fn records_that_are_lost_in_a_panic_are_missing_in_closed_windows_too() {
        const SESSION: u64 = u64::MAX - 1;

        let delivery = Arc::new(Delivery::new(true));
        for _ in 0..2 {
            let mut registry = registry();
            let id = registry.add(&delivery, window(SESSION, now(), Some(now())));
            registry.close(id, closing());
            drop(registry);
            let panicked = user_code::call(|| {
                let mut sorter = WindowSorter::default();
                // The first window is known when the thread panics, the second one is not.
                if delivery.closed() == 0 {
                    sorter.windows.update();
                }
                delivery.expect_one();
                sorter.batch.extend([scope(), scope()]);
                std::panic::panic_any("a test panics");
            });
            assert!(panicked.is_none());
        }
        let mut taken = Vec::new();
        let mut windows = Windows::default();
        windows.update();
        for window in windows.take_closed() {
            if window.spec.session == SESSION {
                registry().delivered(SESSION);
                taken.push(window.spec.lost_after.since(window.spec.lost_before));
            }
        }
        assert_eq!(taken.len(), 2, "none was handed over");
        // Other tests lose scopes too. The first window was there for both panics.
        let least = [4, 2];
        for (lost, least) in taken.iter().zip(least) {
            assert!(lost.ring_full >= least, "{lost:?}");
        }
    }

    /// A sorter with closed windows of a session, each of ten ticks, and one window of another session.
    fn beside(many: u64) -> (WindowSorter, [Arc<Delivery>; 2]) {
        let deliveries = [1, 2].map(|_| Arc::new(Delivery::new(true)));
        let windows = (0..many).map(|number| (0, 10 * number)).chain([(1, 0)]);
        let mut sorter = WindowSorter::default();
        for (place, opened) in windows {
            // Those of sessions that no other test has.
            let session = u64::MAX - 3 + u64::from(place > 0);
            sorter.windows.add_closed(ClosedWindow {
                spec: window(session, opened, Some(opened + 10)),
                delivery: Arc::clone(&deliveries[place]),
                closing: closing(),
            });
        }
        (sorter, deliveries)
    }

    /// Buffers a scope in each of the first windows of [`beside`].
    fn fill(sorter: &mut WindowSorter, many: u64) {
        sorter.threads.push(Arc::new(ThreadInfo {
            id: 1,
            number: 1,
            name: None,
        }));
        sorter.batch.extend((0..many).map(|number| ScopeRecord {
            start: 10 * number + 2,
            elapsed: 3,
            ..scope()
        }));
    }

    #[test]
    fn one_round_delivers_all_windows_that_are_complete_however_many_another_session_has() {
        let (mut sorter, deliveries) = beside(3_000);
        fill(&mut sorter, 3_000);
        sorter.sort();
        sorter.complete(now(), &ReadSoFar::EVERYTHING, cuda::flushed());
        let left: usize = sorter.windows.all().count();
        assert_eq!(left, 0);
        // Of the others only the counts are left, in the last one. The first scope is in the window beside them too.
        let queued = deliveries.map(|delivery| delivery.queued());
        assert_eq!(queued, [(3_000, 1_024), (1, 1)]);
    }

    #[test]
    fn a_scope_is_compared_with_few_of_thousands_of_windows() {
        const MANY: u64 = 4_096;

        let (mut sorter, _) = beside(MANY);
        fill(&mut sorter, MANY);
        let before = Windows::visited();
        sorter.sort();
        let visited = Windows::visited() - before;
        let mut all = sorter.windows.sessions[0].windows.iter();
        assert!(all.all(|window| window.builder.len() == 1));
        // A binary search in each of two sessions.
        let most = MANY * 2 * 13;
        assert!(visited <= most, "{visited} windows for {MANY} scopes");
    }
}
