//! An output of the profiler may accept nothing, or be closed. The program still ends, missing output is reported, and
//! nothing is written to files of the program.

#![cfg(all(target_os = "linux", not(feature = "strip")))]

use profiler_tests::event_files;
use profiler_tests::measuring;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use profiler_runtime::report::ExportError;
use profiler_runtime::{Profile, TensorBoardLogger, scope};

/// No end of a program takes so long by itself.
const HANGS: Duration = Duration::from_secs(60);

fn program(mode: &str, count: &str, variable: &str, value: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    for name in ["PROFILER_SUMMARY", "PROFILER_TRACE", "PROFILER_TENSORBOARD"] {
        command.env_remove(name);
    }
    command
        .args([mode, count])
        .env(variable, value)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits for the end, and reads nothing before.
fn end(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("it is ours").is_none() {
        if start.elapsed() > HANGS {
            let _ = child.kill();
            panic!("it hangs");
        }
        sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("it has ended")
}

fn new_fifo(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|made| made.success()));
    path
}

#[test]
fn a_fifo_without_a_reader_is_reported_and_the_program_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = new_fifo(folder.path());
    let summary = program("steps", "10", "PROFILER_SUMMARY", &fifo);
    let trace = folder.path().join("pipe.json");
    fs::rename(&fifo, &trace).expect("a name for a trace");
    let by_name = program("steps", "10", "PROFILER_TRACE", &trace);
    symlink(&trace, &fifo).expect("a name for both");
    for mut command in [summary, by_name] {
        let output = end(command.spawn().expect("it runs"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        if measuring() {
            assert!(stderr.contains("no reader has opened it"), "{stderr}");
        }
    }
    let is_fifo = fs::metadata(&trace).is_ok_and(|kind| kind.file_type().is_fifo());
    assert!(is_fifo, "and it is still there");
}

#[test]
fn an_export_to_a_full_pipe_times_out() {
    let Some(trace) = trace(5000) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = new_fifo(folder.path());
    // Open, and never read from.
    let reader = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&fifo)
        .expect("it is there");
    let error = trace.export_chrome_trace(&fifo).expect_err("it is full");
    let ExportError::Io { source, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(source.kind(), io::ErrorKind::TimedOut, "{error}");
    drop(reader);
}

fn trace(scopes: usize) -> Option<std::sync::Arc<profiler_runtime::Trace>> {
    if !measuring() {
        return None;
    }
    let ((), trace) = Profile::builder().run(|_| (0..scopes).for_each(|_| drop(scope!("held up"))));
    Some(trace.expect("it is recorded"))
}

#[test]
fn standard_error_that_takes_no_more_does_not_keep_the_program() {
    let command = &mut program("full-stderr", "", "PROFILER_SUMMARY", Path::new("stderr"));
    let output = end(command.spawn().expect("it runs"));
    assert!(output.status.success());
    assert!(output.stderr.ends_with(b"...."), "it was full to the end");
}

fn pipe() -> (File, OwnedFd) {
    let (reader, writer) = io::pipe().expect("a pipe");
    (File::from(OwnedFd::from(reader)), OwnedFd::from(writer))
}

/// The flag is one of the pipe's end, which the program shares.
fn set_non_blocking(descriptor: RawFd) {
    // SAFETY: plain numbers; an error would leave the end blocking.
    let set = unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
    assert_eq!(set, 0);
}

#[test]
fn a_table_is_whole_where_standard_error_does_not_block() {
    // The profiler's patience has an end, which a machine that is busy with something else may reach once.
    let is_whole = (0..5).any(|_| rows_of_a_long_table() == 200);
    assert!(is_whole || !measuring());
}

/// How many rows of a table of 200 come through a pipe that does not block and has room for less.
fn rows_of_a_long_table() -> usize {
    let (mut reader, writer) = pipe();
    set_non_blocking(writer.as_raw_fd());
    // SAFETY: plain numbers.
    let size = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) };
    assert_eq!(size, 4096, "less than the table");
    let mut child = program("long-table", "200", "PROFILER_SUMMARY", Path::new("stderr"))
        .stderr(writer)
        .spawn()
        .expect("it runs");
    // Reads only once there is no room for more.
    let mut waiting: libc::c_int = 0;
    while waiting < 4096 && child.try_wait().expect("it is ours").is_none() {
        // SAFETY: the number lives longer than the call.
        let asked = unsafe { libc::ioctl(reader.as_raw_fd(), libc::FIONREAD, &raw mut waiting) };
        assert_eq!(asked, 0);
        sleep(Duration::from_millis(1));
    }
    let mut table = String::new();
    reader.read_to_string(&mut table).expect("text");
    assert!(child.wait().expect("it is ours").success());
    // A mark may stand before the name, and the notes below name some again.
    let is_row = |line: &&str| {
        line.find("a name that fills a line of the table")
            .is_some_and(|at| at <= 2)
    };
    table.lines().filter(is_row).count()
}

