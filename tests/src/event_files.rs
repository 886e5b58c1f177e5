//! A reader of event files that shares nothing with the writer but the checksum crate.

use std::fs;
use std::path::{Path, PathBuf};

/// One scalar as it stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadScalar {
    pub tag: String,
    pub value: f32,
    pub step: i64,
    /// Seconds since 1970.
    pub wall_time: f64,
}

/// One histogram as it stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadHistogram {
    pub tag: String,
    pub step: i64,
    /// Seconds since 1970.
    pub wall_time: f64,
    pub smallest: f64,
    pub largest: f64,
    pub count: f64,
    pub sum: f64,
    pub sum_of_squares: f64,
    /// The upper end of each bucket, and how many values are in it.
    pub buckets: Vec<(f64, f64)>,
}

/// One text as it stands in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadText {
    pub tag: String,
    pub step: i64,
    /// Seconds since 1970.
    pub wall_time: f64,
    pub text: String,
}

/// The contents of one event file.
#[derive(Debug, Default)]
pub struct ReadFile {
    /// In the order of the file.
    pub scalars: Vec<ReadScalar>,
    pub histograms: Vec<ReadHistogram>,
    pub texts: Vec<ReadText>,
    pub events: usize,
    /// Bytes behind the last whole record.
    pub torn: usize,
}

/// The event files of a folder, sorted by name.
pub fn paths(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir)
        .expect("the folder of the log is there")
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| is_event_file(&name.to_string_lossy()))
        })
        .collect();
    paths.sort();
    paths
}

fn is_event_file(name: &str) -> bool {
    name.starts_with("events.out.tfevents.")
}

/// The scalars of the only event file in a folder, which ends with a whole record.
pub fn only_file(dir: &Path) -> ReadFile {
    let paths = paths(dir);
    assert_eq!(paths.len(), 1, "{paths:?}");
    let file = read(&paths[0]);
    assert_eq!(file.torn, 0, "the last record is whole");
    file
}

/// Reads a file up to its last whole record; a wrong checksum or a malformed event panics.
pub fn read(path: &Path) -> ReadFile {
    let bytes = fs::read(path).expect("the event file can be read");
    let mut rest = bytes.as_slice();
    let mut file = ReadFile::default();
    while let Some((data, after)) = next_record(rest) {
        if file.events == 0 {
            let version = Fields(data).find_map(|field| field.bytes(3));
            assert_eq!(
                version,
                Some(b"brain.Event:2".as_slice()),
                "the first record"
            );
        }
        file.events += 1;
        file.append_values(data);
        rest = after;
    }
    file.torn = rest.len();
    file
}

fn next_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(8)?;
    let (length_checksum, rest) = rest.split_at_checked(4)?;
    assert_eq!(
        length_checksum,
        masked_checksum(length),
        "the checksum of a length"
    );
    let length = u64::from_le_bytes(length.try_into().expect("8 bytes"));
    let (data, rest) = rest.split_at_checked(usize::try_from(length).expect("a 64-bit host"))?;
    let (data_checksum, rest) = rest.split_at_checked(4)?;
    assert_eq!(
        data_checksum,
        masked_checksum(data),
        "the checksum of an event"
    );
    Some((data, rest))
}

fn masked_checksum(data: &[u8]) -> [u8; 4] {
    let checksum = crc32c::crc32c(data);
    checksum
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
        .to_le_bytes()
}

impl ReadFile {
    fn append_values(&mut self, event: &[u8]) {
        let wall_time = Fields(event)
            .find_map(|field| field.fixed_64(1))
            .map(f64::from_bits);
        let step = Fields(event).find_map(|field| field.varint(2)).unwrap_or(0);
        for summary in Fields(event).filter_map(|field| field.bytes(5)) {
            for value in Fields(summary).filter_map(|field| field.bytes(1)) {
                let wall_time = wall_time.expect("an event has a wall time");
                self.append_value(value, step.cast_signed(), wall_time);
            }
        }
    }

