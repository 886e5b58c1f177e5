//! The bytes of a file on their way to a parser: decompressed, counted and limited.

use std::io::{self, BufReader, Cursor, Read};

use flate2::read::MultiGzDecoder;
use memchr::{memchr_iter, memrchr};
use serde::de::{Deserialize, DeserializeOwned, Error as _, IgnoredAny};
use serde_json::error::Category;

use super::invalid_event::{self, End};
use super::repair::{Repair, repair};
use super::{InputError, Limits, encoding};
use crate::progress::Progress;

/// The bytes at the beginning that tell what a file is, and the most that are read at once.
pub(super) const BEGINNING: usize = 256 << 10;
/// The first bytes of each file that gzip wrote.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The error for a value that is longer than [`Limits::EVENT_BYTES`].
pub(super) const TOO_LARGE: InputError = InputError::EventTooLarge {
    max_bytes: Limits::EVENT_BYTES as u64,
};

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

/// The decompressed content of a file, of which a window is in memory.
///
/// Values are parsed in the window: a parser of slices takes half the time of one that gets a byte at a time, and texts
/// without escapes need no copy. A value that the window cuts off is parsed again once more of it was read.
pub(super) struct Source<'r> {
    content: Box<dyn Read + 'r>,
    max_bytes: u64,
    read: u64,
    window: Vec<u8>,
    /// Where the bytes begin that were not consumed.
    start: usize,
    /// The position of the first byte of the window.
    at: Position,
    /// The window holds the last of the content.
    is_at_end: bool,
    /// Why that is the last, if the content goes on.
    failure: Option<InputError>,
    /// It ended for another reason than its end.
    is_cut: bool,
    /// Each value ends where its line ends.
    pub(super) in_lines: bool,
    /// How many mistakes were mended, and the first.
    pub(super) mended: (u64, Option<InputError>),
}

/// How many lines are before a place in a text, and how many bytes of its line.
#[derive(Clone, Copy, Default)]
struct Position {
    line: usize,
    column: usize,
}

impl Position {
    fn after(self, bytes: &[u8]) -> Self {
        let line = memchr_iter(b'\n', bytes).count();
        match memrchr(b'\n', bytes) {
            Some(last) => Self {
                line: self.line + line,
                column: bytes.len() - last - 1,
            },
            None => Self {
                line: self.line,
                column: self.column + bytes.len(),
            },
        }
    }

    /// Says what is wrong with the byte after it.
    fn next(mut self, reason: &str) -> InputError {
        self.column += 1;
        self.error(reason)
    }

    /// Says what is wrong with the byte before it.
    fn error(self, reason: &str) -> InputError {
        InputError::Json {
            line: self.line + 1,
            column: self.column,
            reason: reason.to_owned(),
        }
    }
}

/// What parsing a value came to.
pub(super) enum Parsed<T> {
    Value(T),
    /// It is no such value, and nothing was consumed.
    Invalid(serde_json::Error),
    /// It has more than [`Limits::EVENT_BYTES`].
    TooLarge,
}

impl<'r> Source<'r> {
    pub(super) fn new(content: impl Read + 'r, max_bytes: u64) -> Result<Self, InputError> {
        let mut content = BufReader::with_capacity(64 << 10, content);
        // A pipe may return the first byte alone, so `fill_buf` is not enough.
        let mut magic = Vec::new();
        content
            .by_ref()
            .take(GZIP.len() as u64)
            .read_to_end(&mut magic)?;
        let is_gzip = magic == GZIP;
        let content = Cursor::new(magic).chain(content);
        let content = if is_gzip {
            encoding::in_utf8(MultiGzDecoder::new(content))
        } else {
            encoding::in_utf8(content)
        };
        Ok(Self {
            content: content.map_err(InputError::of_io)?,
            max_bytes,
            read: 0,
            window: Vec::new(),
            start: 0,
            at: Position::default(),
            is_at_end: false,
            failure: None,
            is_cut: false,
            in_lines: false,
            mended: (0, None),
        })
    }

    /// Returns the first bytes, which are not consumed.
    pub(super) fn beginning(&mut self) -> Result<&[u8], InputError> {
        self.fill(BEGINNING);
        if self.unread().is_empty() {
            self.take_failure()?;
        }
        Ok(self.unread())
    }

