//! The list of violations, with a bound for each rule.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::rule::{Rule, Violation};

/// How many violations are listed for each rule at most.
const MAX_PER_RULE: usize = 100;

#[derive(Default)]
pub(super) struct Violations {
    list: Vec<Violation>,
    counts: HashMap<Rule, usize>,
}

impl Violations {
    pub(super) fn add(
        &mut self,
        rule: Rule,
        event: Option<usize>,
        name: Option<&str>,
        what: String,
    ) {
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count <= MAX_PER_RULE {
            let name = name.map(str::to_owned);
            self.list.push(Violation {
                rule,
                event,
                name,
                what,
            });
        }
    }

    /// Returns the list: errors first, by rule and event.
    pub(super) fn finish(mut self) -> Vec<Violation> {
        self.list
            .sort_by_key(|found| (Reverse(found.rule.severity()), found.rule, found.event));
        self.list
    }
}
