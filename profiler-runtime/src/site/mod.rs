//! Call sites: one annotated place each, as a static in the annotated function.

mod future;

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::clock;
use crate::cuda;
use crate::local;
use crate::name::{self, Name};
use crate::scope::builder::ScopeBuilder;
use crate::scope::future::FutureScope;
use crate::scope::{OpenScope, Scope, ScopeArgs};
use crate::startup;
use crate::switch::{self, SiteDecision, with_control};
use crate::sync::ReentrancyGuard;
pub use future::MeasureFuture;

/// One annotated place: what has been decided for it.
///
/// Made by the macros, in a static: one word, and the same in every place, so that a thousand of them
/// cost the compiler little. What tells them apart comes with each call, and is looked at once.
#[derive(Debug)]
pub struct CallSite {
    /// The last decision: the switch's word it was made for, and a [`SiteDecision`]. Zero before the first.
    decided: AtomicU64,
}

/// What a call site brings along with each call.
#[derive(Clone, Copy)]
struct NameSource {
    text: &'static str,
    /// Whether `text` is a name that stands in the source, or the type name of something inside the
    /// function.
    named: bool,
    location: &'static Location<'static>,
}

impl NameSource {
    /// A call by a function, found through the name of a type inside it.
    #[inline]
    #[track_caller]
    fn inside(text: &'static str) -> Self {
        Self {
            text,
            named: false,
            location: Location::caller(),
        }
    }

    /// A call under a name that stands in the source.
    #[inline]
    #[track_caller]
    fn named(text: &'static str) -> Self {
        Self {
            text,
            named: true,
            location: Location::caller(),
        }
    }

    fn name(self) -> &'static Name {
        if self.named {
            name::declared(self.text, self.location)
        } else {
            name::of_function(self.text, self.location)
        }
    }
}

/// Returns `true` if the program has loaded the CUDA driver since the decision.
fn is_outdated(decision: SiteDecision) -> bool {
    decision.is_probing() && {
        cuda::poll_discovery();
        cuda::is_in_use()
    }
}

/// The decision for a name, packed with the switch's word for which it holds.
fn decide(name: &Name) -> u64 {
    // Before the decision: what is asked for and what is found make it another one.
    startup::ensure_started();
    if !cuda::is_in_use() {
        cuda::scan_loaded();
    }
    let decision = with_control(|control| control.decide(&name.text));
    let mut site_decision = name.id;
    if !decision.measured {
        site_decision |= SiteDecision::EXCLUDED;
    }
    if decision.logged {
        site_decision |= SiteDecision::LOGGED;
    }
    if decision.recorded {
        site_decision |= SiteDecision::RECORDED;
    }
    if decision.is_step {
        site_decision |= SiteDecision::STEP;
    }
    if !clock::has_counter() {
        site_decision |= SiteDecision::SYSTEM_CLOCK;
    }
    if cuda::is_in_use() {
        site_decision |= SiteDecision::CUDA;
    } else if cuda::is_discovering() {
        site_decision |= SiteDecision::PROBING;
    }
    u64::from(decision.switch) << 32 | u64::from(site_decision)
}

/// What `decided` says under `switch`: nothing, where it is of another generation.
#[inline]
fn unpack(decided: u64, switch: u32) -> Option<SiteDecision> {
    ((decided >> 32) as u32 == switch).then_some(decision_of(decided))
}

