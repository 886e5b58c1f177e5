//! Call sites with several names.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

use super::call_site::NEW_SITE;
use super::dynamic::{decide_for_text, kept};
use super::{CallSite, NameSource};
use crate::scope::builder::ScopeBuilder;
use crate::switch;

/// A call site whose name is known only inside the function: an associated constant, or the path of one instance of a
/// generic function.
///
/// Most such sites have one name in practice. The first one is as fast as that of a [`CallSite`]; each thread keeps the
/// others in a table.
#[derive(Debug)]
pub struct MultiNameSite {
    /// The site of the first name.
    site: CallSite,
    first: FirstText,
}

/// A site that has not decided yet.
#[allow(
    clippy::declare_interior_mutable_const,
    reason = "the initial value of statics"
)]
pub const NEW_MULTI_NAME_SITE: MultiNameSite = MultiNameSite {
    site: NEW_SITE,
    first: FirstText::NEW,
};

impl MultiNameSite {
    /// Begins a call, of which one in `every` is logged, under a name that is a constant.
    #[inline]
    #[track_caller]
    pub fn begin_named<'s>(&'static self, name: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_from(NameSource::literal(name), every)
    }

    /// Begins a call of one instance of a function, of which one in `every` is logged. `inside` is the type name of an
    /// item inside the instance.
    #[inline]
    #[track_caller]
    pub fn begin<'s>(&'static self, inside: &'static str, every: u32) -> ScopeBuilder<'s> {
        self.begin_from(NameSource::inside(inside), every)
    }

    #[inline]
    fn begin_from<'s>(&'static self, source: NameSource, every: u32) -> ScopeBuilder<'s> {
        let switch = switch::load();
        if switch::is_off(switch) {
            return ScopeBuilder::off();
        }
        let decision = if self.first.matches_or_set(source.text) {
            self.site.decision(source)
        } else {
            // The location is part of the key: functions of two sites can have the same path, but not the same name.
            let site = ptr::from_ref(source.location).addr();
            let find = || Some((source.name()?, source.text));
            let decision =
                kept(site, source.text, switch).or_else(|| decide_for_text(site, switch, find));
            decision.filter(|decision| !decision.is_excluded())
        };
        ScopeBuilder::new(decision, every)
    }
}

/// The address and the length of the first string that a site was called with.
///
/// | `start` | `length` | meaning |
/// |---|---|---|
/// | null | `usize::MAX` | no call yet |
/// | set | `usize::MAX` | a thread has won the exchange of `start`, and has not stored the length yet |
/// | set | set | final |
///
/// Both are only compared with those of another `&'static str`, and never dereferenced, so relaxed ordering suffices. A
/// thread that sees the state in the middle, or an old state, finds no match. Its call takes the path of the other names,
/// which finds the same name more slowly. A match is never wrong: `usize::MAX` is no length of a string, and the winner of
/// the exchange alone stores the length.
#[derive(Debug)]
struct FirstText {
    start: AtomicPtr<u8>,
    length: AtomicUsize,
}

impl FirstText {
    #[allow(
        clippy::declare_interior_mutable_const,
        reason = "the initial value of sites"
    )]
    const NEW: Self = Self {
        start: AtomicPtr::new(ptr::null_mut()),
        length: AtomicUsize::new(usize::MAX),
    };

    /// Returns `true` if `text` is the first string, and makes it the first one if there is none.
    ///
    /// An equal address is not enough: the compiler can merge constants, so that one begins where another does.
    #[inline]
    fn matches_or_set(&self, text: &'static str) -> bool {
        let first = self.start.load(Relaxed);
        if first.is_null() {
            return self.set(text);
        }
        first == text.as_ptr().cast_mut() && self.length.load(Relaxed) == text.len()
    }

    /// Makes `text` the first string. Returns `false` if another thread has set one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_is_the_only_one_that_matches() {
        let text = "abcabc";
        let (whole, start, end) = (text, &text[..3], &text[3..]);
        let first = FirstText::NEW;
        assert!(first.matches_or_set(whole));
        assert!(first.matches_or_set(whole));
        assert!(!first.matches_or_set(start), "begins at the same address");
        assert!(!first.matches_or_set(end), "lies inside");
    }

    #[test]
    fn nothing_matches_until_the_length_is_stored() {
        let first = FirstText::NEW;
        let text = "text";
        first.start.store(text.as_ptr().cast_mut(), Relaxed);
        assert!(!first.matches_or_set(text));
        first.length.store(text.len(), Relaxed);
        assert!(first.matches_or_set(text));
    }

    #[test]
    fn one_of_several_threads_sets_the_first_text() {
        static FIRST: FirstText = FirstText::NEW;
        let set = |text: &'static str| std::thread::spawn(move || FIRST.set(text));
        let threads = ["one", "two", "three", "four"].map(set);
        let winners = threads.map(|thread| thread.join().unwrap());
        assert_eq!(winners.iter().filter(|won| **won).count(), 1);
    }
}
