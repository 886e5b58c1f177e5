//! Five thousand call sites.

use std::hint::black_box;

use profiler_runtime::__private::{CallSite, NEW_SITE};

/// The number of names.
pub(crate) const NAMES: usize = 5_000;

/// As the macros expand to, but for names that are made in a loop: the compiler would take minutes for as many functions.
static SITES: [CallSite; NAMES] = [NEW_SITE; NAMES];

/// Returns the names, which live as long as the program.
pub(crate) fn all() -> Vec<&'static str> {
    let name = |number: usize| format!("service::handlers::Handler{number}::call");
    let leaked = (0..NAMES).map(|number| &*Box::leak(name(number).into_boxed_str()));
    leaked.collect()
}

/// Makes one measured call of each name.
pub(crate) fn call_all(names: &[&'static str], length: u32) {
    for (site, name) in SITES.iter().zip(names) {
        let _scope = site.enter_named(name);
        for step in 0..length {
            black_box(step);
        }
    }
}
