//! The thread that sorts recorded scopes into windows, and finds out when a window is complete.
//!
//! A window is complete when all scopes that ended before it closed have come, and the GPU time of each of them
//! has been read: nobody waits for the device.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use super::delivery::CompleteWindow;
use super::late::LateScopes;
use super::live::Session;
use super::record::{ScopeRecord, ThreadInfo};
use super::registry::{RegisteredWindow, registry};
use super::window::{WindowBuilder, WindowSpec};
use super::{recording, ring};
use crate::background::Background;
use crate::clock::{clock, now};
use crate::cuda::GpuRecord;
use crate::cuda::{self, ReadSoFar};
use crate::own_cost;
use crate::sync::ReentrancyGuard;

static THREAD: Background = Background::new("profiler-windows", run, || {});
/// Whether windows are handed over that GPU times are still missing from: the process is ending.
static SKIP_UNREAD: AtomicBool = AtomicBool::new(false);

/// How long a thread may take from the end of a scope to its ring.
const GRACE: Duration = Duration::from_millis(1);
/// While a window waits to be complete.
const SHORT: Duration = Duration::from_millis(1);
/// While scopes are recorded: a thread that fills half of its ring in less calls.
const LONG: Duration = Duration::from_millis(10);
/// How long a scope may come after its GPU time where that would lack room.
const SETTLED: Duration = Duration::from_millis(100);
/// Closed windows of one session that wait for the device at most.
const MAX_WAITING: usize = 4;

pub(super) fn ensure_started() -> std::io::Result<()> {
    THREAD.start()
}

/// Has the thread look soon. Cheap to call again and again.
pub(super) fn wake() {
    THREAD.wake();
}

/// A session opens no more windows.
pub(super) fn ended(session: &Arc<Session>) {
    let _busy = ReentrancyGuard::try_enter();
    registry().ended.push(Arc::clone(session));
    wake();
}

/// Has windows handed over without the GPU times that are not read yet.
pub(super) fn skip_unread(skip_unread: bool) {
    SKIP_UNREAD.store(skip_unread, Relaxed);
    wake();
}

