//! Call sites: one annotated place each, as a static in the annotated function.

mod future;

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::clock;
use crate::cuda;
use crate::local;
use crate::name::{self, Name};
use crate::scope::builder::Entry;
use crate::scope::task::PlainTask;
use crate::scope::{Bring, Open, Scope};
use crate::startup;
use crate::switch::{self, Ticket, with_control};
use crate::sync::ReentrancyGuard;
pub use future::MeasureFuture;

/// One annotated place: what has been decided for it.
///
/// Made by the macros, in a static: one word, and the same in every place, so that a thousand of them
/// cost the compiler little. What tells them apart comes with each call, and is looked at once.
#[derive(Debug)]
pub struct CallSite {
    /// The last decision: the switch's word it was made for, and a [`Ticket`]. Zero before the first.
    decided: AtomicU64,
}

/// What a call site brings along with each call.
#[derive(Clone, Copy)]
struct Place {
    text: &'static str,
    /// Whether `text` is a name that stands in the source, or the type name of something inside the
    /// function.
    named: bool,
    location: &'static Location<'static>,
}

impl Place {
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
fn is_outdated(ticket: Ticket) -> bool {
    ticket.is_probing() && {
        cuda::probe();
        cuda::is_in_use()
    }
}

/// The decision for a name, packed with the switch's word for which it holds.
fn decide(name: &Name) -> u64 {
    // Before the verdict: what is asked for and what is found make it another one.
    startup::ensure_started();
    if !cuda::is_in_use() {
        cuda::look();
    }
    let verdict = with_control(|control| control.verdict(&name.text));
    let mut ticket = name.id;
    if !verdict.measured {
        ticket |= Ticket::EXCLUDED;
    }
    if verdict.logged {
        ticket |= Ticket::LOGGED;
    }
    if verdict.recorded {
        ticket |= Ticket::RECORDED;
    }
    if verdict.is_step {
        ticket |= Ticket::STEP;
    }
    if !clock::has_counter() {
        ticket |= Ticket::SYSTEM_CLOCK;
    }
    if cuda::is_in_use() {
        ticket |= Ticket::CUDA;
    } else if cuda::is_probing() {
        ticket |= Ticket::PROBING;
    }
    u64::from(verdict.switch) << 32 | u64::from(ticket)
}

/// What `decided` says under `switch`: nothing, where it is of another generation.
#[inline]
fn unpack(decided: u64, switch: u32) -> Option<Ticket> {
    ((decided >> 32) as u32 == switch).then_some(ticket_of(decided))
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
        let ticket = unpack(self.decided.load(Relaxed), switch);
        match ticket.and_then(Open::fast) {
            Some(open) => Scope::from(Some(open)),
            None if ticket.is_some_and(Ticket::is_excluded) => Scope::off(),
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
        let ticket = self.ticket(
            switch::load(),
            Place {
                text,
                named,
                location,
            },
        );
        Scope::from(ticket.and_then(|ticket| Open::slow(ticket, 1, &mut Bring::default())))
    }

    /// Begins a call that needs more than statistics, one in `every` of which is logged.
    #[inline]
    #[track_caller]
    pub fn begin<'s>(&'static self, inside: &'static str, every: u32) -> Entry<'s> {
        self.begin_at(Place::inside(inside), every)
    }

    /// The same under a name that stands in the source.
    #[inline]
    #[track_caller]
    pub fn begin_named<'s>(&'static self, name: &'static str, every: u32) -> Entry<'s> {
        self.begin_at(Place::named(name), every)
    }

    /// Begins the scope of a future that brings nothing along but its name.
    // Not inlined: the entry would have its room in the frame of the future, which stays while inner ones are polled.
    #[inline(never)]
    #[track_caller]
    pub fn task(&'static self, inside: &'static str) -> PlainTask {
        self.begin_at(Place::inside(inside), 1).plain_task()
    }

    /// Begins the scope of a future under a name that stands in the source.
    #[inline(never)]
    #[track_caller]
    pub fn task_named(&'static self, name: &'static str) -> PlainTask {
        self.begin_at(Place::named(name), 1).plain_task()
    }

    #[inline]
    fn begin_at<'s>(&'static self, place: Place, every: u32) -> Entry<'s> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Entry::off();
        }
        Entry::new(self.ticket(switch, place), every)
    }

    /// What a call may do now; none where it is not measured.
    #[inline]
    fn ticket(&'static self, switch: u32, place: Place) -> Option<Ticket> {
        let known = unpack(self.decided.load(Relaxed), switch).filter(|known| !is_outdated(*known));
        let ticket = known.or_else(|| self.resolve(place));
        ticket.filter(|ticket| !ticket.is_excluded())
    }

    /// Finds the site's name and what may be done under it, once per generation.
    #[cold]
    fn resolve(&'static self, place: Place) -> Option<Ticket> {
        let _busy = ReentrancyGuard::try_enter()?;
        // An older decision knows the name. Threads that come here at once find the same one.
        let name = match self.decided.load(Relaxed) {
            0 => place.name(),
            decided => name::by_id(ticket_of(decided).id()).unwrap_or_else(|| place.name()),
        };
        let decided = decide(name);
        self.decided.store(decided, Relaxed);
        current(decided)
    }
}

