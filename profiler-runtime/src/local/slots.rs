//! The cells of one thread, found by one index.

use std::alloc::{Layout, alloc_zeroed};
use std::cell::Cell;
use std::ptr::NonNull;

use super::table_cell::TableCell;
use crate::name::MAX_NAMES;
use crate::stats::StatCell;

/// The place of the cell of one name.
pub(super) type CellSlot = Cell<Option<&'static StatCell>>;

/// A table of slots. That of a name has the index [`slot_index`]; the first slot is always empty.
pub(super) type CellTable = &'static [CellSlot];

/// The slots of the smallest table.
const LEAST: usize = 64;

/// Returns the index of the slot of the name with this id.
///
/// Not the id itself: a call site that has not decided yet looks for a cell at index 0, and finds none.
#[inline(always)]
pub(crate) const fn slot_index(id: u32) -> u32 {
    id.wrapping_add(1)
}

/// Returns the id of the name whose slot has this index: the inverse of [`slot_index`].
#[inline(always)]
pub(crate) const fn id_at(index: u32) -> u32 {
    index.wrapping_sub(1)
}

/// The table that a thread uses. Tables are never freed.
pub(super) struct CurrentTable(TableCell<CellSlot>);

impl CurrentTable {
    pub(super) const fn empty() -> Self {
        Self(TableCell::empty())
    }

    #[inline(always)]
    pub(super) fn get(&self) -> CellTable {
        // SAFETY: the pointer is that of a slice that was given to `set` or is empty, and such slices are static.
        unsafe { self.0.get().as_ref() }
    }

    /// Returns the cell in the slot with this index, if there is one.
    #[inline(always)]
    pub(super) fn cell(&self, index: usize) -> Option<&'static StatCell> {
        // SAFETY: as for `get`.
        unsafe { self.0.entry(index)?.as_ref() }.get()
    }

    pub(super) fn set(&self, table: CellTable) {
        self.0.set(NonNull::from(table));
    }
}

/// The slots of one thread: one table, replaced by a larger one when a name has a higher id than all before.
pub(super) struct Slots {
    table: CurrentTable,
    /// One more than the highest index that is used.
    end: Cell<usize>,
    /// The tables before, by the power of two of their length.
    kept: [Cell<CellTable>; KEPT],
}

/// The powers of two up to that of the largest table.
const KEPT: usize = MAX_NAMES.ilog2() as usize + 2;

impl Slots {
    pub(super) const fn new() -> Self {
        Self {
            table: CurrentTable::empty(),
            end: Cell::new(0),
            kept: [const { Cell::new(&[] as CellTable) }; KEPT],
        }
    }

    pub(super) fn table(&self) -> CellTable {
        self.table.get()
    }

    /// Returns the thread's cell for a name, if there is one.
    pub(super) fn cell(&self, id: u32) -> Option<&'static StatCell> {
        self.table.cell(slot_index(id) as usize)
    }

    /// Sets the cell of a name. Returns `false` if there is no memory for its slot.
    ///
    /// The table may be another one then.
    pub(super) fn set(&self, id: u32, cell: &'static StatCell) -> bool {
        let index = slot_index(id) as usize;
        if index >= self.table.get().len() && !self.grow(index + 1) {
            return false;
        }
        if let Some(slot) = self.table.get().get(index) {
            slot.set(Some(cell));
            self.end.set(self.end.get().max(index + 1));
        }
        true
    }

    /// Replaces the table by one of at least `len` slots. Returns `false` if there is no memory.
    ///
    /// The old table is kept: a signal handler could grow the table while the fast path that it has interrupted reads a
    /// slot. Each table is at least twice as large as the one before, so together they take less than twice the last one.
    #[cold]
    fn grow(&self, len: usize) -> bool {
        debug_assert!(len <= MAX_NAMES + 1);
        let len = len.next_power_of_two().max(LEAST);
        let Some(table) = allocate(len) else {
            return false;
        };
        for (new, old) in table.iter().zip(self.table.get()) {
            new.set(old.get());
        }
        let old = self.table.get();
        self.table.set(table);
        if let Some(kept) = old
            .len()
            .checked_ilog2()
            .and_then(|power| self.kept.get(power as usize))
        {
            kept.set(old);
        }
        true
    }

    /// Returns the cells of the thread with the ids of their names.
    pub(super) fn cells(&self) -> impl Iterator<Item = (u32, &'static StatCell)> + use<> {
        let slots = self.table.get().iter().take(self.end.get());
        let ids = (0..).zip(slots.skip(1));
        ids.filter_map(|(id, slot)| Some((id, slot.get()?)))
    }

    /// Empties all slots.
    pub(super) fn clear(&self) {
        for slot in self.table.get().iter().take(self.end.get()) {
            slot.set(None);
        }
        self.end.set(0);
    }
}

/// Allocates empty slots, which are never freed. Returns `None` if there is no memory.
fn allocate(len: usize) -> Option<CellTable> {
    let layout = Layout::array::<CellSlot>(len)
        .ok()
        .filter(|layout| layout.size() > 0)?;
    // SAFETY: the size is not zero.
    let memory = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    // SAFETY: the memory has the layout of the slots, is used by nothing else, and is never freed. Zeros are valid for
    // slots: null is `None`.
    Some(unsafe { std::slice::from_raw_parts(memory.cast::<CellSlot>().as_ptr(), len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    static CELL: StatCell = StatCell::new();

    #[test]
    #[cfg_attr(miri, ignore = "miri reports the tables, which are never freed")]
    fn each_name_has_a_slot_of_its_own() {
        let slots = Slots::new();
        let last = u32::try_from(MAX_NAMES - 1).unwrap();
        let ids = [0, 62, 63, 64, 1_000, last];
        for id in ids {
            assert!(slots.cell(id).is_none(), "id {id}");
            assert!(slots.set(id, &CELL));
        }
        let all: Vec<_> = slots.cells().map(|(id, _)| id).collect();
        assert_eq!(all, ids);
        assert!(slots.table()[0].get().is_none());
        slots.clear();
        assert_eq!(slots.cells().count(), 0);
        assert!(slots.table().iter().all(|slot| slot.get().is_none()));
        assert!(slots.table().len() > MAX_NAMES);
    }

    #[test]
    #[cfg_attr(miri, ignore = "miri reports the tables, which are never freed")]
    fn a_table_is_as_large_as_its_highest_name_needs() {
        let slots = Slots::new();
        assert!(slots.table().is_empty());
        for (id, len) in [(3, 64), (62, 64), (63, 128), (5_000, 8_192)] {
            assert!(slots.set(id, &CELL));
            assert_eq!(slots.table().len(), len);
        }
        assert_eq!(
            slots.cells().count(),
            4,
            "a larger table has the cells of the one before"
        );
    }
}
