//! The decisions that a thread keeps for names that calls pass as text.
//!
//! A hash table with open addressing, which only its thread reads and writes. It is a cache: a decision that is not in it
//! is made again. So a key has a bounded number of slots, and a new one replaces another if it finds none free. Keys
//! borrow texts that are never freed, and a text that was decided on once is found without an allocation.

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use super::table_cell::TableCell;

/// The number of slots that can hold a key. Few keys need more than three: see [`is_full`].
const PROBES: usize = 32;
/// The number of slots of the first table. A power of two, as that of each table, and at least [`PROBES`].
const FIRST_SLOTS: usize = 32;

/// Returns `true` if a table with this many keys takes no further one: it is at most five eighths full.
const fn is_full(slots: usize, used: usize) -> bool {
    8 * (used + 1) > 5 * slots
}

/// A key with its decision. Empty if it has no text. All zeros are an empty slot.
#[derive(Default)]
struct Slot {
    text: Cell<Option<&'static str>>,
    /// Distinguishes equal texts of several call sites.
    site: Cell<usize>,
    decision: Cell<u64>,
}

impl Slot {
    #[inline(always)]
    fn holds(&self, site: usize, text: &str) -> Option<bool> {
        let kept = self.text.get()?;
        Some(self.site.get() == site && is_equal(kept.as_bytes(), text.as_bytes()))
    }
}

/// The decisions of one thread, by call site and text.
pub(super) struct TextDecisions {
    /// Owns the slots, which are a `Box<[Slot]>`. Dangling, with a length of 0, until there is one.
    slots: TableCell<Slot>,
    /// The number of slots that are not empty.
    used: Cell<usize>,
    /// How many calls of [`get`](Self::get) use the slots: a signal handler may interrupt one, and its calls may replace the
    /// slots.
    readers: Cell<u32>,
    /// The slots that larger ones have replaced while they were in use.
    replaced: RefCell<Vec<NonNull<[Slot]>>>,
}

impl TextDecisions {
    pub(super) const fn new() -> Self {
        Self {
            slots: TableCell::empty(),
            used: Cell::new(0),
            readers: Cell::new(0),
            replaced: RefCell::new(Vec::new()),
        }
    }

    /// Returns the slots.
    ///
    /// # Safety
    ///
    /// The caller does not use them after the next call of [`replace`](Self::replace), unless `readers` counts it.
    #[inline(always)]
    unsafe fn slots(&self) -> &[Slot] {
        // SAFETY: the pointer is that of a box, or dangling with a length of 0. Only `replace` frees the box.
        unsafe { self.slots.get().as_ref() }
    }

    /// Replaces the slots, and frees the old ones unless they are in use. If there is no memory to keep them in until then,
    /// they are leaked.
    ///
    /// The caller has entered the profiler, so that a signal handler's call replaces no slots meanwhile.
    fn replace(&self, slots: Box<[Slot]>, used: usize) {
        let old = self.slots.get();
        self.slots.set(NonNull::from(Box::leak(slots)));
        self.used.set(used);
        let Ok(mut replaced) = self.replaced.try_borrow_mut() else {
            return;
        };
        if !old.is_empty() && replaced.try_reserve(1).is_ok() {
            replaced.push(old);
        }
        if self.readers.get() == 0 {
            for slots in replaced.drain(..) {
                // SAFETY: it is the pointer of a box that this function has leaked, and none of this table any more. No
                // `get` is interrupted, and later ones find the new slots.
                drop(unsafe { Box::from_raw(slots.as_ptr()) });
            }
        }
    }

    /// Returns the decision for a text at a call site.
    #[inline(always)]
    pub(super) fn get(&self, site: usize, text: &str) -> Option<u64> {
        // Whatever interrupts it between the load and the store counts itself and stops doing so.
        self.readers.set(self.readers.get().wrapping_add(1));
        // A signal handler may run between any two instructions, so the compiler must not move a use of the slots across.
        compiler_fence(SeqCst);
        // SAFETY: nothing below calls `replace`, and while `readers` counts this call a signal handler's call frees no slots.
        let decision = find(unsafe { self.slots() }, site, text);
        compiler_fence(SeqCst);
        self.readers.set(self.readers.get().wrapping_sub(1));
        decision
    }

    /// Keeps a decision for a text at a call site. The caller has entered the profiler.
    pub(super) fn set(&self, site: usize, text: &'static str, decision: u64) {
        let used = self.used.get();
        // SAFETY: the slots are used only for their number here.
        if is_full(unsafe { self.slots() }.len(), used) {
            self.grow();
        }
        // SAFETY: `insert` does not call `replace`, and no signal handler's call does: the caller has entered the profiler.
        if insert(unsafe { self.slots() }, site, text, decision) {
            self.used.set(self.used.get() + 1);
        }
    }

