//! The buckets of one cell: a window of octaves that are found by one index, and a list of the others.
//!
//! The times of most functions are within a few powers of two, but after a day nearly every function has once been
//! preempted for milliseconds. All 720 buckets would take 2.8 KiB for each name and thread, nearly all of them zero. So
//! the buckets of a few neighbouring octaves are one array, the *window*. Outside of it, the first few buckets that occur are
//! [rare buckets](RareBuckets), and each further octave that occurs is a [`Chunk`].
//!
//! # Who writes
//!
//! Only the owner of the cell writes. It places the window, and adds rare buckets and chunks, without the lock of the name:
//! they are empty when they are added, and the inline window always exists. All else that changes the structure,
//! [`place_again`](CellBuckets::place_again) and [`reset`](CellBuckets::reset), is done with the lock of the name held,
//! as all reading is. Windows and chunks are never freed, but used again.
//!
//! A measured allocator may count a call in this very cell while chunks or a window are allocated. So nothing that was
//! read before an allocation is relied on after it.

use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::bucket::Bucket;
use super::chunk::{Chunk, Chunks};
use super::octaves::{MAX_WINDOW, OCTAVES, OctaveCounts, Octaves, SUBBUCKETS};
use super::rare::RareBuckets;
use super::single_writer::SingleWriterU64;
use super::stock;
use super::window::{self, Window};

/// The octaves of the window that is part of the cell: a sixteenfold range of times.
const INLINE_OCTAVES: usize = 4;

/// The buckets of a cell.
// After the window, the fields that calls in it do not read.
#[repr(C)]
pub(super) struct CellBuckets {
    /// The first octave of the window in the upper half, and the number of its octaves in the lower one: 0 until it is
    /// placed.
    octaves: SingleWriterU64,
    /// The window on the heap; null while the inline one is used. A cell that has one keeps it.
    heap: AtomicPtr<Window>,
    chunks: Chunks,
    inline: [Bucket; SUBBUCKETS * INLINE_OCTAVES],
    rare: RareBuckets,
}

impl CellBuckets {
    pub(super) const fn new() -> Self {
        Self {
            octaves: SingleWriterU64::new(),
            heap: AtomicPtr::new(ptr::null_mut()),
            chunks: Chunks::new(),
            inline: [const { Bucket::new() }; SUBBUCKETS * INLINE_OCTAVES],
            rare: RareBuckets::new(),
        }
    }

    /// Returns the octaves of the window: none until it is placed.
    #[allow(clippy::cast_possible_truncation, reason = "at most OCTAVES")]
    pub(super) fn octaves(&self) -> Octaves {
        let octaves = self.octaves.get();
        Octaves {
            first: (octaves >> 32) as usize,
            len: octaves as u32 as usize,
        }
    }

    fn set_octaves(&self, octaves: Octaves) {
        let first = octaves.first as u64;
        self.octaves.set(first << 32 | octaves.len as u64);
    }

    /// Returns the octaves of the window and its buckets.
    ///
    /// Loads the octaves once: a reader that comes while the owner places the window finds none or all of it.
    pub(super) fn window(&self) -> (Octaves, &[Bucket]) {
        let octaves = self.octaves();
        let len = octaves.len * SUBBUCKETS;
        // SAFETY: `heap` is null or a window, which is never freed.
        let heap = unsafe { self.heap.load(Acquire).as_ref() };
        let buckets: &[Bucket] = heap.map_or(&self.inline, Window::buckets);
        // All octaves are in the memory: both are changed with the lock of the name held, in an order in which this also
        // holds for a child that is forked meanwhile. The caller holds the lock too, or is the owner, which alone changes
        // them.
        (octaves, buckets.get(..len).unwrap_or_default())
    }

    /// Returns the buckets of the window with their numbers.
    fn numbered_window(&self) -> impl Iterator<Item = (usize, &Bucket)> {
        let (octaves, window) = self.window();
        (octaves.first * SUBBUCKETS..).zip(window)
    }

    /// Returns the bucket with this number, if it has memory.
    pub(super) fn find(&self, index: usize) -> Option<&Bucket> {
        let octave = index / SUBBUCKETS;
        let (octaves, window) = self.window();
        if octaves.contains(octave) {
            return window.get(index - octaves.first * SUBBUCKETS);
        }
        // Chunks come first: times that are often outside the window have one, and there are few.
        match self.chunks.find(octave) {
            Some(chunk) => chunk.buckets().get(index % SUBBUCKETS),
            None => self.rare.find(index),
        }
    }

    /// Returns the bucket of the window that is closest to this number.
    pub(super) fn nearest(&self, index: usize) -> Option<&Bucket> {
        let (octaves, window) = self.window();
        let offset = index.saturating_sub(octaves.first * SUBBUCKETS);
        window.get(offset.min(window.len().checked_sub(1)?))
    }

    /// Places the inline window. Called by the owner, while all counts are zero.
    pub(super) fn place(&self, last: usize) {
        self.set_octaves(Octaves::up_to(last, INLINE_OCTAVES));
    }

