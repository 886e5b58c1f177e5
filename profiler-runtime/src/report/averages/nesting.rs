//! Walking nested scopes, and finding outermost calls.

use crate::stream_key::StreamKey;

/// A step of a walk: entering a scope, or leaving it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    Enter(usize),
    Leave(usize),
}

/// A depth-first walk: the children of each scope are visited between its two steps.
pub(super) struct Walk {
    /// The start of each scope's children in `children`; the last entry is for scopes without a parent.
    first: Vec<u32>,
    children: Vec<u32>,
    ahead: Vec<Visit>,
}

impl Walk {
    /// Creates a walk through the scopes for which `belongs` returns `true`.
    pub(super) fn new(parents: &[u32], belongs: impl Fn(usize) -> bool) -> Self {
        let place = |parent: u32| (parent as usize).min(parents.len());
        let mut first = vec![0_u32; parents.len() + 2];
        let all = || (0..parents.len()).filter(|index| belongs(*index));
        for index in all() {
            first[place(parents[index]) + 1] += 1;
        }
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut next = first.clone();
        let mut children = vec![0; first[first.len() - 1] as usize];
        for (index, parent) in (0_u32..).zip(parents) {
            if belongs(index as usize) {
                let slot = &mut next[place(*parent)];
                children[*slot as usize] = index;
                *slot += 1;
            }
        }
        let mut walk = Self {
            first,
            children,
            ahead: Vec::new(),
        };
        walk.push_children(parents.len());
        walk
    }

    fn push_children(&mut self, of: usize) {
        let range = self.first[of] as usize..self.first[of + 1] as usize;
        let children = self.children[range].iter().rev();
        self.ahead
            .extend(children.map(|child| Visit::Enter(*child as usize)));
    }
}

impl Iterator for Walk {
    type Item = Visit;

    fn next(&mut self) -> Option<Visit> {
        let step = self.ahead.pop()?;
        if let Visit::Enter(index) = step {
            self.ahead.push(Visit::Leave(index));
            self.push_children(index);
        }
        Some(step)
    }
}

/// The number of open calls of one kind at a point of a walk, in total and on each stream.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenCalls {
    calls: u32,
    streams: Vec<(StreamKey, u32)>,
}

impl OpenCalls {
    /// Enters a call. Returns `true` if it is outermost.
    pub(super) fn enter(&mut self) -> bool {
        self.calls += 1;
        self.calls == 1
    }

    /// Enters the GPU side of a call. Returns `true` if it is outermost on its stream.
    pub(super) fn enter_stream(&mut self, stream: StreamKey) -> bool {
        if let Some((_, calls)) = self.streams.iter_mut().find(|(known, _)| *known == stream) {
            *calls += 1;
            return *calls == 1;
        }
        self.streams.push((stream, 1));
        true
    }

    /// Leaves a call. Returns `true` if it was outermost.
    pub(super) fn leave(&mut self, stream: Option<StreamKey>) -> bool {
        self.calls = self.calls.saturating_sub(1);
        let known = self
            .streams
            .iter_mut()
            .find(|(known, _)| Some(*known) == stream);
        if let Some((_, calls)) = known {
            *calls = calls.saturating_sub(1);
        }
        self.calls == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::NONE;

    #[test]
    fn a_walk_goes_into_each_scope_and_out_of_it_after_its_children() {
        use Visit::{Enter, Leave};

        let parents = [NONE, 0, 1, 0, NONE];
        let walked: Vec<Visit> = Walk::new(&parents, |index| index != 4).collect();
        assert_eq!(
            walked,
            [
                Enter(0),
                Enter(1),
                Enter(2),
                Leave(2),
                Leave(1),
                Enter(3),
                Leave(3),
                Leave(0)
            ]
        );
    }
}
