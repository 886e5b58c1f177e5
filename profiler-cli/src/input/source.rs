//! The bytes of a file on their way to a parser: decompressed, counted and limited.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::{InputError, Limits};
use crate::progress::Progress;

/// The bytes at the beginning that tell what a file is.
pub(super) const BEGINNING: u64 = 256 << 10;
/// The first bytes of each file that gzip wrote.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Counts what has been read so far. It is shared, because a parser owns its reader.
pub(super) struct Watch {
    max_bytes: u64,
    read: Cell<u64>,
    /// Bytes read since the current value began; `None` while the parser keeps no value.
    in_value: Cell<Option<u64>>,
    failure: RefCell<Option<InputError>>,
}

impl Watch {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            read: Cell::new(0),
            in_value: Cell::new(None),
            failure: RefCell::new(None),
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

    /// Records why reading stops. Parsers pass on only their own errors.
    pub(super) fn fail(&self, error: InputError) {
        self.failure.borrow_mut().get_or_insert(error);
    }

    /// Returns why reading stopped, given the error of the parser.
    pub(super) fn failure(&self, error: serde_json::Error) -> InputError {
        let failure = self.failure.borrow_mut().take();
        failure.unwrap_or_else(|| InputError::of_json(error))
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        self.read.set(self.read.get() + bytes);
        if self.read.get() > self.max_bytes {
            return self.stop(InputError::TooLarge {
                max_bytes: self.max_bytes,
            });
        }
        if let Some(before) = self.in_value.get() {
            let in_value = before + bytes;
            if in_value > Limits::EVENT_BYTES {
                return self.stop(InputError::EventTooLarge {
                    max_bytes: Limits::EVENT_BYTES,
                });
            }
            self.in_value.set(Some(in_value));
        }
        Ok(())
    }

    fn stop(&self, error: InputError) -> io::Result<()> {
        self.fail(error);
        Err(io::ErrorKind::FileTooLarge.into())
    }
}

/// A file that shows how much of it was read.
pub(super) struct Counted<R> {
    inner: R,
    progress: Progress,
}

impl<R: Read> Counted<R> {
    pub(super) fn new(inner: R, progress: Progress) -> Self {
        Self { inner, progress }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.progress.advance(count as u64);
        Ok(count)
    }
}

/// A reader that stops at the limits.
struct Watched<'w, R> {
    inner: R,
    watch: &'w Watch,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.watch.count(count)?;
        Ok(count)
    }
}

/// The decompressed content of a file.
pub(super) struct Source<'w> {
    reader: Chain<Cursor<Vec<u8>>, BufReader<Box<dyn Read + 'w>>>,
    /// The error that follows the beginning.
    error: Option<io::Error>,
    watch: &'w Watch,
}

impl<'w> Source<'w> {
    pub(super) fn new(content: impl Read + 'w, watch: &'w Watch) -> Result<Self, InputError> {
        let mut content = BufReader::with_capacity(64 << 10, content);
        // A pipe may return the first byte alone, so `fill_buf` is not enough.
        let mut magic = Vec::new();
        content
            .by_ref()
            .take(GZIP.len() as u64)
            .read_to_end(&mut magic)?;
        let is_gzip = magic == GZIP;
        let content = Cursor::new(magic).chain(content);
        let inner: Box<dyn Read + 'w> = if is_gzip {
            let inner = MultiGzDecoder::new(content);
            Box::new(Watched { inner, watch })
        } else {
            Box::new(Watched {
                inner: content,
                watch,
            })
        };
        let inner = BufReader::with_capacity(64 << 10, inner);
        Ok(Self {
            reader: Cursor::new(Vec::new()).chain(inner),
            error: None,
            watch,
        })
    }

    /// Returns the first bytes, which are then read again.
    pub(super) fn beginning(&mut self) -> Result<&[u8], InputError> {
        let (start, rest) = self.reader.get_mut();
        if let Err(error) = rest.by_ref().take(BEGINNING).read_to_end(start.get_mut()) {
            if start.get_ref().is_empty() {
                return Err(self.failure(error));
            }
            self.error = Some(error);
        }
        Ok(self.reader.get_ref().0.get_ref())
    }

    /// Reads all that is left as text.
    pub(super) fn text(mut self, max_bytes: u64) -> Result<String, InputError> {
        let mut bytes = Vec::new();
        let read = self.by_ref().take(max_bytes + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.failure(error))?;
        if bytes.len() as u64 > max_bytes {
            return Err(InputError::TooLarge { max_bytes });
        }
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line_start = valid.iter().rposition(|byte| *byte == b'\n');
            InputError::Json {
                line: valid.split(|byte| *byte == b'\n').count(),
                column: valid.len() - line_start.map_or(0, |at| at + 1) + 1,
                reason: "the text is not UTF-8".to_owned(),
            }
        })
    }

    fn failure(&self, error: io::Error) -> InputError {
        let failure = self.watch.failure.borrow_mut().take();
        failure.unwrap_or_else(|| InputError::of_io(error))
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let content = self.fill_buf()?;
        let count = content.len().min(buffer.len());
        buffer[..count].copy_from_slice(&content[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let (start, _) = self.reader.get_ref();
        let is_at_end = start.position() == start.get_ref().len() as u64;
        match self.error.take_if(|_| is_at_end) {
            Some(error) => Err(error),
            None => self.reader.fill_buf(),
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
    }
}
