//! A trace appears under its name when all of it is written; what cannot be written is an error that says so, and
//! leaves what was there.

#[cfg(unix)]
#[cfg(unix)]
use profiler_tests::child;
use profiler_tests::full_disk;
use profiler_tests::measuring;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use profiler_runtime::report::{ExportError, TensorBoardTraces};
use profiler_runtime::{Profile, Trace, scope, tensorboard_trace_handler};
use profiler_trace_validator::validate;

fn trace(scopes: usize) -> Option<Arc<Trace>> {
    if !measuring() {
        return None;
    }
    let ((), trace) =
        Profile::builder().run(|_| (0..scopes).for_each(|_| drop(scope!("whole: scope"))));
    let trace = trace.ok()?;
    Some(trace)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[test]
fn a_second_trace_replaces_the_first() {
    let (Some(one), Some(other)) = (trace(1), trace(2)) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    one.export_chrome_trace(&path).expect("room");
    other.export_chrome_trace(&path).expect("room");
    let text = fs::read_to_string(&path).expect("a file");
    assert_eq!(text.matches("cpu_op").count(), 2);
    assert_eq!(files(folder.path()), [path], "and nothing else is left");
}

#[cfg(unix)]
#[test]
fn what_is_no_file_stays_what_it_is() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;

    let (Some(one), Some(other)) = (trace(1), trace(2)) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let (file, link) = (folder.path().join("file.json"), folder.path().join("link"));
    one.export_chrome_trace(&file).expect("room");
    symlink(&file, &link).expect("a link");
    other.export_chrome_trace(&link).expect("room");
    let is_link = fs::symlink_metadata(&link).is_ok_and(|link| link.is_symlink());
    assert!(is_link && validate(&file).expect("it is read").is_empty());
    let text = fs::read_to_string(&file).expect("a file");
    assert_eq!(text.matches("cpu_op").count(), 2);

    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()));
    // The reader blocks until the export opens the pipe, so it has a thread of its own.
    let to_read = pipe.clone();
    let reader = std::thread::spawn(|| fs::read_to_string(to_read));
    one.export_chrome_trace(&pipe).expect("somebody reads");
    let read = reader.join().expect("it does not panic");
    let text = read.expect("somebody writes");
    assert_eq!(text.matches("cpu_op").count(), 1);
    let is_pipe = fs::metadata(&pipe).is_ok_and(|pipe| pipe.file_type().is_fifo());
    assert!(is_pipe && files(folder.path()).len() == 3);
}

#[test]
fn a_name_may_be_as_long_as_the_system_takes() {
    let Some(trace) = trace(1) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(format!("{}.json", "a".repeat(250)));
    trace.export_chrome_trace(&path).expect("room");
    assert_eq!(files(folder.path()), [path]);
}

#[test]
fn no_folder_is_an_error_that_names_the_file() {
    let Some(trace) = trace(1) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/trace.json");
    let error = trace.export_chrome_trace(&missing).expect_err("no folder");
    let ExportError::Io { path, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*path, missing);
    let said = format!("{error:?}");
    assert!(
        said.contains("missing/trace.json") && said.contains("check that its folder is there"),
        "{said}"
    );
    assert!(
        trace.export_chrome_trace(folder.path().join("..")).is_err(),
        "no file's name"
    );
}

#[test]
fn a_handler_makes_its_folder_and_never_the_same_name_twice() {
    let Some(trace) = trace(1) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path().join("logs/run-1");
    let mut handler = tensorboard_trace_handler(&runs);
    for _ in 0..20 {
        handler(&trace).expect("room");
    }
    let named = TensorBoardTraces::new(&runs)
        .worker_name("trainer/0")
        .gzip(true);
    let path = named.export(&trace).expect("room");
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    assert!(
        name.starts_with("trainer_0.") && name.ends_with(".pt.trace.json.gz"),
        "{name}"
    );
    let files = files(&runs);
    assert_eq!(files.len(), 21);
    let process = format!("_{}.", std::process::id());
    for file in files {
        assert_eq!(validate(&file).expect("a file"), []);
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        assert!(
            name.starts_with("trainer_0.") || name.contains(&process),
            "{name}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_keeps_what_was_there() {
    let Some(dir) = child::dir() else {
        return full_disk::passes().expect("the test runs");
    };
    let (Some(small), Some(large)) = (trace(1), trace(20_000)) else {
        return;
    };
    for name in ["trace.json", "trace.json.gz"] {
        let path = dir.join(name);
        small.export_chrome_trace(&path).expect("room");
        let before = fs::read(&path).expect("a file");
        full_disk::limit_files(10_000).expect("a limit");
        let failed = large.export_chrome_trace(&path);
        full_disk::limit_files(u64::MAX).expect("no limit");
        let said = failed.expect_err("no room").to_string();
        assert!(said.contains("the disk has room"), "{said}");
        assert_eq!(fs::read(&path).expect("a file"), before);
        fs::remove_file(&path).expect("it is there");
    }
    assert_eq!(files(&dir), [] as [PathBuf; 0], "nothing is left behind");
}
