//! Reading: bounds, compression and errors.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// An endless reader that counts the bytes read.
struct Endless<'c> {
    begin: &'static [u8],
    again: &'static [u8],
    read: &'c std::cell::Cell<u64>,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.begin.is_empty() {
            self.begin = self.again;
        }
        let count = self.begin.read(buffer)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

#[test]
fn an_endless_trace_is_read_to_a_bound() {
    const EVENT: &[u8] =
        br#"{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1,"pid":1,"tid":1,"args":{"External id":1}},"#;
    const KEPT: Over = Over::Value(source::LONGEST_VALUE);
    let mib = 1 << 20;
    let bounds = [
        // Small events, white space, one long key, a value that is not checked.
        (&b"{\"traceEvents\":["[..], EVENT, Over::Trace, mib),
        (b"{\"traceEvents\":[", b"      ", Over::Trace, mib),
        (b"{\"stackFrames\":[", b"[[[]]],", Over::Trace, mib),
        // One long event, and one long string in it.
        (b"{\"traceEvents\":[{\"args\":[", b"0,", KEPT, 32 * mib),
        (b"{\"traceEvents\":[{\"name\":\"", b"nnnn", KEPT, 32 * mib),
        (b"{\"deviceProperties\":[", b"{},", KEPT, 8 * mib),
        (b"{\"", b"kkkk", KEPT, 8 * mib),
    ];
    for (begin, again, over, max_bytes) in bounds {
        let read = std::cell::Cell::new(0);
        let endless = Endless {
            begin,
            again,
            read: &read,
        };
        let checked = check(endless, ValidateOptions::default().max_bytes(max_bytes));
        let found = checked.err().map(|trouble| match trouble {
            Trouble::Over(over) => over,
            Trouble::Io(error) => panic!("{error}"),
        });
        let begin = String::from_utf8_lossy(begin);
        assert_eq!(found, Some(over), "{begin}");
        let most = max_bytes.min(source::LONGEST_VALUE) + mib;
        assert!(read.get() <= most, "{begin}: {} bytes", read.get());
    }
}

#[test]
fn what_is_no_trace_is_said_to_be_what_it_is() {
    for (text, what) in [
        (
            "[{}]",
            "the file is a list of events, which Perfetto reads;",
        ),
        (
            "{\"traceEvents\": [",
            "EOF while parsing a list at line 1 column 17: the file is cut off;",
        ),
        (
            "{\"traceEvents\": [nan]}",
            "expected ident at line 1 column 19: the file is not valid JSON;",
        ),
        ("{\"traceEvents\": 3}", "invalid type: integer `3`"),
    ] {
        let found = validate_bytes(text.as_bytes());
        let [violation] = &found[..] else {
            panic!("{found:?}");
        };
        assert!(violation.to_string().contains(what), "{violation}");
    }
}

#[test]
fn endless_nesting_is_an_error() {
    for begin in [
        "{\"traceEvents\":[{\"args\":",
        "{\"deviceProperties\":",
        "{\"other\":",
    ] {
        for bracket in ["[", "{\"a\":"] {
            let deep = format!("{begin}{}", bracket.repeat(1_000_000));
            let found = validate_bytes(deep.as_bytes());
            assert!(
                matches!(&found[..], [violation] if violation.rule == Rule::Json),
                "{begin} {bracket}: {found:?}"
            );
        }
    }
}

#[test]
fn all_events_are_counted_whatever_they_are() {
    let options = ValidateOptions::default().max_events(2);
    let read = |events: &str| {
        let trace = format!(r#"{{"traceEvents":[{events}]}}"#);
        crate::check(trace.as_bytes(), options).err()
    };
    assert!(read("{},{}").is_none());
    let refused = read("{},{},{}");
    assert!(matches!(
        refused,
        Some(crate::Trouble::Over(crate::source::Over::Events))
    ));
}

#[test]
fn a_text_that_is_not_checked_is_not_kept_whatever_its_length_is() {
    let text = "a".repeat(1 << 20);
    let list = format!(r#"["{text}","{text}"]"#);
    // No part of it is too long.
    let lists = vec![list; 4].join(",");
    let whole = format!(r#"{{"other":[{lists}],"x":{{"{text}":"{text}"}},"traceEvents":[]}}"#);
    assert_eq!(validate_bytes(whole.as_bytes()), []);
    let progress = crate::source::ReadProgress::new(u64::MAX, 0);
    progress.skip_value();
    let endless = std::io::repeat(b'a').take(65 << 20);
    let mut reader = crate::source::ProgressReader::new(endless, &progress);
    assert!(std::io::copy(&mut reader, &mut std::io::sink()).is_err());
    let longest = crate::source::LONGEST_SKIPPED;
    assert_eq!(progress.over(), Some(crate::source::Over::Value(longest)));
}

#[test]
fn a_small_file_of_a_large_trace_is_refused_with_what_to_do() {
    let dir = std::env::temp_dir().join(format!("profiler-validate-large-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("trace.json.gz");
    let mut file = GzEncoder::new(File::create(&path).expect("a file"), Compression::best());
    file.write_all(b"{\"traceEvents\":[").expect("room");
    file.write_all(&vec![b' '; 3 << 20]).expect("room");
    file.write_all(b"]}").expect("room");
    file.finish().expect("room");
    let options = ValidateOptions::default().max_bytes(2 << 20);
    let error = validate_with(&path, &options).expect_err("it is too large");
    assert!(matches!(error, ValidateError::TooLarge { .. }), "{error}");
    assert!(error.to_string().contains("max_bytes"), "{error}");
    assert_eq!(validate(&path).expect("it is read"), []);
    std::fs::remove_dir_all(&dir).expect("the folder");
}

#[test]
fn compressed_files_are_read_and_missing_ones_are_errors() {
    let dir = std::env::temp_dir().join(format!("profiler-validate-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("trace.json.gz");
    let mut file = GzEncoder::new(File::create(&path).expect("a file"), Compression::fast());
    file.write_all(text(&good()).as_bytes()).expect("room");
    file.finish().expect("room");
    assert_eq!(validate(&path).expect("a file"), []);
    std::fs::write(&path, b"no gzip").expect("room");
    assert!(validate(&path).is_err());
    std::fs::remove_dir_all(&dir).expect("the folder");
    let missing = validate(&path).expect_err("no file").to_string();
    assert!(
        missing.contains("trace.json.gz") && missing.contains("check its name"),
        "{missing}"
    );
}
