//! Starting and stopping the session of the environment from outside of the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, SystemTime};

use super::environment;
use crate::health;
use crate::local::Busy;

/// How often the file is looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// Starts and stops the session as a file or a signal says, from now on.
pub(super) fn watch(file: Option<PathBuf>, signal: Option<i32>) {
    let signalled = Arc::new(AtomicBool::new(false));
    if let Some(signal) = signal
        && let Err(error) = register(signal, &signalled)
    {
        health::notice(&format!(
            "PROFILER_SIGNAL: the signal cannot be caught: {error}"
        ));
    }
    let spawned = thread::Builder::new()
        .name("profiler-control".into())
        .spawn(move || run(file.as_deref(), &signalled));
    if let Err(error) = spawned {
        health::notice(&format!(
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
    Busy::for_ever();
    let mut last = None;
    loop {
        if signalled.swap(false, Relaxed) {
            turn(!environment::is_running());
        }
        let read = file.and_then(read);
        if read != last {
            if let Some((word, _)) = &read {
                obey(word.trim());
            }
            last = read;
        }
        thread::sleep(PERIOD);
    }
}

/// What the file says, and when it was written: the same word may be written again.
fn read(file: &Path) -> Option<(String, Option<SystemTime>)> {
    let written = std::fs::metadata(file).and_then(|file| file.modified());
    let word = std::fs::read_to_string(file).ok()?;
    Some((word, written.ok()))
}

fn obey(word: &str) {
    match word {
        "start" => turn(true),
        "stop" => turn(false),
        // It may be in the middle of being written.
        "" => {}
        other => health::notice(&format!(
            "PROFILER_CONTROL: the file says `{other}`, which is neither `start` nor `stop`"
        )),
    }
}

/// To be turned to what it is changes nothing.
fn turn(run: bool) {
    if run {
        environment::start();
    } else {
        environment::stop();
    }
}
