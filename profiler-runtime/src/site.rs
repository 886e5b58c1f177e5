//! Call sites: one annotated place each, as a static in the annotated function.

use std::any::type_name;
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock;
use crate::entry::Entry;
use crate::local::{self, Busy};
use crate::name::{self, Name};
use crate::scope::{Open, Scope};
use crate::switch::{self, with_control};

/// One annotated place: its name, where it stands, and what has been decided for it.
///
/// Made by the macros, in a static.
#[derive(Debug)]
pub struct CallSite {
    /// The last decision: the switch's word it was made for, and a [`Ticket`]. Zero before the first.
    decided: AtomicU64,
    source: Source,
    location: &'static Location<'static>,
    every: u32,
    name: OnceLock<&'static Name>,
    /// The one name this site was first entered under, where it is entered under given names.
    given: OnceLock<&'static str>,
}

#[derive(Clone, Copy)]
enum Source {
    /// The type name of something inside the function.
    Inside(fn() -> &'static str),
    Declared(&'static str),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inside(inner) => f.write_str(inner()),
            Self::Declared(name) => f.write_str(name),
        }
    }
}

/// What a call under a name may do, in one word: the name's number and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u32);

impl Ticket {
    const EXCLUDED: u32 = 1 << 31;
    const LOGGED: u32 = 1 << 30;
    /// The clock is not a counter that can be read in place.
    const SYSTEM_CLOCK: u32 = 1 << 29;

    pub(crate) fn id(self) -> u32 {
        self.0 & !(Self::EXCLUDED | Self::LOGGED | Self::SYSTEM_CLOCK)
    }

    /// The whole word: the name's number where no flag is set, else more than any number.
    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// The same for a call whose log entry is taken care of.
    #[inline]
    pub(crate) fn unlogged(self) -> Self {
        Self(self.0 & !Self::LOGGED)
    }

    /// Whether a default logger takes calls under this name.
    #[inline]
    pub(crate) fn is_logged(self) -> bool {
        self.0 & Self::LOGGED != 0
    }
}

/// The decision for a name, packed with the switch's word for which it holds.
fn decide(name: &Name) -> u64 {
    let verdict = with_control(|control| control.verdict(&name.text));
    let mut ticket = name.id;
    if !verdict.measured {
        ticket |= Ticket::EXCLUDED;
    }
    if verdict.logged {
        ticket |= Ticket::LOGGED;
    }
    if !clock::has_counter() {
        ticket |= Ticket::SYSTEM_CLOCK;
    }
    u64::from(verdict.switch) << 32 | u64::from(ticket)
}

/// What `decided` says under `switch`: nothing, where it is of another generation.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the halves of a word")]
fn unpack(decided: u64, switch: u32) -> Option<Ticket> {
    ((decided >> 32) as u32 == switch).then_some(Ticket(decided as u32))
}

#[inline]
fn admitted(ticket: Ticket) -> Option<Ticket> {
    (ticket.0 & Ticket::EXCLUDED == 0).then_some(ticket)
}

impl CallSite {
    /// A site in a function that is called by its path, found through a type inside the function.
    #[must_use]
    #[track_caller]
    pub const fn of<Inside>() -> Self {
        Self::new(Source::Inside(type_name::<Inside>))
    }

    /// A site with a name that stands in the source.
    #[must_use]
    #[track_caller]
    pub const fn named(name: &'static str) -> Self {
        Self::new(Source::Declared(name))
    }

    #[track_caller]
    const fn new(source: Source) -> Self {
        Self {
            decided: AtomicU64::new(0),
            source,
            location: Location::caller(),
            every: 1,
            name: OnceLock::new(),
            given: OnceLock::new(),
        }
    }

    /// Logs one call in `every`.
    ///
    /// # Panics
    ///
    /// While compiling, where `every` is zero.
    #[must_use]
    pub const fn every(mut self, every: u32) -> Self {
        assert!(
            every > 0,
            "`every` takes a number from 1 on: one call in so many is logged"
        );
        self.every = every;
        self
    }

    /// Opens a scope that ends when the guard is dropped.
    #[inline(always)]
    pub fn enter(&'static self) -> Scope {
        let switch = switch::load();
        if switch::is_off(switch) {
            Scope::off()
        } else {
            self.open(switch)
        }
    }

    #[inline(never)]
    fn open(&'static self, switch: u32) -> Scope {
        // Asked first: what is known later need not be saved while it is asked.
        if std::thread::panicking() {
            return self.open_slow();
        }
        match unpack(self.decided.load(Relaxed), switch).and_then(Open::fast) {
            None => self.open_slow(),
            open => Scope::from(open),
        }
    }

