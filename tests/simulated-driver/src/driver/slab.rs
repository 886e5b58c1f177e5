//! Handles that look like pointers, and that distinguish a destroyed object from one that never
//! existed.

use std::collections::VecDeque;

/// Why a handle refers to no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The driver never returned this handle, or returned it for another kind of object.
    Never,
    /// The object was destroyed by a call.
    Destroyed,
    /// The object was destroyed with its context.
    WithContext,
}

/// The kind of an object, which is part of its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Kind {
    Context = 1,
    Stream,
    Event,
    Graph,
    GraphExec,
    Module,
    Function,
    Link,
}

const KIND_SHIFT: u32 = 43;
const GENERATION_SHIFT: u32 = 28;
const GENERATION_MASK: usize = 0x7fff;
const INDEX_SHIFT: u32 = 4;
const INDEX_MASK: usize = 0xff_ffff;

#[derive(Debug)]
struct Slot<T> {
    generation: usize,
    value: Result<T, Missing>,
}

/// The objects of one kind.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    kind: Kind,
    slots: Vec<Slot<T>>,
    /// Oldest first, so that a slot is reused as late as possible.
    free: VecDeque<usize>,
    /// `true` if a handle is reused immediately.
    is_reused: bool,
    alive: usize,
    created: u64,
}

impl<T> Slab<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            slots: Vec::new(),
            free: VecDeque::new(),
            is_reused: false,
            alive: 0,
            created: 0,
        }
    }

    /// Gives each new object the handle of the last one that was destroyed.
    pub(crate) fn reuse_handles(&mut self) {
        self.is_reused = true;
    }

    pub(crate) fn insert(&mut self, value: T) -> usize {
        self.alive += 1;
        self.created += 1;
        // Keep 64 free slots unused, so that the use of a destroyed object is recognized.
        let index = if self.is_reused {
            self.free.pop_back()
        } else if self.free.len() > 64 {
            self.free.pop_front()
        } else {
            None
        };
        let index = index.unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                value: Err(Missing::Never),
            });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        if slot.generation == 0 || !self.is_reused {
            slot.generation = (slot.generation + 1) & GENERATION_MASK;
        }
        slot.value = Ok(value);
        self.kind as usize * (1 << KIND_SHIFT)
            + slot.generation * (1 << GENERATION_SHIFT)
            + index * (1 << INDEX_SHIFT)
    }

    fn index(&self, handle: usize) -> Result<usize, Missing> {
        let index = (handle >> INDEX_SHIFT) & INDEX_MASK;
        let known = handle >> KIND_SHIFT == self.kind as usize
            && handle.trailing_zeros() >= INDEX_SHIFT
            && index < self.slots.len();
        if !known {
            return Err(Missing::Never);
        }
        let generation = (handle >> GENERATION_SHIFT) & GENERATION_MASK;
        if generation == self.slots[index].generation {
            Ok(index)
        } else {
            Err(Missing::Destroyed)
        }
    }

    pub(crate) fn get(&self, handle: usize) -> Result<&T, Missing> {
        self.slots[self.index(handle)?]
            .value
            .as_ref()
            .map_err(|missing| *missing)
    }

    pub(crate) fn get_mut(&mut self, handle: usize) -> Result<&mut T, Missing> {
        let index = self.index(handle)?;
        self.slots[index].value.as_mut().map_err(|missing| *missing)
    }

    /// Removes an object. Later uses of its handle fail with `why`.
    pub(crate) fn remove(&mut self, handle: usize, why: Missing) -> Result<T, Missing> {
        let index = self.index(handle)?;
        let slot = &mut self.slots[index];
        slot.value.as_ref().map_err(|missing| *missing)?;
        self.alive -= 1;
        self.free.push_back(index);
        std::mem::replace(&mut slot.value, Err(why))
    }

    /// Removes every object for which `doomed` returns `true`, as destroyed with its context.
    /// Returns their number.
    pub(crate) fn remove_with_context(&mut self, doomed: impl Fn(&T) -> bool) -> u64 {
        let mut removed = 0;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.value.as_ref().is_ok_and(&doomed) {
                slot.value = Err(Missing::WithContext);
                self.free.push_back(index);
                removed += 1;
            }
        }
        self.alive -= usize::try_from(removed).unwrap_or(self.alive);
        removed
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots
            .iter_mut()
            .filter_map(|slot| slot.value.as_mut().ok())
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots
            .iter()
            .filter_map(|slot| slot.value.as_ref().ok())
    }

    pub(crate) fn alive(&self) -> u64 {
        self.alive as u64
    }

    pub(crate) fn created(&self) -> u64 {
        self.created
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Missing, Slab};

    #[test]
    fn a_handle_outlives_its_object_without_leading_to_another() {
        let mut slab = Slab::new(Kind::Event);
        let first = slab.insert('a');
        assert_eq!(slab.remove(first, Missing::Destroyed), Ok('a'));
        for letter in 'b'..='z' {
            let handle = slab.insert(letter);
            assert_ne!(handle, first);
            assert_eq!(slab.get(handle), Ok(&letter));
            assert_eq!(slab.get(first), Err(Missing::Destroyed));
            slab.remove(handle, Missing::Destroyed).unwrap();
        }
        assert_eq!((slab.alive(), slab.created()), (0, 26));
    }

    #[test]
    fn a_handle_of_another_kind_leads_nowhere() {
        let (mut streams, events) = (Slab::new(Kind::Stream), Slab::<()>::new(Kind::Event));
        let stream = streams.insert(());
        assert_eq!(events.get(stream), Err(Missing::Never));
        assert_eq!(streams.get(stream + 8), Err(Missing::Never));
        assert_eq!(streams.get(0), Err(Missing::Never));
    }

    #[test]
    fn objects_that_go_with_their_context_are_told_apart() {
        let mut slab = Slab::new(Kind::Stream);
        let (kept, lost) = (slab.insert(1), slab.insert(2));
        assert_eq!(slab.remove_with_context(|value| *value == 2), 1);
        assert_eq!(
            (slab.get(kept), slab.get(lost)),
            (Ok(&1), Err(Missing::WithContext))
        );
        assert_eq!(slab.alive(), 1);
    }
}
