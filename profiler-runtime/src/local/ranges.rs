//! The ranges that a thread has open in an NVTX tool.
//!
//! A tool keeps a stack for each thread and ends the innermost range, whatever the program meant. So the thread keeps
//! the serials of the scopes that pushed a range, and finds out how many ranges to end when one of them closes.

use std::cell::RefCell;

use profiler_host::sync::ReentrancyGuard;

use super::with_state;

/// Open ranges of one thread. Scopes further inside have none.
const MAX_OPEN: usize = 4096;

/// The open ranges of a thread.
#[derive(Debug, Default)]
pub(super) struct OpenRanges {
    /// The serials of their scopes, outermost first.
    serials: Vec<u64>,
    /// `true` once the thread has had a range.
    has_begun: bool,
}

pub(super) type Ranges = RefCell<OpenRanges>;

/// Adds the range of the scope with this serial. Returns `false` if the scope gets none: too many are open, or there is
/// no memory.
pub(crate) fn begin_range(serial: u64) -> bool {
    with_ranges(|ranges| {
        if ranges.serials.len() >= MAX_OPEN || ranges.serials.try_reserve(1).is_err() {
            return false;
        }
        ranges.serials.push(serial);
        true
    })
    .unwrap_or(false)
}

/// Removes the range of the scope with this serial, and those inside it. Returns how many there were: none if the range
/// has ended with one around it.
///
/// Returns 1 if the thread has ended. It no longer knows its ranges, and the scopes that outlive it usually close in
/// order.
pub(crate) fn end_range(serial: u64) -> usize {
    with_ranges(|ranges| {
        let place = ranges.serials.iter().rposition(|open| *open == serial);
        place.map_or(0, |place| ranges.truncate(place))
    })
    .unwrap_or(1)
}

/// Removes the ranges that were begun inside the poll with this serial. Returns how many there were.
pub(crate) fn end_ranges_inside(serial: u64) -> usize {
    with_ranges(|ranges| {
        let kept = ranges.serials.partition_point(|open| *open <= serial);
        ranges.truncate(kept)
    })
    .unwrap_or(0)
}

/// Returns `true` on the first call on the thread.
pub(crate) fn first_range() -> bool {
    with_ranges(|ranges| !std::mem::replace(&mut ranges.has_begun, true)).unwrap_or(false)
}

impl OpenRanges {
    fn truncate(&mut self, len: usize) -> usize {
        let ended = self.serials.len().saturating_sub(len);
        self.serials.truncate(len);
        ended
    }
}

fn with_ranges<T>(f: impl FnOnce(&mut OpenRanges) -> T) -> Option<T> {
    // The list allocates, with an allocator that may itself be measured.
    let _reentrancy = ReentrancyGuard::try_enter();
    let block = with_state(super::ThreadState::block).flatten()?;
    let mut ranges = block.ranges.try_borrow_mut().ok()?;
    Some(f(&mut ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_with_those_inside_it() {
        std::thread::spawn(|| {
            assert!(begin_range(1) && begin_range(2) && begin_range(4));
            assert_eq!(end_range(2), 2);
            assert_eq!(end_range(4), 0, "it has ended with the one around it");
            assert!(begin_range(5));
            assert_eq!(end_range(4), 0, "a younger one is none of its own");
            assert_eq!((end_range(5), end_range(1)), (1, 1));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_poll_ends_the_ranges_that_it_leaves_open() {
        std::thread::spawn(|| {
            assert!(begin_range(1) && begin_range(3) && begin_range(4));
            assert_eq!(end_ranges_inside(2), 2);
            assert_eq!((end_range(4), end_range(1)), (0, 1));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn ranges_are_bounded() {
        std::thread::spawn(|| {
            let begun = (1..=MAX_OPEN as u64 + 2).filter(|serial| begin_range(*serial));
            assert_eq!(begun.count(), MAX_OPEN);
            assert_eq!(end_range(1), MAX_OPEN);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn each_thread_has_its_first_range_once() {
        let first_two = || [first_range(), first_range()];
        for _ in 0..2 {
            let of_thread = std::thread::spawn(first_two).join().unwrap();
            assert_eq!(of_thread, [true, false]);
        }
    }
}