    /// Doubles the number of slots. Keeps them if there is no memory.
    #[cold]
    fn grow(&self) {
        // SAFETY: nothing uses them after `replace` below, and nothing else calls that. The allocator may be measured itself;
        // its calls may look decisions up, but make none: the caller has entered the profiler.
        let old = unsafe { self.slots() };
        let count = (2 * old.len()).max(FIRST_SLOTS);
        let mut new = Vec::new();
        if new.try_reserve_exact(count).is_err() {
            return;
        }
        new.resize_with(count, Slot::default);
        let new = new.into_boxed_slice();
        let moved = old.iter().filter(|slot| {
            let text = slot.text.get();
            text.is_some_and(|text| insert(&new, slot.site.get(), text, slot.decision.get()))
        });
        let used = moved.count();
        self.replace(new, used);
    }

    /// Frees all decisions. The caller has entered the profiler, and the thread is not looking one up.
    pub(super) fn clear(&self) {
        self.replace(Box::default(), 0);
    }
}

/// Returns the decision in the slot of a key.
#[inline(always)]
fn find(slots: &[Slot], site: usize, text: &str) -> Option<u64> {
    for slot in places(slots, site, text) {
        // A key is in the first free one of its slots, so it is not behind one that is free.
        if slot.holds(site, text)? {
            return Some(slot.decision.get());
        }
    }
    None
}

/// Returns the slots that can hold a key, in the order in which they are tried.
#[inline(always)]
fn places<'s>(slots: &'s [Slot], site: usize, text: &str) -> impl Iterator<Item = &'s Slot> {
    // Other processes do not know where the slots are, so they cannot send texts that all have the same slots.
    let seed = (slots.as_ptr().addr() ^ site) as u64;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "only the low bits are used"
    )]
    let first = hash(seed, text.as_bytes()) as usize;
    // Without slots there is no valid index. Otherwise their number is a power of two.
    let mask = slots.len().wrapping_sub(1);
    // The distances to the first one are 0, 1, 3, 6, …: they reach each slot once, and keys whose first slots are side by
    // side do not have the same others.
    let mut place = first;
    (0..PROBES).map_while(move |step| {
        place = place.wrapping_add(step);
        slots.get(place & mask)
    })
}

/// Puts a decision into the slot of its key. Returns `true` if that was empty.
fn insert(slots: &[Slot], site: usize, text: &'static str, decision: u64) -> bool {
    let mut own = places(slots, site, text);
    // All may hold other keys. Then it replaces the first one, whose decision will be made again.
    let free = own.find(|slot| slot.holds(site, text) != Some(false));
    let Some(slot) = free.or_else(|| places(slots, site, text).next()) else {
        return false;
    };
    let was_empty = slot.text.replace(Some(text)).is_none();
    slot.site.set(site);
    slot.decision.set(decision);
    was_empty
}

/// Returns a hash of the bytes.
///
/// Multiplies sixteen bytes at a time to twice as many bits, and folds these, as `wyhash` does. A bad hash costs time,
/// but finds no wrong key: texts are compared.
#[inline(always)]
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    // Spreads the few bits of an address over all: a product with a small number leaves most bits alone.
    let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let other_seed = seed.rotate_left(32);
    let mix = |state: u64, (low, high): (u64, u64)| {
        let product = u128::from(low ^ state) * u128::from(high ^ other_seed);
        #[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
        let folded = product as u64 ^ (product >> 64) as u64;
        folded
    };
    let mut state = seed.wrapping_add(bytes.len() as u64);
    let mut rest = bytes;
    while let Some((block, after)) = rest
        .split_first_chunk::<16>()
        .filter(|(_, after)| !after.is_empty())
    {
        state = mix(state, ends(block));
        rest = after;
    }
    let last = bytes
        .last_chunk::<16>()
        .map_or_else(|| ends(bytes), |last| ends(last));
    let hash = mix(state, last);
    // The low bits, which choose the slot, may lack those in the middle.
    hash ^ (hash >> 29)
}

/// Returns `true` if both are equal. Does not call `memcmp`, which takes longer for short texts.
#[inline(always)]
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let (mut one_rest, mut other_rest) = (one, other);
    while let (Some((one, one_after)), Some((other, other_after))) = (
        one_rest.split_first_chunk::<16>(),
        other_rest.split_first_chunk::<16>(),
    ) {
        if one != other {
            return false;
        }
        (one_rest, other_rest) = (one_after, other_after);
    }
    match (one.last_chunk::<16>(), other.last_chunk::<16>()) {
        (Some(one), Some(other)) => one == other,
        _ => ends(one) == ends(other),
    }
}

