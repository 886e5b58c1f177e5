//! Tests that fail as `PLANTED` says, for the step `reruns` of CI.
#![cfg(test)]

use std::env::var;
use std::{fs, process};

#[test]
fn fails_every_other_time() {
    let marker = var("MARKER").unwrap();
    fs::remove_file(&marker).unwrap_or_else(|_| {
        fs::write(&marker, "").unwrap();
        panic!("this time")
    });
}

#[test]
fn fails() {
    assert_ne!(var("PLANTED").unwrap(), "fails");
}

#[test]
fn crashes() {
    if var("PLANTED").unwrap() == "crashes" {
        process::abort()
    }
}

#[test]
fn has_a_child_that_crashes() {
    let script = ["-c", "[ $PLANTED != child ] || kill -s SEGV $$"];
    let status = process::Command::new("sh").args(script).status().unwrap();
    assert!(status.success(), "{status}");
}
