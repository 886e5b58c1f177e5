//! What an output must not replace, and the permissions of what it replaces.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

use crate::support::{Folder, profiler};

const OTHER_USER: u32 = 12_345;

/// A summary of a function with a GPU time.
const SUMMARY: &[u8] = br#"{"schema_version": 1, "rows": [{"name": "f", "calls": 1,
    "cpu": {"calls": 1, "total_ns": 5, "self_ns": 5}, "cuda": {"calls": 1, "total_ns": 5, "self_ns": 5}}]}"#;

/// The trace of a rank.
fn trace(rank: u32) -> Vec<u8> {
    let text = format!(
        r#"{{"distributedInfo": {{"rank": {rank}}}, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
        {{"ph": "X", "cat": "cpu_op", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 5}}]}}"#
    );
    text.into_bytes()
}

#[test]
fn no_command_replaces_what_it_reads() {
    let folder = Folder::new();
    folder.folder("ranks");
    let zero = folder.file("ranks/0.json", &trace(0));
    let one = folder.file("ranks/1.json", &trace(1));
    folder.file("ranks/2.json", &trace(2));
    let ranks = folder.path("ranks");
    let link = folder.path("to-zero.json");
    symlink(&zero, &link).expect("a link");
    let (new, old) = (
        folder.file("new.json", SUMMARY),
        folder.file("old.json", SUMMARY),
    );
    // The name does not matter: it is a summary. Its GPU times go to a second file, of its own name.
    let second = folder.file("run.cuda.prof", SUMMARY);
    let first = folder.path("run.prof");
    let linked = folder.path("linked.cuda.prof");
    symlink(&new, &linked).expect("a link");
    let before_link = folder.path("linked.prof");
    for arguments in [
        &["merge", &zero, &one, "-o", &zero, "--force"][..],
        &["merge", &zero, &one, "-o", &link, "--force"],
        &["merge", &link, &one, "-o", &zero],
        &["merge", &ranks, "-o", &zero],
        &["html", &new, "--baseline", &old, "-o", &old],
        &["convert", &second, "--to", "prof", "-o", &first],
        &["convert", &new, "--to", "prof", "-o", &before_link],
    ] {
        let run = profiler(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run:?}");
        assert!(
            run.stderr.contains("would replace an input"),
            "{arguments:?}: {run:?}"
        );
    }
    for (file, content) in [
        (&zero, &trace(0)[..]),
        (&one, &trace(1)),
        (&new, SUMMARY),
        (&old, SUMMARY),
        (&second, SUMMARY),
    ] {
        assert_eq!(fs::read(file).expect("it is there"), content, "{file}");
    }
    let names = folder.names();
    assert!(!names.contains(&"run.prof".to_owned()), "{names:?}");
}

#[test]
fn what_an_earlier_merge_wrote_is_replaced() {
    let folder = Folder::new();
    folder.file("0.json", &trace(0));
    folder.file("1.json", &trace(1));
    let (ranks, merged) = (folder.path("."), folder.path("merged.json"));
    for _ in 0..2 {
        let run = profiler(&["merge", &ranks, "-o", &merged]);
        assert_eq!(run.code, 0, "{run:?}");
    }
}

#[test]
fn a_file_that_is_replaced_keeps_its_permissions() {
    let folder = Folder::new();
    let summary = folder.file("run.json", SUMMARY);
    for (name, mode) in [("page.html", 0o600), ("run.prof", 0o640)] {
        let output = folder.file(name, b"");
        fs::set_permissions(&output, Permissions::from_mode(mode)).expect("its own");
        let run = profiler(&["convert", &summary, "-o", &output]);
        assert_eq!(run.code, 0, "{run:?}");
        let about = fs::metadata(&output).expect("it is there");
        assert_eq!(about.mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn gpu_times_without_a_file_of_their_own_are_left_out_and_a_line_says_so() {
    let folder = Folder::new();
    let summary = folder.file("run.json", SUMMARY);
    let arguments = ["convert", &summary, "--to", "prof", "-o", "/dev/null"];
    let is_beside = || fs::exists("/dev/null.cuda").expect("a folder");
    let before = is_beside();
    let run = profiler(&arguments);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stderr.contains("the GPU times, which are left out"),
        "{run:?}"
    );
    assert_eq!(is_beside(), before);
}

/// Only root can make files of other users; others see the rules in the unit tests of the module that has them.
#[test]
fn what_another_user_put_into_a_shared_folder_is_refused() {
    let folder = Folder::new();
    let summary = folder.file("run.json", SUMMARY);
    folder.folder("shared");
    let shared = folder.path("shared");
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("its own");
    let precious = folder.file("precious", b"precious");
    let [link, dangling, file] =
        ["link.html", "new.html", "file.html"].map(|name| folder.path(&format!("shared/{name}")));
    symlink(&precious, &link).expect("a link");
    symlink(folder.path("created"), &dangling).expect("a link");
    fs::write(&file, "theirs").expect("it is written");
    for entry in [&link, &dangling, &file] {
        if lchown(entry, Some(OTHER_USER), None).is_err() {
            return;
        }
    }
    for output in [&link, &dangling, &file] {
        let run = profiler(&["html", &summary, "-o", output]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        assert!(run.stderr.contains("belongs to another user"), "{run:?}");
    }
    assert_eq!(fs::read(&precious).expect("it is there"), b"precious");
    assert_eq!(fs::read(&file).expect("it is there"), b"theirs");
    assert!(!fs::exists(folder.path("created")).expect("a folder"));
    // A link of this user's is followed.
    let own = folder.path("shared/own.html");
    symlink(folder.path("page.html"), &own).expect("a link");
    let run = profiler(&["html", &summary, "-o", &own]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(fs::exists(folder.path("page.html")).expect("a folder"));
}

#[test]
fn a_run_follows_no_links_inside_of_its_folder() {
    let folder = Folder::new();
    let precious = folder.file("precious", b"precious");
    folder.folder("runs");
    for name in ["1.stdout", "1.stderr"] {
        symlink(&precious, folder.path(&format!("runs/{name}"))).expect("a link");
    }
    let output = folder.path("runs");
    let text = "echo printed; echo '{\"schema_version\":1,\"rows\":[]}' >\"$PROFILER_SUMMARY\"";
    let run = profiler(&["run", "-n", "1", "-o", &output, "--", "sh", "-c", text]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(fs::read(&precious).expect("it is there"), b"precious");
    let printed = fs::read(folder.path("runs/1.stdout")).expect("it is there");
    assert_eq!(printed, b"printed\n");

    folder.folder("elsewhere");
    for (inside, other) in [("more/others", None), ("both/base", Some("true"))] {
        let output = folder.path(inside.split('/').next().unwrap_or_default());
        fs::create_dir(&output).expect("a new folder");
        symlink(folder.path("elsewhere"), folder.path(inside)).expect("a link");
        let vs = other.map(|other| ["--vs", other]);
        let vs = vs.as_ref().map_or(&[][..], |vs| &vs[..]);
        let arguments = [&["run", "-n", "1", "-o", &output][..], vs, &["--", "true"]].concat();
        let run = profiler(&arguments);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains("is a link"), "{run:?}");
    }
    let elsewhere = fs::read_dir(folder.path("elsewhere")).expect("it is there");
    assert_eq!(elsewhere.count(), 0);
}
