//! Runs each test in a process of its own: the second half of the attribute `#[isolated::test]`.

use std::env;
use std::fs::File;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Tells a process which test it runs, as the test harness names it.
const TEST: &str = "PROFILER_TESTS_TEST";

/// Tells a process that the process of a test started it.
pub const AGAIN: &str = "PROFILER_TESTS_AGAIN";

/// The emulator that programs for another processor run in, with its arguments.
const RUNNER: &str = "PROFILER_TESTS_RUNNER";

/// How long a test may run. It decides nothing but how soon a test that hangs is reported.
const LIMIT: Duration = Duration::from_secs(900);

/// The result of a test in the process that only started another one.
pub trait Passed {
    /// Returns the value that means success.
    fn passed() -> Self;
}

impl Passed for () {
    fn passed() -> Self {}
}

impl<E> Passed for Result<(), E> {
    fn passed() -> Self {
        Ok(())
    }
}

/// Returns the value that means success.
pub fn passed<P: Passed>() -> P {
    P::passed()
}

/// Returns the name of the test that this process runs, as the test harness takes it: without the crate.
///
/// # Panics
///
/// In a process that runs no test of its own.
#[must_use]
pub fn test_name() -> String {
    env::var(TEST).expect("the tests run in processes of their own")
}

/// Returns a command that runs this process's test again, in another process.
///
/// The harness runs a single test on the main thread then.
#[must_use]
pub fn again() -> Command {
    let mut command = harness(&test_name());
    command.arg("--test-threads=1").env(AGAIN, "1");
    command
}

/// Returns whether a test passes without being run, since nothing is measured. A process that it started is not asked: the
/// question starts the profiler.
#[must_use]
pub fn is_unmeasured() -> bool {
    env::var_os(AGAIN).is_none() && !crate::measuring()
}

/// Runs a test in another process and returns true, or returns false in that other process.
///
/// `path` is the test's path with its crate, and `variables` are those of the other process.
///
/// # Panics
///
/// Panics if the test fails there, is ended by a signal, does not end in time, or is not found.
#[must_use]
pub fn ran_elsewhere(path: &str, variables: &[(&str, &str)]) -> bool {
    let name = path.split_once("::").map_or(path, |(_crate, name)| name);
    if env::var_os(TEST).is_some() {
        return false;
    }
    // Files, not pipes: a process that the test leaves behind would keep a pipe open.
    let (mut stdout, mut stderr) = (output_file(), output_file());
    let mut command = harness(name);
    // With one thread the harness would run the test on the main thread, whose thread-locals outlive the test.
    command
        .arg("--test-threads=2")
        .env(TEST, name)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().expect("a file has a second handle"))
        .stderr(stderr.try_clone().expect("a file has a second handle"));
    let child = command.spawn().expect("the test's process starts");
    let status = status_in_time(child);
    let (stdout, stderr) = (contents(&mut stdout), contents(&mut stderr));
    // The harness keeps what is printed, and shows it where the test fails.
    print!("{stdout}");
    eprint!("{stderr}");
    let Some(status) = status else {
        panic!("{name} was still running after {LIMIT:?} and was killed");
    };
    assert!(
        status.success(),
        "the process of {name} ended with {status}"
    );
    assert!(
        stdout.contains("test result: ok. 1 passed"),
        "the process of {name} ended before the test did, or did not run it"
    );
    true
}

/// Returns a command that runs one test of this program.
fn harness(name: &str) -> Command {
    let program = env::current_exe().expect("a test knows its program");
    let runner = env::var(RUNNER).unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = match words.next() {
        Some(emulator) => Command::new(emulator),
        None => Command::new(&program),
    };
    if !runner.is_empty() {
        command.args(words).arg(program);
    }
    command.args([name, "--exact", "--nocapture"]);
    command
}

/// Returns how a process ended, or nothing if it had to be killed.
fn status_in_time(mut child: Child) -> Option<ExitStatus> {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait().expect("the child is this process's") {
            return Some(status);
        }
        if start.elapsed() > LIMIT {
            child.kill().expect("the child is this process's");
            child.wait().expect("the child is this process's");
            return None;
        }
        sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn output_file() -> File {
    tempfile::tempfile().expect("the folder for temporary files takes a file")
}

fn contents(file: &mut File) -> String {
    use std::io::{Seek, SeekFrom};
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).expect("the file can be read");
    file.read_to_end(&mut bytes).expect("the file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}
