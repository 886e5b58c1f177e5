//! Walking a forest, such as nested scopes, from parents to children.

/// The parent of what has none.
pub const NONE: u32 = u32::MAX;

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

#[cfg(test)]
mod tests {
    use super::*;

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
