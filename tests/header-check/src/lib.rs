//! Compares what is declared in Rust with NVIDIA's headers, of several releases of CUDA: functions, structures, numbers, and
//! CUPTI's numbers of the calls that it reports.
//!
//! A crate lists its declarations as [`Item`]s. [`check`] has a compiler of C++ say what the headers have instead of each,
//! and compares the two. Nothing is left out silently: a name that a release lacks, or has otherwise, must be stated
//! ([`Stated`]), and a statement that is not true is a difference too.

mod headers;
mod item;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use self::headers::{Headers, Release, VARIABLE};
pub use self::item::{Item, Kind, Number};
pub use self::shape::Shape;

/// What is known to be otherwise in some releases, and right.
#[derive(Clone, Copy, Debug)]
pub enum Stated {
    /// The headers have these names from a release on.
    Since(Release, &'static [&'static str]),
    /// The headers do not have these names from a release on.
    Until(Release, &'static [&'static str]),
    /// From a release on, the headers have this for an item, which may be declared as it is.
    Is(Release, &'static str, &'static str),
}

impl Stated {
    /// Returns `true` if the statement is that a release lacks a name.
    fn lacks(&self, name: &str, release: Release) -> bool {
        match self {
            Self::Since(first, names) => release < *first && names.contains(&name),
            Self::Until(end, names) => release >= *end && names.contains(&name),
            Self::Is(..) => false,
        }
    }

    /// Returns `true` if the statement is that a release has this for an item.
    fn is(&self, item: &Item, release: Release, theirs: &str) -> bool {
        matches!(self, Self::Is(since, text, is)
            if release >= *since && *text == item.to_string() && *is == theirs)
    }

    /// Returns the names that the statement is about.
    fn names(&self) -> &[&'static str] {
        match self {
            Self::Since(_, names) | Self::Until(_, names) => names,
            Self::Is(_, name, _) => std::slice::from_ref(name),
        }
    }
}

/// How many items of each kind agree with a release, and how many it lacks as stated.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    agree: BTreeMap<Kind, usize>,
    lacking: usize,
    /// The items that are otherwise.
    otherwise: BTreeSet<String>,
}

impl Counts {
    /// Returns how many items of a kind agree.
    pub fn of(&self, kind: Kind) -> usize {
        self.agree.get(&kind).copied().unwrap_or(0)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in Kind::ALL {
            write!(f, "{} {}, ", self.of(kind), kind.plural())?;
        }
        let (lacking, otherwise) = (self.lacking, self.otherwise.len());
        write!(f, "{lacking} not there and {otherwise} otherwise as stated")
    }
}

/// Compares items with the headers of one release.
///
/// # Errors
///
/// Returns a line for each difference.
///
/// # Panics
///
/// Panics if the headers cannot be compiled.
pub fn check(headers: &Headers, items: &[Item], stated: &[Stated]) -> Result<Counts, Vec<String>> {
    let release = headers.release();
    let mut counts = Counts::default();
    let mut differences = Vec::new();
    let mut compared = Vec::new();
    for item in items {
        let lacks = stated.iter().any(|known| known.lacks(item.name(), release));
        match (headers.has(item.name()), lacks) {
            (true, false) => compared.push(item),
            (false, true) => counts.lacking += 1,
            (false, false) => differences.push(format!("{item}: {release} does not have it")),
            (true, true) => {
                differences.push(format!(
                    "{item}: {release} has it, which is said to lack it"
                ));
            }
        }
    }
    for (item, theirs) in compared.iter().zip(headers.ask(&compared)) {
        if item.agrees(&theirs) {
            *counts.agree.entry(item.kind()).or_default() += 1;
        } else if stated.iter().any(|known| known.is(item, release, &theirs)) {
            counts.otherwise.insert(item.to_string());
        } else {
            let ours = item.ours();
            differences.push(format!("{item}: {ours} here, {theirs} in {release}"));
        }
    }
    if differences.is_empty() {
        Ok(counts)
    } else {
        Err(differences)
    }
}

/// Compares items with all releases, prints how many agree, and checks that each statement holds for one and that no item
/// is lacking in all.
///
/// `items` returns the items to compare with the headers of a release.
///
/// # Panics
///
/// Panics, with all differences, unless everything agrees; if there is no item of one of the kinds; and if the headers
/// cannot be compiled.
pub fn check_all(
    all: &[Headers],
    kinds: &[Kind],
    stated: &[Stated],
    items: impl Fn(&Headers) -> Vec<Item>,
) {
    let mut differences = Vec::new();
    let mut found: BTreeMap<String, bool> = BTreeMap::new();
    let mut otherwise = BTreeSet::new();
    for headers in all {
        let items = items(headers);
        for item in &items {
            *found.entry(item.name().to_owned()).or_default() |= headers.has(item.name());
        }
        match check(headers, &items, stated) {
            Ok(counts) => {
                println!("CUDA {}: {counts}", headers.release());
                let none = kinds.iter().filter(|kind| counts.of(**kind) == 0);
                differences.extend(none.map(|kind| format!("no {} compared", kind.plural())));
                otherwise.extend(counts.otherwise);
            }
            Err(more) => differences.extend(more),
        }
    }
    let nowhere = found.iter().filter(|(_, found)| !**found);
    differences.extend(nowhere.map(|(name, _)| format!("{name}: no release has it")));
    // Of a release with differences, it is not known which items are otherwise as stated.
    let is_unknown = !differences.is_empty();
    for known in stated {
        let applies = |name: &&&str| match known {
            Stated::Is(..) => is_unknown || otherwise.contains(**name),
            _ => all
                .iter()
                .any(|headers| known.lacks(name, headers.release())),
        };
        let untrue = known.names().iter().filter(|name| !applies(name));
        differences.extend(untrue.map(|name| format!("{name}: what is stated is nowhere so")));
    }
    assert!(
        differences.is_empty() && !all.is_empty(),
        "{} differences from NVIDIA's headers:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
