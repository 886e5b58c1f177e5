//! Packets, one after the other, and the sequences that the events belong to.

use std::io::{self, Write};

use super::event::EventBuilder;
use super::fields::{clock, clock_snapshot, defaults, packet, trace};
use crate::protobuf::Message;

/// The clock of a sequence; 64 is the first number that sequences may use as they like.
const INCREMENTAL: u64 = 64;
/// `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_BOOTTIME`. Perfetto shows the latter, and tells the date by the former.
const WALL: [u64; 2] = [1, 6];
/// `SEQ_INCREMENTAL_STATE_CLEARED`: what the packets of this sequence refer to follows.
const CLEARED: u64 = 1;

/// A file being written.
pub(super) struct Packets<W> {
    out: W,
    framed: Message,
    next_sequence: u64,
}

impl<W: Write> Packets<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            framed: Message::default(),
            next_sequence: 1,
        }
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }

    pub(super) fn write(&mut self, content: &Message) -> io::Result<()> {
        self.framed.clear();
        self.framed.message(trace::PACKET, content);
        self.out.write_all(self.framed.bytes())
    }

    /// Writes the description of a track.
    pub(super) fn describe(&mut self, descriptor: &Message) -> io::Result<()> {
        let mut content = Message::default();
        content.message(packet::TRACK_DESCRIPTOR, descriptor);
        self.write(&content)
    }

    /// Begins a sequence whose events come in the order of their times. `start` is in nanoseconds since the Unix epoch.
    pub(super) fn sequence(&mut self, start: i64) -> io::Result<Sequence> {
        let sequence = Sequence {
            number: self.next_sequence,
            at: 0,
            content: Message::default(),
            event: EventBuilder::default(),
        };
        self.next_sequence += 1;
        let mut snapshot = Message::default();
        let mut is_first = true;
        for id in [INCREMENTAL].into_iter().chain(WALL) {
            let mut reading = Message::default();
            reading.unsigned(clock::ID, id);
            if is_first {
                reading.unsigned(clock::TIMESTAMP, 0);
                reading.unsigned(clock::IS_INCREMENTAL, 1);
            } else {
                reading.unsigned(clock::TIMESTAMP, start.max(0).unsigned_abs());
            }
            is_first = false;
            snapshot.message(clock_snapshot::CLOCKS, &reading);
        }
        let mut shared = Message::default();
        shared.unsigned(defaults::TIMESTAMP_CLOCK, INCREMENTAL);
        let mut content = Message::default();
        content.unsigned(packet::SEQUENCE, sequence.number);
        content.unsigned(packet::SEQUENCE_FLAGS, CLEARED);
        content.message(packet::DEFAULTS, &shared);
        content.message(packet::CLOCK_SNAPSHOT, &snapshot);
        self.write(&content)?;
        Ok(sequence)
    }
}

/// Events in the order of their times. Each packet holds the time since the one before.
pub(super) struct Sequence {
    number: u64,
    /// The time of the last packet.
    at: i64,
    content: Message,
    pub(super) event: EventBuilder,
}

impl Sequence {
    /// Writes the event that was built. `at` is in nanoseconds since the start of the sequence; a time before that of the
    /// last event becomes that.
    pub(super) fn write<W: Write>(&mut self, packets: &mut Packets<W>, at: i64) -> io::Result<()> {
        let at = at.max(self.at);
        self.content.clear();
        let since = at.saturating_sub(self.at);
        self.content
            .unsigned(packet::TIMESTAMP, since.unsigned_abs());
        self.at = at;
        self.content.unsigned(packet::SEQUENCE, self.number);
        let (event, interned) = self.event.take();
        if !interned.bytes().is_empty() {
            self.content.message(packet::INTERNED_DATA, interned);
        }
        self.content.message(packet::TRACK_EVENT, event);
        packets.write(&self.content)
    }
}
