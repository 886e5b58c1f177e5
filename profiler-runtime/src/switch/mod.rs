//! The switch that turns measuring on and off: one word, read by every measured call.
//!
//! Bit 0 is set while calls are measured. The bits above are a generation number. A call site decides once per
//! generation what its calls do (does the filter allow the name, does a default logger want it, does a session record
//! it) and keeps the decision together with the switch word; see [`StampedDecision`]. Changing any of these settings
//! starts a new generation, so that every site decides again. Turning the switch off and on keeps the generation: the
//! decisions become valid again with the old word.
//!
//! A call on the fast path does not read the switch: each site has a word of its own, which a change of the switch brings up
//! to date; see [`SiteState`].
//!
//! # Memory ordering
//!
//! [`CONTROL`] is the lock behind the word. A change is made under the lock and then stored to [`SWITCH`] before the
//! lock is released. Calls read the word with relaxed ordering, so a call may see a change late, but never waits. This
//! suffices: a call that sees a new generation takes the lock to decide, and the lock orders it after the change. The
//! store releases the count of times that measuring was turned off, which is read behind a fence.

mod site_decision;
mod site_state;

use std::sync::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Relaxed, Release},
};
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
use std::sync::atomic::{Ordering::Acquire, fence};

use profiler_host::process::fork;
use profiler_host::process::platform::HAS_CLOCK;
use profiler_host::sync::{Lock, RaceCell, ReentrancyGuard};
use profiler_host::{diagnostics, ending};

use crate::clock::{Spans, now};
use crate::config::{Filter, Settings};
use crate::name::Name;
use crate::stats::set_cell_memory;
pub(crate) use site_decision::{SiteDecision, StampedDecision};
pub(crate) use site_state::SiteState;

const ON: u32 = 1;
/// The lowest generation, and the difference between two. No site holds a decision of generation 0.
const GENERATION: u32 = 2;

/// The word before the profiler has started. It is on, so that the first call does not return early but decides, and
/// thereby starts the profiler.
pub(crate) const UNINITIALIZED: u32 = ON;

static SWITCH: AtomicU32 = AtomicU32::new(UNINITIALIZED);

/// How often measuring was turned off. Written with [`CONTROL`] locked, before the word.
static TIMES_OFF: AtomicU32 = AtomicU32::new(0);

/// The reason why no call is ever measured in this build, if there is one.
pub(crate) const WHY_NEVER: Option<&str> = if cfg!(feature = "strip") {
    Some("profiling is stripped from this build: build without profiler-runtime's feature `strip`")
} else if HAS_CLOCK {
    None
} else {
    Some(
        "this target has no clock, so nothing is measured: build for one that has a clock, such as wasm32-wasip1",
    )
};

/// `true` if no call is ever measured in this build.
pub(crate) const NEVER_MEASURES: bool = WHY_NEVER.is_some();

/// Returns the switch word.
#[inline]
pub(crate) fn load() -> u32 {
    if NEVER_MEASURES {
        0
    } else {
        SWITCH.load(Relaxed)
    }
}

/// Returns `true` if no call is measured under this switch word.
#[inline]
pub(crate) const fn is_off(switch: u32) -> bool {
    switch & ON == 0
}

/// Returns a number for [`was_off_since`].
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
#[inline(always)]
pub(crate) fn times_off() -> u32 {
    TIMES_OFF.load(Relaxed)
}

/// Returns `true` if measuring was turned off after [`times_off`] returned this number. Does not miss it if this thread, or one
/// that it has synchronized with, has loaded a switch word that is off.
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
#[cold]
pub(crate) fn was_off_since(times_off: u32) -> bool {
    fence(Acquire);
    TIMES_OFF.load(Relaxed) != times_off
}

