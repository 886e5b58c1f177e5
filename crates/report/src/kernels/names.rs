//! Short names of kernels.

use std::collections::HashMap;

use super::ScopeKernels;
use crate::distinct::distinct;
use crate::in_order::InOrder as _;
use crate::signature::forms;

/// Sets the short names of all rows. One name has one short form, whichever scope launched it.
pub(super) fn short_names(scopes: &mut [ScopeKernels]) {
    let rows = || scopes.iter().flat_map(|scope| &scope.rows);
    let mut names: Vec<&str> = rows().map(|row| &*row.name).collect();
    names.order();
    names.dedup();
    let forms: Vec<Vec<String>> = names.iter().map(|name| forms(name)).collect();
    let short = names.iter().zip(distinct(&forms));
    let short: HashMap<String, String> = short
        .map(|(name, short)| ((*name).to_owned(), short.to_owned()))
        .collect();
    for row in scopes.iter_mut().flat_map(|scope| &mut scope.rows) {
        row.short = short
            .get(&row.name)
            .map_or_else(|| row.name.clone(), String::clone);
    }
}
