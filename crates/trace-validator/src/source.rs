//! The bytes of a trace on their way to the parser, with size limits.

use std::cell::{Cell, RefCell};
use std::io::{self, BufReader, Read};

use super::rank::RankFinder;

/// The size limit of one event, or of another value that is kept: it is in memory as a whole. Tools write some hundred
/// bytes.
pub(super) const LONGEST_VALUE: u64 = 4 << 20;

/// The size limit of a text that is not kept: the parser has it in memory as a whole all the same.
pub(super) const LONGEST_SKIPPED: u64 = 64 << 20;

/// A limit that a trace exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The size limit of the trace.
    Trace,
    /// The size limit of one value, in bytes; see [`LONGEST_VALUE`] and [`LONGEST_SKIPPED`].
    Value(u64),
    /// The limit on events.
    Events,
}

/// The state of reading. Shared, because the parser owns the reader.
pub(super) struct ReadProgress {
    left: Cell<u64>,
    events_left: Cell<u64>,
    /// Bytes read since the current value began, and its limit.
    in_value: Cell<(u64, u64)>,
    over: Cell<Option<Over>>,
    rank: RefCell<RankFinder>,
}

impl ReadProgress {
    pub(super) fn new(max_bytes: u64, max_events: u64) -> Self {
        Self {
            left: Cell::new(max_bytes),
            events_left: Cell::new(max_events),
            in_value: Cell::new((0, LONGEST_VALUE)),
            over: Cell::new(None),
            rank: RefCell::default(),
        }
    }

    /// Announces that the parser begins a value that it keeps, which ends at the next call.
    pub(super) fn begin_value(&self) {
        self.in_value.set((0, LONGEST_VALUE));
    }

    /// Announces that the parser begins a value that it does not keep, or a part of one.
    pub(super) fn skip_value(&self) {
        self.in_value.set((0, LONGEST_SKIPPED));
    }

    /// Announces that the parser passes over the elements of a list, of which it has none in memory.
    pub(super) fn skip_list(&self) {
        self.in_value.set((0, u64::MAX));
    }

    /// Counts an event. Returns `false` if it is one too many.
    pub(super) fn count_event(&self) -> bool {
        let left = self.events_left.get().checked_sub(1);
        match left {
            Some(left) => self.events_left.set(left),
            None => self.over.set(Some(Over::Events)),
        }
        left.is_some()
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
        let (before, longest) = self.in_value.get();
        let in_value = before + count;
        if in_value > longest {
            return Err(self.stop(Over::Value(longest)));
        }
        self.in_value.set((in_value, longest));
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
