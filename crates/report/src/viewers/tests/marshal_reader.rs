//! A reader of the marshal format, for tests.

use std::collections::BTreeMap;

/// A value of Python.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Integer(u64),
    Float(f64),
    Text(String),
    Tuple(Vec<Value>),
    Dict(Vec<(Value, Value)>),
}

impl Value {
    pub(super) fn tuple(&self) -> &[Self] {
        match self {
            Self::Tuple(items) => items,
            other => panic!("{other:?} is no tuple"),
        }
    }

    pub(super) fn dict(&self) -> &[(Self, Self)] {
        match self {
            Self::Dict(items) => items,
            other => panic!("{other:?} is no dictionary"),
        }
    }

    pub(super) fn integer(&self) -> u64 {
        match self {
            Self::Integer(value) => *value,
            other => panic!("{other:?} is no integer"),
        }
    }

    pub(super) fn float(&self) -> f64 {
        match self {
            Self::Float(value) => *value,
            other => panic!("{other:?} is no float"),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }
}

/// Reads a whole file.
pub(super) fn read(bytes: &[u8]) -> Value {
    let mut rest = bytes;
    let value = value(&mut rest).expect("a value");
    assert!(rest.is_empty(), "{} bytes follow", rest.len());
    value
}

/// Returns `None` at the end of a dictionary.
fn value(rest: &mut &[u8]) -> Option<Value> {
    let kind = take::<1>(rest)[0];
    Some(match kind {
        b'0' => return None,
        b'i' => Value::Integer(length(rest) as u64),
        b'g' => Value::Float(f64::from_le_bytes(take(rest))),
        b'l' => {
            let digits = (0..length(rest)).map(|digit| {
                let value = u16::from_le_bytes(take(rest));
                assert!(value < 1 << 15, "a digit has 15 bits");
                u64::from(value) << (15 * digit)
            });
            Value::Integer(digits.sum())
        }
        b'u' => {
            let length = length(rest);
            let (text, after) = rest.split_at(length);
            *rest = after;
            Value::Text(String::from_utf8(text.to_vec()).expect("UTF-8"))
        }
        b'(' => Value::Tuple(
            (0..length(rest))
                .map(|_| value(rest).expect("an item"))
                .collect(),
        ),
        b'{' => {
            let mut items = Vec::new();
            while let Some(key) = value(rest) {
                items.push((key, value(rest).expect("a value of the key")));
            }
            Value::Dict(items)
        }
        other => panic!("unknown kind {other:?}"),
    })
}

fn length(rest: &mut &[u8]) -> usize {
    usize::try_from(i32::from_le_bytes(take(rest))).expect("not negative")
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, after) = rest.split_first_chunk().expect("more bytes");
    *rest = after;
    *bytes
}

/// The entry of a function.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) primitive_calls: u64,
    pub(super) calls: u64,
    pub(super) self_s: f64,
    pub(super) total_s: f64,
    /// By caller: calls, primitive calls, self and total time.
    pub(super) callers: BTreeMap<String, (u64, u64, f64, f64)>,
}

/// Reads a profile as pstats does. The functions are known by their names, which must differ.
pub(super) fn profile(bytes: &[u8]) -> BTreeMap<String, Entry> {
    let name = |key: &Value| {
        let key = key.tuple();
        assert_eq!(key.len(), 3);
        let (_, _) = (key[0].text(), key[1].integer());
        key[2].text().to_owned()
    };
    let mut entries = BTreeMap::new();
    for (function, entry) in read(bytes).dict() {
        let entry = entry.tuple();
        assert_eq!(entry.len(), 5);
        let callers = entry[4].dict().iter().map(|(caller, times)| {
            let times = times.tuple();
            assert_eq!(times.len(), 4);
            let calls = (times[0].integer(), times[1].integer());
            let times = (times[2].float(), times[3].float());
            (name(caller), (calls.0, calls.1, times.0, times.1))
        });
        let entry = Entry {
            primitive_calls: entry[0].integer(),
            calls: entry[1].integer(),
            self_s: entry[2].float(),
            total_s: entry[3].float(),
            callers: callers.collect(),
        };
        let before = entries.insert(name(function), entry);
        assert_eq!(before, None, "a function has one entry");
    }
    entries
}
