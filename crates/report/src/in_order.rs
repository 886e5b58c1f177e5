//! Sorting with one copy of the sort.
//!
//! The standard library compiles its sorts anew for each type and each comparison: that was a third of this crate's machine
//! code, and the same part of the time to compile it.

use std::cmp::Ordering;

/// What the sorts of slices do, with their results.
///
/// A comparison is a call, and elements are moved once they are all in order. Sorts of numbers that are by the million take
/// the sorts of the standard library.
pub trait InOrder<T> {
    /// Sorts as `sort` does.
    fn order(&mut self)
    where
        T: Ord;

    /// Sorts as `sort_by` does.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts as `sort_by_key` does.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);
}

impl<T> InOrder<T> for [T] {
    fn order(&mut self)
    where
        T: Ord,
    {
        self.order_by(T::cmp);
    }

    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = ordered(self.len(), &mut |one, other| {
            compare(&self[one], &self[other])
        });
        arrange(order, &mut |one, other| self.swap(one, other));
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }
}

/// Returns the places of elements in their order. Those that are equal keep theirs.
fn ordered(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

/// Moves each element to its place, by swaps of two.
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for first in 0..order.len() {
        // The places whose elements go round: what is at `first` moves on until it is at its own.
        let mut place = first;
        loop {
            let from = std::mem::replace(&mut order[place], place);
            if from == first {
                break;
            }
            swap(place, from);
            place = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn elements_are_ordered_as_by_the_standard_library(
            // Few keys, so that many are equal: which of these comes first is in the second number.
            keys in prop::collection::vec(0..20_u8, 0..200),
        ) {
            let given: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let (mut expected, mut found) = (given.clone(), given.clone());
            expected.sort_by_key(|(key, _)| Reverse(*key));
            found.order_by_key(|(key, _)| Reverse(*key));
            prop_assert_eq!(&found, &expected);
            expected.sort_unstable();
            found.order();
            prop_assert_eq!(&found, &expected);
            let by = |one: &(u8, usize), other: &(u8, usize)| (one.0 / 4).cmp(&(other.0 / 4));
            let (mut expected, mut found) = (given.clone(), given);
            expected.sort_by(by);
            found.order_by(by);
            prop_assert_eq!(found, expected);
        }
    }
}
