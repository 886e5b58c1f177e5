//! A walk through scopes from the outside in, and which calls are outermost.

use crate::stream_key::StreamKey;

/// A step of a walk through all scopes: into one, or out of it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walked {
    In(usize),
    Out(usize),
}

/// Goes through all scopes from the outside in: each one's children come between its two steps.
pub(super) struct Walk {
    /// Where the children of each scope begin among `children`; those of none are the last.
    first: Vec<u32>,
    children: Vec<u32>,
    ahead: Vec<Walked>,
}

impl Walk {
    /// A walk through the scopes that `belongs` is true of.
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
        walk.meet_children(parents.len());
        walk
    }

    fn meet_children(&mut self, of: usize) {
        let range = self.first[of] as usize..self.first[of + 1] as usize;
        let children = self.children[range].iter().rev();
        self.ahead
            .extend(children.map(|child| Walked::In(*child as usize)));
    }
}

impl Iterator for Walk {
    type Item = Walked;

    fn next(&mut self) -> Option<Walked> {
        let step = self.ahead.pop()?;
        if let Walked::In(index) = step {
            self.ahead.push(Walked::Out(index));
            self.meet_children(index);
        }
        Some(step)
    }
}

/// How many calls of one kind are open at a point of a walk, and on which streams.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    calls: u32,
    streams: Vec<(StreamKey, u32)>,
}

impl Open {
    /// Goes into a call; true where it is inside of no other one.
    pub(super) fn enter(&mut self) -> bool {
        self.calls += 1;
        self.calls == 1
    }

    /// The same for its GPU time: true where it is inside of no other one on the same stream.
    pub(super) fn enter_stream(&mut self, stream: StreamKey) -> bool {
        if let Some((_, calls)) = self.streams.iter_mut().find(|(known, _)| *known == stream) {
            *calls += 1;
            return *calls == 1;
        }
        self.streams.push((stream, 1));
        true
    }

    /// Goes out of a call; true where it was inside of no other one.
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
        use Walked::{In, Out};

        let parents = [NONE, 0, 1, 0, NONE];
        let walked: Vec<Walked> = Walk::new(&parents, |index| index != 4).collect();
        assert_eq!(
            walked,
            [In(0), In(1), In(2), Out(2), Out(1), In(3), Out(3), Out(0)]
        );
    }
}