/// A call site whose calls bring names along that are known only inside the function: an associated
/// constant, or that of one instance of a generic function.
#[derive(Debug)]
pub struct GivenSite {
    site: CallSite,
    /// The name it was first entered under; further ones are kept by each thread.
    first: FirstText,
}

impl GivenSite {
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
    pub fn begin_named<'s>(&'static self, name: &'static str, every: u32) -> Entry<'s> {
        self.begin_at(Place::named(name), every)
    }

    /// Begins a call of one instance of a function, found through the name of a type inside it.
    #[inline]
    #[track_caller]
    pub fn begin<'s>(&'static self, inside: &'static str, every: u32) -> Entry<'s> {
        self.begin_at(Place::inside(inside), every)
    }

    #[inline]
    fn begin_at<'s>(&'static self, place: Place, every: u32) -> Entry<'s> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return Entry::off();
        }
        let ticket = if self.first.is(place.text) {
            self.site.ticket(switch, place)
        } else {
            let _busy = ReentrancyGuard::try_enter();
            // Functions spelled alike are told apart by where they stand.
            let at = std::ptr::from_ref(place.location).addr();
            by_text(at, place.text, switch, || place.name()).filter(|ticket| !ticket.is_excluded())
        };
        Entry::new(ticket, every)
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

/// The ticket of a decision that was just made; none where the switch went off meanwhile.
fn current(decided: u64) -> Option<Ticket> {
    (!switch::is_off((decided >> 32) as u32)).then_some(ticket_of(decided))
}

#[inline]
#[allow(clippy::cast_possible_truncation, reason = "one half of a word")]
fn ticket_of(decided: u64) -> Ticket {
    Ticket(decided as u32)
}

/// The ticket of a name that calls bring along, from the thread's own table where it has it.
fn by_text(
    place: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<Ticket> {
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
) -> Option<Ticket> {
    let mut buffer: name::Buffer = [0; name::MAX_LENGTH];
    by_short_text(place, name::cut_into(text, &mut buffer), switch, find)
}

fn by_short_text(
    place: usize,
    text: &str,
    switch: u32,
    find: impl FnOnce() -> &'static Name,
) -> Option<Ticket> {
    let known = local::known_text(place, text);
    if let Some(ticket) = known.and_then(|decided| unpack(decided, switch)) {
        return Some(ticket);
    }
    let name = find();
    if name.text == name::OVERFLOW_NAME {
        return overflow(name, switch);
    }
    let decided = decide(name);
    local::remember_text(place, text, decided);
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
pub fn begin_dynamic<'s>(name: &(impl AsRef<str> + ?Sized)) -> Entry<'s> {
    let switch = switch::load();
    if switch::is_off(switch) {
        return Entry::off();
    }
    let location = Location::caller();
    let text = name.as_ref();
    let Some(_busy) = ReentrancyGuard::try_enter() else {
        return Entry::off();
    };
    let ticket = by_text(0, text, switch, || {
        name::run_time(text, location, || {
            with_control(|control| control.settings.max_names)
        })
    });
    Entry::new(ticket.filter(|ticket| !ticket.is_excluded()), 1)
}
