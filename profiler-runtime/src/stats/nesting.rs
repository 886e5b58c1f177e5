//! Which GPU times count in a total: the times of calls that are not inside another one.
//!
//! A call is inside another one on the GPU if both have a time on one stream. Whether the call around gets one is not known
//! when the call inside is read, which is first. So that one is counted; the call around it counts without it.

/// What calls are added up by in a total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// By their name.
    Name(u32),
    /// By their caller and callee, which recursive calls have one node of the call tree for.
    Node(u32),
}

/// A call whose GPU time is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nested {
    /// The number of its name, and whether another call of that name was open around it.
    pub(crate) name: (u32, bool),
    /// Its node if callers are counted, and whether another call of the caller and callee was open.
    pub(crate) node: Option<(u32, bool)>,
}

/// What was counted inside a scope, on its stream, in totals of which a call around may be a part too.
#[derive(Debug, Default)]
pub(crate) struct Inside(Vec<(Group, f64)>);

/// What a GPU time adds to sums, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Added {
    pub(crate) own: f64,
    /// To the total of the name.
    pub(crate) of_name: f64,
    /// To the total of the caller and callee.
    pub(crate) of_pair: f64,
}

impl Inside {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds what was counted inside a scope inside.
    pub(crate) fn add(&mut self, other: Self) {
        for (group, ns) in other.0 {
            match self.0.iter_mut().find(|(known, _)| *known == group) {
                Some((_, sum)) => *sum += ns,
                None => self.0.push((group, ns)),
            }
        }
    }

    /// Counts a call with this total and self time, whose scope it was counted inside of. What remains is for the scope around
    /// that.
    pub(crate) fn count(&mut self, call: Nested, (ns, own): (f64, f64)) -> Added {
        let (name, is_inner) = call.name;
        let of_name = self.total(Group::Name(name), (ns, own), is_inner);
        let of_pair = call.node.map_or(0.0, |(node, is_recursive)| {
            self.total(Group::Node(node), (ns, own), is_recursive)
        });
        Added {
            own,
            of_name,
            of_pair,
        }
    }

    fn total(&mut self, group: Group, (ns, own): (f64, f64), is_inner: bool) -> f64 {
        let place = self.0.iter().position(|(known, _)| *known == group);
        let counted = place.map_or(0.0, |place| self.0.swap_remove(place).1);
        if is_inner {
            self.0.push((group, ns));
        }
        // Futures inside that overlap may add up to more than the call.
        (ns - counted).max(own)
    }
}

impl Added {
    /// What a time adds that is inside no other one.
    pub(crate) fn alone(ns: f64, own: f64) -> Self {
        Self {
            own,
            of_name: ns,
            of_pair: ns,
        }
    }
}

impl std::ops::AddAssign for Added {
    fn add_assign(&mut self, other: Self) {
        self.own += other.own;
        self.of_name += other.of_name;
        self.of_pair += other.of_pair;
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "sums of small integers are exact")]
mod tests {
    use super::*;

    fn call(name: (u32, bool), node: (u32, bool)) -> Nested {
        Nested {
            name,
            node: Some(node),
        }
    }

    #[test]
    fn a_recursive_call_counts_once_by_its_name_and_by_its_caller() {
        let mut inside = Inside::default();
        // f calls g, which calls f, which calls itself: the calls of f by f have a node of their own.
        let innermost = inside.count(call((1, true), (12, false)), (3.0, 3.0));
        let inner = inside.count(call((1, true), (11, false)), (10.0, 7.0));
        let g = inside.count(call((2, false), (20, false)), (15.0, 5.0));
        let outer = inside.count(call((1, false), (10, false)), (20.0, 5.0));
        let of_names = [innermost, inner, g, outer].map(|added| added.of_name);
        assert_eq!(of_names, [3.0, 7.0, 15.0, 10.0]);
        let of_pairs = [innermost, inner, g, outer].map(|added| added.of_pair);
        assert_eq!(of_pairs, [3.0, 10.0, 15.0, 20.0]);
        assert!(inside.is_empty(), "nothing is around");
    }

    #[test]
    fn a_total_is_never_less_than_the_self_time() {
        let mut inside = Inside::default();
        // Two futures that overlap in all of the call around them.
        for _ in 0..2 {
            inside.count(call((1, true), (11, true)), (10.0, 10.0));
        }
        let outer = inside.count(call((1, false), (11, false)), (10.0, 0.0));
        assert_eq!((outer.of_name, outer.of_pair), (0.0, 0.0));
    }
}
