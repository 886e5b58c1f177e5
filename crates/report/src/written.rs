//! Which files the profiler has written, as their first bytes say.
//!
//! A file that a variable names is replaced only if it is one of these, since a variable may name anything. Each format begins
//! with what is found in no other file, except for collapsed stacks, whose readers know no other lines.

use std::io::{self, Read};
use std::path::Path;

/// How many bytes are looked at.
const BEGINNING: u64 = 4096;

/// What the table in a file begins with; the name of the program follows.
pub(crate) const TABLE_TITLE: &str = "Summary by profiler-runtime of ";
/// A comment of profiles for pprof, which it shows only if it is asked for comments.
pub(crate) const PPROF_COMMENT: &str = "#profiler-runtime";
/// What a page begins with.
pub(crate) const PAGE: &str = "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=generator content=profiler-runtime>\n";

/// What other formats begin with.
const BEGINNINGS: [&[u8]; 7] = [
    TABLE_TITLE.as_bytes(),
    PAGE.as_bytes(),
    b"{\"schema_version\":",
    b"{\"schemaVersion\":1,\n\"deviceProperties\":",
    b"name,tag,location,calls,",
    b"# HELP profiler_info ",
    // A dictionary of Python whose first key is the function `<program…>` without a file.
    b"{(\x03\0\0\0u\x01\0\0\0~i\0\0\0\0u",
];

/// Returns `true` if the profiler has written a file of this name, or if the file is empty.
///
/// # Errors
///
/// Returns the system's error if it cannot be read.
pub fn is_written_by_profiler(path: &Path, mut file: impl Read) -> io::Result<bool> {
    let mut bytes = Vec::new();
    file.by_ref().take(BEGINNING).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(true);
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        bytes = decompressed(&bytes);
    }
    let is_named = |ending: &str| {
        path.extension()
            .is_some_and(|known| known.eq_ignore_ascii_case(ending))
    };
    let is_folded = || is_named("folded") && are_stacks(&bytes);
    Ok(BEGINNINGS.iter().any(|known| bytes.starts_with(known))
        || is_pprof(&bytes)
        || is_perfetto(&bytes)
        || is_folded())
}

/// Returns the beginning of a compressed file, as far as it can be read.
#[cfg(any(feature = "export", feature = "trace"))]
fn decompressed(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    // What is cut off is no error here.
    let _ = flate2::read::GzDecoder::new(bytes)
        .take(BEGINNING)
        .read_to_end(&mut text);
    text
}