    /// Reads all that is left as text.
    pub(super) fn text(mut self, max_bytes: usize) -> Result<String, InputError> {
        self.fill(max_bytes + 1);
        if self.unread().len() > max_bytes {
            let max_bytes = max_bytes as u64;
            return Err(InputError::TooLarge { max_bytes });
        }
        self.take_failure()?;
        let bytes = self.window.split_off(self.start);
        String::from_utf8(bytes).map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            self.at.after(valid).next("the text is not UTF-8")
        })
    }

    /// Returns how many bytes were read, after decompression.
    pub(super) const fn read_bytes(&self) -> u64 {
        self.read
    }

    /// Returns what is in the window and was not consumed.
    fn unread(&self) -> &[u8] {
        &self.window[self.start..]
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
    }

    /// Reads until so many bytes are unread, or the content ends.
    fn fill(&mut self, bytes: usize) {
        self.at = self.at.after(&self.window[..self.start]);
        self.window.drain(..self.start);
        self.start = 0;
        let wanted = bytes.saturating_sub(self.window.len());
        if self.is_at_end || wanted == 0 {
            return;
        }
        let content = &mut self.content;
        self.window.reserve(wanted);
        // The limit may be exceeded by one byte, which shows that it is.
        let left = self.max_bytes.saturating_sub(self.read).saturating_add(1);
        let read = content
            .take(left.min(wanted as u64))
            .read_to_end(&mut self.window);
        match read {
            Err(error) => self.failure = Some(InputError::of_io(error)),
            Ok(count) => {
                self.read += count as u64;
                if self.read > self.max_bytes {
                    let max_bytes = self.max_bytes;
                    self.failure = Some(InputError::TooLarge { max_bytes });
                }
                self.is_at_end = count < wanted;
            }
        }
        self.is_cut |= self.failure.is_some();
        self.is_at_end |= self.is_cut;
    }

    /// Reads more. Returns `false` if there is no more.
    fn grow(&mut self) -> bool {
        let before = self.unread().len();
        let wanted = (2 * before).clamp(BEGINNING, Limits::EVENT_BYTES + 1);
        self.fill(wanted.max(before));
        self.unread().len() > before
    }

    /// Fails if the content ended for another reason than its end.
    fn take_failure(&mut self) -> Result<(), InputError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Returns why a value is not whole.
    fn cut_off(&mut self) -> InputError {
        self.take_failure().err().unwrap_or(InputError::Truncated)
    }

    /// Returns the next byte that is no white space, which is not consumed; `None` at the end.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, InputError> {
        loop {
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            let next = self.unread().iter().position(|byte| !is_space(byte));
            let spaces = next.unwrap_or(self.unread().len());
            self.consume(spaces);
            if next.is_some() {
                return Ok(self.unread().first().copied());
            }
            if !self.grow() {
                return self.take_failure().map(|()| None);
            }
        }
    }

    /// Returns the next byte that is no white space, which is not consumed.
    pub(super) fn peek_some(&mut self) -> Result<u8, InputError> {
        self.peek()?.ok_or(InputError::Truncated)
    }

    /// Says what is wrong with the next byte.
    pub(super) fn invalid(&self, reason: &str) -> InputError {
        self.at.after(&self.window[..self.start]).next(reason)
    }

    /// Parses the next value, which is then consumed if it is valid. `parse` gets bytes that begin with it, and returns how
    /// many of them it takes; see [`parse`].
    pub(super) fn value<R>(
        &mut self,
        mut parse: impl FnMut(&[u8]) -> serde_json::Result<(R, usize)>,
    ) -> Result<Parsed<R>, InputError> {
        self.peek_some()?;
        loop {
            let error = match parse(self.unread()) {
                Ok((value, length)) => {
                    let last = length.checked_sub(1).map(|last| self.unread()[last]);
                    let is_whole = matches!(last, Some(b'}' | b']' | b'"'));
                    // More digits may follow.
                    if is_whole || length < self.unread().len() || !self.grow() {
                        self.consume(length);
                        return Ok(Parsed::Value(value));
                    }
                    continue;
                }
                Err(error) => error,
            };
            // A number that ends at a point is no number to the parser, and the rest may follow.
            let is_at_end = offset(self.unread(), &error) >= self.unread().len();
            if error.classify() != Category::Eof && !(is_at_end && self.grow()) {
                return Ok(match self.mended(&error, &mut parse) {
                    Some(value) => Parsed::Value(value),
                    None => Parsed::Invalid(error),
                });
            }
            if error.classify() != Category::Eof {
                continue;
            }
            if self.unread().len() > Limits::EVENT_BYTES {
                return Ok(Parsed::TooLarge);
            }
            if !self.grow() {
                return Err(self.cut_off());
            }
        }
    }

    /// Parses the next value, which is not valid, after its mistakes were mended.
    fn mended<R>(
        &mut self,
        error: &serde_json::Error,
        parse: &mut impl FnMut(&[u8]) -> serde_json::Result<(R, usize)>,
    ) -> Option<R> {
        let (length, text) = loop {
            match repair(self.line_or_rest()) {
                Repair::Mended { length, text } => break (length, text),
                Repair::Hopeless => return None,
                Repair::Beyond => {
                    let is_whole_line = self.line_or_rest().len() < self.unread().len();
                    if is_whole_line || self.unread().len() > Limits::EVENT_BYTES || !self.grow() {
                        return None;
                    }
                }
            }
        };
        let (value, _) = parse(&text).ok()?;
        // Where it is takes a search of the window: only the first is shown.
        let first = self.mended.1.take().unwrap_or_else(|| self.error(error));
        self.mended = (self.mended.0 + 1, Some(first));
        self.consume(length);
        Some(value)
    }

    /// Returns what a value may take of what is unread.
    fn line_or_rest(&self) -> &[u8] {
        let unread = self.unread();
        let end = memchr_iter(b'\n', unread).next().filter(|_| self.in_lines);
        &unread[..end.unwrap_or(unread.len())]
    }

    /// Consumes the next value if it is JSON, of any form.
    pub(super) fn skip_json(&mut self) -> bool {
        let parsed = parse::<IgnoredAny>(self.line_or_rest());
        if let Ok((_, length)) = &parsed {
            self.consume(*length);
        }
        parsed.is_ok()
    }

    /// Returns `true` if all of the content was consumed, and it ended as it should.
    pub(super) fn is_consumed(&self) -> bool {
        self.is_at_end && !self.is_cut && self.unread().is_empty()
    }

    /// Counts a mistake at the next byte, which was passed over.
    pub(super) fn pass_over(&mut self, reason: &str) {
        let first = self.mended.1.take().unwrap_or_else(|| self.invalid(reason));
        self.mended = (self.mended.0 + 1, Some(first));
    }

    /// Parses the next value, which must be valid.
    pub(super) fn whole<R>(
        &mut self,
        parse: impl FnMut(&[u8]) -> serde_json::Result<(R, usize)>,
    ) -> Result<R, InputError> {
        match self.value(parse)? {
            Parsed::Value(value) => Ok(value),
            Parsed::Invalid(error) => Err(self.error(&error)),
            Parsed::TooLarge => Err(TOO_LARGE),
        }
    }

    /// Parses the next value, which is not an event.
    pub(super) fn other<T: DeserializeOwned>(&mut self) -> Result<T, InputError> {
        self.whole(|text| parse::<T>(text))
    }

    /// Consumes the next key of an object, with the colon.
    pub(super) fn key(&mut self) -> Result<String, InputError> {
        let key = self.other()?;
        if self.peek_some()? != b':' {
            return Err(self.invalid("expected `:`"));
        }
        self.consume(1);
        Ok(key)
    }

    /// Consumes the next value, of any depth and length.
    pub(super) fn ignore(&mut self) -> Result<(), InputError> {
        match self.value(|text| parse::<IgnoredAny>(text))? {
            Parsed::Value(_) => Ok(()),
            Parsed::Invalid(error) => Err(self.error(&error)),
            Parsed::TooLarge => self.skip(),
        }
    }

    /// Consumes the next value, which is too large to be parsed. Of its brackets, only the number is looked at.
    pub(super) fn skip(&mut self) -> Result<(), InputError> {
        let (mut depth, mut in_text, mut is_escaped) = (0_u64, false, false);
        loop {
            let end = self.unread().iter().position(|byte| {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' if in_text => is_escaped = true,
                    b'"' => in_text = !in_text,
                    _ if in_text => {}
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' | b',' if depth == 0 => return true,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                false
            });
            self.consume(end.unwrap_or(self.unread().len()));
            if end.is_some() {
                return Ok(());
            }
            if !self.grow() {
                return Err(self.cut_off());
            }
        }
    }

    /// Consumes the next value, an event that is not valid, up to the comma or bracket that follows it in its list. Returns
    /// `false`, and consumes nothing, if it is not certain where the event ends.
    pub(super) fn skip_invalid(&mut self) -> bool {
        loop {
            match invalid_event::end(self.unread()) {
                End::At(length) => {
                    self.consume(length);
                    return true;
                }
                End::Unknown => return false,
                End::Beyond if self.unread().len() > Limits::EVENT_BYTES || !self.grow() => {
                    return false;
                }
                End::Beyond => {}
            }
        }
    }

    /// Consumes the rest of a line.
    pub(super) fn skip_line(&mut self) {
        loop {
            let end = memchr_iter(b'\n', self.unread()).next();
            self.consume(end.unwrap_or(self.unread().len()));
            if end.is_some() || !self.grow() {
                return;
            }
        }
    }

    /// Returns the error of a parser that began with the first unread byte.
    pub(super) fn error(&self, error: &serde_json::Error) -> InputError {
        let before = self.at.after(&self.window[..self.start]);
        let position = Position {
            line: before.line + error.line().saturating_sub(1),
            column: error.column() + if error.line() <= 1 { before.column } else { 0 },
        };
        let reason = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        position.error(reason.strip_suffix(&place).unwrap_or(&reason))
    }
}

/// Parses the first value of a text, and returns its length too. It may borrow from the text.
pub(super) fn parse<'t, T: Deserialize<'t>>(text: &'t [u8]) -> serde_json::Result<(T, usize)> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter();
    let value = values
        .next()
        .unwrap_or_else(|| Err(serde_json::Error::custom("no value")))?;
    Ok((value, values.byte_offset()))
}

/// Returns how many bytes of a text are before the place of an error, with the byte there.
fn offset(text: &[u8], error: &serde_json::Error) -> usize {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let before = lines.by_ref().take(error.line().saturating_sub(1));
    before.map(<[u8]>::len).sum::<usize>() + error.column()
}
