use std::path::PathBuf;
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
