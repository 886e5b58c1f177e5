//! Starting and stopping the session of the environment from outside of the process.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};

use super::environment;
use crate::background::{self, Calls};
use crate::diagnostics;
use crate::process;
use crate::session;

const THREAD: &str = "profiler-control";
/// How often the file is looked at.
const PERIOD: Duration = Duration::from_millis(200);
/// How many bytes of the file are read at most. Both words are shorter.
const LONGEST: u64 = 64;

/// Starts and stops the session as a file or a signal says, from now on.
pub(super) fn watch(file: Option<PathBuf>, signal: Option<i32>) {
    let signalled = Arc::new(AtomicBool::new(false));
    if let Some(signal) = signal
        && let Err(error) = register(signal, &signalled)
    {
        diagnostics::warn_once(&format!(
            "PROFILER_SIGNAL: the signal cannot be caught: {error}"
        ));
    }
    let run = move || {
        #[cfg(unix)]
        if let Some(signal) = signal {
            // The threads of the program may all block it.
            process::signals::unblock(signal);
        }
        run(file.as_deref(), &signalled);
    };
    if let Err(error) = background::spawn(THREAD, Calls::Unmeasured, run, || ()) {
        diagnostics::warn_once(&format!(
            "the thread that looks at PROFILER_CONTROL cannot be started ({error}): nothing is recorded"
        ));
    }
}

#[cfg(unix)]
fn register(signal: i32, signalled: &Arc<AtomicBool>) -> std::io::Result<()> {
    signal_hook::flag::register(signal, Arc::clone(signalled)).map(drop)
}

#[cfg(not(unix))]
fn register(_: i32, _: &Arc<AtomicBool>) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

fn run(file: Option<&Path>, signalled: &AtomicBool) {
    let mut last = None;
    loop {
        if signalled.swap(false, Relaxed) {
            turn(!session::environment::is_running());
        }
        let read = file.and_then(read);
        if read != last {
            match &read {
                Some(Content::Word(word, _)) => obey(word.trim_ascii()),
                Some(Content::NoFile) => diagnostics::warn_once(
                    "PROFILER_CONTROL is not a regular file and is not read: nothing is recorded; give the \
                     name of a file, which need not be there yet",
                ),
                None => {}
            }
            last = read;
        }
        thread::sleep(PERIOD);
    }
}

/// What stands at the path of the control file.
#[derive(PartialEq, Eq)]
enum Content {
    /// The first [`LONGEST`] bytes, and when they were written: the same word may be written again.
    Word(Vec<u8>, Option<SystemTime>),
    /// A device, a pipe or a folder. Reading one may never end, and opening one may have an effect.
    NoFile,
}

/// Returns what stands at a path; none where nothing does, or it cannot be read.
fn read(path: &Path) -> Option<Content> {
    if !fs::metadata(path).ok()?.is_file() {
        return Some(Content::NoFile);
    }
    let file = open(path).ok()?;
    // Asked again of what was opened: the path may lead to something else by now.
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return Some(Content::NoFile);
    }
    let mut word = Vec::new();
    file.take(LONGEST).read_to_end(&mut word).ok()?;
    Some(Content::Word(word, metadata.modified().ok()))
}

/// Opens a file without waiting: a pipe that took its place has no writer, maybe for ever.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    options.open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn obey(word: &[u8]) {
    match word {
        b"start" => turn(true),
        b"stop" => turn(false),
        // It may be in the middle of being written.
        b"" => {}
        // What it says is not repeated: the variable may name any file, one with secrets too.
        _ => diagnostics::warn_once(
            "PROFILER_CONTROL: the file says neither `start` nor `stop`: write one of them",
        ),
    }
}

/// To be turned to what it is changes nothing.
fn turn(run: bool) {
    if run {
        environment::start();
    } else {
        session::environment::stop();
    }
}