/// Returns all of at most sixteen bytes: their beginning and their end, which overlap.
#[inline(always)]
fn ends(bytes: &[u8]) -> (u64, u64) {
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let half = |bytes: &[u8; 4]| u64::from(u32::from_ne_bytes(*bytes));
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (word(first), word(last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (half(first), half(last));
    }
    match bytes {
        [] => (0, 0),
        [only] => (1, u64::from(*only)),
        [first, .., last] => {
            let middle = bytes[bytes.len() / 2];
            (u64::from(*first), u64::from(*last) << 8 | u64::from(middle))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    /// Returns the text for as long as the process runs. It is kept where miri finds it.
    fn leak(text: &str) -> &'static str {
        static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
        let text: &'static str = Box::leak(text.into());
        KEPT.lock().unwrap().push(text);
        text
    }

    /// All keys of this test are kept: none of them is replaced, except with a probability far below one in a billion.
    #[test]
    fn each_key_keeps_its_last_decision() {
        let keys = if cfg!(miri) { 100 } else { 5_000 };
        let decisions = TextDecisions::new();
        for round in 1..=2 {
            for key in 0..keys {
                decisions.set(
                    key % 3,
                    leak(&format!("layer {}", key / 3)),
                    key as u64 * round,
                );
            }
        }
        for key in 0..keys {
            let text = format!("layer {}", key / 3);
            assert_eq!(decisions.get(key % 3, &text), Some(key as u64 * 2));
            assert_eq!(decisions.get(3, &text), None);
        }
        assert_eq!(decisions.used.get(), keys);
        decisions.clear();
        assert_eq!(decisions.get(0, "layer 0"), None);
    }

    #[test]
    fn a_table_without_slots_holds_nothing() {
        let decisions = TextDecisions::new();
        assert_eq!(decisions.get(0, ""), None);
        assert_eq!(decisions.get(0, "text"), None);
        decisions.clear();
    }

    #[test]
    fn slots_that_larger_ones_replace_are_freed_unless_they_are_in_use() {
        let decisions = TextDecisions::new();
        let fill = |keys: std::ops::Range<u32>| {
            keys.for_each(|key| decisions.set(0, leak(&key.to_string()), key.into()));
        };
        let kept = || decisions.replaced.borrow().len();
        fill(0..20);
        assert_eq!(kept(), 0);
        decisions.readers.set(1);
        // SAFETY: `readers` counts this test until after their last use.
        let slots = unsafe { decisions.slots() };
        fill(20..60);
        assert_eq!(find(slots, 0, "3"), Some(3));
        assert_eq!(kept(), 2);
        decisions.readers.set(0);
        fill(60..100);
        assert_eq!(kept(), 0);
        assert_eq!(decisions.get(0, "3"), Some(3));
        decisions.clear();
    }

    #[test]
    fn a_key_whose_slots_are_all_in_use_replaces_one() {
        let slots: Vec<_> = (0..PROBES).map(|_| Slot::default()).collect();
        for number in 0..2 * PROBES {
            let text = leak(&number.to_string());
            assert_eq!(insert(&slots, 0, text, 1), number < PROBES);
            let is_held = slots.iter().any(|slot| slot.holds(0, text) == Some(true));
            assert!(is_held, "{text}");
        }
    }

    /// Numbered texts, wherever the table is: few have the first slots of others.
    #[test]
    fn similar_texts_are_spread_over_the_slots() {
        let seeds = [0x40, 0x0480_0040, 0x5555_5555_5040, 0x7fff_f7d8_8040];
        // Miri is a thousand times slower.
        for seed in seeds.into_iter().take(if cfg!(miri) { 1 } else { 4 }) {
            for prefix in [
                "",
                "layer ",
                "model.layers.",
                "a long name, built for layer ",
            ] {
                let first = |number| hash(seed, format!("{prefix}{number}").as_bytes()) % 256;
                let slots: HashSet<_> = (0..100).map(first).collect();
                // Random ones have 83.
                assert!(slots.len() > 60, "{seed:x} {prefix}: {}", slots.len());
            }
        }
    }

    /// Texts that differ in one byte, or only in length.
    fn texts() -> impl Strategy<Value = String> {
        prop::collection::vec(prop_oneof![9 => Just('a'), 1 => Just('b')], 0..50)
            .prop_map(String::from_iter)
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 256 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn it_is_a_map_of_few_keys(keys in prop::collection::vec((0..2_usize, texts()), 0..16)) {
            let decisions = TextDecisions::new();
            let mut model = HashMap::new();
            for (number, (site, text)) in keys.iter().enumerate() {
                prop_assert_eq!(decisions.get(*site, text), model.get(&(*site, text)).copied());
                decisions.set(*site, leak(text), number as u64);
                model.insert((*site, text), number as u64);
            }
            for (site, text) in &keys {
                prop_assert_eq!(decisions.get(*site, text), model.get(&(*site, text)).copied());
            }
            prop_assert_eq!(decisions.used.get(), model.len());
            decisions.clear();
        }

        #[test]
        fn texts_are_equal_if_all_their_bytes_are(one in texts(), other in texts()) {
            prop_assert_eq!(is_equal(one.as_bytes(), other.as_bytes()), one == other);
            prop_assert!(is_equal(one.as_bytes(), one.as_bytes()));
            prop_assert_eq!(hash(7, one.as_bytes()), hash(7, one.clone().as_bytes()));
        }
    }
}
