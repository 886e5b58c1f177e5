//! One session that runs: its schedule, its windows, and the thread `profiler-export`, on which its handlers run.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use profiler_host::background::{self, Calls};
use profiler_host::diagnostics::{self, did_you_mean, similar, user_code};
use profiler_host::process::fork;
use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::{Lock, Locked};

use super::deferred_notices::DeferredNotices;
use super::delivery::Delivery;
use super::handler::Handler;
use super::registry::{MAX_WINDOWS, WindowRegistry, registry};
use super::ring::Lost;
use super::transition::{Effect, effects_of};
use super::window::{StepRecord, WindowClose, WindowSpec};
use super::{Activity, SessionOptions, kernels, recording, ring, thread_ring, window_sorter};
use crate::clock::{WallAnchor, now};
use crate::config::{Action, ActionFn};
use crate::cuda::{self, WorkLosses};
use crate::name;
use crate::switch::{self, with_control};

thread_local! {
    /// `true` while this thread runs a schedule.
    static IN_SCHEDULE: Cell<bool> = const { Cell::new(false) };
}

/// A session, shared by its guard and the thread of its handlers.
pub(super) struct Session {
    id: u64,
    options: SessionOptions,
    pub(super) capacity: usize,
    has_schedule: bool,
    /// Locked for a whole step, also while the schedule runs, which may be user code. Locked before `state`, never
    /// after it.
    schedule: Lock<ActionFn>,
    state: Lock<SessionState>,
    pub(super) delivery: Arc<Delivery>,
    has_ended: AtomicBool,
    /// `true` for the environment's session. Its handlers are the profiler's own and always return.
    pub(super) is_environment: bool,
}

struct SessionState {
    step: u64,
    action: Action,
    /// When the current step began, in ticks.
    began: u64,
    /// The id of the open window.
    open: Option<u64>,
    cycle: u64,
    /// Windows that were not opened since the last one was.
    skipped: u64,
    steps: Vec<StepRecord>,
    metadata: Vec<(String, String)>,
    /// The activities as last toggled.
    toggled: SessionOptions,
}

impl SessionState {
    fn new(options: SessionOptions) -> Self {
        Self {
            step: 0,
            action: Action::None,
            began: now(),
            open: None,
            cycle: 0,
            skipped: 0,
            steps: Vec::new(),
            metadata: Vec::new(),
            toggled: options,
        }
    }
}

/// The window, if any, that closes at the moment when another one opens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Closes {
    Nothing,
    /// The window before it.
    Previous,
}

/// The parameters of a session.
pub(super) struct SessionConfig {
    pub(super) options: SessionOptions,
    pub(super) capacity: usize,
    pub(super) schedule: Option<ActionFn>,
    pub(super) handlers: Vec<Handler>,
    pub(super) is_environment: bool,
}