fn run() {
    let mut worker = WindowSorter::default();
    loop {
        THREAD.looks();
        let nap = worker.round();
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
    /// The threads that the batch comes from.
    threads: Vec<Arc<ThreadInfo>>,
    late: LateScopes,
}

impl Drop for WindowSorter {
    /// Counts what goes with it where the thread panicked, in the windows that are not handed over: those are filled
    /// anew.
    fn drop(&mut self) {
        let filled: usize = self.builders.values().map(WindowBuilder::len).sum();
        let lost = (self.batch.len() + filled) as u64;
        let mut registry = registry();
        ring::lose(lost);
        // One that has closed has counted already what was lost up to then.
        let closings = registry.entries.iter_mut();
        for closing in closings.filter_map(|entry| entry.closing.as_mut()) {
            closing.lost_after.ring_full += lost;
        }
    }
}

impl WindowSorter {
    /// Says how long to wait until the next time; for ever where nothing is recorded.
    fn round(&mut self) -> Option<Duration> {
        let begun = now();
        // Before the inbox is emptied: what is read by now is in it.
        let read = cuda::read_so_far();
        // They find their scopes when a window is put together: a GPU time may come before its scope.
        let gpu = crate::cuda::take_records();
        ring::drain(|thread, scope| self.take(thread, scope));
        // After the rings were looked at: a window that one of these belongs to is known by now.
        let specs = specs();
        self.sort(&specs);
        let recent = begun.saturating_sub(clock().in_ticks(SETTLED));
        for spec in &specs {
            let builder = self.builders.entry(spec.id).or_default();
            let times = gpu.iter().filter(|gpu| !gpu.is_replay);
            times.for_each(|gpu| builder.add_gpu(spec, gpu));
            builder.settle(spec, recent);
        }
        let replays = gpu.iter().filter(|gpu| gpu.is_replay);
        replays.for_each(|replay| self.add_replay(&specs, replay));
        let is_waiting = self.complete(&specs, begun, &read);
        self.builders
            .retain(|id, _| specs.iter().any(|spec| spec.id == *id));
        for session in release_ended() {
            self.late.end(session);
        }
        if is_waiting {
            Some(SHORT)
        } else {
            let is_recording = recording::is_recording();
            if !is_recording {
                // Room for the last burst is not kept for ever.
                (self.batch, self.threads) = (Vec::new(), Vec::new());
            }
            is_recording.then_some(LONG)
        }
    }

    /// A replay is noticed some time after it was launched: of the windows of a session that the device may not have
    /// passed, it belongs to the first.
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

    /// Takes a scope out of a ring. Where there is no memory for more of them, those before it are sorted now: no scope
    /// is lost here, since it could not be told in which window it is missing.
    fn take(&mut self, thread: &Arc<ThreadInfo>, mut scope: ScopeRecord) {
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
            sort_some(
                &mut self.builders,
                &self.threads,
                &mut self.late,
                &specs(),
                &scopes,
            );
        }
    }

    /// Sorts the batch into windows.
    fn sort(&mut self, specs: &[WindowSpec]) {
        let Self {
            builders,
            batch,
            threads,
            late,
        } = self;
        // It stays where it is until it is sorted: after a panic it is counted.
        sort_some(builders, threads, late, specs, batch);
        batch.clear();
        threads.clear();
    }

    /// Hands complete windows over, in the order in which they opened; true where one is waited for.
    fn complete(&mut self, specs: &[WindowSpec], begun: u64, read: &ReadSoFar) -> bool {
        let grace = clock().in_ticks(GRACE);
        let mut blocked: Vec<(u64, usize)> = Vec::new();
        for spec in specs {
            let Some(closed) = spec.closed else { continue };
            let session = spec.session;
            // Windows of one session are handed over in order.
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
            if behind.is_none() && has_come && is_read() {
                self.deliver(spec.id);
                continue;
            }
            match behind {
                Some(place) => blocked[place].1 += usize::from(has_come),
                None => blocked.push((session, has_come.into())),
            }
        }
        // Of too many that wait, the oldest goes without what is missing.
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

    fn deliver(&mut self, id: u64) {
        let mut builder = self.builders.remove(&id).unwrap_or_default();
        let removed = registry().remove(id);
        if let Some(RegisteredWindow {
            spec,
            session,
            closing: Some(closing),
        }) = removed
        {
            builder.late = self.late.deliver(&spec);
            session.delivery.deliver(CompleteWindow {
                spec,
                closing,
                builder,
                windows: 1,
            });
        }
    }
}

/// Sorts scopes into windows.
fn sort_some(
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

/// The windows that are open, or closed and not handed over.
fn specs() -> Vec<WindowSpec> {
    let registry = registry();
    let specs = registry.entries.iter().map(|entry| entry.spec.clone());
    specs.collect()
}

/// Ends the threads of sessions that have handed over their last window: their numbers.
fn release_ended() -> Vec<u64> {
    let mut guard = registry();
    let registry = &mut *guard;
    let entries = &registry.entries;
    let has_windows = |session: &mut Arc<Session>| {
        entries
            .iter()
            .any(|entry| Arc::ptr_eq(&entry.session, session))
    };
    let released: Vec<_> = registry
        .ended
        .extract_if(.., |session| !has_windows(session))
        .collect();
    // With the lock released: a session may have a large trace to drop.
    drop(guard);
    let finish = |session: &Arc<Session>| {
        session.delivery.finish();
        session.id()
    };
    released.iter().map(finish).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::super::live::SessionConfig;
    use super::super::record::{RecordEnding, RecordKind};
    use super::super::window::WindowClose;
    use super::*;
    use crate::clock::WallAnchor;
    use crate::diagnostics::contain::contained;

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
    fn what_a_panic_takes_with_it_is_counted() {
        let before = ring::lost().ring_full;
        let panicked = contained("a test panicked", || {
            let mut worker = WindowSorter::default();
            worker.batch.extend([scope(), scope()]);
            std::panic::panic_any("a test panics");
        });
        assert!(panicked.is_none());
        // Other tests lose some too.
        assert!(ring::lost().ring_full >= before + 2);
    }

    /// Adds a window that has been closed and is not handed over; returns its number.
    fn closed_window() -> u64 {
        let (session, _) = Session::new(SessionConfig {
            options: Options::DEFAULT,
            capacity: 10,
            schedule: None,
            handlers: Vec::new(),
            is_own: false,
        });
        let anchor = WallAnchor::narrow();
        let spec = WindowSpec {
            id: 0,
            session: session.id(),
            cycle: 0,
            capacity: 10,
            options: Options::DEFAULT,
            opened: now(),
            // Nobody hands it over without its end.
            closed: None,
            toggles: Vec::new(),
            first: anchor,
            lost_before: ring::lost(),
        };
        let closing = WindowClose {
            cut_short: false,
            step_num: 0,
            steps: Vec::new(),
            metadata: Vec::new(),
            lost_after: ring::lost(),
            last: anchor,
        };
        let mut registry = registry();
        let id = registry.add(&session, spec);
        if let Some(entry) = registry.get(id) {
            entry.closing = Some(closing);
        }
        id
    }

    #[test]
    fn what_a_panic_takes_with_it_is_missing_in_windows_that_have_closed_too() {
        let id = closed_window();
        let panicked = contained("a test panicked", || {
            let mut worker = WindowSorter::default();
            worker.batch.extend([scope(), scope()]);
            std::panic::panic_any("a test panics");
        });
        assert!(panicked.is_none());
        let entry = registry().remove(id).expect("it was not handed over");
        let closing = entry.closing.expect("it is closed");
        let lost = closing.lost_after.since(entry.spec.lost_before);
        // Other tests lose some too.
        assert!(lost.ring_full >= 2, "{lost:?}");
    }
}
