//! The bytes of a trace on their way to the parser: bounded, and looked at once.

use std::cell::{Cell, RefCell};
use std::io::{self, BufReader, Read};

use super::rank::RankFinder;

/// How many bytes one event, or one value that is kept, may take: it is in memory whole. What tools write takes some
/// hundred.
pub(super) const LONGEST_VALUE: u64 = 4 << 20;

/// A bound that a trace goes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// On all of its bytes.
    Trace,
    /// On those of one value; see [`LONGEST_VALUE`].
    Value,
}

/// What is known of the bytes that were read so far. The parser has the reader, so it is shared.
pub(super) struct Progress {
    left: Cell<u64>,
    /// Bytes read since the parser began with the value it is in; none while it keeps nothing.
    in_value: Cell<Option<u64>>,
    over: Cell<Option<Over>>,
    rank: RefCell<RankFinder>,
}

impl Progress {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            left: Cell::new(max_bytes),
            in_value: Cell::new(None),
            over: Cell::new(None),
            rank: RefCell::default(),
        }
    }

    /// Says that the parser begins with a value that it keeps until the next call.
    pub(super) fn begin_value(&self) {
        self.in_value.set(Some(0));
    }

    /// Says that the parser keeps nothing of what comes.
    pub(super) fn end_values(&self) {
        self.in_value.set(None);
    }

    /// Returns the bound that ended the reading, if one did.
    pub(super) fn over(&self) -> Option<Over> {
        self.over.get()
    }

    /// Returns the rank that HTA finds in the file.
    pub(super) fn rank(&self) -> Option<i64> {
        self.rank.borrow().rank()
    }

    fn note(&self, bytes: &[u8]) -> io::Result<()> {
        let count = bytes.len() as u64;
        match self.left.get().checked_sub(count) {
            Some(left) => self.left.set(left),
            None => return Err(self.stop(Over::Trace)),
        }
        if let Some(before) = self.in_value.get() {
            let in_value = before + count;
            if in_value > LONGEST_VALUE {
                return Err(self.stop(Over::Value));
            }
            self.in_value.set(Some(in_value));
        }
        self.rank.borrow_mut().look(bytes);
        Ok(())
    }

    fn stop(&self, over: Over) -> io::Error {
        self.over.set(Some(over));
        io::ErrorKind::FileTooLarge.into()
    }
}

/// A reader that stops where a bound is reached.
pub(super) struct Source<'p, R> {
    inner: R,
    progress: &'p Progress,
}

impl<'p, R: Read> Source<'p, R> {
    pub(super) fn new(inner: R, progress: &'p Progress) -> BufReader<Self> {
        BufReader::with_capacity(64 << 10, Self { inner, progress })
    }
}

impl<R: Read> Read for Source<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.note(&buffer[..count])?;
        Ok(count)
    }
}
