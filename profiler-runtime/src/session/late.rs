//! Scopes that arrive after their window was delivered.

use std::collections::HashMap;

use profiler_host::diagnostics;

use super::record::{RecordKind, ScopeRecord};
use super::window::WindowSpec;

/// Delivered windows that are remembered for each session.
const MAX_OF_ONE: usize = 4;
/// Delivered windows that are remembered in total.
const MAX_OF_ALL: usize = 32;

/// The last delivered windows, and the number of scopes that arrived too late for them.
#[derive(Default)]
pub(super) struct LateScopes {
    windows: Vec<WindowSpec>,
    /// When the last of them closed. Nearly all scopes end after that, and need no search.
    closed: u64,
    /// For each running session, the late scopes that its next window reports.
    counts: HashMap<u64, u64>,
    /// Ended sessions that some of these windows belong to.
    ended: Vec<u64>,
}

impl LateScopes {
    /// Counts the scopes of a batch that belong to delivered windows.
    pub(super) fn look(&mut self, batch: &[ScopeRecord]) {
        let late = batch.iter().filter(|scope| {
            scope.end() <= self.closed && !matches!(scope.kind, RecordKind::Poll { .. })
        });
        for scope in late {
            let of = self.windows.iter().find(|window| {
                window.contains(scope.start, scope.end()) && window.records_any(scope.start)
            });
            let Some(window) = of else { continue };
            if self.ended.contains(&window.session) {
                tell();
            } else {
                *self.counts.entry(window.session).or_default() += 1;
            }
        }
    }

    /// Remembers a window that is about to be delivered. Returns the number of scopes that were late for earlier
    /// windows of its session.
    pub(super) fn deliver(&mut self, spec: &WindowSpec) -> u64 {
        let of_one = |window: &&WindowSpec| window.session == spec.session;
        let known = self.windows.iter().filter(of_one).count();
        if known >= MAX_OF_ONE || self.windows.len() >= MAX_OF_ALL {
            let oldest = self
                .windows
                .iter()
                .position(|window| known < MAX_OF_ONE || window.session == spec.session);
            oldest.map(|oldest| self.windows.remove(oldest));
        }
        self.closed = self.closed.max(spec.closed.unwrap_or_default());
        self.windows.push(spec.clone());
        self.counts.remove(&spec.session).unwrap_or_default()
    }

    /// Notes that a session has delivered its last window.
    pub(super) fn end(&mut self, session: u64) {
        if self.counts.remove(&session).is_some() {
            tell();
        }
        let windows = &self.windows;
        let is_known = |ended: &u64| windows.iter().any(|window| window.session == *ended);
        self.ended.push(session);
        self.ended.retain(is_known);
    }
}

fn tell() {
    diagnostics::warn_once(
        "scopes came more than a millisecond after they ended, when the last window of their session had been handed \
         over: its trace lacks them; keep the session a little longer than what it is to record",
    );
}
