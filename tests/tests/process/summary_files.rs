//! Processes that were told to write the same summary, and copies of the profiler in one process, each have a file of their
//! own.

#![cfg(not(feature = "strip"))]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// No program takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

fn program(arguments: &[&str], summary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    command
        .args(arguments)
        .env_remove("PROFILER_ENABLED")
        .env_remove("PROFILER_FILTER")
        .env("PROFILER_SUMMARY", summary)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    for name in [
        "RANK",
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "PMIX_RANK",
        "SLURM_PROCID",
    ] {
        command.env_remove(name);
    }
    command
}

/// Waits for the end of a program, and returns what it wrote to standard error.
fn said(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    profiler_tests::without_names_of_files(&stderr)
}

fn read(file: &Path) -> Value {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).expect("a whole summary")
}

/// Returns the names of the folder's files that are no `stop` files.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with("stop")).collect();
    names.sort();
    names
}

fn steps(summary: &Value) -> u64 {
    let mut rows = summary["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == "train/step");
    row.and_then(|row| row["calls"].as_u64()).unwrap_or(0)
}

#[test]
fn each_rank_has_a_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = 0..4_u64;
    let run = |rank: u64| {
        let calls = (10 + rank).to_string();
        let mut command = program(&["steps", &calls], &folder.path().join("s.json"));
        command.env("RANK", rank.to_string()).spawn().unwrap()
    };
    let children: Vec<Child> = ranks.clone().map(run).collect();
    for child in children {
        assert_eq!(said(child), "");
    }
    for rank in ranks {
        let summary = read(&folder.path().join(format!("s_rank{rank}.json")));
        assert_eq!(steps(&summary), 10 + rank);
    }
    assert_eq!(names(folder.path()).len(), 4);
}

/// Starts a program that makes calls until a file exists, and writes its summary at intervals.
fn start_until(stop: &Path, summary: &Path, interval: &str) -> Child {
    let stop = stop.to_str().unwrap();
    let mut command = program(&["until", "10", stop], summary);
    command
        .env("PROFILER_SUMMARY_INTERVAL", interval)
        .spawn()
        .unwrap()
}

fn wait_for(file: &Path) {
    let start = Instant::now();
    while !file.exists() {
        assert!(
            start.elapsed() < PATIENCE,
            "{} is not written",
            file.display()
        );
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_file_that_another_process_has_written_meanwhile_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let [file, stop] = ["s.pb.json", "stop"].map(|name| folder.path().join(name));
    // An earlier run is over: its file is replaced.
    said(program(&["steps", "3"], &file).spawn().unwrap());
    let first = start_until(&stop, &file, "100ms");
    let (pid, start) = (first.id(), Instant::now());
    while read(&file)["environment"]["process"] != pid {
        assert!(start.elapsed() < PATIENCE, "it is not rewritten");
        sleep(Duration::from_millis(5));
    }
    // The first one rewrites its file meanwhile, however busy the machine is.
    let second = start_until(&stop, &file, "2s");
    let other = second.id();
    let beside = |process: u32| folder.path().join(format!("s.pb_{process}.json"));
    wait_for(&beside(other));
    fs::write(&stop, "").unwrap();
    let (first, second) = (said(first), said(second));
    assert_eq!(first, "");
    assert!(second.contains("has written"), "{second}");
    assert_eq!(read(&file)["environment"]["process"], pid);
    assert_eq!(read(&beside(other))["environment"]["process"], other);
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn a_file_that_changes_between_two_writes_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let [file, stop] = ["s.json", "stop"].map(|name| folder.path().join(name));
    let child = start_until(&stop, &file, "100ms");
    let process = child.id();
    wait_for(&file);
    // The program may be replacing it: until its next file stands beside.
    let beside: PathBuf = folder.path().join(format!("s_{process}.json"));
    let start = Instant::now();
    while !beside.exists() {
        fs::write(&file, "another's").unwrap();
        assert!(start.elapsed() < PATIENCE, "the file is replaced");
        sleep(Duration::from_millis(150));
    }
    fs::write(&stop, "").unwrap();
    let said = said(child);
    assert!(said.contains("has written"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "another's");
    assert_eq!(read(&beside)["is_last"], true);
}

#[test]
fn processes_that_end_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [file, stop] = ["s.csv", "stop"].map(|name| folder.path().join(name));
    let mut children: Vec<Child> = (0..8)
        .map(|_| {
            let stop = stop.to_str().unwrap();
            let mut command = program(&["ready-until", "10", stop], &file);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in &mut children {
        let mut said = [0; 6];
        let stdout = child.stdout.as_mut().expect("a pipe");
        stdout.read_exact(&mut said).expect("it is ready");
    }
    // Files are dated by the last tick of the system, which must be after the last of them began.
    sleep(Duration::from_millis(50));
    fs::write(&stop, "").unwrap();
    for child in children {
        said(child);
    }
    assert_eq!(names(folder.path()).len(), 8);
}
