//! Events as lines of JSON, written one after the other.

use std::io::{self, Write};

use super::times::{write_us, write_whole};
use crate::text::json::string;

/// A JSON string, including its quotes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quoted<'q>(&'q str);

impl<'q> Quoted<'q> {
    /// Wraps the result of [`string`].
    pub(super) const fn new(quoted: &'q str) -> Self {
        Self(quoted)
    }
}

/// The process and thread that an event is shown on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Track {
    pub(super) pid: u64,
    pub(super) tid: u64,
}

/// Events are written to the file when there are this many bytes of them.
const BUFFER: usize = 1 << 16;

/// Writes events to a file.
pub(super) struct EventWriter<W> {
    out: W,
    /// The events that are not in the file yet.
    lines: Vec<u8>,
    is_first: bool,
}

impl<W: Write> EventWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            lines: Vec::with_capacity(BUFFER + 1024),
            is_first: true,
        }
    }

    /// Writes the last events, and returns the file.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&self.lines)?;
        Ok(self.out)
    }

    /// Writes a slice that starts at `ts` and lasts `dur` nanoseconds.
    #[inline(always)]
    pub(super) fn slice(
        &mut self,
        category: &str,
        name: Quoted<'_>,
        track: Track,
        ts: i64,
        dur: i64,
    ) -> EventLine<'_, W> {
        let mut event = self.event("X", Some(category), name, track, ts);
        event.line().extend(br#","dur":"#);
        write_us(event.line(), dur);
        event
    }

    /// Writes an event at one point in time.
    pub(super) fn instant(
        &mut self,
        category: &str,
        name: Quoted<'_>,
        track: Track,
        ts: i64,
    ) -> EventLine<'_, W> {
        let mut event = self.event("i", Some(category), name, track, ts);
        event.line().extend(br#","s":"t""#);
        event
    }

    pub(super) fn counter(&mut self, name: Quoted<'_>, pid: u64, ts: i64) -> EventLine<'_, W> {
        self.event("C", None, name, Track { pid, tid: 0 }, ts)
    }

    /// Writes the value of a counter of a thread.
    pub(super) fn counter_of(
        &mut self,
        category: &str,
        name: Quoted<'_>,
        track: Track,
        ts: i64,
    ) -> EventLine<'_, W> {
        self.event("C", Some(category), name, track, ts)
    }

    /// Writes the start or the end of an arrow.
    pub(super) fn arrow(
        &mut self,
        end: ArrowEnd,
        id: u64,
        track: Track,
        ts: i64,
    ) -> io::Result<()> {
        let ph = match end {
            ArrowEnd::Start => "s",
            ArrowEnd::Finish => "f",
        };
        let mut event = self.event(ph, Some("ac2g"), Quoted(r#""ac2g""#), track, ts);
        event.line().extend(br#","id":"#);
        write_whole(event.line(), id);
        if let ArrowEnd::Finish = end {
            event.line().extend(br#","bp":"e""#);
        }
        event.end()
    }

    /// Writes the name, the label or the sort index of a track.
    pub(super) fn about(&mut self, what: &str, track: Track) -> EventLine<'_, W> {
        self.event("M", None, Quoted(&string(what)), track, 0)
    }

    #[inline(always)]
    fn event(
        &mut self,
        ph: &str,
        category: Option<&str>,
        name: Quoted<'_>,
        Track { pid, tid }: Track,
        ts: i64,
    ) -> EventLine<'_, W> {
        if !self.is_first {
            self.lines.extend(b",\n");
        }
        self.lines.extend(br#"{"ph":""#);
        self.lines.extend(ph.as_bytes());
        if let Some(category) = category {
            self.lines.extend(br#"","cat":""#);
            self.lines.extend(category.as_bytes());
        }
        self.lines.extend(br#"","name":"#);
        self.lines.extend(name.0.as_bytes());
        self.lines.extend(br#","pid":"#);
        write_whole(&mut self.lines, pid);
        self.lines.extend(br#","tid":"#);
        write_whole(&mut self.lines, tid);
        self.lines.extend(br#","ts":"#);
        write_us(&mut self.lines, ts);
        EventLine {
            events: self,
            has_args: false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ArrowEnd {
    Start,
    Finish,
}

/// An event that is written by its [`end`](Self::end).
#[must_use = "an event is written by `end`"]
pub(super) struct EventLine<'e, W> {
    events: &'e mut EventWriter<W>,
    has_args: bool,
}

impl<W: Write> EventLine<'_, W> {
    fn line(&mut self) -> &mut Vec<u8> {
        &mut self.events.lines
    }

    #[inline(always)]
    fn arg(&mut self, key: &str) -> &mut Vec<u8> {
        let before: &[u8] = if self.has_args { b"," } else { br#","args":{"# };
        self.has_args = true;
        let line = self.line();
        line.extend(before);
        line.push(b'"');
        line.extend(key.as_bytes());
        line.extend(br#"":"#);
        line
    }

    #[inline(always)]
    pub(super) fn whole(mut self, key: &str, number: u64) -> Self {
        write_whole(self.arg(key), number);
        self
    }

    /// Adds the rank of the process, if it has one.
    pub(super) fn rank(self, rank: Option<u64>) -> Self {
        match rank {
            Some(rank) => self.whole("rank of process", rank),
            None => self,
        }
    }

    #[inline(always)]
    pub(super) fn signed(mut self, key: &str, number: i64) -> Self {
        let line = self.arg(key);
        if number < 0 {
            line.push(b'-');
        }
        write_whole(line, number.unsigned_abs());
        self
    }

    /// Adds a number; infinities and NaN, which JSON does not have, as `null`.
    pub(super) fn number(mut self, key: &str, number: f64) -> Self {
        let out = self.arg(key);
        if number.is_finite() {
            // Writing to memory does not fail.
            let _ = write!(out, "{number}");
        } else {
            out.extend(b"null");
        }
        self
    }

    pub(super) fn set(mut self, key: &str) -> Self {
        self.arg(key).extend(b"true");
        self
    }

    pub(super) fn quoted(mut self, key: &str, text: Quoted<'_>) -> Self {
        self.arg(key).extend(text.0.as_bytes());
        self
    }

    pub(super) fn text(mut self, key: &str, text: &str) -> Self {
        self.arg(key).extend(string(text).as_bytes());
        self
    }

    /// Adds a value written by `write`, as JSON.
    pub(super) fn json(mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        write(self.arg(key));
        self
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        let braces: &[u8] = if self.has_args { b"}}" } else { b"}" };
        self.line().extend(braces);
        self.events.is_first = false;
        if self.events.lines.len() >= BUFFER {
            self.events.out.write_all(&self.events.lines)?;
            self.events.lines.clear();
        }
        Ok(())
    }
}

/// Writes a JSON array.
pub(super) fn write_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(b']');
}