impl CallSite {
    /// A site that nothing is decided for.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "what each static begins as"
    )]
    pub const NEW: Self = Self {
        decided: AtomicU64::new(0),
    };

    /// Opens a scope that ends when the guard is dropped. The function is found through the name of a
    /// type inside it.
    // Without optimisation each function would get its own copy of what is inlined.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[track_caller]
    pub fn enter(&'static self, inside: &'static str) -> Scope {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Scope::off();
        }
        self.open::<false>(switch, inside, Location::caller())
    }

    /// The same under a name that stands in the source.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[track_caller]
    pub fn enter_named(&'static self, name: &'static str) -> Scope {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Scope::off();
        }
        self.open::<true>(switch, name, Location::caller())
    }

    #[inline(never)]
    fn open<const NAMED: bool>(
        &'static self,
        switch: u32,
        text: &'static str,
        location: &'static Location<'static>,
    ) -> Scope {
        // Asked first: what is known later need not be saved while it is asked.
        if std::thread::panicking() {
            return self.open_slow(text, NAMED, location);
        }
        let decision = unpack(self.decided.load(Relaxed), switch);
        match decision.and_then(OpenScope::fast) {
            Some(open) => Scope::from(Some(open)),
            None if decision.is_some_and(SiteDecision::is_excluded) => Scope::off(),
            None => self.open_slow(text, NAMED, location),
        }
    }

    #[cold]
    #[inline(never)]
    fn open_slow(
        &'static self,
        text: &'static str,
        named: bool,
        location: &'static Location<'static>,
    ) -> Scope {
        let decision = self.decision(
            switch::load(),
            NameSource {
                text,
                named,
                location,
            },
        );
        Scope::from(
            decision.and_then(|decision| OpenScope::slow(decision, 1, &mut ScopeArgs::default())),
        )
    }

    /// Begins a call that needs more than statistics, one in `every` of which is logged.
    #[inline]
    #[track_caller]
    pub fn begin<'s>(&'static self, inside: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_at(NameSource::inside(inside), every)
    }

    /// The same under a name that stands in the source.
    #[inline]
    #[track_caller]
    pub fn begin_named<'s>(&'static self, name: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_at(NameSource::named(name), every)
    }

    /// Begins the scope of a future that brings nothing along but its name.
    // Not inlined: the builder would have its room in the frame of the future, which stays while inner ones are polled.
    #[inline(never)]
    #[track_caller]
    pub fn task(&'static self, inside: &'static str) -> FutureScope {
        self.begin_at(NameSource::inside(inside), 1).plain_future()
    }

    /// Begins the scope of a future under a name that stands in the source.
    #[inline(never)]
    #[track_caller]
    pub fn task_named(&'static self, name: &'static str) -> FutureScope {
        self.begin_at(NameSource::named(name), 1).plain_future()
    }

    #[inline]
    fn begin_at<'s>(&'static self, place: NameSource, every: u32) -> ScopeBuilder<'s> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return ScopeBuilder::off();
        }
        ScopeBuilder::new(self.decision(switch, place), every)
    }

    /// What a call may do now; none where it is not measured.
    #[inline]
    fn decision(&'static self, switch: u32, place: NameSource) -> Option<SiteDecision> {
        let known = unpack(self.decided.load(Relaxed), switch).filter(|known| !is_outdated(*known));
        let decision = known.or_else(|| self.resolve(place));
        decision.filter(|decision| !decision.is_excluded())
    }

    /// Finds the site's name and what may be done under it, once per generation.
    #[cold]
    fn resolve(&'static self, place: NameSource) -> Option<SiteDecision> {
        let _busy = ReentrancyGuard::try_enter()?;
        // An older decision knows the name. Threads that come here at once find the same one.
        let name = match self.decided.load(Relaxed) {
            0 => place.name(),
            decided => name::by_id(decision_of(decided).id()).unwrap_or_else(|| place.name()),
        };
        let decided = decide(name);
        self.decided.store(decided, Relaxed);
        current(decided)
    }
}

/// A call site whose calls args names along that are known only inside the function: an associated
/// constant, or that of one instance of a generic function.
#[derive(Debug)]
pub struct MultiNameSite {
    site: CallSite,
    /// The name it was first entered under; further ones are kept by each thread.
    first: FirstText,
}

impl MultiNameSite {
    /// A site that nothing is decided for.
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "what each static begins as"
    )]
    pub const NEW: Self = Self {
        site: CallSite::NEW,
        first: FirstText::NEW,
    };

    /// Begins a call under a name that stands in the source.
    #[inline]
    #[track_caller]
    pub fn begin_named<'s>(&'static self, name: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_at(NameSource::named(name), every)
    }

    /// Begins a call of one instance of a function, found through the name of a type inside it.
    #[inline]
    #[track_caller]
    pub fn begin<'s>(&'static self, inside: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_at(NameSource::inside(inside), every)
    }

    #[inline]
    fn begin_at<'s>(&'static self, place: NameSource, every: u32) -> ScopeBuilder<'s> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return ScopeBuilder::off();
        }
        let decision = if self.first.is(place.text) {
            self.site.decision(switch, place)
        } else {
            let _busy = ReentrancyGuard::try_enter();
            // Functions spelled alike are told apart by where they stand.
            let at = std::ptr::from_ref(place.location).addr();
            by_text(at, place.text, switch, || place.name())
                .filter(|decision| !decision.is_excluded())
        };
        ScopeBuilder::new(decision, every)
    }
}