/// The state behind the switch word. A measured call locks it only to decide for its site.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub(crate) struct Control {
    pub(crate) settings: Settings,
    /// `true` if the program has called [`set_enabled`].
    is_set_by_program: bool,
    /// `true` if measuring was ever on, apart from [`pause`].
    was_on: bool,
    /// `true` if the program has ever turned measuring off with [`set_enabled`].
    was_turned_off: bool,
    /// `true` if the program has ever called [`pause`].
    was_paused: bool,
    /// The number of [`pause`] calls that are running.
    bypasses: u32,
    /// The number of [`hold`] calls that are running.
    holds: u32,
    generation: u32,
    /// When measuring was off, in ticks.
    off: Spans,
    /// Since when it is.
    off_since: Option<u64>,
    /// `true` once the profiler has started. Until then the word stays [`UNINITIALIZED`], though the settings may have
    /// been read and turn measuring off: no call would start the profiler, and no summary would say that it is off.
    is_published: bool,
    /// `true` if calls without a `log` of their own are logged.
    pub(crate) default_logger: bool,
    /// `true` while a session records calls.
    pub(crate) recording: bool,
}

/// `None` until the environment is read.
static CONTROL: Lock<Option<Control>> = Lock::with(None, Control::after_fork);

/// The settings as the environment gave them, for [`Control::after_fork`].
static ENVIRONMENT: RaceCell<Settings> = RaceCell::new();

/// Has what was asked for written before a signal ends the process, unless `PROFILER_SIGNALS` leaves signals alone. Called when an
/// output is asked for; the signal of `PROFILER_SIGNAL` has another use.
#[cold]
pub(crate) fn write_before_ending() {
    let (signals, own) = with_control(|control| {
        let settings = &control.settings;
        (settings.signals, settings.session.signal)
    });
    if signals && !NEVER_MEASURES && fork::is_own_process() {
        ending::write_before_ending(own);
    }
}

/// Runs `change` on the switch's state and publishes the result to all threads. The first caller in the process reads
/// the environment.
pub(crate) fn with_control<T>(change: impl FnOnce(&mut Control) -> T) -> T {
    // Keep a measured allocator from deciding, which would lock `CONTROL` again.
    let reentrancy = ReentrancyGuard::try_enter();
    let mut warnings = Vec::new();
    let mut guard = CONTROL.lock();
    let control = guard.get_or_insert_with(|| {
        let (settings, problems) = Settings::from_environment();
        warnings = problems;
        ENVIRONMENT.get_or_init(|| settings.clone());
        Control::new(settings)
    });
    let result = change(control);
    control.was_on |= control.is_published && control.settings.enabled;
    let word = control.word();
    let before = SWITCH.load(Relaxed);
    if control.is_published && word != before {
        if is_off(word) && !is_off(before) {
            TIMES_OFF.fetch_add(1, Relaxed);
        }
        // Pairs with the fence of `was_off_since`.
        SWITCH.store(word, Release);
        site_state::follow_all(word);
        control.note_off();
    }
    drop(guard);
    drop(reentrancy);
    // Warn with the lock released: a `tracing` subscriber may itself be measured.
    for warning in warnings {
        diagnostics::warn_once(&warning);
    }
    result
}

impl Control {
    fn new(settings: Settings) -> Self {
        set_cell_memory(settings.cell_memory);
        let default_logger = settings.tensorboard.is_some();
        Self {
            settings,
            is_set_by_program: false,
            was_on: false,
            was_turned_off: false,
            was_paused: false,
            bypasses: 0,
            holds: 0,
            generation: GENERATION,
            off: Spans::new(),
            off_since: None,
            is_published: false,
            default_logger,
            recording: false,
        }
    }

    /// Returns the state for a child that was forked while another thread held the lock: the environment's settings, on
    /// or off as before. Returns `None` if the environment was not read before the fork; the child then reads it.
    fn after_fork() -> Option<Self> {
        site_state::forked_while_locked();
        Some(Self::restored(ENVIRONMENT.get()?, SWITCH.load(Relaxed)))
    }

