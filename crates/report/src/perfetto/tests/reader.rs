//! A reader of Perfetto's format that knows nothing of the writer. It follows the rules of `trace_packet.proto` and
//! `track_event.proto`, as far as the tests need them.

use std::collections::{BTreeMap, HashMap};

/// The value of a field.
#[derive(Clone, Copy, Debug)]
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// A message, as its fields in their order.
struct Fields<'b>(Vec<(u64, Value<'b>)>);

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("more bytes");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

impl<'b> Fields<'b> {
    fn read(mut bytes: &'b [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut bytes)),
                1 => {
                    let fixed = take(&mut bytes, 8).try_into().expect("eight bytes");
                    Value::Number(u64::from_le_bytes(fixed))
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).expect("a length");
                    Value::Bytes(take(&mut bytes, length))
                }
                other => panic!("no wire type: {other}"),
            };
            fields.push((key >> 3, value));
        }
        Self(fields)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = Value<'b>> {
        let fields = self.0.iter();
        fields
            .filter(move |(number, _)| *number == field)
            .map(|(_, value)| *value)
    }

    fn numbers(&self, field: u64) -> Vec<u64> {
        let number = |value| match value {
            Value::Number(number) => number,
            Value::Bytes(_) => panic!("{field} is no number"),
        };
        self.all(field).map(number).collect()
    }

    fn number(&self, field: u64) -> Option<u64> {
        self.numbers(field).last().copied()
    }

    fn messages(&self, field: u64) -> Vec<Fields<'b>> {
        let message = |value| match value {
            Value::Bytes(bytes) => Fields::read(bytes),
            Value::Number(_) => panic!("{field} is no message"),
        };
        self.all(field).map(message).collect()
    }

    fn message(&self, field: u64) -> Option<Fields<'b>> {
        self.messages(field).pop()
    }

    fn text(&self, field: u64) -> Option<String> {
        let text = |value| match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).expect("UTF-8"),
            Value::Number(_) => panic!("{field} is no text"),
        };
        self.all(field).last().map(text)
    }
}

/// A described track.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Track {
    pub(super) name: String,
    pub(super) parent: Option<u64>,
    pub(super) process: Option<(u64, String, Vec<String>)>,
    pub(super) thread: Option<(u64, u64, String)>,
    /// The number and the name of the unit.
    pub(super) unit: Option<(Option<u64>, Option<String>)>,
}

/// A slice or an instant. Times are in nanoseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slice {
    pub(super) track: u64,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) start: i64,
    /// `None` for an instant.
    pub(super) end: Option<i64>,
    /// The file, the function and the line.
    pub(super) source: Option<(String, String, u64)>,
    pub(super) arguments: BTreeMap<String, String>,
}

/// The contents of a file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) tracks: BTreeMap<u64, Track>,
    pub(super) slices: Vec<Slice>,
    /// From slice to slice.
    pub(super) arrows: Vec<(usize, usize)>,
    /// By track.
    pub(super) counters: BTreeMap<u64, Vec<(i64, f64)>>,
}

/// The texts and the time that the packets of a sequence refer to.
#[derive(Default)]
struct Sequence {
    at: i64,
    texts: HashMap<(u64, u64), String>,
    sources: HashMap<u64, (String, String, u64)>,
}

/// Reads a file.
pub(super) fn read(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    let mut sequences: HashMap<u64, Sequence> = HashMap::new();
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut flows: HashMap<u64, usize> = HashMap::new();
    for packet in Fields::read(bytes).messages(1) {
        if let Some(track) = packet.message(60) {
            contents.describe(&track);
            continue;
        }
        let number = packet.number(10).expect("a sequence");
        if packet.number(13) == Some(1) {
            let start = start_of(&packet);
            let before = sequences.insert(
                number,
                Sequence {
                    at: start,
                    ..Sequence::default()
                },
            );
            assert!(before.is_none(), "sequences begin once");
            continue;
        }
        let sequence = sequences.get_mut(&number).expect("its beginning");
        sequence.at += packet.number(8).expect("a time").cast_signed();
        if let Some(new) = packet.message(12) {
            sequence.learn(&new);
        }
        let event = packet.message(11).expect("an event");
        contents.event(sequence, &event, &mut open, &mut flows);
    }
    assert!(open.values().all(Vec::is_empty), "everything has an end");
    assert!(flows.is_empty(), "each arrow has an end: {flows:?}");
    contents
}

