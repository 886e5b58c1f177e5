//! Chunks: the buckets of one octave, as members of a linked list.
//!
//! A cell takes a chunk from a [stock](super::stock) when a time is in an octave that it has not seen before. That can happen at
//! any time, for example when the thread is preempted for longer than ever before. Chunks are never freed.

use std::iter;
use std::ptr;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

use profiler_host::sync::Lock;

use super::bucket::Bucket;
use super::octaves::SUBBUCKETS;
use super::owner_cell::OwnerCell;
use super::stock::{self, Stock, Stocked};

/// The buckets of one octave.
pub(super) struct Chunk {
    octave: OwnerCell<usize>,
    next: AtomicPtr<Chunk>,
    buckets: [Bucket; SUBBUCKETS],
}

impl Chunk {
    pub(super) fn octave(&self) -> usize {
        self.octave.get()
    }

    pub(super) fn buckets(&self) -> &[Bucket; SUBBUCKETS] {
        &self.buckets
    }

    /// Returns the buckets with their numbers.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (usize, &Bucket)> {
        (self.octave() * SUBBUCKETS..).zip(&self.buckets)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buckets.iter().all(|bucket| bucket.get() == 0)
    }
}

/// A list of chunks, none of which is in another list.
///
/// One thread changes it. Another thread may read it at the same time as it grows, but not while chunks are removed.
pub(super) struct Chunks(AtomicPtr<Chunk>);

impl Chunks {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'static Chunk> + use<> {
        // SAFETY: the pointer is null or that of a chunk, which is never freed, and which was complete when the store that
        // this load reads released it.
        let chunk = |pointer: &AtomicPtr<Chunk>| unsafe { pointer.load(Acquire).as_ref() };
        iter::successors(chunk(&self.0), move |previous| chunk(&previous.next))
    }

    /// Returns the chunk of an octave.
    pub(super) fn find(&self, octave: usize) -> Option<&'static Chunk> {
        self.iter().find(|chunk| chunk.octave() == octave)
    }

    /// Adds an empty chunk for an octave. Returns `false` if there is no memory.
    pub(super) fn add(&self, octave: usize) -> bool {
        let Some(chunk) = stock::take::<Chunk>() else {
            return false;
        };
        chunk.octave.set(octave);
        self.push(chunk);
        true
    }

    fn push(&self, chunk: &'static Chunk) {
        chunk.next.store(self.0.load(Relaxed), Relaxed);
        self.0.store(ptr::from_ref(chunk).cast_mut(), Release);
    }

    fn pop(&self) -> Option<&'static Chunk> {
        let first = self.iter().next()?;
        self.0.store(first.next.load(Relaxed), Relaxed);
        Some(first)
    }

    /// Removes the chunks for which `is_unused` returns `true`, and gives them back to the stock. Their counts are
    /// passed to `add`.
    pub(super) fn remove(
        &self,
        is_unused: impl Fn(&Chunk) -> bool,
        mut add: impl FnMut(usize, u32),
    ) {
        if self.0.load(Relaxed).is_null() {
            return;
        }
        let kept = Self::new();
        let mut unused = UNUSED.lock();
        while let Some(chunk) = self.pop() {
            if !is_unused(chunk) {
                kept.push(chunk);
                continue;
            }
            for (index, bucket) in chunk.numbered() {
                add(index, bucket.get());
                bucket.set(0);
            }
            unused.give_back(chunk);
        }
        self.0.store(kept.0.into_inner(), Release);
    }
}

/// The chunks that are in no cell.
static UNUSED: Lock<Stock<Chunk>> = Lock::with(Stock::new(), Stock::new);

// SAFETY: zeros are valid for all fields.
unsafe impl Stocked for Chunk {
    /// Enough for eight cells with times from a microsecond to an hour, as on a machine that does much else.
    const BATCH: usize = 256;
    /// The times of a cell need their octaves.
    const IS_LIMITED: bool = false;

    fn stock() -> &'static Lock<Stock<Self>> {
        &UNUSED
    }

    fn link(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octaves(chunks: &Chunks) -> Vec<usize> {
        let mut octaves: Vec<_> = chunks.iter().map(Chunk::octave).collect();
        octaves.sort_unstable();
        octaves
    }

    #[test]
    fn chunks_are_found_by_their_octave() {
        let chunks = Chunks::new();
        for octave in [5, 9, 40] {
            assert!(chunks.find(octave).is_none());
            assert!(chunks.add(octave));
            assert!(chunks.find(octave).is_some_and(Chunk::is_empty));
        }
        assert_eq!(octaves(&chunks), [5, 9, 40]);
        chunks.remove(|_| true, |_, _| {});
    }

    #[test]
    fn removed_chunks_return_empty_and_the_others_stay() {
        let chunks = Chunks::new();
        for octave in 0..70 {
            assert!(chunks.add(octave));
            let chunk = chunks.find(octave).expect("added above");
            chunk.buckets()[3].increment();
        }
        let mut removed = Vec::new();
        let is_even = |chunk: &Chunk| chunk.octave().is_multiple_of(2);
        chunks.remove(is_even, |index, count| {
            removed.extend((count > 0).then_some((index, count)));
        });
        removed.sort_unstable();
        let expected: Vec<_> = (0..70)
            .step_by(2)
            .map(|octave| (16 * octave + 3, 1))
            .collect();
        assert_eq!(removed, expected);
        assert_eq!(octaves(&chunks), (1..70).step_by(2).collect::<Vec<_>>());
        chunks.remove(|_| true, |_, _| {});
        assert!(stock::take().is_some_and(Chunk::is_empty));
    }
}
