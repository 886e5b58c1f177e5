//! All names of the process. Looked at when a call site is first used, never for each call.

use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::MutexGuard;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{iter, ptr};

use super::length::cut;
use super::path::{full_tag, function_name, function_tag};
use super::{MAX_NAMES, Name};
use crate::diagnostics;
use crate::sync::ReentrancyGuard;
use crate::sync::{Lock, RaceCell};

/// What goes over the bound on names is counted here.
pub(crate) const OVERFLOW_NAME: &str = "(other names)";

struct Registry {
    by_text: Option<HashMap<&'static str, &'static Name>>,
    tags: Option<HashSet<&'static str>>,
    /// By number.
    names: Vec<&'static Name>,
}

/// How many names were built at run time; changed under the lock.
static BUILT_AT_RUN_TIME: AtomicUsize = AtomicUsize::new(0);
/// The name that was added last; each knows the one before it. Changed under the lock, read by a forked child.
static LAST: AtomicPtr<Name> = AtomicPtr::new(ptr::null_mut());

static REGISTRY: Lock<Registry> = Lock::with(
    Registry {
        by_text: None,
        tags: None,
        names: Vec::new(),
    },
    Registry::after_fork,
);

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock()
}

/// The name of a function without a name of its own, from the type name of something inside it.
///
/// Two functions whose paths are spelled alike (in two blocks of one function, say, or in two
/// versions of one crate) are told apart by where they stand.
pub(crate) fn of_function(inner: &str, location: &'static Location<'static>) -> &'static Name {
    let text = cut(&function_name(inner)).into_owned();
    let mut registry = registry();
    let name = match registry.get(&text) {
        Some(name) if name.location == location => name,
        Some(_) => {
            let text = apart(&text, location, &registry);
            let tag = function_tag(&text);
            registry.get_or_add(text, [tag], location)
        }
        None => {
            let tags = [function_tag(&text), full_tag(&text)];
            registry.get_or_add(text, tags, location)
        }
    };
    drop(registry);
    said_if_full(name)
}

/// What to say of functions that get no number any more.
fn said_if_full(name: &'static Name) -> &'static Name {
    if name.text == OVERFLOW_NAME {
        diagnostics::warn_once(&format!(
            "the program has more than {MAX_NAMES} names; further functions are counted under \
             `{OVERFLOW_NAME}`"
        ));
    }
    name
}

/// The name of a function whose path another function has: with where it stands, as far as needed.
fn apart(text: &str, location: &Location<'_>, registry: &Registry) -> String {
    let (file, line, column) = (location.file(), location.line(), location.column());
    let by_line = cut(&format!("{text} ({file}:{line})")).into_owned();
    match registry.get(&by_line) {
        Some(name) if name.location != location => {
            cut(&format!("{text} ({file}:{line}:{column})")).into_owned()
        }
        _ => by_line,
    }
}

/// A name that stands in the source; call sites that give the same one share it.
pub(crate) fn declared(text: &str, location: &'static Location<'static>) -> &'static Name {
    let text = cut(text);
    let name = registry().get_or_add(text.to_string(), [text.into_owned()], location);
    said_if_full(name)
}

/// A name built at run time; `limit` bounds how many of them there are.
pub(crate) fn run_time(
    text: &str,
    location: &'static Location<'static>,
    limit: impl FnOnce() -> usize,
) -> &'static Name {
    let text = &*cut(text);
    // From when on no name can be added, names are looked up without a lock.
    if let Some(frozen) = FROZEN.get() {
        return frozen.names.get(text).copied().unwrap_or(frozen.overflow);
    }
    let limit = limit();
    let mut registry = registry();
    if let Some(name) = registry.get(text) {
        return name;
    }
    let built = BUILT_AT_RUN_TIME.load(Relaxed);
    if built < limit {
        BUILT_AT_RUN_TIME.store(built + 1, Relaxed);
        return registry.get_or_add(text.to_owned(), [text.to_owned()], location);
    }
    let text = OVERFLOW_NAME.to_owned();
    let overflow = registry.get_or_add(text.clone(), [text], Location::caller());
    let names = registry.by_text.clone().unwrap_or_default();
    drop(registry);
    FROZEN.get_or_init(|| Frozen { names, overflow });
    diagnostics::warn_once(&format!(
        "more than {limit} names were built at run time; the rest is counted under `{OVERFLOW_NAME}`: \
         build fewer names, or raise PROFILER_MAX_NAMES"
    ));
    overflow
}

