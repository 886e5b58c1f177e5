//! Starting and stopping the session of the environment from outside of the process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

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
    let mut is_running = false;
    let mut last = String::new();
    loop {
        if signalled.swap(false, Relaxed) {
            let run = !is_running;
            turn(&mut is_running, run);
        }
        let word = file.and_then(|file| std::fs::read_to_string(file).ok());
        if let Some(word) = word.filter(|word| *word != last) {
            match word.trim() {
                "start" => turn(&mut is_running, true),
                "stop" => turn(&mut is_running, false),
                // It may be in the middle of being written.
                "" => {}
                other => health::notice(&format!(
                    "PROFILER_CONTROL: the file says `{other}`, which is neither `start` nor `stop`"
                )),
            }
            last = word;
        }
        thread::sleep(PERIOD);
    }
}

fn turn(is_running: &mut bool, run: bool) {
    if *is_running == run {
        return;
    }
    *is_running = run;
    if run {
        environment::start();
    } else {
        environment::stop();
    }
}
