//! The names of kernels, which belong to CUPTI: copied when a buffer comes back, into memory that was reserved before.

use std::borrow::Cow;
use std::ffi::CStr;
use std::mem;
use std::sync::Arc;

use profiler_host::sync::Lock;
use profiler_report::internal::demangle;

use super::activity::NO_NAME;
use super::losses::{WorkLoss, lose};

/// The most names that are kept. Programs have some hundred.
const MAX_NAMES: usize = 4096;
/// The bytes of all names together. Names of kernels that are made of templates have some thousand letters.
const MAX_BYTES: usize = 4 << 20;
/// Twice as many as there are names, so that a search ends soon. A power of two.
const SLOTS: usize = 2 * MAX_NAMES;
/// The most addresses that are kept, so that a search for another one finds an empty slot. A name has several if its
/// module was loaded again.
const MAX_ADDRESSES: usize = SLOTS / 4 * 3;

static NAMES: Lock<Names> = Lock::new(Names::new());

/// Names by their addresses. A module that is unloaded leaves its addresses to others, so the bytes are compared too.
#[derive(Debug, Default)]
struct Names {
    /// An address, and the number of its name. The address 0 marks an empty slot.
    slots: Vec<(usize, u32)>,
    /// How many slots are in use.
    addresses: usize,
    /// The numbers of names by their text; [`NO_NAME`] marks an empty slot.
    by_text: Vec<u32>,
    /// Where each name ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// How many of them were taken.
    taken: usize,
}

/// Reserves the memory for all names. Returns `false` if there is none.
pub(super) fn prepare() -> bool {
    if NAMES.lock().is_prepared() {
        return true;
    }
    // Memory is reserved and freed without the lock, for which CUPTI may wait.
    let Some(names) = Names::with_memory() else {
        return false;
    };
    let before = mem::replace(&mut *NAMES.lock(), names);
    drop(before);
    true
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
    // Memory is reserved without the lock, for which CUPTI may wait. Names that are added in between are left to the next
    // call.
    let size = NAMES.lock().new_size();
    let mut new = NewNames::with_memory(size);
    NAMES.lock().take_new(&mut new);
    new.texts().map(|name| demangle(&name).into()).collect()
}

/// Names on their way out of the table.
#[derive(Debug)]
struct NewNames {
    bytes: Vec<u8>,
    /// Where each name ends in `bytes`.
    ends: Vec<usize>,
}

impl NewNames {
    /// Reserves memory for a number of names, and for their bytes.
    fn with_memory((names, bytes): (usize, usize)) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(names),
        }
    }

    fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| {
            String::from_utf8_lossy(self.bytes.get(start..*end).unwrap_or_default())
        })
    }
}

