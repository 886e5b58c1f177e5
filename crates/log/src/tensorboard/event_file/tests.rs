use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, process};

use super::*;

/// A folder of its own for each test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self(env::temp_dir().join(format!("profiler-event-file-{name}-{}", process::id())))
    }

    fn file(&self) -> EventFile {
        EventFile::create(&self.0).expect("the folder is writable")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The data of each record in a file.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).expect("the file exists");
    let mut rest = &*bytes;
    let mut records = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).expect("a short record");
        records.push(after[4..4 + length].to_vec());
        rest = &after[4 + length + 4..];
    }
    records
}

const T: SystemTime = SystemTime::UNIX_EPOCH;

#[test]
fn values_of_one_step_and_time_share_an_event() {
    let folder = Folder::new("share");
    let mut file = folder.file();
    let soon = T + Duration::from_micros(500);
    let later = T + Duration::from_millis(5);
    for (tag, step, wall_time) in [
        ("a", 1, T),
        ("b", 1, soon),
        ("a", 1, later),
        ("a", 2, later),
    ] {
        file.add_scalar(tag, 0.5, step, wall_time)
            .expect("it is taken");
    }
    assert_eq!(file.values_waiting(), 4);
    file.write_out().expect("the disk has space");
    assert_eq!(file.values_waiting(), 0);
    let records = records(file.path());
    let values = |record: &Vec<u8>| record.windows(2).filter(|two| two == b"\x0a\x01").count();
    // The first record holds the version.
    let values: Vec<_> = records.iter().map(values).collect();
    assert_eq!(values, [0, 2, 1, 1]);
}

#[test]
fn an_event_has_a_bound() {
    let folder = Folder::new("bound");
    let mut file = folder.file();
    for _ in 0..1_000 {
        file.add_scalar("a tag of some length", 0.5, 1, T)
            .expect("it is taken");
    }
    file.write_out().expect("the disk has space");
    let longest = records(file.path()).iter().map(Vec::len).max();
    assert!(longest.is_some_and(|longest| longest < MAX_EVENT + 100));
}

#[test]
fn a_value_that_does_not_fit_is_refused_and_counted() {
    let folder = Folder::new("refuse");
    let mut file = folder.file();
    let tag = "é".repeat(MAX_TAG);
    let text = "a".repeat(MAX_TEXT + 1);
    let refused = [
        file.add_scalar("step", 0.5, u64::MAX, T),
        file.add_scalar(&tag, 0.5, 0, T),
        file.add_text("text", &text, 0, T),
        Err(file.refuse("histogram", &"empty")),
    ];
    let messages = [
        "step 18446744073709551615 does not fit",
        "has 32768 bytes; give a `name` with at most 16384",
        "the text `text` has 262145 bytes",
        "`histogram`: empty",
    ];
    for (refused, message) in refused.into_iter().zip(messages) {
        let error = refused.expect_err("it does not fit").to_string();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!((file.lost(), file.values_waiting()), (4, 0));
}

#[test]
fn a_full_batch_is_written_without_a_flush() {
    let folder = Folder::new("batch");
    let mut file = folder.file();
    let text = "a".repeat(BATCH);
    for step in 0..2 {
        file.add_text("text", &text, step, T).expect("it is taken");
    }
    assert_eq!(file.values_waiting(), 1);
    assert_eq!(records(file.path()).len(), 2);
}

#[test]
fn dropping_the_file_writes_what_waits() {
    let folder = Folder::new("drop");
    let mut file = folder.file();
    file.add_scalar("a", 0.5, 0, T).expect("it is taken");
    let path = file.path().to_owned();
    assert_eq!(records(&path).len(), 1);
    drop(file);
    assert_eq!(records(&path).len(), 2);
}

#[cfg(unix)]
#[test]
fn a_deleted_file_is_replaced_with_a_warning() {
    let folder = Folder::new("deleted");
    let mut file = folder.file();
    let old = file.path().to_owned();
    fs::remove_file(&old).expect("the file exists");
    file.add_scalar("a", 0.5, 0, T).expect("it is taken");
    file.write_out().expect("a new file can be made");
    assert_ne!(file.path(), old);
    assert_eq!(records(file.path()).len(), 2);
    let warning = file.take_warning().expect("it is said");
    assert!(warning.contains("was deleted while the program runs"));
    assert_eq!(file.take_warning(), None);
}

#[cfg(unix)]
#[test]
fn a_forked_child_leaves_the_file_alone() {
    let folder = Folder::new("fork");
    let mut file = folder.file();
    file.add_scalar("a", 0.5, 0, T).expect("it is taken");
    crate::fork_and::fork_and(|| {
        let refused = file.add_scalar("a", 0.5, 1, T).is_err() && file.write_out().is_err();
        drop(file);
        refused
    });
}
