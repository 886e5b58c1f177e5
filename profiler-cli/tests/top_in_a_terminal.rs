//! `profiler top` in a real terminal, which it restores however it ends.

#![cfg(all(target_os = "linux", feature = "top"))]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use profiler_report::{Row, Summary};
use support::Folder;

const FILE: &str = "live.json";
const PATIENCE: Duration = Duration::from_secs(60);
const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";
const SHOWS_CURSOR: &str = "\u{1b}[?25h";

/// The program in a terminal that `script` makes.
struct Terminal {
    child: Child,
    written: Receiver<Vec<u8>>,
    output: String,
}

impl Terminal {
    fn open(folder: &Folder) -> Self {
        let program = env!("CARGO_BIN_EXE_profiler");
        let (file, pid) = (folder.path(FILE), folder.path("pid"));
        let shell =
            format!("stty rows 24 cols 100; echo $$ > '{pid}'; exec '{program}' top '{file}'");
        let mut child = Command::new("script")
            .args(["-q", "-e", "-f", "-c", &shell, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script is a part of every Linux");
        let mut stdout = child.stdout.take().expect("it is piped");
        let (sender, written) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            written,
            output: String::new(),
        }
    }

    /// Waits until the terminal has shown `text`, one word: the program moves over spaces.
    fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.output.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.written.recv_timeout(left) else {
                let shown: String = self.output.chars().take(2_000).collect();
                panic!("it never shows {text:?}: {shown:?}");
            };
            self.output += &String::from_utf8_lossy(&bytes);
        }
    }

    fn press(&mut self, key: &str) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        stdin.write_all(key.as_bytes()).expect("it reads keys");
        stdin.flush().expect("it reads keys");
    }

    /// Returns the exit status after the terminal was restored.
    fn end(mut self) -> Option<i32> {
        self.wait_for(LEAVES);
        self.wait_for(SHOWS_CURSOR);
        let (_, after) = self.output.rsplit_once(ENTERS).expect("it was entered");
        assert!(after.contains(LEAVES), "{:?}", self.output);
        self.child.wait().expect("it runs").code()
    }
}

impl Drop for Terminal {
    /// Ends the program if the test fails.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(folder: &Folder) {
    let row = Row {
        name: "model::forward".to_owned(),
        calls: 7,
        ..Row::default()
    };
    let summary = Summary {
        wall_ns: 2e9,
        interval_ns: Some(1e9),
        rows: vec![row],
        ..Summary::default()
    };
    folder.file(FILE, summary.to_json().as_bytes());
}

#[test]
fn top_ends_when_its_terminal_is_closed() {
    let folder = Folder::new();
    write(&folder);
    let mut terminal = Terminal::open(&folder);
    terminal.wait_for("model::forward");
    let pid = fs::read_to_string(folder.path("pid")).expect("it was written");
    terminal.child.kill().expect("it runs");
    let end = Instant::now() + PATIENCE;
    let process = format!("/proc/{}/stat", pid.trim());
    // It is a zombie where no process waits for orphans.
    while fs::read_to_string(&process).is_ok_and(|process| !process.contains(") Z ")) {
        assert!(Instant::now() < end, "{process} is still there");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_summary_appears_and_a_key_ends_the_program() {
    let folder = Folder::new();
    let mut terminal = Terminal::open(&folder);
    terminal.wait_for("Waiting");
    write(&folder);
    terminal.wait_for("model::forward");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_signal_ends_the_program_and_the_terminal_is_restored() {
    let folder = Folder::new();
    write(&folder);
    let mut terminal = Terminal::open(&folder);
    terminal.wait_for("model::forward");
    let pid = fs::read_to_string(folder.path("pid")).expect("it was written");
    let sent = Command::new("kill").args(["-TERM", pid.trim()]).status();
    assert!(sent.is_ok_and(|sent| sent.success()));
    assert_eq!(terminal.end(), Some(128 + 15));
}
