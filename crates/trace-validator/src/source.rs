//! The bytes of a trace on their way to the parser, with size limits.

use std::cell::{Cell, RefCell};
use std::io::{self, BufReader, Read};

use super::rank::RankFinder;

/// The size limit of one event, or of another value that is kept: it is in memory as a whole. Tools write some hundred
/// bytes.
pub(super) const LONGEST_VALUE: u64 = 4 << 20;

/// A limit that a trace exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The size limit of the trace.
    Trace,
    /// The size limit of one value; see [`LONGEST_VALUE`].
    Value,
}

/// The state of reading. Shared, because the parser owns the reader.
pub(super) struct ReadProgress {
    left: Cell<u64>,
    /// Bytes read since the current value began; `None` while the parser keeps no value.
    in_value: Cell<Option<u64>>,
    over: Cell<Option<Over>>,
    rank: RefCell<RankFinder>,
}

impl ReadProgress {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            left: Cell::new(max_bytes),
            in_value: Cell::new(None),
            over: Cell::new(None),
            rank: RefCell::default(),
        }
    }

    /// Announces that the parser begins a value that it keeps, which ends at the next call.
    pub(super) fn begin_value(&self) {
        self.in_value.set(Some(0));
    }

    /// Announces that the parser keeps no further value.
    pub(super) fn end_values(&self) {
        self.in_value.set(None);
    }

    /// Returns the limit that was exceeded, if any.
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

/// A reader that stops at a limit.
pub(super) struct ProgressReader<'p, R> {
    inner: R,
    progress: &'p ReadProgress,
}

impl<'p, R: Read> ProgressReader<'p, R> {
    pub(super) fn new(inner: R, progress: &'p ReadProgress) -> BufReader<Self> {
        BufReader::with_capacity(64 << 10, Self { inner, progress })
    }
}

impl<R: Read> Read for ProgressReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.note(&buffer[..count])?;
        Ok(count)
    }
}
