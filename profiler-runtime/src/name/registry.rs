//! The registry of all names. A call site looks its name up once, not with each call.

use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::{iter, ptr};

use profiler_host::diagnostics;
use profiler_host::sync::{Lock, Locked, RaceCell, ReentrancyGuard};

use super::path::{full_tag, function_name, function_tag};
use super::{MAX_NAMES, Name, Origin, SourceLocation, truncate};
use crate::losses;

/// The name for calls whose own name cannot be registered, because there are too many.
pub(crate) const OVERFLOW_NAME: &str = "(other names)";

struct Registry {
    by_text: Option<HashMap<&'static str, &'static Name>>,
    tags: Option<HashSet<&'static str>>,
    /// By id.
    names: Vec<&'static Name>,
}

/// The number of registered names that were built at run time. Changed under the lock.
static BUILT_AT_RUN_TIME: AtomicUsize = AtomicUsize::new(0);
/// The last registered name. With [`Name::previous`] it is a linked list of all names, from which a forked child restores
/// the registry. Changed under the lock.
///
/// The store is `Release` and the load `Acquire`, so that the child finds complete names.
static LAST: AtomicPtr<Name> = AtomicPtr::new(ptr::null_mut());

static REGISTRY: Lock<Registry> = Lock::with(
    Registry {
        by_text: None,
        tags: None,
        names: Vec::new(),
    },
    Registry::after_fork,
);

fn registry() -> Locked<'static, Registry> {
    REGISTRY.lock()
}

/// What a name takes beside its places in the registry: itself, its texts, and what is built of them meanwhile.
const NAME_BYTES: usize = 8 << 10;

/// Makes room for a name, which may be known by this text. Returns `false`, and counts the call that needs it as not measured,
/// if the system refuses memory: a registration would abort the program.
pub(crate) fn make_room(text: Option<&str>) -> bool {
    let mut registry = registry();
    if text.is_some_and(|text| registry.get(&truncate(text)).is_some()) {
        return true;
    }
    let tags = registry.tags.get_or_insert_default().try_reserve(1);
    let texts = registry.by_text.get_or_insert_default().try_reserve(1);
    let names = registry.names.try_reserve(1);
    // Given back at once, where what a name takes finds it.
    let name = Vec::<u8>::new().try_reserve_exact(NAME_BYTES);
    let has_room = tags.and(texts).is_ok() && names.and(name).is_ok();
    drop(registry);
    if !has_room {
        losses::count_unmeasured();
    }
    has_room
}

/// Returns `true` if no more names that are built at run time are registered, so that none needs room.
pub(crate) fn is_frozen() -> bool {
    FROZEN.get().is_some()
}

/// Returns the name of a function that is not given one. `inner` is the type name of an item inside the function.
///
/// Two functions can have the same path: in two blocks of one function, or in two versions of a crate. Their positions
/// in the source distinguish them.
pub(crate) fn of_function(inner: &str, location: &'static Location<'static>) -> &'static Name {
    of_path(&function_name(inner), location.into())
}

/// Returns the name of a span: `text` is the path of the module and the span's own name. As with functions, positions in
/// the source distinguish spans with the same text.
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) fn of_span(text: &str, location: SourceLocation) -> &'static Name {
    of_path(text, location)
}

fn of_path(path: &str, location: SourceLocation) -> &'static Name {
    let text = truncate(path).into_owned();
    let mut registry = registry();
    let name = match registry.get(&text) {
        Some(name) if name.location == location => name,
        Some(_) => {
            let text = with_location(&text, location, &registry);
            let tag = function_tag(&text);
            registry.get_or_add((text, Origin::Function), [tag], location)
        }
        None => {
            let tags = [function_tag(&text), full_tag(&text)];
            registry.get_or_add((text, Origin::Function), tags, location)
        }
    };
    drop(registry);
    warned_if_overflow(name)
}

