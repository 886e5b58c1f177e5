//! Files that are not what their format asks for: what is whole is read, and what is not is said.

use std::io::Read;

use flate2::read::GzDecoder;
use proptest::prelude::*;

use profiler_report::Timeline;

use super::{complete, name, of_text};
use crate::input::{Input, InputError, Limits};

const TORCH: &[u8] = include_bytes!("../../../../tests/traces/torch.pt.trace.json.gz");

fn read(bytes: &[u8], is_whole: bool) -> Result<Timeline, InputError> {
    let limits = Limits {
        is_whole,
        ..Limits::DEFAULT
    };
    match Input::from_reader(bytes, "trace.json", limits)? {
        Input::Timeline(timeline) => Ok(*timeline),
        Input::Summary(_) => panic!("it is a trace"),
    }
}

fn slice_names(timeline: &Timeline) -> Vec<&str> {
    let names = timeline.slices.iter().map(|slice| name(timeline, slice));
    names.collect()
}

#[test]
fn mistakes_that_mean_one_thing_are_passed_over_and_said() {
    let f = complete("", "f", (1.0, 1.0), "");
    let windows = complete("", r"C:\cuda\new", (2.0, 1.0), "");
    for (text, names, first) in [
        (
            format!("[{f},\n]"),
            ["f"],
            "line 3, column 1: trailing comma",
        ),
        (
            format!("[{}]", complete("", "f", (1.0, 1.0), r#""loss": NaN"#)),
            ["f"],
            "expected value",
        ),
        (format!("[{windows}]"), [r"C:\cuda\new"], "invalid escape"),
        (
            format!("[{}]", f.replace("\"f\"", "\"a\u{1}\"")),
            ["a\u{1}"],
            "control character",
        ),
        (
            format!(r#"{{"traceEvents": [{f}], "traceName": "a\q"}}"#),
            ["f"],
            "invalid escape",
        ),
    ] {
        // Nothing is lost, so those who need all of the file take it.
        let timeline =
            read(text.as_bytes(), true).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(slice_names(&timeline), names);
        let [(reason, 1)] = &timeline.missing[..] else {
            panic!("{text}: {:?}", timeline.missing);
        };
        assert!(
            reason.starts_with("mistakes of the file were passed over (the first at line "),
            "{reason}"
        );
        assert!(reason.contains(first), "{reason}");
    }
    for text in [
        format!("[{f}\n{f}]"),
        format!("[{f},{f},\n"),
        format!("[{f},{f}"),
    ] {
        let timeline = read(text.as_bytes(), true).expect("nothing is lost");
        assert_eq!(
            (timeline.slices.len(), timeline.missing.len()),
            (2, 1),
            "{text}"
        );
    }
}

#[test]
fn other_forms_of_a_document_are_read() {
    let f = complete("", "f", (1.0, 1.0), "");
    let line = f.replace('\n', " ");
    let list = format!("[{f}]");
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(list.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    for bytes in [
        format!("\u{feff}{list}").into_bytes(),
        utf16,
        format!(r#"{{"a": 1, "traceEvents": {{"b": 2, "traceEvents": {list}}}}}"#).into_bytes(),
        format!(
            r#"{{"a": {{"traceEvents": 12, "baseTimeNanoseconds": 5}}, "traceEvents": {list}}}"#
        )
        .into_bytes(),
        format!(r#"{{"a": {{"b": {{}}}}, "data": {{"traceEvents": {list}}}}}"#).into_bytes(),
        format!("{line}\n").into_bytes(),
    ] {
        let timeline = read(&bytes, true).expect("it is whole");
        assert_eq!(slice_names(&timeline), ["f"]);
        assert_eq!(timeline.missing, []);
    }
    let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(5 << 20));
    for bad in ["{\"ph\": nul}", "{\"ph\": \"X", &*long] {
        let lines = format!("{line}\n{bad}\n{line}\n");
        let timeline = of_text(&lines);
        assert_eq!((timeline.slices.len(), timeline.missing.len()), (2, 1));
    }
    let mended = line.replace("\"args\": {", "\"args\": {\"loss\": NaN");
    let timeline = of_text(&format!("{mended}\n{line}\n"));
    assert_eq!((timeline.slices.len(), timeline.missing.len()), (2, 1));
}

#[test]
fn what_is_left_out_is_said_and_refused_where_the_whole_is_needed() {
    let f = complete("", "f", (1.0, 1.0), "");
    for (text, what) in [
        (
            format!(r#"{{"traceEvents": [{f},"#),
            "the rest of the file is not read: it is cut off",
        ),
        (
            format!("[{f}, {{\"ph\""),
            "the rest of the file is not read: it is cut off",
        ),
        (
            format!("[{f}] x"),
            "the rest of the file is not read: line 2, column ",
        ),
        (
            format!("[{f}, {}]", f.replace("\"cat\"", "\"ph\": \"X\", \"cat\"")),
            "events cannot be read and are left out (the first at line 2",
        ),
        (
            format!("[{f}, 3]"),
            "events cannot be read and are left out (the first at line 2",
        ),
        (
            format!("[{f}, {}]", complete("", "f", (1.0, -1.0), "")),
            "events have a negative duration: they are left out",
        ),
    ] {
        let timeline = of_text(&text);
        assert_eq!(timeline.slices.len(), 1);
        let [(reason, _)] = &timeline.missing[..] else {
            panic!("{:?}", timeline.missing);
        };
        assert!(reason.starts_with(what), "{reason}");
        let refused = read(text.as_bytes(), true).expect_err("a part is lost");
        assert_eq!(
            refused.to_string(),
            format!("is not whole: {reason}; --partial takes what can be read")
        );
    }
}

fn torch() -> Vec<u8> {
    let mut text = Vec::new();
    GzDecoder::new(TORCH)
        .read_to_end(&mut text)
        .expect("it is whole");
    text
}

#[test]
fn a_compressed_trace_that_is_cut_off_is_read_up_to_there() {
    let whole = read(TORCH, true).expect("it is whole").slices.len();
    let cut = read(&TORCH[..TORCH.len() / 2], false).expect("it has events");
    assert!((1..whole).contains(&cut.slices.len()));
    assert_eq!(
        cut.missing
            .iter()
            .filter(|(reason, _)| reason.ends_with("it is cut off"))
            .count(),
        1
    );
}

/// Damages of a file, at places in thousandths.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Flip(usize, u8),
    Remove(usize, usize),
    Nest(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = || 0..1_000_000_usize;
    prop_oneof![
        place().prop_map(Damage::Cut),
        (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        (place(), 1..40_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        place().prop_map(Damage::Nest),
    ]
}

impl Damage {
    fn to(&self, text: &mut Vec<u8>) {
        let length = text.len();
        let at = |place: &usize| *place * length / 1_000_000;
        match self {
            Self::Cut(place) => text.truncate(at(place)),
            Self::Flip(place, byte) => text[at(place)] ^= byte,
            Self::Remove(place, count) => {
                let from = at(place);
                text.drain(from..(from + count).min(length));
            }
            Self::Nest(place) => {
                let from = at(place);
                text.splice(from..from, b"[{\"a\": ".repeat(200));
            }
        }
    }
}

/// How many events are complete by their phase. Damage of the phase itself makes another event.
fn complete_events(text: &[u8]) -> usize {
    text.windows(PHASE.len())
        .filter(|window| *window == PHASE)
        .count()
}

const PHASE: &[u8] = br#""ph": "X""#;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_damaged_trace_is_read_as_far_as_it_goes_or_refused(damage in damage()) {
        let mut text = torch();
        let before = (read(&text, true).expect("it is whole").slices.len(), complete_events(&text));
        damage.to(&mut text);
        if let Ok(timeline) = read(&text, false) {
            let is_said = timeline.missing.iter().any(|(reason, _)| !reason.contains("have no launch"));
            let after = (timeline.slices.len(), complete_events(&text));
            prop_assert!(before.0 == after.0 || before.1 != after.1 || is_said, "{:?}", timeline.missing);
        }
    }
}
