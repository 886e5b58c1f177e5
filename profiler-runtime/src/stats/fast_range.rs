//! The fast range of a cell: the times that are counted by one comparison, one bucket and one sum.

use std::ptr;
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

use profiler_report::internal::bucket_of_short;

use super::bucket::{Bucket, SPILL_AT};
use super::octaves::{Octaves, SUBBUCKETS};
use super::owner_cell::OwnerCell;
use super::single_writer::SingleWriterU64;

/// The times in the fast range are below this number of ticks, some 90 µs. So their squares have 36 bits: the sum of a cell
/// that is nearly full has room for 2²⁷ more, and a bucket for as many.
const FAST_END: i64 = 1 << 18;

/// The sum of squares of a cell that is nearly full.
const MANY_SQUARES: u64 = 1 << 63;

/// The newest time and its bucket, if the time is in the fast range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    time: i64,
    bucket: usize,
}

impl Prepared {
    #[inline(always)]
    pub(super) fn new(time: i64) -> Self {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "not used unless it is below FAST_END"
        )]
        let bucket = bucket_of_short((time as i32).max(0).cast_unsigned());
        Self { time, bucket }
    }
}

/// A bucket, and the sum of squares, after a time was counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedTime {
    count: u32,
    squares: u64,
}

impl CountedTime {
    pub(super) fn is_nearly_full(self) -> bool {
        self.count >= SPILL_AT || self.squares >= MANY_SQUARES
    }
}

/// The times between the extremes of a cell that are in its window of buckets, and the sum of their squares. One writer,
/// the owner of the cell.
#[repr(C)]
pub(super) struct FastRange {
    /// The first time of the range. May be negative.
    from: OwnerCell<i64>,
    /// The number of times in the range.
    len: OwnerCell<u64>,
    /// Valid while `len` is not zero.
    window: OwnerCell<WindowBase>,
    /// The sum of the squares of times in the range since it was last spilled. Spilled when it has its highest bit, so that
    /// a sum never overflows.
    squares: SingleWriterU64,
}

/// A pointer to the window of buckets, minus the offset of its first one.
#[derive(Clone, Copy, Debug)]
struct WindowBase(*const Bucket);

// SAFETY: the pointer is only read through by the owner of the cell, which may be another thread later.
unsafe impl Send for WindowBase {}

impl FastRange {
    /// An empty range.
    pub(super) const fn new() -> Self {
        Self {
            from: OwnerCell::new(0),
            len: OwnerCell::new(0),
            window: OwnerCell::new(WindowBase(ptr::null())),
            squares: SingleWriterU64::new(),
        }
    }

    #[inline(always)]
    pub(super) fn contains(&self, newest: Prepared) -> bool {
        let offset = newest.time.wrapping_sub(self.from.get());
        offset.cast_unsigned() < self.len.get()
    }

    /// Counts a time. Does not check for overflows: see [`is_nearly_full`](Self::is_nearly_full).
    ///
    /// # Safety
    ///
    /// The range [contains](Self::contains) the time, and the memory of its window is still that of the buckets.
    #[inline(always)]
    pub(super) unsafe fn count(&self, Prepared { time, bucket }: Prepared) -> CountedTime {
        // SAFETY: the range is not empty, so `window` minus its offset is that of the current window, and the times of the
        // range are in its buckets: `place` makes both so. `bucket` is that of such a time, which has less than 32 bits.
        let bucket = unsafe { &*self.window.get().0.wrapping_add(bucket) };
        let count = bucket.increment();
        let squares = self
            .squares
            .get()
            .wrapping_add((time * time).cast_unsigned());
        self.squares.set(squares);
        CountedTime { count, squares }
    }

    /// Returns `true` if the squares are to be [taken](Self::take_squares) before many more calls.
    pub(super) fn is_nearly_full(&self) -> bool {
        self.squares.get() >= MANY_SQUARES / 2
    }

    /// Makes the range empty, until it is [placed](Self::place).
    pub(super) fn clear(&self) {
        self.len.set(0);
        // A signal handler that makes a measured call from here on finds the range empty.
        compiler_fence(SeqCst);
    }

    /// Makes the range the times that are in the window and no new extremes. The window has the buckets of `octaves`.
    pub(super) fn place(&self, octaves: Octaves, window: &[Bucket], min: u64, max: u64) {
        self.clear();
        let (first, end) = octaves.ticks();
        let from = if first == 0 && min == 0 {
            // A negative time counts as zero.
            1 - FAST_END
        } else {
            first.max(min).min(FAST_END.cast_unsigned()).cast_signed()
        };
        let end = end.min(max.saturating_add(1)).min(FAST_END.cast_unsigned());
        let offset = octaves.first * SUBBUCKETS;
        self.window
            .set(WindowBase(window.as_ptr().wrapping_sub(offset)));
        self.from.set(from);
        compiler_fence(SeqCst);
        let len = end.cast_signed().saturating_sub(from).max(0);
        self.len.set(len.cast_unsigned());
    }

    /// Returns the sum of the squares.
    pub(super) fn squares(&self) -> u64 {
        self.squares.get()
    }

    /// Returns the sum of the squares, which is zero then.
    pub(super) fn take_squares(&self) -> u64 {
        let squares = self.squares.get();
        self.squares.set(0);
        squares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places a range in the window of the first two octaves, for which the test has the buckets.
    fn placed(window: &[Bucket], min: u64, max: u64) -> FastRange {
        let range = FastRange::new();
        range.place(Octaves { first: 0, len: 2 }, window, min, max);
        range
    }

    fn window() -> [Bucket; 2 * SUBBUCKETS] {
        [const { Bucket::new() }; 2 * SUBBUCKETS]
    }

    #[test]
    fn the_range_ends_at_the_extremes() {
        let window = window();
        let range = placed(&window, 3, 7);
        for (time, is_inside) in [(2, false), (3, true), (7, true), (8, false), (-1, false)] {
            assert_eq!(range.contains(Prepared::new(time)), is_inside, "{time}");
        }
        range.clear();
        assert!(!range.contains(Prepared::new(5)));
    }

    #[test]
    fn negative_times_are_in_the_range_if_zero_is() {
        let window = window();
        let range = placed(&window, 0, 7);
        assert!(range.contains(Prepared::new(-4)));
        assert!(!range.contains(Prepared::new(i64::MIN)), "no time");
    }

    #[test]
    fn squares_are_reported_before_they_overflow() {
        let window = window();
        let range = placed(&window, 0, FAST_END.cast_unsigned());
        range.squares.set(MANY_SQUARES / 2 - 1);
        assert!(!range.is_nearly_full());
        let time = Prepared::new(3);
        assert!(range.contains(time));
        // SAFETY: checked above, and the window is still there.
        let counted = unsafe { range.count(time) };
        assert!(range.is_nearly_full() && !counted.is_nearly_full());
        assert_eq!(window[3].get(), 1);
        assert_eq!(range.take_squares(), MANY_SQUARES / 2 + 8);
        assert_eq!((range.squares(), range.is_nearly_full()), (0, false));
    }
}