impl Session {
    /// Creates a session without threads. Returns it together with its handlers.
    pub(super) fn new(setup: SessionConfig) -> (Arc<Self>, Vec<Handler>) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let SessionConfig {
            options,
            capacity,
            schedule,
            handlers,
            is_environment,
        } = setup;
        let session = Arc::new(Self {
            id: NEXT.fetch_add(1, Relaxed),
            options,
            capacity,
            has_schedule: schedule.is_some(),
            // After a fork that left a lock held, the child gets a schedule and a state that do nothing.
            schedule: Lock::with(
                schedule.unwrap_or_else(|| Box::new(|_| Action::Record)),
                || Box::new(|_| Action::None),
            ),
            state: Lock::with(SessionState::new(options), || {
                SessionState::new(SessionOptions::DEFAULT)
            }),
            // Nothing asks the environment's session for a trace.
            delivery: Arc::new(Delivery::new(!is_environment)),
            has_ended: AtomicBool::new(false),
            is_environment,
        });
        (session, handlers)
    }

    /// Starts the threads of a session, and its first step. Called inside the profiler.
    pub(super) fn start(self: &Arc<Self>, mut handlers: Vec<Handler>) -> std::io::Result<()> {
        window_sorter::ensure_started()?;
        let (running, failed) = (Arc::clone(self), Arc::clone(self));
        // Handlers are user code, which is measured.
        background::spawn(
            "profiler-export",
            Calls::Measured,
            move || running.delivery.run(&mut handlers),
            move || failed.delivery.give_up(),
        )?;
        let mut notices = DeferredNotices::default();
        let first = Self::ask(&self.schedule(), 0, &mut notices);
        if matches!(first, Action::Record | Action::RecordAndSave) {
            recording::begin(self.id, self.options);
            kernels::wait_until_ready(self.options, self.is_environment);
        }
        self.apply_transition(&mut self.state(), Some(first), &mut notices);
        notices.say();
        Ok(())
    }

    fn state(&self) -> Locked<'_, SessionState> {
        self.state.lock()
    }

    fn schedule(&self) -> Locked<'_, ActionFn> {
        self.schedule.lock()
    }

    /// Returns the schedule's action for a step. The schedule may be user code, and may panic.
    fn ask(schedule: &ActionFn, step: u64, notices: &mut DeferredNotices) -> Action {
        let before = IN_SCHEDULE.replace(true);
        let answer = user_code::call(|| schedule(step));
        IN_SCHEDULE.set(before);
        answer.unwrap_or_else(|| {
            notices.add(
                "a session's schedule panicked: nothing is recorded in the steps it was asked for",
            );
            Action::None
        })
    }

    /// Ends a step and begins the next one.
    pub(super) fn step(&self) {
        if !fork::is_own_process() {
            return;
        }
        // The lock that this call would wait for may be held by its own thread.
        if IN_SCHEDULE.get() {
            return diagnostics::warn_once(
                "`step` was called from inside of a schedule, and did nothing: a schedule only says what a step is",
            );
        }
        let mut notices = DeferredNotices::default();
        self.step_with(&self.schedule(), &mut notices);
        notices.say();
    }

    fn step_with(&self, schedule: &ActionFn, notices: &mut DeferredNotices) {
        let step = self.step_num() + 1;
        let next = Self::ask(schedule, step, notices);
        let mut state = self.state();
        if self.has_ended() {
            return;
        }
        self.note_step(&mut state);
        state.step = step;
        self.apply_transition(&mut state, Some(next), notices);
    }

    fn note_step(&self, state: &mut SessionState) {
        let end = now();
        // As in torch.profiler, a session without a schedule has no steps. The environment's session has the steps that
        // `step()` makes.
        let has_steps = self.has_schedule || self.is_environment;
        if has_steps && state.open.is_some() && state.steps.len() < self.capacity {
            let step = StepRecord {
                number: state.step,
                thread: thread_ring::this_thread(),
                start: state.began,
                end,
            };
            state.steps.push(step);
        }
        state.began = end;
    }

    /// Ends the session. Returns `true` on the first call.
    pub(super) fn stop(&self) -> bool {
        // A forked process has none of the profiler's threads, and its locks may be held forever.
        if !fork::is_own_process() {
            return false;
        }
        let mut state = self.state();
        if self.has_ended.swap(true, Relaxed) {
            return false;
        }
        let mut notices = DeferredNotices::default();
        if self.has_schedule || state.step > 0 {
            self.note_step(&mut state);
        }
        self.apply_transition(&mut state, None, &mut notices);
        let (steps, skipped) = (state.step, state.skipped);
        drop(state);
        if skipped > 0 {
            notices.add(&format!(
                "the last {skipped} windows of a session were not recorded, since {MAX_WINDOWS} waited to be put together: \
                 record fewer windows, or longer ones"
            ));
        }
        if steps == 0 {
            self.warn_of_no_step(&mut notices);
        }
        if self.is_environment && steps > 0 && self.delivery.closed() == 0 {
            notices.add(&format!(
                "PROFILER_SCHEDULE: the recording ended after {steps} steps, before it came to a window: nothing is \
                 written; lessen `skip_first`, `wait` or `warmup`"
            ));
        }
        window_sorter::ended(self.id, &self.delivery);
        notices.say();
        true
    }

    /// Waits until the handlers have returned for every window that is closed by now. Returns `false` on timeout.
    pub(super) fn wait(&self, timeout: Duration) -> bool {
        if !fork::is_own_process() {
            return false;
        }
        window_sorter::wake();
        self.delivery.wait(timeout)
    }

    /// Warns that the session ended without a step, if something asked for steps.
    fn warn_of_no_step(&self, notices: &mut DeferredNotices) {
        let reason = if self.is_environment {
            why_no_step()
        } else {
            None
        };
        let advice = match reason {
            Some(reason) => reason,
            None if !self.has_schedule => return,
            None if self.is_environment => {
                "call it at the end of each iteration, or say in PROFILER_STEP which name's calls are the steps of \
                 PROFILER_SCHEDULE"
                    .to_owned()
            }
            None => "call it at the end of each iteration".to_owned(),
        };
        let session = if self.has_schedule {
            "a session with a schedule"
        } else {
            "the recording of PROFILER_TRACE"
        };
        notices.add(&format!(
            "{session} ended without a single `step()`: {advice}"
        ));
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }

    fn apply_transition(
        &self,
        state: &mut SessionState,
        next: Option<Action>,
        notices: &mut DeferredNotices,
    ) {
        let before = state.action;
        let effects = effects_of(before, next);
        if effects.contains(&Effect::Deliver) && effects.contains(&Effect::Open) {
            self.open(state, Closes::Previous);
            state.action = next.unwrap_or_default();
            return;
        }
        for effect in effects {
            match effect {
                // During warm-up, record what scopes cost to record, but evaluate no shapes: user code would run for
                // nothing.
                Effect::StartRecording => recording::begin(
                    self.id,
                    SessionOptions {
                        record_shapes: false,
                        ..self.options
                    },
                ),
                Effect::Open => {
                    recording::begin(self.id, self.options);
                    self.open(state, Closes::Nothing);
                }
                // The next effect decides whether the window is delivered or discarded.
                Effect::Close => {}
                Effect::Deliver => self.close(state, next.is_none() && before == Action::Record),
                Effect::Discard => Self::discard(state),
                Effect::StopRecording => recording::end(self.id),
                Effect::Warn => notices.add(&format!(
                    "a session's schedule goes from {before:?} to {:?} without having saved: what was recorded is \
                     thrown away; end each window with `Action::RecordAndSave`",
                    next.unwrap_or_default()
                )),
            }
        }
        state.action = next.unwrap_or_default();
    }

    /// Opens a window, unless too many of the session wait already. If it follows another one, that one closes with the
    /// same reading of the clock, so that every recorded scope belongs to one of them.
    fn open(&self, state: &mut SessionState, closes: Closes) {
        let _busy = ReentrancyGuard::try_enter();
        let closing = (closes == Closes::Previous).then(|| self.closing(state, false));
        let first = WallAnchor::narrow();
        let mut registry = registry();
        // Read the clock with the registry locked: a thread that takes a scope which began later finds the window.
        let opened = now();
        let lost = ring::lost();
        if let Some(closing) = closing {
            Self::close_at(&mut registry, state, closing, opened, lost);
        }
        let cycle = state.cycle;
        state.cycle += 1;
        state.began = opened;
        if registry.windows_of(self.id) >= MAX_WINDOWS {
            state.skipped += 1;
            return;
        }
        let is_first = !registry.has_windows();
        let spec = WindowSpec {
            id: 0,
            session: self.id,
            cycle,
            skipped: std::mem::take(&mut state.skipped),
            capacity: self.capacity,
            options: self.options,
            opened,
            closed: None,
            toggles: vec![(opened, state.toggled)],
            first,
            lost_before: lost,
            lost_after: lost,
            had_warmup: state.action == Action::Warmup,
            lost_work_before: WorkLosses::now(),
            closing_sample: None,
        };
        state.open = Some(registry.add(&self.delivery, spec));
        drop(registry);
        cuda::nvml::window_opened(opened);
        if is_first {
            window_sorter::wake();
        }
    }

    fn close(&self, state: &mut SessionState, is_cut: bool) {
        let _busy = ReentrancyGuard::try_enter();
        let closing = self.closing(state, is_cut);
        let mut registry = registry();
        let closed = now();
        Self::close_at(&mut registry, state, closing, closed, ring::lost());
    }

    fn closing(&self, state: &mut SessionState, is_cut: bool) -> WindowClose {
        if state.open.is_some() {
            self.delivery.expect_one();
        }
        WindowClose {
            cut_short: is_cut && self.has_schedule,
            step_num: state.step,
            steps: std::mem::take(&mut state.steps),
            metadata: state.metadata.clone(),
            last: WallAnchor::narrow(),
            recording: cuda::recording(),
            why_off: switch::why_off(),
        }
    }

    fn close_at(
        registry: &mut WindowRegistry,
        state: &mut SessionState,
        closing: WindowClose,
        closed: u64,
        lost: Lost,
    ) {
        let open = state.open.take();
        let Some(id) = open else { return };
        if let Some(window) = registry.get(id) {
            window.spec.closed = Some(closed);
            window.spec.lost_after = lost;
            window.spec.closing_sample = cuda::nvml::window_closed(closed);
        }
        // Its thread looks every millisecond while windows wait, so that many short ones do not keep it busy.
        let is_first = !registry.has_waiting();
        registry.close(id, closing);
        if is_first {
            window_sorter::wake();
        }
    }

    fn discard(state: &mut SessionState) {
        let _busy = ReentrancyGuard::try_enter();
        state.steps.clear();
        if let Some(id) = state.open.take() {
            registry().discard(id);
        }
    }

    /// Turns activities on and off, in the open window and in later ones.
    pub(super) fn toggle(&self, enable: bool, activities: &[Activity]) {
        if !fork::is_own_process() {
            return;
        }
        let never = |activity: &&Activity| enable && !self.options.has(**activity);
        if let Some(activity) = activities.iter().find(never) {
            diagnostics::warn_once(&format!(
                "collection of `Activity::{activity:?}` cannot be turned on, since the session was started without it: add \
                 it to `ProfileBuilder::activities`"
            ));
        }
        let mut state = self.state();
        for activity in activities {
            // An activity that the session was not started with stays off.
            let possible = enable && self.options.has(*activity);
            state.toggled.set(*activity, possible);
        }
        let toggled = state.toggled;
        let open = state.open;
        let is_possible = open.is_none_or(|id| {
            let mut registry = registry();
            let entry = registry.get(id);
            entry.is_none_or(|entry| entry.spec.toggle(now(), toggled))
        });
        drop(state);
        if !is_possible {
            diagnostics::warn_once(
                "collection was turned on and off too often in one window: from then to its end all is recorded",
            );
        }
    }

    pub(super) fn add_metadata(&self, key: String, value: String) {
        let metadata = &mut self.state().metadata;
        match metadata.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => metadata.push((key, value)),
        }
    }

    pub(super) fn step_num(&self) -> u64 {
        self.state().step
    }

    pub(super) fn action(&self) -> Action {
        self.state().action
    }
}

