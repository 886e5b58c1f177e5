//! The work of the device in a window whose kernels were recorded, for the sentences at the top of the page.

use std::cmp::Ordering;

use crate::kernels::{Kernels, ScopeKernels};
use crate::sentence::{Sentence, percent};
use crate::text::units;
use crate::verdict::Verdict;

/// The work of all measured functions.
pub(super) struct Work<'k> {
    scopes: Vec<(&'k str, &'k ScopeKernels)>,
    pub(super) busy_ns: f64,
    /// The verdict of the functions for which the device worked or waited longest.
    pub(super) verdict: Verdict,
}

impl<'k> Work<'k> {
    /// Returns `None` if no kernels were recorded, or if nothing can be said of any function.
    pub(super) fn of(kernels: &'k Kernels) -> Option<Self> {
        let scopes = kernels.scopes.iter();
        let scopes: Vec<(&str, &ScopeKernels)> = scopes
            .filter_map(|scope| Some((scope.scope.as_deref()?, scope)))
            .collect();
        let verdicts = [
            Verdict::LaunchBound,
            Verdict::GapBound,
            Verdict::CopyBound,
            Verdict::DeviceBound,
        ];
        let weight = |verdict: &Verdict| {
            let of_verdict = scopes
                .iter()
                .filter(|(_, scope)| scope.verdict() == Some(*verdict));
            of_verdict.map(|(_, scope)| time(scope)).sum::<f64>()
        };
        let verdict = verdicts
            .into_iter()
            .max_by(|one, other| weight(one).total_cmp(&weight(other)))
            .filter(|verdict| weight(verdict) > 0.0)?;
        Some(Self {
            busy_ns: scopes.iter().map(|(_, scope)| scope.busy_ns).sum(),
            verdict,
            scopes,
        })
    }

    /// Returns `true` if the calls of a function launched work.
    pub(super) fn is_of(&self, name: &str) -> bool {
        self.scopes.iter().any(|(scope, _)| *scope == name)
    }

    /// Names the function whose work took longest.
    pub(super) fn push_largest(&self, sentence: Sentence) -> Sentence {
        let busy = |scope: &ScopeKernels| scope.busy_ns;
        let Some((name, scope)) = largest(&self.scopes, busy) else {
            return sentence;
        };
        sentence.name(name).text(&format!(
            " launched {} of the work of {}",
            percent(scope.busy_ns / self.busy_ns),
            units::time(self.busy_ns)
        ))
    }

    /// Says what limits the program. `busy` is how much of the run the device worked, as text.
    pub(super) fn push_limit(&self, sentence: Sentence, busy: &str) -> Sentence {
        let of_verdict: Vec<_> = self
            .scopes
            .iter()
            .copied()
            .filter(|(_, scope)| scope.verdict() == Some(self.verdict))
            .collect();
        let sum = |of: fn(&ScopeKernels) -> f64| {
            of_verdict.iter().map(|(_, scope)| of(scope)).sum::<f64>()
        };
        let (all, idle) = (sum(time), sum(|scope| scope.idle_ns));
        let idle = format!("{} of {}", units::time(idle), units::time(all));
        let copies = units::time(sum(|scope| scope.copy_ns));
        let sentence = match self.verdict {
            Verdict::LaunchBound => sentence.strong("It is launch-bound").text(&format!(
                ": in functions that launch work, the GPU had nothing to do for {idle}, mostly because the next work had not \
                 been launched"
            )),
            Verdict::GapBound => sentence.strong("It is gap-bound").text(&format!(
                ": in functions that launch work, the GPU waited for {idle}, although the next work had been launched"
            )),
            Verdict::CopyBound => sentence.strong("Copies limit it").text(&format!(
                ": the GPU was busy for {busy} of the run, and ran copies and fills without kernels for {copies}"
            )),
            Verdict::DeviceBound => sentence.strong("The GPU limits it").text(&format!(
                ": it was busy for {busy} of the run, mostly with kernels"
            )),
        };
        match largest(&of_verdict, time) {
            Some((name, _)) => sentence.text(", first of all in ").name(name),
            None => sentence,
        }
    }
}

/// How long the device worked or waited for the calls of a function.
fn time(scope: &ScopeKernels) -> f64 {
    scope.busy_ns + scope.idle_ns
}

fn largest<'k>(
    scopes: &[(&'k str, &'k ScopeKernels)],
    of: impl Fn(&ScopeKernels) -> f64,
) -> Option<(&'k str, &'k ScopeKernels)> {
    let by =
        |one: &ScopeKernels, other: &ScopeKernels| -> Ordering { of(one).total_cmp(&of(other)) };
    let scopes = scopes.iter().copied();
    scopes.max_by(|(_, one), (_, other)| by(one, other))
}
