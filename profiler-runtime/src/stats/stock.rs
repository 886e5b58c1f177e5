//! Stocks: memory that a cell takes when its times change, which can be at any time.
//!
//! So that an allocator is rarely called then, a stock is filled when a cell is made, which takes memory anyway, and grows by
//! many items at once. Items are never freed, but used again.

use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use std::{mem, ptr};

use profiler_host::sync::Lock;

use super::memory;

/// What a stock is of.
///
/// # Safety
///
/// Zeroed memory is a valid item, and items are not of size zero.
pub(super) unsafe trait Stocked: Sync + Sized + 'static {
    /// The items that are allocated at once, and the fewest that are left when a cell is made. Not 0.
    const BATCH: usize;
    /// `true` if none is allocated beyond the limit of the memory of cells.
    const IS_LIMITED: bool;

    /// The items that no cell uses. A child that was forked while another thread held the lock begins without any.
    fn stock() -> &'static Lock<Stock<Self>>;

    /// A place for the next item of the stock, which is used while no cell has the item.
    fn link(&self) -> &AtomicPtr<Self>;
}

/// The items that no cell uses: as [`memory::zeroed`] returns them, or as they were given back.
pub(super) struct Stock<T: 'static> {
    /// Those that were given back, by their links.
    used: AtomicPtr<T>,
    used_len: usize,
    /// The rest of the last batch, which takes no memory of the system until it is used.
    new: &'static [T],
}

impl<T: Stocked> Stock<T> {
    pub(super) const fn new() -> Self {
        Self {
            used: AtomicPtr::new(ptr::null_mut()),
            used_len: 0,
            new: &[],
        }
    }

    fn len(&self) -> usize {
        self.used_len + self.new.len()
    }

    fn pop(&mut self) -> Option<&'static T> {
        // SAFETY: the pointer is null or that of an item that was given back, which is never freed.
        if let Some(used) = unsafe { self.used.get_mut().as_ref() } {
            *self.used.get_mut() = used.link().load(Relaxed);
            self.used_len -= 1;
            return Some(used);
        }
        let (new, rest) = self.new.split_first()?;
        self.new = rest;
        Some(new)
    }

    /// Adds an item that no cell uses any more. The caller has emptied it.
    pub(super) fn give_back(&mut self, item: &'static T) {
        item.link().store(*self.used.get_mut(), Relaxed);
        *self.used.get_mut() = ptr::from_ref(item).cast_mut();
        self.used_len += 1;
    }
}

/// Takes an item. Returns `None` if there is no memory, or cells may take no more.
pub(super) fn take<T: Stocked>() -> Option<&'static T> {
    loop {
        if let Some(item) = T::stock().lock().pop() {
            return Some(item);
        }
        if !grow::<T>() {
            return None;
        }
    }
}

/// Fills the stock for the cells that have been made.
pub(super) fn fill<T: Stocked>() {
    if T::stock().lock().len() < T::BATCH {
        grow::<T>();
    }
}

/// Adds a batch. Returns `false` if there is no memory, or cells may take no more.
fn grow<T: Stocked>() -> bool {
    if T::IS_LIMITED && !memory::has_room(T::BATCH * size_of::<T>()) {
        return false;
    }
    // Without the lock, which a measured allocator could need.
    // SAFETY: the trait asks for what the function does.
    let Some(batch) = (unsafe { memory::zeroed::<T>(T::BATCH) }) else {
        return false;
    };
    let mut stock = T::stock().lock();
    for left in mem::replace(&mut stock.new, batch) {
        stock.give_back(left);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Item(AtomicPtr<Self>);

    static STOCK: Lock<Stock<Item>> = Lock::with(Stock::new(), Stock::new);

    // SAFETY: a null pointer is valid.
    unsafe impl Stocked for Item {
        const BATCH: usize = 4;
        const IS_LIMITED: bool = false;

        fn stock() -> &'static Lock<Stock<Self>> {
            &STOCK
        }

        fn link(&self) -> &AtomicPtr<Self> {
            &self.0
        }
    }

    #[test]
    fn a_stock_is_filled_up_and_hands_out_each_item_once() {
        let len = || STOCK.lock().len();
        fill::<Item>();
        assert_eq!(len(), 4);
        fill::<Item>();
        assert_eq!(len(), 4, "it is full");
        let first = take::<Item>().expect("there is memory");
        fill::<Item>();
        assert_eq!(len(), 7, "what was left is kept");
        let mut taken: Vec<_> = (0..7).map(|_| take::<Item>()).collect();
        assert_eq!(len(), 0);
        taken.push(take::<Item>());
        assert_eq!(len(), 3, "it grows when it is empty");
        taken.push(Some(first));
        let mut addresses: Vec<_> = taken.iter().map(|it| it.map(ptr::from_ref)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 9);
        STOCK.lock().give_back(first);
        assert!(take::<Item>().is_some_and(|it| ptr::eq(it, first)));
    }
}