/// What names built at run time can be, once there are as many as there may be.
struct Frozen {
    names: HashMap<&'static str, &'static Name>,
    overflow: &'static Name,
}

static FROZEN: RaceCell<Frozen> = RaceCell::new();

/// The name with a number that [`Name::id`] gave.
pub(crate) fn by_id(id: u32) -> Option<&'static Name> {
    registry().names.get(id as usize).copied()
}

/// All names by now.
pub(crate) fn all() -> Vec<&'static Name> {
    let _busy = ReentrancyGuard::try_enter();
    registry().names.clone()
}

impl Registry {
    /// Makes it anew from the names there are, in a child that was forked while another thread changed it: numbers and
    /// tags of names must not be given twice.
    fn after_fork() -> Self {
        // SAFETY: names are stored there when they are complete, with a release, and are never freed.
        let last = unsafe { LAST.load(Acquire).as_ref() };
        let mut names: Vec<&'static Name> = iter::successors(last, |name| name.previous).collect();
        names.reverse();
        Self {
            by_text: Some(names.iter().map(|name| (&*name.text, *name)).collect()),
            tags: Some(names.iter().map(|name| &*name.tag).collect()),
            names,
        }
    }

    fn get(&self, text: &str) -> Option<&'static Name> {
        self.by_text.as_ref()?.get(text).copied()
    }

    fn get_or_add<const N: usize>(
        &mut self,
        text: String,
        tags: [String; N],
        location: &'static Location<'static>,
    ) -> &'static Name {
        // The last number is kept for what goes over.
        let full = self.names.len() + 1 >= MAX_NAMES && text != OVERFLOW_NAME;
        let text = if full { OVERFLOW_NAME.to_owned() } else { text };
        if let Some(name) = self.get(&text) {
            return name;
        }
        let tag = if full {
            text.clone()
        } else {
            self.free_tag(tags)
        };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "there are at most MAX_NAMES"
        )]
        let id = self.names.len() as u32;
        let previous = self.names.last().copied();
        let name: &'static Name = Box::leak(Box::new(Name::new(id, text, tag, location, previous)));
        LAST.store(ptr::from_ref(name).cast_mut(), Release);
        self.names.push(name);
        self.tags.get_or_insert_default().insert(&name.tag);
        self.by_text
            .get_or_insert_default()
            .insert(&name.text, name);
        name
    }

    /// The first of `tags` that no name has, or the last one numbered: two names never share a tag.
    fn free_tag<const N: usize>(&self, tags: [String; N]) -> String {
        let taken = |tag: &str| self.tags.as_ref().is_some_and(|tags| tags.contains(tag));
        let mut last = String::new();
        for tag in tags {
            if !taken(&tag) {
                return tag;
            }
            last = tag;
        }
        (2..u32::MAX)
            .map(|number| format!("{last} #{number}"))
            .find(|tag| !taken(tag))
            .unwrap_or(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn here() -> &'static Location<'static> {
        Location::caller()
    }

    #[test]
    fn functions_spelled_alike_stay_two() {
        let (first, second) = (here(), { here() });
        let one = of_function("registry_a::f::Here", first);
        let other = of_function("registry_a::f::Here", second);
        assert_ne!(one.text, other.text);
        assert_ne!(one.tag, other.tag);
        assert!(std::ptr::eq(one, of_function("registry_a::f::Here", first)));
        assert!(std::ptr::eq(
            other,
            of_function("registry_a::f::Here", second)
        ));
    }

    #[test]
    fn crates_that_would_share_a_tag_keep_two() {
        let one = of_function("registry_b::model::f::Here", here());
        let other = of_function("registry_c::model::f::Here", here());
        assert_eq!(one.tag, "model/f");
        assert_eq!(other.tag, "registry_c/model/f");
        assert_eq!(declared("model/f", here()).tag, "model/f #2");
    }

    #[test]
    fn a_declared_name_is_shared() {
        let one = declared("registry shared", here());
        assert!(std::ptr::eq(one, declared("registry shared", here())));
    }

    #[test]
    fn names_built_at_run_time_are_bounded() {
        let names: Vec<_> = (0..20)
            .map(|n| run_time(&format!("registry layer {n}"), here(), || 8))
            .collect();
        assert!(names.iter().any(|name| name.text == OVERFLOW_NAME));
        assert_eq!(
            run_time("registry layer 0", here(), || 8).text,
            names[0].text
        );
    }
}
