//! Call sites with one name.

use std::any::type_name;
use std::cell::UnsafeCell;
use std::panic::Location;
use std::thread::panicking;
use std::{fmt, mem};

use profiler_host::sync::ReentrancyGuard;

use super::{NameSource, decide, enter_or_refuse};
use crate::name;
use crate::scope::builder::ScopeBuilder;
use crate::scope::future::FutureScope;
use crate::scope::on_stream::StreamBuilder;
use crate::scope::{OpenScope, Scope};
use crate::switch::{self, NEVER_MEASURES, SiteDecision, SiteState, StampedDecision};

/// A call site with one name: a static in the annotated function, declared by the macros.
///
/// It has the same initial value at every site, so that a thousand sites cost the compiler little. The values that differ
/// are passed with each call.
///
/// The state is declared as plain words: the compiler checks the initial value of each static field by field, and the
/// implementation of `Sync` as well, which takes a quarter less for these than for the atomics.
// On 32-bit systems, a `u64` may need less alignment than an atomic one.
#[repr(align(8))]
pub struct CallSite {
    /// The bytes of a [`SiteState`].
    words: UnsafeCell<Words>,
}

/// As large as a [`SiteState`]: three words, two on 32-bit systems.
type Words = [u64; WORDS];
const WORDS: usize = mem::size_of::<SiteState>() / mem::size_of::<u64>();

// SAFETY: the words are only accessed as a `SiteState`, which is `Sync`; the function below compiles only if it is.
unsafe impl Sync for CallSite {}

const _: fn() = || {
    fn is_sync<T: Sync>() {}
    is_sync::<SiteState>();
};

/// A site that has not decided yet.
// A free constant compiles faster than an associated one, which the compiler looks up by its type at each site.
#[allow(
    clippy::declare_interior_mutable_const,
    reason = "the initial value of statics"
)]
pub const NEW_SITE: CallSite = {
    // With zeros in all its fields, a state has not decided, and is in no list.
    assert!(SiteState::UNDECIDED == 0 && StampedDecision::NONE.raw() == 0);
    assert!(mem::size_of::<SiteState>() == mem::size_of::<Words>());
    assert!(mem::align_of::<SiteState>() <= mem::align_of::<CallSite>());
    CallSite {
        words: UnsafeCell::new([0; WORDS]),
    }
};

impl CallSite {
    #[inline(always)]
    fn state(&self) -> &SiteState {
        // SAFETY: the words have the size of a `SiteState` and at least its alignment, see `NEW_SITE`. They are zero at
        // first, which is a valid state, and only written as one. They are inside an `UnsafeCell`, as the state's fields
        // are, so both may change behind shared references.
        unsafe { &*self.words.get().cast::<SiteState>() }
    }

    /// Opens a scope that ends when the guard is dropped. `Here` is an item inside the function, whose type name tells the
    /// function's path.
    // Of the ways to pass the path here, a type parameter of a method takes the compiler the least time at each site.
    #[inline(always)]
    #[track_caller]
    pub fn enter<Here>(&'static self) -> Scope {
        self.enter_inside(type_name::<Here>())
    }

    // In debug builds the inlined code would be repeated in each function.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[track_caller]
    fn enter_inside(&'static self, inside: &'static str) -> Scope {
        self.open_unless_off::<false>(inside, Location::caller())
    }

    /// Opens a scope that ends when the guard is dropped. The name is a literal in the source.
    #[cfg_attr(debug_assertions, inline(never))]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[track_caller]
    pub fn enter_named(&'static self, name: &'static str) -> Scope {
        self.open_unless_off::<true>(name, Location::caller())
    }

    #[inline(always)]
    fn open_unless_off<const IS_LITERAL: bool>(
        &'static self,
        text: &'static str,
        location: &'static Location<'static>,
    ) -> Scope {
        if NEVER_MEASURES || self.state().word() == SiteState::OFF {
            return Scope::off();
        }
        // Check `panicking()` here, which makes a call if another thread panics, and load the word again after it: so no value
        // is live across that call, and no register is saved for it.
        let word = if panicking() {
            SiteState::UNDECIDED
        } else {
            self.state().word()
        };
        self.open::<IS_LITERAL>(word as usize, text, location)
    }

    /// Opens a scope on the fast path if that will do, else on the direct one, which may leave it to the slow one.
    // Generic, so that it is compiled into the calling crate, where the address of thread-local storage is a constant. The
    // other path is a tail call: so no register is saved, and both create the guard in its place.
    #[inline(never)]
    fn open<const IS_LITERAL: bool>(
        &'static self,
        slot: usize,
        text: &'static str,
        location: &'static Location<'static>,
    ) -> Scope {
        match OpenScope::fast_at(slot) {
            Some(open) => Scope::from(Some(open)),
            None => self.open_direct::<IS_LITERAL>(slot, text, location),
        }
    }

    /// Opens a scope on the direct path if that will do. Like [`open`](Self::open), it calls others in tail position only.
    #[cold]
    #[inline(never)]
    fn open_direct<const IS_LITERAL: bool>(
        &'static self,
        slot: usize,
        text: &'static str,
        location: &'static Location<'static>,
    ) -> Scope {
        // A call on a thread that may be panicking passes `UNDECIDED`, and takes the slow path.
        let decided = if slot == SiteState::FLAGGED as usize {
            self.decided()
        } else {
            None
        };
        if let Some(decision) = decided {
            if decision.is_cuda() {
                return self.open_on_gpu::<IS_LITERAL>(decision, text, location);
            }
            if let Some(open) = OpenScope::direct_on_cpu(decision) {
                return Scope::from(Some(open));
            }
        }
        self.open_slow(text, IS_LITERAL, location)
    }