    /// Returns the environment's state, on or off and in a later generation than `switch`.
    fn restored(environment: &Settings, switch: u32) -> Self {
        let is_published = switch != UNINITIALIZED;
        let settings = Settings {
            enabled: if is_published {
                !is_off(switch)
            } else {
                environment.enabled
            },
            ..environment.clone()
        };
        let mut control = Self {
            generation: switch & !ON,
            is_published,
            default_logger: false,
            ..Self::new(settings)
        };
        control.new_generation();
        control
    }

    /// Notes when measuring goes off and on.
    fn note_off(&mut self) {
        if !HAS_CLOCK {
            return;
        }
        match self.off_since {
            None if !self.is_on() => self.off_since = Some(now()),
            Some(since) if self.is_on() => {
                self.off_since = None;
                self.off.add(since, now());
            }
            _ => return,
        }
        SWITCHES.fetch_add(1, Relaxed);
    }

    fn is_on(&self) -> bool {
        self.is_asked_for() && self.holds == 0
    }

    /// Returns `true` unless the program or its environment has turned measuring off.
    fn is_asked_for(&self) -> bool {
        self.settings.enabled && self.bypasses == 0 && !NEVER_MEASURES
    }

    fn word(&self) -> u32 {
        self.generation | u32::from(self.is_on())
    }

    /// Makes every site decide again.
    pub(crate) fn new_generation(&mut self) {
        // After the last generation comes the first again. A site that was not called since then, 2³¹ changes ago, would
        // keep its old decision.
        self.generation = self
            .generation
            .checked_add(GENERATION)
            .unwrap_or(GENERATION);
    }

    pub(crate) fn set_callers(&mut self, callers: bool) {
        self.settings.callers = callers;
        self.new_generation();
    }

    pub(crate) fn set_filter(&mut self, filter: Filter) {
        self.settings.filter = filter;
        self.new_generation();
    }

    pub(crate) fn set_thread_time(&mut self, thread_time: bool) {
        self.settings.thread_time = thread_time;
        self.new_generation();
    }

    /// Decides what calls under `name` do, as far as the settings say.
    pub(crate) fn decide(&self, name: &Name) -> StampedDecision {
        let is_measured = self.is_on() && self.settings.filter.allows(&name.text);
        let is_step = || self.settings.session.step.as_deref() == Some(&*name.text);
        let decision = if is_measured {
            SiteDecision::new(name.id)
                .with(SiteDecision::LOGGED, self.default_logger)
                .with(SiteDecision::RECORDED, self.recording)
                .with(SiteDecision::STEP, is_step())
                .with(SiteDecision::THREAD_TIME, self.settings.thread_time)
                .with(SiteDecision::CALLERS, self.settings.callers)
        } else {
            SiteDecision::new(name.id).with(SiteDecision::EXCLUDED, true)
        };
        StampedDecision::new(self.word(), decision)
    }
}

/// Turns measuring on or off. Returns `true` if `PROFILER_ENABLED` asks for the opposite.
pub(crate) fn set_enabled(enabled: bool) -> bool {
    with_control(|control| {
        control.settings.enabled = enabled;
        control.is_set_by_program = true;
        control.was_turned_off |= !enabled;
    });
    asked_by_environment() == Some(!enabled)
}

/// Returns why no call is measured, and what to do about it, or `None` if calls are measured.
pub(crate) fn why_off() -> Option<&'static str> {
    if WHY_NEVER.is_some() {
        return WHY_NEVER;
    }
    let (enabled, is_paused, is_set_by_program) = with_control(|control| {
        let is_paused = control.bypasses > 0;
        (
            control.settings.enabled,
            is_paused,
            control.is_set_by_program,
        )
    });
    let asked = asked_by_environment();
    if enabled {
        is_paused.then_some("a `pause` is running: measuring goes on after it")
    } else if is_set_by_program && asked == Some(true) {
        Some(
            "the program has called `set_enabled(false)`, which overrides PROFILER_ENABLED: remove the call, or call \
             `set_enabled(true)`",
        )
    } else if is_set_by_program {
        Some(
            "the program has called `set_enabled(false)`: remove the call, or call `set_enabled(true)`",
        )
    } else if asked == Some(false) {
        Some(
            "PROFILER_ENABLED turns measuring off: set PROFILER_ENABLED=1, or call `set_enabled(true)`",
        )
    } else {
        Some(
            "`Builder::enabled(false)` turns measuring off: remove it, call `set_enabled(true)`, or set PROFILER_ENABLED=1",
        )
    }
}