/// Returns the bytes: no file of this build is compressed.
#[cfg(not(any(feature = "export", feature = "trace")))]
fn decompressed(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

/// The comment comes after the types of the values, of which there are few.
fn is_pprof(bytes: &[u8]) -> bool {
    const TYPES: usize = 128;

    let comment = PPROF_COMMENT.as_bytes();
    bytes.first() == Some(&b'\n')
        && bytes[..bytes.len().min(TYPES)]
            .windows(comment.len())
            .any(|window| window == comment)
}

/// The first packet describes a track, and says nothing else.
fn is_perfetto(bytes: &[u8]) -> bool {
    let Some((b'\n', packet)) = bytes.split_first() else {
        return false;
    };
    let length = packet.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    packet.get(length..length + 2) == Some(&[0xe2, 0x03])
}

/// Lines that end in a number; or the beginning of one whose end is not among the bytes, with several functions.
fn are_stacks(bytes: &[u8]) -> bool {
    let Some(whole) = bytes.iter().rposition(|byte| *byte == b'\n') else {
        let is_text = !bytes.iter().any(u8::is_ascii_control);
        return bytes.len() as u64 == BEGINNING && is_text && bytes.contains(&b';');
    };
    let is_stack = |line: &[u8]| {
        let space = line.iter().rposition(|byte| *byte == b' ');
        space.is_some_and(|at| {
            let number = &line[at + 1..];
            !number.is_empty() && number.iter().all(u8::is_ascii_digit)
        })
    };
    whole > 0 && bytes[..whole].split(|byte| *byte == b'\n').all(is_stack)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(name: &str, bytes: &[u8]) -> bool {
        is_written_by_profiler(Path::new(name), bytes).expect("bytes can be read")
    }

    #[test]
    fn files_of_others_are_not_the_profilers() {
        for (name, bytes) in [
            ("run", &b"\x7fELF"[..]),
            ("run.sh", b"#!/bin/sh\n"),
            ("run.json", b"{\"name\": \"app\"}"),
            ("run.json", b"{\n  \"schemaVersion\": 1,\n"),
            ("run.csv", b"name,tag\nf,3\n"),
            ("run.html", b"<!doctype html>\n<html lang=en>\n"),
            ("run.prom", b"# HELP go_info\n"),
            ("run.txt", b"f 3\n"),
            ("run.folded", b"f 3\ntext\n"),
            ("run.folded", b"text;f 3"),
            // cProfile's, which marks values in the highest bit, and one of a program in Go.
            ("run.prof", b"\xfb\xa9\x03\xfa\x01~"),
            ("run.pb.gz", b"\n\x04\x08\x01\x10\x02\n\x04"),
            // A configuration comes first in a trace of Perfetto's own.
            ("run.pftrace", b"\n\x85\x01\x9a\x02"),
            ("run.json.gz", b"\x1f\x8bno more"),
        ] {
            assert!(!is_own(name, bytes), "{name}: {bytes:?}");
        }
    }

    #[cfg(all(feature = "export", not(miri)))]
    #[test]
    fn what_the_profiler_writes_is_known_again() {
        use profiler_host::process::output::{READER_TIMEOUT, WriteTimeout};

        use crate::summary::write;
        use crate::{Row, Slice, SliceName, Summary, Timeline, Times, Track};

        let times = Times {
            calls: 1,
            total_ns: 5.0,
            self_ns: 5.0,
            ..Times::default()
        };
        let row = Row {
            name: "f".into(),
            calls: 1,
            cpu: Some(times),
            cuda: Some(times),
            ..Row::default()
        };
        let summary = Summary {
            rows: vec![row],
            ..Summary::default()
        };
        let mut line = Timeline::default();
        line.names.push(SliceName::default());
        line.tracks.push(Track::default());
        line.slices.push(Slice::default());
        // A length of more than one byte.
        line.tracks[0].process_name = "p".repeat(300);

        let folder = std::env::temp_dir().join(format!("written-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in [
            "run.json",
            "run.csv",
            "run.html",
            "run.prof",
            "run.pb.gz",
            "run.folded",
            "run.prom",
            "run.txt",
            "run",
        ] {
            let timeout = WriteTimeout::Total(READER_TIMEOUT);
            write(&summary, &folder.join(name), timeout).expect("it is written");
        }
        for name in ["t.json", "t.json.gz"] {
            line.export_chrome_trace(folder.join(name))
                .expect("it is written");
        }
        for name in ["t.pftrace", "t.pftrace.gz"] {
            line.export_perfetto(folder.join(name))
                .expect("it is written");
        }
        let mut files = 0;
        for entry in std::fs::read_dir(&folder).expect("it is there") {
            let path = entry.expect("an entry").path();
            let file = std::fs::File::open(&path).expect("it is there");
            let own = is_written_by_profiler(&path, file).expect("it can be read");
            assert!(own, "{}", path.display());
            files += 1;
        }
        assert_eq!(files, 15, "two formats have a second file");
        std::fs::remove_dir_all(&folder).expect("it is the test's own");
    }

    #[test]
    fn an_empty_file_is_nobodys() {
        assert!(is_own("run.json", b""));
    }

    #[test]
    fn stacks_are_known_by_their_lines_and_their_name() {
        assert!(is_own("run.folded", b"f;g 3\nf 4\n"));
        assert!(!is_own("stacks", b"f;g 3\nf 4\n"));
    }
}
