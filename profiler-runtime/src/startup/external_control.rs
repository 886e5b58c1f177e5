//! Starting and stopping the environment's session from outside of the process, by a file (`PROFILER_CONTROL`) or a signal
//! (`PROFILER_SIGNAL`).

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};

use profiler_host::background::{self, Calls};
use profiler_host::diagnostics;
use profiler_host::process::output::non_blocking;
use profiler_host::process::{owner, signals};

use super::environment;

const THREAD: &str = "profiler-control";
/// How often the file is read.
const PERIOD: Duration = Duration::from_millis(200);
/// The number of bytes of the file that are read. Both commands are shorter.
const MAX_LENGTH: u64 = 64;

/// Starts the thread that reads the file and waits for the signal.
pub(super) fn watch(file: Option<PathBuf>, signal: Option<i32>) {
    let is_signalled = Arc::new(AtomicBool::new(false));
    if let Some(signal) = signal
        && let Err(error) = signals::set_flag_on(signal, &is_signalled)
    {
        diagnostics::warn_once(&format!(
            "PROFILER_SIGNAL: the signal cannot be caught: {error}"
        ));
    }
    let work = move || {
        if let Some(signal) = signal {
            // The program may block the signal on all of its threads.
            signals::unblock(signal);
        }
        obey_commands(file.as_deref(), &is_signalled);
    };
    if let Err(error) = background::spawn(THREAD, Calls::Unmeasured, work, || ()) {
        diagnostics::warn_once(&format!(
            "the thread that looks at PROFILER_CONTROL cannot be started ({error}): nothing is recorded"
        ));
    }
}

fn obey_commands(file: Option<&Path>, is_signalled: &AtomicBool) {
    let mut last = None;
    loop {
        if is_signalled.swap(false, Relaxed) {
            set_running(!environment::is_running());
        }
        let content = file.and_then(read);
        if content != last {
            if let Some(content) = &content {
                obey(content);
            }
            last = content;
        }
        thread::sleep(PERIOD);
    }
}

/// The content of the control file.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// The first [`MAX_LENGTH`] bytes, and the time when they were written: the same command may be written again.
    Text(Vec<u8>, Option<SystemTime>),
    /// The path is a device, a pipe or a folder. Reading one may never end, and opening one may have an effect.
    NotRegular,
    /// The file belongs to another user, who could fill the disk with recordings.
    OfOthers,
}

/// The contents of a control file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Start,
    Stop,
    /// Nothing: the file is empty, perhaps because it is just being written.
    Nothing,
    Unknown,
}

impl Command {
    fn parse(text: &[u8]) -> Self {
        match text.trim_ascii() {
            b"start" => Self::Start,
            b"stop" => Self::Stop,
            b"" => Self::Nothing,
            _ => Self::Unknown,
        }
    }
}

/// Returns the content of the control file, or `None` if there is no file or it cannot be read.
fn read(path: &Path) -> Option<Content> {
    if !fs::metadata(path).ok()?.is_file() {
        return Some(Content::NotRegular);
    }
    // If a pipe has replaced the file, opening it must not wait for a writer.
    let mut options = File::options();
    let file = non_blocking(options.read(true)).open(path).ok()?;
    // Check the opened file too: the path may have changed since.
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() {
        return Some(Content::NotRegular);
    }
    if !owner::is_trusted(&metadata) {
        return Some(Content::OfOthers);
    }
    let mut text = Vec::new();
    file.take(MAX_LENGTH).read_to_end(&mut text).ok()?;
    Some(Content::Text(text, metadata.modified().ok()))
}

fn obey(content: &Content) {
    let text = match content {
        Content::Text(text, _) => text,
        Content::NotRegular => {
            diagnostics::warn_once(
                "PROFILER_CONTROL is not a regular file and is not read: nothing is recorded; give the \
                 name of a file, which need not be there yet",
            );
            return;
        }
        Content::OfOthers => {
            diagnostics::warn_once(
                "PROFILER_CONTROL is a file of another user and is not read: give the name of a file in a folder that only you \
                 can write to",
            );
            return;
        }
    };
    match Command::parse(text) {
        Command::Start => set_running(true),
        Command::Stop => set_running(false),
        Command::Nothing => {}
        // The warning does not repeat the text: the variable may name any file, also one with secrets.
        Command::Unknown => diagnostics::warn_once(
            "PROFILER_CONTROL: the file says neither `start` nor `stop`: write one of them",
        ),
    }
}

/// Starts or stops the session, unless it is running or stopped already.
fn set_running(is_running: bool) {
    if is_running {
        environment::start();
    } else {
        environment::stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_words_with_any_white_space_around() {
        for (text, command) in [
            ("start", Command::Start),
            ("stop\n", Command::Stop),
            (" start \r\n", Command::Start),
            ("", Command::Nothing),
            (" \n", Command::Nothing),
            ("START", Command::Unknown),
            ("start stop", Command::Unknown),
        ] {
            assert_eq!(Command::parse(text.as_bytes()), command, "{text:?}");
        }
    }

    #[test]
    fn the_beginning_of_a_regular_file_is_read() {
        let path = std::env::temp_dir().join(format!("profiler-control-{}", std::process::id()));
        assert_eq!(read(&path), None, "there is no file");
        fs::write(&path, "start".repeat(100)).unwrap();
        let content = read(&path);
        // Root alone can give a file away.
        #[cfg(unix)]
        if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
            assert_eq!(read(&path), Some(Content::OfOthers));
        }
        fs::remove_file(&path).unwrap();
        assert!(matches!(content, Some(Content::Text(text, _)) if text.len() == 64));
        assert_eq!(read(&std::env::temp_dir()), Some(Content::NotRegular));
    }
}