/// Warns if `name` is the overflow name, and returns it.
fn warned_if_overflow(name: &'static Name) -> &'static Name {
    if name.text == OVERFLOW_NAME {
        diagnostics::warn_once(&format!(
            "the program has more than {MAX_NAMES} names; further functions are counted under \
             `{OVERFLOW_NAME}`"
        ));
    }
    name
}

/// Returns the name of a function whose path is another function's name: the path and the line, and the column if another
/// function on that line has the same path.
fn with_location(text: &str, location: SourceLocation, registry: &Registry) -> String {
    let (line, column) = (location.line(), location.column());
    let file = location.file_from_crate();
    let by_line = truncate(&format!("{text} ({file}:{line})")).into_owned();
    match registry.get(&by_line) {
        Some(name) if name.location != location => {
            truncate(&format!("{text} ({file}:{line}:{column})")).into_owned()
        }
        _ => by_line,
    }
}

/// Returns the name that a literal in the source gives. Call sites with the same literal share it.
pub(crate) fn declared(text: &str, location: &'static Location<'static>) -> &'static Name {
    let text = truncate(text);
    let given = (text.to_string(), Origin::Given);
    let name = registry().get_or_add(given, [text.into_owned()], location.into());
    warned_if_overflow(name)
}

/// Returns a name that was built at run time, or the overflow name if there are `limit` such names already.
pub(crate) fn run_time(
    text: &str,
    location: &'static Location<'static>,
    limit: impl FnOnce() -> usize,
) -> &'static Name {
    let text = &*truncate(text);
    // At the limit the map of names is frozen, and lookups take no lock.
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
        let given = (text.to_owned(), Origin::Given);
        return registry.get_or_add(given, [text.to_owned()], location.into());
    }
    let text = OVERFLOW_NAME.to_owned();
    let given = (text.clone(), Origin::Given);
    let overflow = registry.get_or_add(given, [text], Location::caller().into());
    let mut names = HashMap::new();
    let known = registry.by_text.iter().flatten();
    // Without memory for it, a later call freezes the map.
    if names.try_reserve(registry.names.len()).is_ok() {
        names.extend(known.map(|(text, name)| (*text, *name)));
        drop(registry);
        FROZEN.get_or_init(|| Frozen { names, overflow });
    }
    diagnostics::warn_once(&format!(
        "more than {limit} names were built at run time; the rest is counted under `{OVERFLOW_NAME}`: \
         build fewer names, or raise PROFILER_MAX_NAMES"
    ));
    overflow
}

/// The names that a name built at run time can be, once the limit is reached.
struct Frozen {
    names: HashMap<&'static str, &'static Name>,
    overflow: &'static Name,
}

static FROZEN: RaceCell<Frozen> = RaceCell::new();

/// Returns the name with this id.
pub(crate) fn by_id(id: u32) -> Option<&'static Name> {
    registry().names.get(id as usize).copied()
}

/// Returns how many names are registered so far.
pub(crate) fn count() -> usize {
    registry().names.len()
}

/// Returns all names that are registered so far.
pub(crate) fn all() -> Vec<&'static Name> {
    let _reentrancy = ReentrancyGuard::try_enter();
    registry().names.clone()
}

impl Registry {
    /// Restores the registry from the list of names, for a child that was forked while another thread held the lock. An
    /// empty registry would give ids and tags out twice.
    fn after_fork() -> Self {
        // SAFETY: the pointer is null or points to a complete name, see `LAST`, and names are never freed.
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
        (text, origin): (String, Origin),
        tags: [String; N],
        location: SourceLocation,
    ) -> &'static Name {
        // The last id is reserved for the overflow name.
        let full = self.names.len() + 1 >= MAX_NAMES && text != OVERFLOW_NAME;
        let (text, origin) = if full {
            (OVERFLOW_NAME.to_owned(), Origin::Given)
        } else {
            (text, origin)
        };
        if let Some(name) = self.get(&text) {
            return name;
        }
        let tag = if full {
            text.clone()
        } else {
            self.free_tag(tags)
        };
        #[allow(clippy::cast_possible_truncation, reason = "at most MAX_NAMES")]
        let id = self.names.len() as u32;
        let previous = self.names.last().copied();
        let name: &'static Name = Box::leak(Box::new(Name::new(
            id,
            (text, origin),
            tag,
            location,
            previous,
        )));
        LAST.store(ptr::from_ref(name).cast_mut(), Release);
        self.names.push(name);
        self.tags.get_or_insert_default().insert(&name.tag);
        self.by_text
            .get_or_insert_default()
            .insert(&name.text, name);
        name
    }

    /// Returns the first of `tags` that no name has. If all are taken, appends a number to the last one.
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
    fn functions_with_the_same_path_have_two_names() {
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
    fn functions_of_two_crates_have_two_tags() {
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
