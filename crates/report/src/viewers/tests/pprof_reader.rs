//! A reader of pprof's profiles, for tests.

use std::collections::HashMap;

/// A profile as pprof understands it.
#[derive(Debug, Default)]
pub(super) struct Profile {
    /// The names and units of the values.
    pub(super) sample_types: Vec<(String, String)>,
    pub(super) samples: Vec<Sample>,
    pub(super) comments: Vec<String>,
    pub(super) default_sample_type: String,
}

#[derive(Debug)]
pub(super) struct Sample {
    /// The functions, the outermost first, as name, file and line.
    pub(super) path: Vec<(String, String, u64)>,
    pub(super) values: Vec<i64>,
    pub(super) labels: HashMap<String, String>,
}

/// The value of a field.
enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl<'b> Value<'b> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("a number was expected"),
        }
    }

    fn bytes(&self) -> &'b [u8] {
        match self {
            Self::Number(_) => panic!("bytes were expected"),
            Self::Bytes(bytes) => bytes,
        }
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, after) = rest.split_first().expect("more bytes");
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    value
}

fn fields(mut rest: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut rest)),
            2 => {
                let length = usize::try_from(varint(&mut rest)).expect("a length");
                let (bytes, after) = rest.split_at(length);
                rest = after;
                Value::Bytes(bytes)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// Returns the fields of a message by number; the last one of each number counts.
fn message(bytes: &[u8]) -> HashMap<u64, Value<'_>> {
    fields(bytes).into_iter().collect()
}

fn packed(value: Option<&Value<'_>>) -> Vec<u64> {
    let mut rest = value.map_or(&[][..], Value::bytes);
    let mut values = Vec::new();
    while !rest.is_empty() {
        values.push(varint(&mut rest));
    }
    values
}

pub(super) fn read(bytes: &[u8]) -> Profile {
    let fields = fields(bytes);
    let of = |number: u64| fields.iter().filter(move |(field, _)| *field == number);
    let strings: Vec<String> = of(6)
        .map(|(_, value)| String::from_utf8(value.bytes().to_vec()).expect("UTF-8"))
        .collect();
    assert_eq!(strings[0], "");
    let string = |message: &HashMap<u64, Value<'_>>, field: u64| {
        let index = message.get(&field).map_or(0, Value::number);
        strings[usize::try_from(index).expect("an index")].clone()
    };
    let number = |message: &HashMap<u64, Value<'_>>, field: u64| {
        message.get(&field).map_or(0, Value::number)
    };
    let functions: HashMap<u64, (String, String)> = of(5)
        .map(|(_, value)| {
            let function = message(value.bytes());
            (
                number(&function, 1),
                (string(&function, 2), string(&function, 4)),
            )
        })
        .collect();
    let locations: HashMap<u64, (String, String, u64)> = of(4)
        .map(|(_, value)| {
            let location = message(value.bytes());
            let line = message(location[&4].bytes());
            let (name, file) = functions[&number(&line, 1)].clone();
            (number(&location, 1), (name, file, number(&line, 2)))
        })
        .collect();
    let samples = of(2).map(|(_, value)| {
        let sample = message(value.bytes());
        let path = packed(sample.get(&1)).into_iter().rev();
        let labels = self::fields(value.bytes())
            .into_iter()
            .filter(|(field, _)| *field == 3);
        let labels = labels.map(|(_, label)| {
            let label = message(label.bytes());
            let text = string(&label, 2);
            let value = if text.is_empty() {
                number(&label, 3).to_string()
            } else {
                text
            };
            (string(&label, 1), value)
        });
        Sample {
            path: path.map(|id| locations[&id].clone()).collect(),
            values: packed(sample.get(&2))
                .into_iter()
                .map(u64::cast_signed)
                .collect(),
            labels: labels.collect(),
        }
    });
    let sample_types = of(1).map(|(_, value)| {
        let sample_type = message(value.bytes());
        (string(&sample_type, 1), string(&sample_type, 2))
    });
    let comments = of(13).flat_map(|(_, value)| packed(Some(value)));
    let all = message(bytes);
    Profile {
        sample_types: sample_types.collect(),
        samples: samples.collect(),
        comments: comments
            .map(|index| strings[usize::try_from(index).expect("an index")].clone())
            .collect(),
        default_sample_type: string(&all, 14),
    }
}