    /// Adds a rare bucket. Called by the owner. Returns `false` if there are too many.
    pub(super) fn add_rare(&self, index: usize) -> bool {
        self.rare.claim(index).is_some()
    }

    /// Adds the buckets of an octave. Called by the owner. Returns `false` if there is no memory.
    pub(super) fn add_octave(&self, octave: usize) -> bool {
        self.chunks.add(octave)
    }

    /// Returns how many calls each octave has.
    fn octave_counts(&self) -> OctaveCounts {
        let mut counts = [0; OCTAVES];
        self.read(|index, count| {
            if let Some(octave) = counts.get_mut(index / SUBBUCKETS) {
                *octave += count;
            }
        });
        counts
    }

    /// Moves the window to where the calls are, and widens it if they are spread. The first time, that takes memory, and is
    /// done only if it `may_widen`. Called by the owner, with the lock of the name held and no bucket to be spilled. Without
    /// memory, the window keeps its size.
    #[cold]
    pub(super) fn place_again(&self, may_widen: bool) {
        let counts = self.octave_counts();
        let mut wanted = Octaves::for_calls(&counts, INLINE_OCTAVES);
        let old = self.octaves();
        let mut heap = None;
        if wanted.len > INLINE_OCTAVES && self.heap.load(Acquire).is_null() {
            heap = may_widen.then(stock::take).flatten();
            if heap.is_none() {
                wanted = Octaves::with_most_short_calls(&counts, old.len);
            }
        }
        if wanted == old {
            return;
        }
        let mut leaving = (old.first..old.first + old.len).filter(|it| !wanted.contains(*it));
        if leaving.all(|octave| self.make_room(octave)) {
            self.move_window(old, wanted, heap);
        } else if let Some(window) = heap {
            window::give_back(window);
        }
    }

    /// Makes room for the counts of an octave that leaves the window: rare buckets if there are enough, else a chunk. Returns
    /// `false` if there is no memory. Room that was made until then remains, which is harmless: it has a number and no counts.
    fn make_room(&self, octave: usize) -> bool {
        if self.chunks.find(octave).is_some() {
            return true;
        }
        let used = || {
            let of_octave = |index: usize| index / SUBBUCKETS == octave;
            self.numbered_window()
                .filter(move |(index, bucket)| of_octave(*index) && bucket.get() > 0)
        };
        if used().count() <= self.rare.room() {
            used().all(|(index, _)| self.add_rare(index))
        } else {
            self.chunks.add(octave)
        }
    }

    /// Makes the window that of the octaves `wanted`: in `heap`, or in the memory that it has.
    // Nothing is allocated here until the window has moved, so no other call is counted meanwhile.
    fn move_window(&self, old: Octaves, wanted: Octaves, heap: Option<&'static Window>) {
        let mut counts = [0; SUBBUCKETS * MAX_WINDOW];
        for (count, (_, bucket)) in counts.iter_mut().zip(self.numbered_window()) {
            *count = bucket.get();
            bucket.set(0);
        }
        // Without a window in between, so that a child that is forked here does not find the old octaves in the new memory.
        self.set_octaves(Octaves { first: 0, len: 0 });
        if let Some(heap) = heap {
            self.heap.store(ptr::from_ref(heap).cast_mut(), Release);
        }
        self.set_octaves(wanted);
        for (index, count) in (old.first * SUBBUCKETS..).zip(counts) {
            self.add(index, count);
        }
        let is_unused = |chunk: &Chunk| wanted.contains(chunk.octave()) || chunk.is_empty();
        self.chunks
            .remove(is_unused, |index, count| self.add(index, count));
        let is_inside = |index: usize| wanted.contains(index / SUBBUCKETS);
        self.rare
            .remove(is_inside, |index, count| self.add(index, count));
    }

    /// Adds calls to a bucket. One without memory was empty when room was made, before a measured allocator counted a call in
    /// it.
    fn add(&self, index: usize, count: u32) {
        if count == 0 {
            return;
        }
        let bucket = self.find(index).or_else(|| self.rare.claim(index));
        if let Some(bucket) = bucket.or_else(|| self.nearest(index)) {
            // Neither count is to be spilled, so the sum is below 2³².
            bucket.set(bucket.get().wrapping_add(count));
        }
    }

    /// Passes all counts to `add`. Called with the lock of the totals held, or by the owner.
    pub(super) fn read(&self, mut add: impl FnMut(usize, u64)) {
        self.read_runs(|first, run| {
            for (index, bucket) in (first..).zip(run) {
                add(index, bucket.get().into());
            }
        });
    }