impl Names {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            addresses: 0,
            by_text: Vec::new(),
            ends: Vec::new(),
            bytes: Vec::new(),
            taken: 0,
        }
    }

    fn is_prepared(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Reserves the memory for all names. Returns `None` if there is none.
    fn with_memory() -> Option<Self> {
        let mut names = Self::new();
        names.slots.try_reserve_exact(SLOTS).ok()?;
        names.by_text.try_reserve_exact(SLOTS).ok()?;
        names.ends.try_reserve_exact(MAX_NAMES).ok()?;
        names.bytes.try_reserve_exact(MAX_BYTES).ok()?;
        names.slots.resize(SLOTS, (0, NO_NAME));
        names.by_text.resize(SLOTS, NO_NAME);
        Some(names)
    }

    fn number_of(&mut self, address: usize, name: &[u8]) -> u32 {
        let slot = self.slot_of(address);
        let known = slot.and_then(|slot| self.slots.get(slot).copied());
        if let Some((of, number)) = known
            && of == address
            && self.bytes_of(number) == Some(name)
        {
            return number;
        }
        let number = self.number_of_text(name);
        if let (Some(slot), Some((of, _))) = (slot, known)
            && number != NO_NAME
            && (of == address || self.addresses < MAX_ADDRESSES)
        {
            self.addresses += usize::from(of == 0);
            self.slots[slot] = (address, number);
        }
        number
    }

    /// Returns the number of a name, and adds the name if it is new and there is room.
    fn number_of_text(&mut self, name: &[u8]) -> u32 {
        let slot = self.slot_of_text(name);
        let known = slot.and_then(|slot| self.by_text.get(slot).copied());
        if let Some(known) = known
            && known != NO_NAME
        {
            return known;
        }
        let has_room = self.ends.len() < MAX_NAMES && self.bytes.len() + name.len() <= MAX_BYTES;
        let Some(slot) = slot.filter(|_| has_room) else {
            lose(WorkLoss::NoName, 1);
            return NO_NAME;
        };
        let number = u32::try_from(self.ends.len()).unwrap_or(NO_NAME);
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
        self.by_text[slot] = number;
        number
    }

    /// Returns the slot of a name, or the empty one where it belongs.
    fn slot_of_text(&self, name: &[u8]) -> Option<usize> {
        let mask = self.by_text.len().checked_sub(1)?;
        // FNV-1a, of 32 bits.
        let hash = name.iter().fold(0x811C_9DC5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        let mut slots = (0..=mask).map(|step| (hash as usize).wrapping_add(step) & mask);
        slots.find(|slot| {
            let number = self.by_text[*slot];
            number == NO_NAME || self.bytes_of(number) == Some(name)
        })
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
        self.bytes.get(self.start_of(number)..end)
    }

    /// Returns how many names are new, and how many bytes they have.
    fn new_size(&self) -> (usize, usize) {
        let first = self.start_of(self.taken);
        (self.ends.len() - self.taken, self.bytes.len() - first)
    }

    /// Copies new names, as many as there is memory for. Does not allocate.
    fn take_new(&mut self, new: &mut NewNames) {
        let first = self.start_of(self.taken);
        for end in &self.ends[self.taken..] {
            let start = first + new.bytes.len();
            let has_room =
                new.ends.len() < new.ends.capacity() && end - first <= new.bytes.capacity();
            let Some(name) = self.bytes.get(start..*end).filter(|_| has_room) else {
                break;
            };
            new.bytes.extend_from_slice(name);
            new.ends.push(new.bytes.len());
        }
        self.taken += new.ends.len();
    }

    /// Returns where a name starts in `bytes`.
    fn start_of(&self, number: usize) -> usize {
        let before = number.checked_sub(1);
        before.map_or(0, |before| self.ends[before])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::with_memory().expect("there is memory")
    }

    fn new_texts(names: &mut Names) -> Vec<String> {
        let mut new = NewNames::with_memory(names.new_size());
        names.take_new(&mut new);
        new.texts().map(Cow::into_owned).collect()
    }

    #[test]
    fn a_name_has_one_number() {
        let mut names = names();
        let numbers = [(8, "gemm"), (16, "softmax"), (8, "gemm"), (24, "")]
            .map(|(address, name)| names.number_of(address, name.as_bytes()));
        assert_eq!(numbers, [0, 1, 0, 2]);
        assert_eq!(new_texts(&mut names), ["gemm", "softmax", ""]);
        assert_eq!(new_texts(&mut names), <[&str; 0]>::default());
        names.number_of(32, b"relu");
        assert_eq!(new_texts(&mut names), ["relu"]);
    }

    #[test]
    fn names_that_are_added_while_others_are_taken_are_left_to_the_next_time() {
        let mut names = names();
        names.number_of(8, b"gemm");
        let mut new = NewNames::with_memory(names.new_size());
        let memory = (new.bytes.capacity(), new.ends.capacity());
        for address in 2..64 {
            names.number_of(8 * address, format!("kernel {address}").as_bytes());
        }
        names.take_new(&mut new);
        assert_eq!((new.bytes.capacity(), new.ends.capacity()), memory);
        let mut texts: Vec<String> = new.texts().map(Cow::into_owned).collect();
        assert!(texts.len() < 63, "{texts:?}");
        texts.extend(new_texts(&mut names));
        assert_eq!(texts.len(), 63);
        assert_eq!((&*texts[0], &*texts[62]), ("gemm", "kernel 63"));
    }

    #[test]
    fn a_module_that_is_loaded_again_takes_no_more_names() {
        let mut names = names();
        for round in 0..SLOTS {
            assert_eq!(names.number_of(8 * round + 8, b"gemm"), 0);
        }
        assert_eq!(names.number_of(4, b"softmax"), 1);
        assert_eq!(names.ends.len(), 2);
    }

    #[test]
    fn an_address_that_is_used_again_gets_another_number() {
        let mut names = names();
        assert_eq!(names.number_of(8, b"one"), 0);
        assert_eq!(names.number_of(8, b"another"), 1);
        assert_eq!(names.number_of(8, b"another"), 1);
        assert_eq!(names.number_of(8, b"one"), 0);
        assert_eq!(names.ends.len(), 2);
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
