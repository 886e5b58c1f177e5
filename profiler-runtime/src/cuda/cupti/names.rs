//! The names of kernels, which belong to CUPTI: copied when a buffer comes back, into memory that was reserved before.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::Arc;

use super::activity::NO_NAME;
use super::losses::{WorkLoss, lose};
use crate::demangle::demangle;
use crate::sync::Lock;

/// The most names that are kept. Programs have some hundred.
const MAX_NAMES: usize = 4096;
/// The bytes of all names together. Names of kernels that are made of templates have some thousand letters.
const MAX_BYTES: usize = 4 << 20;
/// Twice as many as there are names, so that a search ends soon. A power of two.
const SLOTS: usize = 2 * MAX_NAMES;

static NAMES: Lock<Names> = Lock::new(Names::new());

/// Names by their addresses. A module that is unloaded leaves its addresses to others, so the bytes are compared too.
#[derive(Debug, Default)]
struct Names {
    /// An address, and the number of its name. The address 0 marks an empty slot.
    slots: Vec<(usize, u32)>,
    /// Where each name ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// How many of them were taken.
    taken: usize,
}

/// Reserves the memory for all names. Returns `false` if there is none.
pub(super) fn prepare() -> bool {
    NAMES.lock().prepare()
}

/// Returns the number of the name at an address. Does not allocate.
///
/// # Safety
///
/// `address` must be null or that of a terminated string.
pub(super) unsafe fn number_of(address: usize) -> u32 {
    if address == 0 {
        return NO_NAME;
    }
    // SAFETY: the caller promises a terminated string.
    let name = unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(address)) };
    NAMES.lock().number_of(address, name.to_bytes())
}

/// Returns the names that were added since the last call, in the order of their numbers.
pub(super) fn take_new() -> Vec<Arc<str>> {
    let new = NAMES.lock().take_new();
    // Without the lock, for which CUPTI may wait.
    let written = |name: Arc<str>| match demangle(&name) {
        Cow::Borrowed(_) => name,
        Cow::Owned(written) => written.into(),
    };
    new.into_iter().map(written).collect()
}

impl Names {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            ends: Vec::new(),
            bytes: Vec::new(),
            taken: 0,
        }
    }

    fn prepare(&mut self) -> bool {
        if !self.slots.is_empty() {
            return true;
        }
        let has_memory = self.slots.try_reserve_exact(SLOTS).is_ok()
            && self.ends.try_reserve_exact(MAX_NAMES).is_ok()
            && self.bytes.try_reserve_exact(MAX_BYTES).is_ok();
        if has_memory {
            self.slots.resize(SLOTS, (0, NO_NAME));
        }
        has_memory
    }

    fn number_of(&mut self, address: usize, name: &[u8]) -> u32 {
        let known = self.slot_of(address);
        if let Some(&(of, number)) = known.and_then(|slot| self.slots.get(slot))
            && of == address
            && self.bytes_of(number) == Some(name)
        {
            return number;
        }
        let has_room = self.ends.len() < MAX_NAMES && self.bytes.len() + name.len() <= MAX_BYTES;
        let Some(slot) = known.filter(|_| has_room) else {
            lose(WorkLoss::NoName, 1);
            return NO_NAME;
        };
        let number = u32::try_from(self.ends.len()).unwrap_or(NO_NAME);
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
        self.slots[slot] = (address, number);
        number
    }

    /// Returns the slot of an address, or the empty one where it belongs.
    fn slot_of(&self, address: usize) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        // The multiplication (Fibonacci hashing) spreads neighbouring addresses over the slots.
        let first = address.wrapping_mul(0x9E37_79B1) >> 16;
        let mut slots = (0..=mask).map(|step| first.wrapping_add(step) & mask);
        slots.find(|slot| matches!(self.slots[*slot].0, of if of == 0 || of == address))
    }

    fn bytes_of(&self, number: u32) -> Option<&[u8]> {
        let number = number as usize;
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.bytes.get(start..end)
    }

    fn take_new(&mut self) -> Vec<Arc<str>> {
        let new = self.taken..self.ends.len();
        self.taken = new.end;
        let text = |number| {
            let number = u32::try_from(number).unwrap_or(NO_NAME);
            String::from_utf8_lossy(self.bytes_of(number).unwrap_or_default()).into()
        };
        new.map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::new();
        assert!(names.prepare());
        names
    }

    #[test]
    fn a_name_has_one_number() {
        let mut names = names();
        let numbers = [(8, "gemm"), (16, "softmax"), (8, "gemm"), (24, "")]
            .map(|(address, name)| names.number_of(address, name.as_bytes()));
        assert_eq!(numbers, [0, 1, 0, 2]);
        let texts = names.take_new();
        assert_eq!(texts, ["gemm".into(), "softmax".into(), Arc::from("")]);
        assert_eq!(names.take_new(), []);
        names.number_of(32, b"relu");
        assert_eq!(names.take_new(), [Arc::from("relu")]);
    }

    #[test]
    fn an_address_that_is_used_again_gets_another_number() {
        let mut names = names();
        assert_eq!(names.number_of(8, b"one"), 0);
        assert_eq!(names.number_of(8, b"another"), 1);
        assert_eq!(names.number_of(8, b"another"), 1);
    }

    #[test]
    fn more_names_than_there_is_memory_for_have_no_number_and_allocate_nothing() {
        let mut names = names();
        let before = (
            names.ends.capacity(),
            names.bytes.capacity(),
            names.slots.len(),
        );
        for name in 0..MAX_NAMES {
            let number = names.number_of(8 * name + 8, name.to_string().as_bytes());
            assert_eq!(number as usize, name);
        }
        assert_eq!(names.number_of(4, b"one more"), NO_NAME);
        assert_eq!(names.number_of(8, b"0"), 0, "the others are known");
        let after = (
            names.ends.capacity(),
            names.bytes.capacity(),
            names.slots.len(),
        );
        assert_eq!(before, after);
    }

    #[test]
    fn without_memory_no_name_is_kept() {
        assert_eq!(Names::new().number_of(8, b"gemm"), NO_NAME);
    }
}