/// The string that came first: its address and its length.
#[derive(Debug)]
struct FirstText {
    /// Null until there is one.
    start: AtomicPtr<u8>,
    /// Stored after the address, by the thread that stored that.
    length: AtomicUsize,
}

impl FirstText {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "what each site begins as"
    )]
    const NEW: Self = Self {
        start: AtomicPtr::new(ptr::null_mut()),
        length: AtomicUsize::new(usize::MAX),
    };

    /// Returns whether `text` is the very string that came first; it is where none came before.
    ///
    /// One constant may begin where another does, so the length is compared too. Where the length is not stored yet,
    /// no string is the first: its calls take the way of the others, which leads to the same name.
    #[inline]
    fn is(&self, text: &'static str) -> bool {
        let start = text.as_ptr().cast_mut();
        // Relaxed, since both are only compared: nothing is read through them.
        let first = self.start.load(Relaxed);
        if first.is_null() {
            return self.set(text);
        }
        first == start && self.length.load(Relaxed) == text.len()
    }

    #[cold]
    fn set(&self, text: &'static str) -> bool {
        let start = text.as_ptr().cast_mut();
        let is_set = self
            .start
            .compare_exchange(ptr::null_mut(), start, Relaxed, Relaxed)
            .is_ok();
        if is_set {
            self.length.store(text.len(), Relaxed);
        }
        is_set
    }
}

/// The decision of a decision that was just made; none where the switch went off meanwhile.
fn current(decided: u64) -> Option<SiteDecision> {
    (!switch::is_off((decided >> 32) as u32)).then_some(decision_of(decided))
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "one half of a word")]
fn decision_of(decided: u64) -> SiteDecision {
    SiteDecision(decided as u32)
}

/// The decision of a name that calls args along, from the thread's own table where it has it.
fn by_text(
    place: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<SiteDecision> {
    if text.len() > name::MAX_LENGTH {
        return by_long_text(place, text, switch, find);
    }
    by_short_text(place, text, switch, find)
}

/// The same for a text that is cut, so that tables hold no more than that of it.
#[cold]
#[inline(never)]
fn by_long_text(
    place: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<SiteDecision> {
    let mut buffer: name::Buffer = [0; name::MAX_LENGTH];
    by_short_text(place, name::cut_into(text, &mut buffer), switch, find)
}

fn by_short_text(
    place: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<SiteDecision> {
    let known = local::known_text(place, text);
    if let Some(decision) = known.and_then(|decided| unpack(decided, switch)) {
        return Some(decision);
    }
    let name = find();
    if name.text == name::OVERFLOW_NAME {
        return overflow(name, switch);
    }
    let decided = decide(name);
    local::remember_text(place, text, decided);
    current(decided)
}

/// The decision of names that go over the bound: in a thread's table they would grow without one.
fn overflow(name: &Name, switch: u32) -> Option<SiteDecision> {
    static DECIDED: AtomicU64 = AtomicU64::new(0);
    unpack(DECIDED.load(Relaxed), switch).or_else(|| {
        let decided = decide(name);
        DECIDED.store(decided, Relaxed);
        current(decided)
    })
}

/// Begins a call under a name built at run time.
#[track_caller]
pub fn begin_dynamic<'s>(name: &(impl AsRef<str> + ?Sized)) -> ScopeBuilder<'s> {
    let switch = switch::load();
    if switch::is_off(switch) {
        return ScopeBuilder::off();
    }
    let location = Location::caller();
    let text = name.as_ref();
    let Some(_busy) = ReentrancyGuard::try_enter() else {
        return ScopeBuilder::off();
    };
    let decision = by_text(0, text, switch, || {
        name::run_time(text, location, || {
            with_control(|control| control.settings.max_names)
        })
    });
    ScopeBuilder::new(decision.filter(|decision| !decision.is_excluded()), 1)
}