    #[cold]
    #[inline(never)]
    fn open_slow(&'static self) -> Scope {
        let ticket = self.ticket(switch::load());
        Scope::from(ticket.and_then(|ticket| Open::slow(ticket, self.every)))
    }

    /// What a call may do now; none where it is not measured.
    #[inline]
    fn ticket(&'static self, switch: u32) -> Option<Ticket> {
        let ticket = unpack(self.decided.load(Relaxed), switch).or_else(|| self.resolve());
        ticket.and_then(admitted)
    }

    /// Begins a call that needs more than statistics.
    #[inline]
    pub fn begin(&'static self) -> Entry {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Entry::off();
        }
        Entry::new(self.ticket(switch), self.every)
    }

    /// Begins a call under a name that is known only inside the function: an associated constant, or
    /// that of one instance of a generic function.
    #[inline]
    pub fn begin_as(&'static self, given: &'static str) -> Entry {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Entry::off();
        }
        let known = unpack(self.decided.load(Relaxed), switch).filter(|_| self.was_given(given));
        let ticket = known.or_else(|| self.resolve_as(given, switch));
        Entry::new(ticket.and_then(admitted), self.every)
    }

    /// Finds the site's name and what may be done under it, once per generation.
    #[cold]
    fn resolve(&'static self) -> Option<Ticket> {
        let _busy = Busy::claim()?;
        let name = self.name.get_or_init(|| match self.source {
            Source::Inside(inner) => name::of_function(inner(), self.location),
            Source::Declared(name) => name::declared(name, self.location),
        });
        self.store(decide(name))
    }

    /// The same for a name that the call brings: the first one is kept by the site, further ones
    /// (other instances of a generic function) by the thread.
    #[cold]
    fn resolve_as(&'static self, given: &'static str, switch: u32) -> Option<Ticket> {
        let _busy = Busy::claim()?;
        let find = || {
            if given.ends_with("::{{closure}}") {
                name::of_function(given, self.location)
            } else {
                name::declared(given, self.location)
            }
        };
        self.given.get_or_init(|| given);
        if self.was_given(given) {
            return self.store(decide(self.name.get_or_init(find)));
        }
        by_text(given, switch, find)
    }

    /// Whether this is the very string that the site was first entered with: the same address and the
    /// same length, since one constant may begin where another does.
    fn was_given(&self, given: &'static str) -> bool {
        self.given
            .get()
            .is_some_and(|first| std::ptr::eq(*first, given))
    }

    fn store(&self, decided: u64) -> Option<Ticket> {
        self.decided.store(decided, Relaxed);
        current(decided)
    }
}

/// The ticket of a decision that was just made; none where the switch went off meanwhile.
#[allow(clippy::cast_possible_truncation, reason = "the halves of a word")]
fn current(decided: u64) -> Option<Ticket> {
    let switch = (decided >> 32) as u32;
    (!switch::is_off(switch)).then_some(Ticket(decided as u32))
}

/// The ticket of a name that calls bring along, from the thread's own table where it has it.
fn by_text(text: &str, switch: u32, find: impl FnOnce() -> &'static Name) -> Option<Ticket> {
    if let Some(ticket) = local::known_text(text).and_then(|decided| unpack(decided, switch)) {
        return Some(ticket);
    }
    let name = find();
    if name.text == name::OVERFLOW_NAME {
        return overflow(name, switch);
    }
    let decided = decide(name);
    local::remember_text(text, decided);
    current(decided)
}

/// The ticket of names that go over the bound: in a thread's table they would grow without one.
fn overflow(name: &Name, switch: u32) -> Option<Ticket> {
    static DECIDED: AtomicU64 = AtomicU64::new(0);
    unpack(DECIDED.load(Relaxed), switch).or_else(|| {
        let decided = decide(name);
        DECIDED.store(decided, Relaxed);
        current(decided)
    })
}

/// Begins a call under a name built at run time.
#[track_caller]
pub fn begin_dynamic(name: &(impl AsRef<str> + ?Sized)) -> Entry {
    let switch = switch::load();
    if switch::is_off(switch) {
        return Entry::off();
    }
    let location = Location::caller();
    let text = name.as_ref();
    let Some(_busy) = Busy::claim() else {
        return Entry::off();
    };
    let ticket = by_text(text, switch, || {
        name::run_time(text, location, || {
            with_control(|control| control.settings.max_names)
        })
    });
    Entry::new(ticket.and_then(admitted), 1)
}
