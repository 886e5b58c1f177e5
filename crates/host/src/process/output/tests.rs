//! Tests of outputs that are not read.

use std::io::Read;
use std::os::fd::OwnedFd;

use super::*;

const SHORT: Duration = Duration::from_millis(20);

fn pipe(timeout: WriteTimeout) -> (io::PipeReader, Output) {
    let (reader, writer) = io::pipe().expect("a pipe");
    let writer = File::from(OwnedFd::from(writer));
    (reader, Output::new(writer, timeout).expect("an open pipe"))
}

#[test]
fn a_full_pipe_times_out_with_the_number_of_bytes_that_it_took() {
    let (mut reader, mut output) = pipe(WriteTimeout::Total(SHORT));
    let bytes = vec![7; 1 << 20];
    let error = output.write_whole(&bytes).expect_err("there is no reader");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(output);
    let mut taken = Vec::new();
    reader.read_to_end(&mut taken).expect("it is open");
    let said = format!("({} of {} bytes were written)", taken.len(), bytes.len());
    assert!(error.to_string().contains(&said), "{error}");
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_terminal_without_a_reader_times_out() {
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::ptr::{null, null_mut};
    use std::sync::mpsc::channel;

    let (mut reader, mut terminal) = (-1, -1);
    // SAFETY: both numbers are valid for writes; the name and the settings are optional.
    let opened = unsafe {
        libc::openpty(
            &raw mut reader,
            &raw mut terminal,
            null_mut(),
            null(),
            null(),
        )
    };
    assert_eq!(opened, 0, "{}", io::Error::last_os_error());
    // SAFETY: both are open and have no other owner.
    let ends = unsafe { [reader, terminal].map(|descriptor| OwnedFd::from_raw_fd(descriptor)) };
    let (ended, has_ended) = channel();
    let descriptor = ends[1].as_raw_fd();
    std::thread::spawn(move || {
        let mut output = Output::standard(descriptor, WriteTimeout::Total(SHORT));
        // The terminal turns a line end into two bytes.
        let _ = ended.send(output.write_whole(&b"a line\n".repeat(1 << 17)));
    });
    let written = has_ended.recv_timeout(Duration::from_secs(60));
    let error = written
        .expect("it does not hang")
        .expect_err("there is no reader");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    // SAFETY: reads the flags of an open descriptor.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    assert_eq!(
        flags & libc::O_NONBLOCK,
        0,
        "the program's descriptor still blocks"
    );
}

#[test]
fn a_reader_gets_all_bytes() {
    let (mut reader, mut output) = pipe(WriteTimeout::WithoutProgress(Duration::from_secs(60)));
    let bytes = vec![7; 1 << 20];
    let taken = std::thread::spawn(move || {
        let mut taken = Vec::new();
        reader.read_to_end(&mut taken).map(|_| taken)
    });
    output.write_whole(&bytes).expect("there is a reader");
    drop(output);
    let taken = taken.join().expect("it does not panic");
    assert!(taken.expect("it is open") == bytes);
}

#[test]
fn a_pipe_without_a_reader_is_an_error_at_once() {
    let (reader, mut output) = pipe(WriteTimeout::Total(Duration::from_secs(60)));
    drop(reader);
    let error = output.write_whole(b"lost").expect_err("there is no reader");
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