/// Returns the time at which the incremental clock of the sequence is zero.
fn start_of(packet: &Fields) -> i64 {
    let defaults = packet.message(59).expect("defaults");
    let clock = defaults.number(58).expect("the clock of the packets");
    let clocks = packet.message(6).expect("a snapshot").messages(1);
    let reading = |id| {
        let reading = clocks.iter().find(|reading| reading.number(1) == Some(id));
        let reading = reading.expect("this clock");
        (reading.number(2).expect("its time"), reading.number(3))
    };
    assert_eq!(reading(clock), (0, Some(1)));
    assert_eq!(reading(1), reading(6), "wall time is the time of the trace");
    reading(6).0.cast_signed()
}

impl Sequence {
    fn learn(&mut self, new: &Fields) {
        for field in [1, 2, 3, 29] {
            for entry in new.messages(field) {
                let id = entry.number(1).expect("a number");
                let text = entry.text(2).expect("a text");
                let before = self.texts.insert((field, id), text);
                assert!(before.is_none(), "texts are written once");
            }
        }
        for entry in new.messages(4) {
            let id = entry.number(1).expect("a number");
            let source = (
                entry.text(2).expect("a file"),
                entry.text(3).expect("a function"),
                entry.number(4).expect("a line"),
            );
            self.sources.insert(id, source);
        }
    }

    fn text(&self, field: u64, id: u64) -> String {
        self.texts[&(field, id)].clone()
    }
}

impl Contents {
    fn describe(&mut self, track: &Fields) {
        let process = track.message(3).map(|process| {
            let labels = process.all(8).map(|label| match label {
                Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).expect("UTF-8"),
                Value::Number(_) => panic!("no text"),
            });
            (
                process.number(1).expect("a process"),
                process.text(6).unwrap_or_default(),
                labels.collect(),
            )
        });
        let thread = track.message(4).map(|thread| {
            (
                thread.number(1).expect("a process"),
                thread.number(2).expect("a thread"),
                thread.text(5).unwrap_or_default(),
            )
        });
        let unit = track.message(8);
        let described = Track {
            name: track.text(2).unwrap_or_default(),
            parent: track.number(5),
            process,
            thread,
            unit: unit.map(|unit| (unit.number(3), unit.text(6))),
        };
        if let Some(parent) = described.parent {
            assert!(self.tracks.contains_key(&parent), "it comes first");
        }
        let number = track.number(1).expect("a number");
        let before = self.tracks.insert(number, described);
        assert!(before.is_none(), "tracks are described once");
    }

    fn event(
        &mut self,
        sequence: &Sequence,
        event: &Fields,
        open: &mut HashMap<u64, Vec<usize>>,
        flows: &mut HashMap<u64, usize>,
    ) {
        let track = event.number(11).expect("a track");
        assert!(self.tracks.contains_key(&track), "it was described");
        let kind = event.number(9).expect("a type");
        match kind {
            2 => {
                let index = open.get_mut(&track).and_then(Vec::pop);
                self.slices[index.expect("a beginning")].end = Some(sequence.at);
            }
            4 => {
                let whole = event.number(30).map(|value| value as f64);
                let value = whole.or_else(|| event.number(44).map(f64::from_bits));
                let values = self.counters.entry(track).or_default();
                values.push((sequence.at, value.expect("a value")));
            }
            1 | 3 => {
                let index = self.slices.len();
                self.slices.push(slice(sequence, event, track));
                if kind == 1 {
                    open.entry(track).or_default().push(index);
                }
                for id in event.numbers(48) {
                    let from = flows.remove(&id).expect("the beginning of the arrow");
                    self.arrows.push((from, index));
                }
                for id in event.numbers(47) {
                    assert!(flows.insert(id, index).is_none(), "an arrow begins once");
                }
            }
            other => panic!("no type of an event: {other}"),
        }
    }
}

fn slice(sequence: &Sequence, event: &Fields, track: u64) -> Slice {
    let name = event.number(10).map(|id| sequence.text(2, id));
    let source = event.number(34).and_then(|id| sequence.sources.get(&id));
    let argument = |argument: Fields| {
        let key = sequence.text(3, argument.number(1).expect("a key"));
        let flag = argument.number(2).map(|flag| (flag == 1).to_string());
        let integer = argument.number(4);
        let integer = integer.map(|number| number.cast_signed().to_string());
        let number = argument.number(5);
        let number = number.map(|bits| f64::from_bits(bits).to_string());
        let interned = argument.number(17).map(|id| sequence.text(29, id));
        let value = flag
            .or(integer)
            .or(number)
            .or(interned)
            .or_else(|| argument.text(6));
        (key, value.expect("a value"))
    };
    Slice {
        track,
        name: name.or_else(|| event.text(23)).expect("a name"),
        category: sequence.text(1, event.number(3).expect("a category")),
        start: sequence.at,
        end: None,
        source: source.cloned(),
        arguments: event.messages(4).into_iter().map(argument).collect(),
    }
}
