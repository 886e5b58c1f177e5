//! `profiler top` in a real terminal, which it restores however it ends.

#![cfg(all(target_os = "linux", feature = "top"))]

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Folder, profiler};
use profiler_report::{Row, Summary};

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
        Self::open_path(folder, &folder.path(FILE))
    }

    fn open_path(folder: &Folder, file: &str) -> Self {
        let program = env!("CARGO_BIN_EXE_profiler");
        let pid = folder.path("pid");
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
    write_rank(folder, FILE, None);
}

fn write_rank(folder: &Folder, file: &str, rank: Option<u64>) {
    let of_rank = rank.map_or_else(String::new, |rank| format!("_of_rank{rank}"));
    let row = Row {
        name: format!("model::forward{of_rank}"),
        calls: 7,
        ..Row::default()
    };
    let mut summary = Summary {
        wall_ns: 2e9,
        interval_ns: Some(1e9),
        rows: vec![row],
        ..Summary::default()
    };
    summary.environment.rank = rank;
    summary.environment.program = rank.map_or_else(String::new, |_| "train".to_owned());
    folder.file(file, summary.to_json().as_bytes());
}

#[test]
fn a_folder_shows_its_ranks_and_enter_opens_one() {
    let folder = Folder::new();
    for rank in [0, 1] {
        write_rank(&folder, &format!("live_rank{rank}.json"), Some(rank));
    }
    let path = folder.path("");
    let mut terminal = Terminal::open_path(&folder, &path);
    terminal.wait_for("steps/s");
    // A rank that starts later is found.
    write_rank(&folder, "live_rank2.json", Some(2));
    terminal.wait_for("model::forward_of_rank2");
    terminal.press("\u{1b}[F");
    terminal.press("\r");
    terminal.wait_for("live_rank2.json");
    terminal.press("\r");
    terminal.wait_for("callers");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_pipe_gets_one_plain_screen() {
    let folder = Folder::new();
    let missing = profiler(&["top", &folder.path(FILE)]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("does not exist yet"), "{missing:?}");
    write(&folder);
    let run = profiler(&["top", &folder.path(FILE)]);
    assert_eq!((run.code, &*run.stderr), (0, ""));
    assert!(!run.stdout.contains('\u{1b}'), "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines[0], folder.path(FILE));
    assert!(lines[3].starts_with("name "), "{run:?}");
    assert!(lines[4].starts_with("model::forward "), "{run:?}");
    assert_eq!(lines.len(), 5);
    // Both files of a folder are a line.
    write_rank(&folder, "live_rank3.json", Some(3));
    let run = profiler(&["top", &folder.path("")]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines[3].starts_with("rank "), "{run:?}");
    assert!(
        lines[4].starts_with("3 ") && lines[5].starts_with("live.json "),
        "{run:?}"
    );
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
