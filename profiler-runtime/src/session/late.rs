//! Scopes that come after their window was handed over.

use std::collections::HashMap;

use super::record::{RecordKind, ScopeRecord};
use super::window::WindowSpec;
use crate::diagnostics;

/// Windows of one session that are remembered.
const MAX_OF_ONE: usize = 4;
/// Windows of all sessions.
const MAX_OF_ALL: usize = 32;

/// The last windows that were handed over, and what came too late for them.
#[derive(Default)]
pub(super) struct LateScopes {
    windows: Vec<WindowSpec>,
    /// When the last of them closed: nearly all scopes end later.
    closed: u64,
    /// For each session that goes on, what its next window is to say.
    counts: HashMap<u64, u64>,
    /// Sessions of these windows that have ended.
    ended: Vec<u64>,
}

impl LateScopes {
    /// Looks for scopes that belong to these windows.
    pub(super) fn look(&mut self, batch: &[ScopeRecord]) {
        let late = batch.iter().filter(|scope| {
            scope.end() <= self.closed && !matches!(scope.kind, RecordKind::Poll { .. })
        });
        for scope in late {
            let of = self.windows.iter().find(|window| {
                window.holds(scope.start, scope.end()) && window.records_any(scope.start)
            });
            let Some(window) = of else { continue };
            if self.ended.contains(&window.session) {
                tell();
            } else {
                *self.counts.entry(window.session).or_default() += 1;
            }
        }
    }

    /// Remembers a window that is handed over: what came too late for those of its session before it.
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

    /// A session has handed over its last window.
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