    /// Opens a scope with a GPU time on the direct path if that will do.
    // Not a part of `open_direct`, which would then save registers for all calls.
    #[cold]
    #[inline(never)]
    fn open_on_gpu<const IS_LITERAL: bool>(
        &'static self,
        decision: SiteDecision,
        text: &'static str,
        location: &'static Location<'static>,
    ) -> Scope {
        match OpenScope::direct_on_gpu(decision) {
            Some(open) => Scope::from(Some(open)),
            None => self.open_slow(text, IS_LITERAL, location),
        }
    }

    /// Decides if necessary, and opens a scope.
    #[cold]
    #[inline(never)]
    fn open_slow(
        &'static self,
        text: &'static str,
        is_literal: bool,
        location: &'static Location<'static>,
    ) -> Scope {
        let source = NameSource {
            text,
            is_literal,
            location,
        };
        let decision = self.decision(source);
        Scope::from(decision.and_then(OpenScope::without_args))
    }

    /// Returns the decision if it holds and measuring is on.
    #[inline(always)]
    fn decided(&self) -> Option<SiteDecision> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return None;
        }
        self.state().decision().under(switch)
    }

    /// Begins a call with arguments, of which one in `every` is logged. `Here` is an item inside the function.
    #[inline]
    #[track_caller]
    pub fn begin<'s, Here>(&'static self, every: u32) -> ScopeBuilder<'s> {
        self.begin_inside(type_name::<Here>(), every)
    }

    #[inline]
    #[track_caller]
    pub(super) fn begin_inside<'s>(
        &'static self,
        inside: &'static str,
        every: u32,
    ) -> ScopeBuilder<'s> {
        self.begin_from(NameSource::inside(inside), every)
    }

    /// Begins a call with arguments, of which one in `every` is logged. The name is a literal in the source.
    #[inline]
    #[track_caller]
    pub fn begin_named<'s>(&'static self, name: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_from(NameSource::literal(name), every)
    }

    /// Begins a call that has a stream and no other argument. `Here` is an item inside the function.
    #[inline]
    #[track_caller]
    pub fn begin_on_stream<'s, Here>(&'static self) -> StreamBuilder<'s> {
        StreamBuilder::new(self.begun(NameSource::inside(type_name::<Here>())))
    }

    /// Begins a call that has a stream and no other argument. The name is a literal in the source.
    #[inline]
    #[track_caller]
    pub fn begin_on_stream_named<'s>(&'static self, name: &'static str) -> StreamBuilder<'s> {
        StreamBuilder::new(self.begun(NameSource::literal(name)))
    }

    /// Returns the scope of a future without arguments. `Here` is an item inside the function.
    #[inline]
    #[track_caller]
    pub fn task<Here>(&'static self) -> FutureScope {
        self.task_unless_off(NameSource::inside(type_name::<Here>()))
    }

    /// Returns the scope of a future without arguments. The name is a literal in the source.
    #[inline]
    #[track_caller]
    pub fn task_named(&'static self, name: &'static str) -> FutureScope {
        self.task_unless_off(NameSource::literal(name))
    }

    #[inline(always)]
    fn task_unless_off(&'static self, source: NameSource) -> FutureScope {
        if NEVER_MEASURES || self.state().word() == SiteState::OFF {
            return FutureScope::new(None);
        }
        self.task_from(source)
    }

    // Not inlined: the decision would take space in the frame of the future, which stays while inner ones are polled.
    #[inline(never)]
    fn task_from(&'static self, source: NameSource) -> FutureScope {
        FutureScope::new(self.decision(source))
    }

    #[inline]
    fn begin_from<'s>(&'static self, source: NameSource, every: u32) -> ScopeBuilder<'s> {
        ScopeBuilder::new(self.begun(source), every)
    }

    /// Returns what a call with arguments does now, or `None` if it is not measured.
    #[inline]
    fn begun(&'static self, source: NameSource) -> Option<SiteDecision> {
        let word = self.state().word();
        if NEVER_MEASURES || word == SiteState::OFF {
            None
        } else {
            SiteState::plain_decision(word).or_else(|| self.decision(source))
        }
    }

    /// Returns what a call does now, or `None` if it is not measured.
    #[inline]
    pub(super) fn decision(&'static self, source: NameSource) -> Option<SiteDecision> {
        let switch = switch::load();
        if switch::is_off(switch) {
            self.turn_off();
            return None;
        }
        let decision = self
            .state()
            .decision()
            .under(switch)
            .or_else(|| self.decide(source));
        decision.filter(|decision| !decision.is_excluded())
    }

    /// Decides what the site's calls do, and stores the decision.
    #[cold]
    fn decide(&'static self, source: NameSource) -> Option<SiteDecision> {
        let _reentrancy = enter_or_refuse()?;
        // An older decision has the id of the name.
        let known = self.state().decision().id().and_then(name::by_id);
        let decision = decide(known.or_else(|| source.name())?);
        self.state().settle(Some(decision));
        decision.if_on()
    }

    /// Makes later calls find out from the site itself that measuring is off.
    #[cold]
    fn turn_off(&'static self) {
        if let Some(_reentrancy) = ReentrancyGuard::try_enter() {
            self.state().settle(None);
        }
    }
}

impl fmt::Debug for CallSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallSite").field(self.state()).finish()
    }
}