/// Explains why no call of the name in `PROFILER_STEP` made a step. Returns `None` if the variable is not set, or its
/// calls are measured.
fn why_no_step() -> Option<String> {
    let (step, is_allowed, origin) = with_control(|control| {
        let settings = &control.settings;
        let step = settings.session.step.clone()?;
        let is_allowed = settings.filter.allows(&step);
        let origin = settings.origin("PROFILER_FILTER", "`Builder::filter`");
        Some((step, is_allowed, origin))
    })?;
    let names = name::all();
    let names = || names.iter().map(|name| &*name.text);
    if !names().any(|name| name == step) {
        let suggestion = did_you_mean(&similar(&step, names()));
        Some(format!(
            "PROFILER_STEP is `{step}`, and nothing of that name ran{suggestion}"
        ))
    } else if is_allowed {
        None
    } else {
        Some(format!(
            "PROFILER_STEP is `{step}`, and the filter excludes that name: let {origin} include it"
        ))
    }
}

impl Drop for Session {
    /// Discards the schedule as user code: its destructor may panic. The last owner may be the program's guard or the
    /// thread of the handlers.
    fn drop(&mut self) {
        let schedule = std::mem::replace(&mut *self.schedule(), Box::new(|_| Action::None));
        user_code::drop_value(schedule);
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("options", &self.options)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_loss_while_one_window_follows_another_is_counted_in_one_of_them() {
        let (session, _) = Session::new(SessionConfig {
            options: SessionOptions::DEFAULT,
            capacity: 10,
            schedule: Some(Box::new(|_| Action::RecordAndSave)),
            handlers: Vec::new(),
            is_environment: false,
        });
        let mut windows = 0;
        let stop = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(Relaxed) {
                    ring::lose(1);
                }
            });
            let mut state = session.state();
            session.open(&mut state, Closes::Nothing);
            let begun = ring::lost();
            while windows < 100 || ring::lost() == begun {
                windows += usize::from(state.open.is_some());
                session.open(&mut state, Closes::Previous);
            }
            stop.store(true, Relaxed);
        });
        Session::discard(&mut session.state());
        let closed = registry().take_closed(|_| ());
        let of_session = closed
            .iter()
            .filter(|window| window.spec.session == session.id);
        let lost: Vec<_> = of_session
            .map(|window| {
                registry().delivered(session.id);
                (window.spec.lost_before, window.spec.lost_after)
            })
            .collect();
        assert_eq!(lost.len(), windows);
        for window in lost.windows(2) {
            assert_eq!(window[0].1, window[1].0);
        }
    }
}
