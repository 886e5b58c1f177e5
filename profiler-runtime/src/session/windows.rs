//! The windows that records are sorted into. A record finds its window among thousands by a binary search.

use std::collections::VecDeque;

use super::registry::{ClosedWindow, ClosedWindows, registry};
use super::window::WindowSpec;
use super::window_builder::WindowBuilder;

/// A window with its records so far.
pub(super) struct FilledWindow {
    pub(super) state: WindowState,
    pub(super) builder: WindowBuilder,
}

/// An open window as it was when the registry was read, or a closed one.
pub(super) enum WindowState {
    Open(Box<WindowSpec>),
    Closed(Box<ClosedWindow>),
}

/// The windows of a session that are open, or closed and not delivered, in the order in which they opened. None of them
/// overlaps another, and the last one may be open.
pub(super) struct SessionWindows {
    pub(super) session: u64,
    pub(super) windows: VecDeque<FilledWindow>,
}

/// The windows of all sessions, by the ids of these.
#[derive(Default)]
pub(super) struct Windows {
    pub(super) sessions: Vec<SessionWindows>,
}

impl FilledWindow {
    pub(super) fn spec(&self) -> &WindowSpec {
        match &self.state {
            WindowState::Open(spec) => spec,
            WindowState::Closed(window) => &window.spec,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, WindowState::Closed(_))
    }

    pub(super) fn parts(&mut self) -> (&WindowSpec, &mut WindowBuilder) {
        let spec = match &self.state {
            WindowState::Open(spec) => spec,
            WindowState::Closed(window) => &window.spec,
        };
        (spec, &mut self.builder)
    }
}

impl SessionWindows {
    /// Returns the last window that had opened at a time: the only one that may have been open then.
    fn at(&mut self, at: u64) -> Option<&mut FilledWindow> {
        let opened = self.opened_until(at);
        self.windows.get_mut(opened.checked_sub(1)?)
    }

    /// Returns how many windows had opened at a time.
    fn opened_until(&self, at: u64) -> usize {
        self.windows.partition_point(|window| {
            #[cfg(test)]
            tests::visit();
            window.spec().opened <= at
        })
    }

    /// Adds a window, or replaces what is known of it.
    fn set(&mut self, state: WindowState) {
        // An open window of the session is this one, or was discarded.
        let known = self.take_open().filter(|open| open.spec().id == state.id());
        let builder = known.map(|known| known.builder).unwrap_or_default();
        self.windows.push_back(FilledWindow { state, builder });
    }

    /// Removes the open window.
    fn take_open(&mut self) -> Option<FilledWindow> {
        let is_open = self.windows.back().is_some_and(|last| !last.is_closed());
        if is_open {
            self.windows.pop_back()
        } else {
            None
        }
    }
}

impl WindowState {
    fn id(&self) -> u64 {
        match self {
            Self::Open(spec) => spec.id,
            Self::Closed(window) => window.spec.id,
        }
    }
}

impl Windows {
    /// Reads the registry. Every window that a record taken from its ring before belongs to is known afterwards.
    pub(super) fn update(&mut self) {
        let mut open = Vec::new();
        let closed = registry().take_closed(|spec| open.push(spec.clone()));
        for window in closed {
            let session = window.spec.session;
            self.session(session).set(WindowState::Closed(window));
        }
        for known in &mut self.sessions {
            // If it has neither closed nor is open, it was discarded.
            if !open.iter().any(|spec| spec.session == known.session) {
                known.take_open();
            }
        }
        for spec in open {
            self.session(spec.session)
                .set(WindowState::Open(Box::new(spec)));
        }
        self.sessions.retain(|known| !known.windows.is_empty());
    }

    fn session(&mut self, session: u64) -> &mut SessionWindows {
        let known = |known: &SessionWindows| known.session;
        let place = match self.sessions.binary_search_by_key(&session, known) {
            Ok(place) => place,
            Err(place) => {
                let windows = VecDeque::new();
                self.sessions
                    .insert(place, SessionWindows { session, windows });
                place
            }
        };
        &mut self.sessions[place]
    }

    /// Returns the windows that may have been open at a time, of each session one at most.
    pub(super) fn at(&mut self, at: u64) -> impl Iterator<Item = &mut FilledWindow> {
        self.sessions
            .iter_mut()
            .filter_map(move |known| known.at(at))
    }

    /// Calls `add` with each window that a scope with this end may lie in.
    pub(super) fn around_end(
        &mut self,
        end: u64,
        mut add: impl FnMut(&WindowSpec, &mut WindowBuilder),
    ) {
        for known in &mut self.sessions {
            let opened = known.opened_until(end);
            // The one before it may have closed at that time.
            for window in known.windows.range_mut(..opened).rev() {
                let (spec, builder) = window.parts();
                if !spec.may_contain(end) {
                    break;
                }
                add(spec, builder);
            }
        }
    }

    /// Returns the oldest window of each session.
    pub(super) fn oldest(&mut self) -> impl Iterator<Item = &mut FilledWindow> {
        let sessions = self.sessions.iter_mut();
        sessions.filter_map(|known| known.windows.front_mut())
    }

    /// Returns all windows.
    pub(super) fn all(&self) -> impl Iterator<Item = &FilledWindow> {
        self.sessions.iter().flat_map(|known| &known.windows)
    }

    /// Returns all windows.
    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut FilledWindow> {
        let sessions = self.sessions.iter_mut();
        sessions.flat_map(|known| &mut known.windows)
    }

    /// Takes all closed windows, without their records.
    pub(super) fn take_closed(&mut self) -> ClosedWindows {
        let sessions = self.sessions.drain(..);
        let windows = sessions.flat_map(|known| known.windows);
        let closed = windows.filter_map(|window| match window.state {
            WindowState::Closed(closed) => Some(closed),
            WindowState::Open(_) => None,
        });
        closed.collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static VISITED: Cell<u64> = const { Cell::new(0) };
    }

    /// Counts a window that was looked at in a search.
    pub(super) fn visit() {
        VISITED.set(VISITED.get() + 1);
    }

    impl Windows {
        /// Returns how many windows were looked at on this thread so far.
        pub(in super::super) fn visited() -> u64 {
            VISITED.get()
        }

        /// Windows of one session, in order, that nothing was sorted into.
        pub(in super::super) fn of<const N: usize>(specs: [WindowSpec; N]) -> Self {
            let session = specs[0].session;
            let windows = specs.map(|spec| FilledWindow {
                state: WindowState::Open(Box::new(spec)),
                builder: WindowBuilder::default(),
            });
            let windows = windows.into();
            Self {
                sessions: vec![SessionWindows { session, windows }],
            }
        }

        pub(in super::super) fn add_closed(&mut self, window: ClosedWindow) {
            let session = self.session(window.spec.session);
            session.set(WindowState::Closed(Box::new(window)));
        }
    }
}