#[test(env = [("PROFILER_ENABLED", "1")])]
fn a_summary_replaces_a_file_once_it_is_whole() {
    const BEFORE: &str =
        "{\"schema_version\":1,\"what\":\"was there before, and is not to be lost\"}";

    let folder = tempfile::tempdir().expect("a folder");
    let (path, link) = (
        folder.path().join("out.json"),
        folder.path().join("link.json"),
    );
    fs::write(&path, BEFORE).expect("room");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink(&path, &link).expect("a link");
    // No room for it: what was there stays, and nothing is left beside it.
    let command = program("limited", "", "PROFILER_SUMMARY", &link)
        .spawn()
        .expect("it runs");
    let output = end(command);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), BEFORE);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);

    let command = program("steps", "10", "PROFILER_SUMMARY", &link)
        .spawn()
        .expect("it runs");
    assert!(end(command).status.success());
    let text = fs::read_to_string(&path).expect("it is there");
    assert_ne!(text, BEFORE);
    let mode = fs::metadata(&path).map(|file| file.permissions().mode() & 0o777);
    assert_eq!(mode.expect("it is there"), 0o640, "as it was");
    assert!(fs::symlink_metadata(&link).is_ok_and(|link| link.is_symlink()));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);

    // Where the link leads to is made.
    fs::remove_file(&path).expect("it is there");
    let command = program("steps", "10", "PROFILER_SUMMARY", &link).spawn();
    assert!(end(command.expect("it runs")).status.success());
    assert!(fs::symlink_metadata(&link).is_ok_and(|link| link.is_symlink()));
    assert!(path.is_file());

    // An output that is not a regular file is written to and not replaced.
    let command = program("steps", "10", "PROFILER_SUMMARY", Path::new("/dev/null")).spawn();
    assert!(end(command.expect("it runs")).status.success());
    let is_device = |kind: fs::Metadata| kind.file_type().is_char_device();
    assert!(fs::metadata("/dev/null").is_ok_and(is_device));
}

/// The number under which this process has a file open.
fn descriptor_of(path: &Path) -> RawFd {
    let path = fs::canonicalize(path).expect("it is there");
    let entries = fs::read_dir("/proc/self/fd").expect("a folder");
    let mut entries = entries.map(|entry| entry.expect("an entry").path());
    let found = entries
        .find(|entry| fs::read_link(entry).is_ok_and(|target| target == path))
        .expect("it is open");
    let name = found.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).expect("a number")
}

/// Closes a descriptor of the profiler's, and uses its number for a file of the program's.
fn take(number: RawFd, file: &File) {
    // SAFETY: the program is wrong to do this: that is what is tested. The number is never used as anything else
    // by this test, and by the profiler only after it has looked.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
}

struct Log {
    folder: tempfile::TempDir,
    logger: TensorBoardLogger,
    mine: PathBuf,
    number: RawFd,
}

/// A log whose descriptor has become one of a file of the program's, which says `mine`.
fn taken_log() -> Log {
    let folder = tempfile::tempdir().expect("a folder");
    let logger = TensorBoardLogger::new(folder.path().join("log")).expect("room");
    logger.add_scalar("loss", 0.5, 0).expect("it is taken");
    logger.flush().expect("room");
    let mine = folder.path().join("mine");
    let mut file = File::create(&mine).expect("room");
    file.write_all(b"mine").expect("room");
    let number = descriptor_of(&logger.path());
    take(number, &file);
    Log {
        folder,
        logger,
        mine,
        number,
    }
}

impl Log {
    fn add(&self, steps: std::ops::Range<u64>) {
        for step in steps {
            let _ = self.logger.add_scalar("loss", 0.5, step);
        }
    }

    /// Drops the logger. The program's file says what it did, and is still open.
    fn end(self) -> tempfile::TempDir {
        let Self {
            folder,
            logger,
            mine,
            number,
        } = self;
        drop(logger);
        assert_eq!(fs::read(&mine).expect("it is there"), b"mine");
        // SAFETY: the bytes live longer than the call; the number is the program's, which is what is tested.
        let written = unsafe { libc::write(number, b"!".as_ptr().cast(), 1) };
        assert_eq!(written, 1, "{}", io::Error::last_os_error());
        assert_eq!(fs::read(&mine).expect("it is there"), b"mine!");
        // SAFETY: as above; nothing else owns the descriptor.
        unsafe { libc::close(number) };
        folder
    }
}

fn steps(folder: &Path) -> Vec<i64> {
    let files = event_files::paths(&folder.join("log"));
    let files = files.iter().map(|path| event_files::read(path));
    let scalars = files.flat_map(|file| {
        assert_eq!(file.torn, 0, "whole records only");
        file.scalars
    });
    scalars.map(|scalar| scalar.step).collect()
}

#[test]
fn a_log_whose_descriptor_is_taken_goes_on_in_its_own_file() {
    let log = taken_log();
    log.add(1..20_000);
    log.logger.flush().expect("there is room");
    log.add(20_000..20_100);
    let folder = log.end();
    assert!(steps(folder.path()).into_iter().eq(0..20_100));
    let files = event_files::paths(&folder.path().join("log"));
    assert_eq!(files.len(), 1, "the file is still there, and goes on");
}

#[test]
fn a_log_whose_descriptor_and_file_are_gone_goes_on_in_a_new_one() {
    let log = taken_log();
    fs::remove_file(log.logger.path()).expect("it is there");
    log.add(1..100);
    log.logger.flush().expect("there is room");
    log.add(100..200);
    let folder = log.end();
    assert!(steps(folder.path()).into_iter().eq(1..200));
}

#[test]
fn a_log_whose_descriptor_is_closed_is_opened_again() {
    let log = taken_log();
    // SAFETY: as in `take`; nothing has the number until the log is opened again.
    unsafe { libc::close(log.number) };
    log.add(1..100);
    let Log { folder, logger, .. } = log;
    drop(logger);
    assert!(steps(folder.path()).into_iter().eq(0..100));
}