    fn append_value(&mut self, value: &[u8], step: i64, wall_time: f64) {
        let bytes = |number| Fields(value).find_map(|field| field.bytes(number));
        let tag = text(bytes(1).expect("a value has a tag"));
        if let Some(histogram) = bytes(5) {
            let number = |place| double(histogram, place).expect("a histogram has its numbers");
            let limits = doubles(histogram, 6);
            self.histograms.push(ReadHistogram {
                tag,
                step,
                wall_time,
                smallest: number(1),
                largest: number(2),
                count: number(3),
                sum: number(4),
                sum_of_squares: number(5),
                buckets: limits.into_iter().zip(doubles(histogram, 7)).collect(),
            });
        } else if let Some(tensor) = bytes(8) {
            let plugin = bytes(9)
                .and_then(|metadata| Fields(metadata).find_map(|field| field.bytes(1)))
                .and_then(|plugin| Fields(plugin).find_map(|field| field.bytes(1)));
            assert_eq!(plugin, Some(b"text".as_slice()), "the plugin of a tensor");
            let strings = Fields(tensor).find_map(|field| field.bytes(8));
            let text = text(strings.expect("a text has its string"));
            self.texts.push(ReadText {
                tag,
                step,
                wall_time,
                text,
            });
        } else {
            let number = Fields(value).find_map(|field| field.fixed_32(2));
            self.scalars.push(ReadScalar {
                tag,
                value: f32::from_bits(number.expect("a value has a simple_value")),
                step,
                wall_time,
            });
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).expect("a text is UTF-8")
}

fn double(message: &[u8], number: u64) -> Option<f64> {
    Fields(message)
        .find_map(|field| field.fixed_64(number))
        .map(f64::from_bits)
}

fn doubles(message: &[u8], number: u64) -> Vec<f64> {
    let packed = Fields(message).find_map(|field| field.bytes(number));
    let (numbers, rest) = packed.unwrap_or_default().as_chunks::<8>();
    assert!(rest.is_empty(), "whole numbers");
    numbers.iter().copied().map(f64::from_le_bytes).collect()
}

/// The fields of a protobuf message.
struct Fields<'a>(&'a [u8]);

struct Field<'a> {
    number: u64,
    payload: Payload<'a>,
}

enum Payload<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
        }
        panic!("a number of more than ten bytes");
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .expect("a field ends in its message");
        self.0 = rest;
        taken
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        if self.0.is_empty() {
            return None;
        }
        let key = self.varint();
        let payload = match key & 7 {
            0 => Payload::Varint(self.varint()),
            1 => Payload::Fixed64(u64::from_le_bytes(
                self.take(8).try_into().expect("8 bytes"),
            )),
            2 => {
                let length = usize::try_from(self.varint()).expect("a 64-bit host");
                Payload::Bytes(self.take(length))
            }
            5 => Payload::Fixed32(u32::from_le_bytes(
                self.take(4).try_into().expect("4 bytes"),
            )),
            other => panic!("wire type {other}"),
        };
        Some(Field {
            number: key >> 3,
            payload,
        })
    }
}

impl<'a> Field<'a> {
    fn varint(&self, number: u64) -> Option<u64> {
        match self.payload {
            Payload::Varint(value) if self.number == number => Some(value),
            _ => None,
        }
    }

    fn fixed_64(&self, number: u64) -> Option<u64> {
        match self.payload {
            Payload::Fixed64(value) if self.number == number => Some(value),
            _ => None,
        }
    }

    fn fixed_32(&self, number: u64) -> Option<u32> {
        match self.payload {
            Payload::Fixed32(value) if self.number == number => Some(value),
            _ => None,
        }
    }

    fn bytes(&self, number: u64) -> Option<&'a [u8]> {
        match self.payload {
            Payload::Bytes(bytes) if self.number == number => Some(bytes),
            _ => None,
        }
    }
}
