//! On or off: one word that every measured call reads.
//!
//! The lowest bit says whether anything is measured at all. The bits above are a generation: what a
//! call site has decided for itself (its name passes the filter or does not, a default logger wants
//! it or does not) holds for one generation. Turning the switch leaves the generation alone, so that
//! sites need not decide again.

mod site_decision;

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::config::{Filter, Settings};
use crate::diagnostics;
use crate::sync::ReentrancyGuard;
use crate::sync::{Lock, RaceCell};
pub(crate) use site_decision::SiteDecision;

const ON: u32 = 1;
const GENERATION: u32 = 2;

/// Looks on, in a generation no site has decided for: the first call reads the environment.
const UNREAD: u32 = ON;

static SWITCH: AtomicU32 = AtomicU32::new(UNREAD);

/// The word; relaxed, since whatever depends on it is read with its own ordering.
#[inline]
pub(crate) fn load() -> u32 {
    if cfg!(feature = "strip") {
        0
    } else {
        SWITCH.load(Relaxed)
    }
}

#[inline]
pub(crate) const fn is_off(switch: u32) -> bool {
    switch & ON == 0
}

/// What the switch is made of. One lock; never taken by a measured call once its site has decided.
pub(crate) struct Control {
    pub(crate) settings: Settings,
    bypasses: u32,
    generation: u32,
    /// Whether calls without a `log` of their own are logged.
    pub(crate) default_logger: bool,
    /// Whether a session records calls.
    pub(crate) recording: bool,
}

static CONTROL: Lock<Option<Control>> = Lock::with(None, Control::after_fork);
/// What the environment said, for a child that was forked while another thread changed the settings.
static READ: RaceCell<Settings> = RaceCell::new();

/// What a call site may do, decided once per generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Decision {
    /// The switch's word that this holds for.
    pub(crate) switch: u32,
    pub(crate) measured: bool,
    pub(crate) logged: bool,
    pub(crate) recorded: bool,
    /// Whether each call ends a step of the environment's session.
    pub(crate) is_step: bool,
}

/// Runs `change` on the settings, read from the environment by whoever comes first, and makes what
/// it changed effective on all threads.
pub(crate) fn with_control<T>(change: impl FnOnce(&mut Control) -> T) -> T {
    // What is allocated under the lock must not be decided upon under it.
    let busy = ReentrancyGuard::try_enter();
    let mut notices = Vec::new();
    let mut guard = lock();
    let first = guard.is_none();
    let control = guard.get_or_insert_with(|| {
        let (settings, problems) = Settings::from_environment();
        notices = problems;
        let default_logger = cfg!(feature = "tensorboard") && settings.tensorboard.is_some();
        Control {
            settings,
            bypasses: 0,
            generation: GENERATION,
            default_logger,
            recording: false,
        }
    });
    if first {
        READ.get_or_init(|| control.settings.clone());
    }
    let result = change(control);
    SWITCH.store(control.word(), Relaxed);
    drop(guard);
    drop(busy);
    // With the lock released: a `tracing` subscriber may be measured itself.
    for notice in notices {
        diagnostics::warn_once(&notice);
    }
    result
}

fn lock() -> MutexGuard<'static, Option<Control>> {
    CONTROL.lock()
}

impl Control {
    /// What a child goes on with that was forked while another thread changed the settings: those of the environment,
    /// and on or off as before. None where the environment was not read so far: the child reads it then.
    fn after_fork() -> Option<Self> {
        let switch = SWITCH.load(Relaxed);
        let settings = Settings {
            enabled: !is_off(switch),
            ..READ.get()?.clone()
        };
        let mut control = Self {
            settings,
            bypasses: 0,
            generation: switch & !ON,
            default_logger: false,
            recording: false,
        };
        control.new_generation();
        Some(control)
    }

    fn on(&self) -> bool {
        self.settings.enabled && self.bypasses == 0 && !cfg!(feature = "strip")
    }

    fn word(&self) -> u32 {
        self.generation | u32::from(self.on())
    }

    /// Makes every site decide again.
    pub(crate) fn new_generation(&mut self) {
        // Zero is what a site that never decided holds.
        self.generation = self
            .generation
            .checked_add(GENERATION)
            .unwrap_or(GENERATION);
    }

    pub(crate) fn set_filter(&mut self, filter: Filter) {
        self.settings.filter = filter;
        self.new_generation();
    }

    /// What calls under `name` may do now.
    pub(crate) fn decide(&self, name: &str) -> Decision {
        let measured = self.on() && self.settings.filter.allows(name);
        Decision {
            switch: self.word(),
            measured,
            logged: measured && self.default_logger,
            recorded: measured && self.recording,
            is_step: measured && self.settings.session.step.as_deref() == Some(name),
        }
    }
}

/// Turns measuring on or off for the whole process, at once on all threads.
///
/// A scope that is open at that moment ends as it began: it is measured to its end, or not at all.
/// Off, a measured call costs one relaxed load and a branch. The initial state is that of the
/// variable `PROFILER_ENABLED`, or on.
///
/// With the feature `strip` there is nothing to turn on.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{is_enabled, set_enabled};
///
/// set_enabled(false);
/// assert!(!is_enabled());
/// ```
pub fn set_enabled(enabled: bool) {
    with_control(|control| control.settings.enabled = enabled);
    if enabled && !cfg!(feature = "strip") {
        crate::clock::warn_if_fallback();
    }
}

/// Whether calls are measured now: switched on, and not inside a [`bypass`].
///
/// # Examples
///
/// ```
/// profiler_runtime::bypass(|| assert!(!profiler_runtime::is_enabled()));
/// ```
#[must_use]
pub fn is_enabled() -> bool {
    let switch = load();
    if switch == UNREAD {
        with_control(|control| control.on())
    } else {
        !is_off(switch)
    }
}

/// Runs `f` with measuring off, on all threads, until it returns or panics.
///
/// Nested and simultaneous bypasses add up: measuring goes on when the last one ends. To leave out
/// single calls instead, use the `bypass` argument of the attribute.
///
/// # Examples
///
/// ```
/// let warm = profiler_runtime::bypass(|| 6 * 7);
/// assert_eq!(warm, 42);
/// ```
pub fn bypass<T>(f: impl FnOnce() -> T) -> T {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            with_control(|control| control.bypasses = control.bypasses.saturating_sub(1));
        }
    }
    with_control(|control| control.bypasses += 1);
    let _restore = Restore;
    f()
}