/// Returns how the program may have left calls out: `bypass`, and what else it has called.
pub(crate) fn ways_to_leave_out() -> &'static str {
    let called = with_control(|control| (control.was_paused, control.was_turned_off));
    match called {
        (false, false) => "`bypass`",
        (true, false) => "`pause` or `bypass`",
        (false, true) => "`set_enabled(false)` or `bypass`",
        (true, true) => "`pause`, `set_enabled(false)` or `bypass`",
    }
}

/// Returns what `PROFILER_ENABLED` asks for, if it is set.
pub(crate) fn asked_by_environment() -> Option<bool> {
    let settings = ENVIRONMENT.get()?;
    let is_set = settings.from_environment.contains(&"PROFILER_ENABLED");
    is_set.then_some(settings.enabled)
}

/// Returns `true` if `PROFILER_ENABLED` has turned measuring off, and nothing has turned it on since: the outputs that the
/// settings ask for are not written.
pub(crate) fn is_off_by_environment() -> bool {
    let was_on = || with_control(|control| control.was_on);
    !NEVER_MEASURES && asked_by_environment() == Some(false) && !was_on()
}

/// Publishes the switch word, now and with each change from now on: the profiler has started.
pub(crate) fn publish() {
    with_control(|control| control.is_published = true);
}

/// Returns `true` if the profiler has started.
pub(crate) fn is_initialized() -> bool {
    load() != UNINITIALIZED
}

/// Returns `true` while calls are measured.
pub(crate) fn is_enabled() -> bool {
    if is_initialized() {
        !is_off(load())
    } else {
        with_control(|control| control.is_on())
    }
}

/// Returns `true` while calls are measured, and while they are not because of a [`hold`].
pub(crate) fn is_on_or_held() -> bool {
    is_enabled() || with_control(|control| control.holds > 0 && control.is_asked_for())
}

/// How often measuring has been turned off or on.
static SWITCHES: AtomicUsize = AtomicUsize::new(0);

/// Returns how often measuring has been turned off or on: [`off_spans`] changes with it.
pub(crate) fn switches() -> usize {
    SWITCHES.load(Relaxed)
}

/// Returns when measuring was off, in ticks. If it is now, that has no end.
pub(crate) fn off_spans() -> Spans {
    with_control(|control| {
        let mut off = control.off.clone();
        if let Some(since) = control.off_since {
            off.add(since, u64::MAX);
        }
        off
    })
}

/// Runs `f` with measuring off on all threads.
pub(crate) fn pause<T>(f: impl FnOnce() -> T) -> T {
    struct EndOnDrop;
    impl Drop for EndOnDrop {
        fn drop(&mut self) {
            with_control(|control| control.bypasses = control.bypasses.saturating_sub(1));
        }
    }
    with_control(|control| {
        control.bypasses = control.bypasses.saturating_add(1);
        control.was_paused = true;
    });
    let _end = EndOnDrop;
    f()
}

/// Runs `f` with measuring off on all threads while the profiler closes, which is no doing of the program: what `f` counts are
/// all calls that there are.
pub(crate) fn hold<T>(f: impl FnOnce() -> T) -> T {
    struct EndOnDrop;
    impl Drop for EndOnDrop {
        fn drop(&mut self) {
            with_control(|control| control.holds = control.holds.saturating_sub(1));
        }
    }
    with_control(|control| control.holds = control.holds.saturating_add(1));
    let _end = EndOnDrop;
    f()
}

#[cfg(test)]
mod tests;