    /// Passes all buckets to `add`, in runs of neighbours: the number of the first one, and the buckets. Called as
    /// [`read`](Self::read) is.
    pub(super) fn read_runs(&self, mut add: impl FnMut(usize, &[Bucket])) {
        let (octaves, window) = self.window();
        if !window.is_empty() {
            add(octaves.first * SUBBUCKETS, window);
        }
        for (index, bucket) in self.rare.iter() {
            add(index, std::slice::from_ref(bucket));
        }
        for chunk in self.chunks.iter() {
            add(chunk.octave() * SUBBUCKETS, chunk.buckets());
        }
    }
}

impl CellBuckets {
    /// Moves full buckets to `add`. Called by the owner, with the lock of the totals held.
    pub(super) fn spill(&self, mut add: impl FnMut(usize, u64)) {
        for (index, bucket) in self.numbered_window() {
            bucket.spill(|count| add(index, count));
        }
        for (index, bucket) in self.rare.iter() {
            bucket.spill(|count| add(index, count));
        }
        for (index, bucket) in self.chunks.iter().flat_map(Chunk::numbered) {
            bucket.spill(|count| add(index, count));
        }
    }

    /// Removes all counts. Called with the lock of the totals held, by the owner or when there is none.
    pub(super) fn reset(&self) {
        for bucket in &self.inline {
            bucket.set(0);
        }
        self.set_octaves(Octaves { first: 0, len: 0 });
        // SAFETY: the pointer is null or that of a window, which is never freed.
        if let Some(window) = unsafe { self.heap.swap(ptr::null_mut(), Release).as_ref() } {
            window::give_back(window);
        }
        self.rare.remove(|_| true, |_, _| {});
        self.chunks.remove(|_| true, |_, _| {});
    }
}

#[cfg(test)]
impl CellBuckets {
    /// Returns the number of chunks.
    pub(super) fn chunks(&self) -> usize {
        self.chunks.iter().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call count that makes an octave a common one.
    const MANY: u32 = 1_000;

    /// Returns buckets with a window of the octaves 1 to `last` on the heap.
    fn with_window_up_to(last: usize) -> CellBuckets {
        let buckets = CellBuckets::new();
        buckets.place(SUBBUCKETS);
        for octave in [1, last] {
            buckets.add(octave * SUBBUCKETS, MANY);
        }
        buckets.place_again(true);
        let expected = Octaves {
            first: 1,
            len: last,
        };
        assert_eq!(buckets.octaves(), expected);
        buckets
    }

    /// Moves the calls of an octave to another one, which must be in the window.
    fn move_calls(buckets: &CellBuckets, from: usize, to: usize) {
        for (octave, count) in [(from, 0), (to, MANY)] {
            let bucket = buckets.find(octave * SUBBUCKETS).expect("it has memory");
            bucket.set(count);
        }
    }

    fn counts(buckets: &CellBuckets) -> Vec<(usize, u64)> {
        let mut counts = Vec::new();
        buckets.read(|index, count| counts.extend((count > 0).then_some((index, count))));
        counts
    }

    #[test]
    fn a_window_on_the_heap_moves_widens_and_narrows_in_its_memory() {
        let buckets = with_window_up_to(8);
        let memory = buckets.window().1.as_ptr();
        let is_moved = |first: usize, len: usize, octaves: &[usize]| {
            buckets.place_again(true);
            let expected = octaves.iter();
            let expected = expected.map(|octave| (octave * SUBBUCKETS, u64::from(MANY)));
            assert_eq!(buckets.octaves(), Octaves { first, len });
            assert_eq!(buckets.window().1.as_ptr(), memory);
            assert_eq!(counts(&buckets), expected.collect::<Vec<_>>());
        };
        move_calls(&buckets, 1, 3);
        buckets.add(10 * SUBBUCKETS, MANY);
        is_moved(3, 8, &[3, 8, 10]);
        buckets.add(0, MANY);
        is_moved(0, MAX_WINDOW, &[0, 3, 8, 10]);
        for octave in [3, 8, 10] {
            let bucket = buckets.find(octave * SUBBUCKETS).expect("it has memory");
            bucket.set(0);
        }
        is_moved(0, INLINE_OCTAVES, &[0]);
        buckets.add(7 * SUBBUCKETS, MANY);
        is_moved(0, 8, &[0, 7]);
        buckets.reset();
    }

    #[cfg(all(unix, not(miri)))]
    #[test]
    fn beyond_the_limit_no_window_is_allocated_and_those_that_exist_move() {
        use crate::stats::{memory, set_cell_memory};
        use profiler_host::process::fork;

        let (wide, inline) = (with_window_up_to(10), CellBuckets::new());
        fork::set_home();
        // The limit is that of the process.
        crate::fork_and::fork_and(|| {
            set_cell_memory(1);
            window::forget_unused();
            let before = memory::used();
            move_calls(&wide, 10, 6);
            wide.place_again(true);
            inline.place(SUBBUCKETS);
            inline.add(SUBBUCKETS, MANY);
            inline.add(6 * SUBBUCKETS, MANY);
            inline.place_again(true);
            memory::used() == before && wide.octaves().len == 6 && inline.octaves().len == 4
        });
        wide.reset();
    }
}
