//! Interning: each distinct value is stored once and has a small number.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use crate::session::NONE;

/// Numbers values in the order in which they first occur.
pub(super) struct Interner<T> {
    numbers: HashMap<T, u32>,
    values: Vec<T>,
}

impl<T: Clone + Hash + Eq> Interner<T> {
    pub(super) fn new() -> Self {
        Self {
            numbers: HashMap::new(),
            values: Vec::new(),
        }
    }

    /// Returns the number of a value. Calls `to_owned` if it occurs for the first time.
    pub(super) fn number<Q>(&mut self, value: &Q, to_owned: impl FnOnce() -> T) -> u32
    where
        T: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let number = to_number(self.values.len());
        let owned = to_owned();
        self.numbers.insert(owned.clone(), number);
        self.values.push(owned);
        number
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }
}

/// Converts an index to a number. It fits: there are at most as many as scopes, whose number has 32 bits.
pub(super) fn to_number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_number() {
        let mut interner = Interner::<String>::new();
        let numbers =
            ["a", "b", "a", "c", "b"].map(|text| interner.number(text, || text.to_owned()));
        assert_eq!(numbers, [0, 1, 0, 2, 1]);
        assert_eq!(interner.get(2).map(String::as_str), Some("c"));
        assert_eq!(interner.get(NONE), None);
    }
}
