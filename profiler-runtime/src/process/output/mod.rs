//! Everything the profiler writes goes through here: it raises no signal, waits for nobody for ever, and never goes
//! into a file that is not the profiler's.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use self::own_file::OwnFile;
pub(crate) mod new_file;
mod own_file;

use super::signals;

/// How long a reader may take to make room, or to open a FIFO.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// How long may be waited for whoever reads a pipe, a socket or a terminal. Regular files are never waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// So long in all: the end of the program is kept from nobody.
    InAll(Duration),
    /// So long without a byte being taken: a reader that goes on reading gets everything.
    #[cfg_attr(
        not(feature = "trace"),
        allow(dead_code, reason = "only traces are that long")
    )]
    WithoutProgress(Duration),
}

/// Where the profiler writes to: a file that it has opened, or a standard stream of the program.
#[derive(Debug)]
#[cfg_attr(
    not(unix),
    allow(dead_code, reason = "other systems are not asked for room")
)]
pub(crate) struct Output {
    target: Target,
    wait: Wait,
    /// What is left of it.
    left: Duration,
    /// Whether writing may block: it is no regular file.
    may_block: bool,
}

#[derive(Debug)]
enum Target {
    Own(OwnFile),
    /// One of the standard streams by its number, which the program may direct where it likes; of a terminal only where
    /// it cannot be opened once more.
    Standard(i32),
}

impl Output {
    /// # Errors
    ///
    /// Where the system does not tell what file it is.
    pub(crate) fn new(file: File, wait: Wait) -> io::Result<Self> {
        let may_block = !file.metadata()?.is_file();
        Ok(Self::of(Target::Own(OwnFile::new(file)?), wait, may_block))
    }

    /// Standard output, past the lock of `std`, which another thread may hold for as long as it likes, and past its
    /// buffer: what is in there comes later.
    pub(crate) fn stdout(wait: Wait) -> Self {
        Self::standard(1, wait)
    }

    /// Standard error, likewise.
    pub(crate) fn stderr(wait: Wait) -> Self {
        Self::standard(2, wait)
    }

    fn standard(number: i32, wait: Wait) -> Self {
        let target = own_terminal(number).map_or(Target::Standard(number), Target::Own);
        Self::of(target, wait, !is_regular_file(number))
    }

    fn of(target: Target, wait: Wait, may_block: bool) -> Self {
        let (Wait::InAll(left) | Wait::WithoutProgress(left)) = wait;
        Self {
            target,
            wait,
            left,
            may_block,
        }
    }

    /// Returns the file, to be used at once.
    ///
    /// # Errors
    ///
    /// Where it is none that the profiler has opened, or the program has closed its descriptor.
    #[cfg_attr(
        not(feature = "tensorboard"),
        allow(dead_code, reason = "only a log stays open for long")
    )]
    pub(crate) fn file(&self) -> io::Result<&File> {
        match &self.target {
            Target::Own(file) => file.get(),
            Target::Standard(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns whether its descriptor is still that of what it was opened for.
    #[cfg_attr(
        not(feature = "tensorboard"),
        allow(dead_code, reason = "only a log stays open for long")
    )]
    pub(crate) fn is_intact(&self) -> bool {
        match &self.target {
            Target::Own(file) => file.is_intact(),
            Target::Standard(_) => true,
        }
    }

    /// Opens a file again that the program has closed; see [`OwnFile::reopen`].
    ///
    /// # Errors
    ///
    /// As there.
    #[cfg_attr(
        not(feature = "tensorboard"),
        allow(dead_code, reason = "only a log stays open for long")
    )]
    pub(crate) fn reopen(&mut self, path: &Path) -> io::Result<()> {
        match &mut self.target {
            Target::Own(file) => file.reopen(path),
            Target::Standard(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes all of `bytes`; the error of what took only a part of them says how many.
    ///
    /// # Errors
    ///
    /// The system's, or [`io::ErrorKind::TimedOut`] where nobody made room in time.
    pub(crate) fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match self.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if written > 0 => {
                    let all = bytes.len();
                    return Err(io::Error::new(
                        error.kind(),
                        format!("{error} ({written} of {all} bytes were written)"),
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        signals::protect_write(|| {
            if self.may_block {
                self.write_bounded(bytes)
            } else {
                self.write_now(bytes)
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.target {
            Target::Own(file) => file.get()?.write(bytes),
            Target::Standard(number) => write_to(*number, bytes),
        }
    }

    #[cfg(not(unix))]
    fn write_bounded(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_now(bytes)
    }

    /// Writes a piece once there is room for it.
    ///
    /// Whether the descriptor blocks is a flag that the program shares, and so is left as it is. One that blocks is
    /// written to only when it is said to have room, and then no more than there is for certain (`PIPE_BUF`). Another
    /// thread of the program may take that room meanwhile; then this waits as the program itself does.
    #[cfg(unix)]
    fn write_bounded(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(libc::PIPE_BUF)];
        loop {
            self.wait_for_room()?;
            match self.write_now(piece) {
                // There is room, and not enough; it is asked again a moment later.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.pause(Duration::from_millis(1))?;
                }
                Err(error) => return Err(error),
                Ok(written) => {
                    if let Wait::WithoutProgress(limit) = self.wait {
                        self.left = limit;
                    }
                    return Ok(written);
                }
            }
        }
    }

    /// Waits until something can be written without waiting, or until writing says why it cannot.
    #[cfg(unix)]
    fn wait_for_room(&mut self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        use std::time::Instant;

        let number = match &self.target {
            Target::Own(file) => file.get()?.as_raw_fd(),
            Target::Standard(number) => *number,
        };
        loop {
            let mut asked = libc::pollfd {
                fd: number,
                events: libc::POLLOUT,
                revents: 0,
            };
            let start = Instant::now();
            // Up to the next millisecond: cut off, the last part of one would be asked for again and again.
            let limit = i32::try_from(self.left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
            // SAFETY: one structure, which lives longer than the call.
            let answers = unsafe { libc::poll(&raw mut asked, 1, limit) };
            let error = io::Error::last_os_error();
            self.left = self.left.saturating_sub(start.elapsed());
            match answers {
                0 => return Err(timed_out(self.wait)),
                1.. => return Ok(()),
                _ if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                // A signal of the program's; the rest of the time is waited for.
                _ => {}
            }
        }
    }

    #[cfg(unix)]
    fn pause(&mut self, time: Duration) -> io::Result<()> {
        if self.left.is_zero() {
            return Err(timed_out(self.wait));
        }
        std::thread::sleep(time);
        self.left = self.left.saturating_sub(time);
        Ok(())
    }
}

#[cfg(unix)]
fn timed_out(wait: Wait) -> io::Error {
    let (Wait::InAll(limit) | Wait::WithoutProgress(limit)) = wait;
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("whoever reads it has made no room for {limit:?}"),
    )
}

/// A file takes all at once: what other threads and processes write there does not come in between.
#[cfg(unix)]
fn is_regular_file(number: i32) -> bool {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: there is room for the structure, of which all bits zero is a value. A number that is not open is an error
    // of the call.
    let status = unsafe {
        if libc::fstat(number, status.as_mut_ptr()) != 0 {
            return false;
        }
        status.assume_init()
    };
    status.st_mode & libc::S_IFMT == libc::S_IFREG
}

#[cfg(not(unix))]
fn is_regular_file(_number: i32) -> bool {
    false
}

/// Opens the terminal behind a standard stream once more, for writing without blocking. Returns none where the stream is
/// no terminal, or where that cannot be opened.
///
/// `poll` says of a terminal that it has room where there is any, which may be less than `PIPE_BUF`: a blocking write
/// would wait for the rest for as long as nobody reads. `O_NONBLOCK` belongs to the open file, so that the program's own
/// writes block as before.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn own_terminal(number: i32) -> Option<OwnFile> {
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;

    // SAFETY: a plain number. One that is not open is an error of the call.
    if unsafe { libc::isatty(number) } != 1 {
        return None;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    // Leads to the terminal whatever its name is here, in a container too.
    let file = options.open(format!("/proc/self/fd/{number}")).ok()?;
    OwnFile::new(file).ok()
}

/// Other systems have no way to open it that does not depend on its name.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn own_terminal(_number: i32) -> Option<OwnFile> {
    None
}

fn write_to(number: i32, bytes: &[u8]) -> io::Result<usize> {
    #[cfg_attr(
        unix,
        allow(clippy::useless_conversion, reason = "other systems take 32 bits")
    )]
    let length = bytes.len().try_into().unwrap_or_default();
    // SAFETY: the bytes are there for as long as the call. A descriptor that is not open is an error of the call, one
    // that the program has reused for something else is the program's word.
    let written = unsafe { libc::write(number, bytes.as_ptr().cast(), length) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn pipe(wait: Wait) -> (io::PipeReader, Output) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let writer = File::from(OwnedFd::from(writer));
        (reader, Output::new(writer, wait).expect("an open pipe"))
    }

    #[test]
    fn a_full_pipe_is_waited_for_until_the_limit_and_says_what_it_took() {
        let (mut reader, mut output) = pipe(Wait::InAll(SHORT));
        let bytes = vec![7; 1 << 20];
        let error = output.write_whole(&bytes).expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(output);
        let mut taken = Vec::new();
        reader.read_to_end(&mut taken).expect("it is open");
        let said = format!("({} of {} bytes were written)", taken.len(), bytes.len());
        assert!(error.to_string().contains(&said), "{error}");
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn a_terminal_that_nobody_reads_is_waited_for_until_the_limit() {
        use std::os::fd::{AsRawFd, FromRawFd};
        use std::ptr::{null, null_mut};
        use std::sync::mpsc::channel;

        let (mut reader, mut terminal) = (-1, -1);
        // SAFETY: both numbers are there to be written; a name and settings are not asked for.
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
        // SAFETY: both are open, and nobody else has them.
        let ends = unsafe { [reader, terminal].map(|number| OwnedFd::from_raw_fd(number)) };
        let (ended, has_ended) = channel();
        let number = ends[1].as_raw_fd();
        std::thread::spawn(move || {
            let mut output = Output::standard(number, Wait::InAll(SHORT));
            // Line ends take more room than they have bytes.
            let _ = ended.send(output.write_whole(&b"a line\n".repeat(1 << 17)));
        });
        let written = has_ended.recv_timeout(Duration::from_secs(60));
        let error = written
            .expect("it does not hang")
            .expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        // SAFETY: asks for the flags of a number that is open.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
        assert_eq!(
            flags & libc::O_NONBLOCK,
            0,
            "the program's own still blocks"
        );
    }

    #[test]
    fn a_reader_that_reads_gets_all() {
        let (mut reader, mut output) = pipe(Wait::WithoutProgress(Duration::from_secs(60)));
        let bytes = vec![7; 1 << 20];
        let taken = std::thread::spawn(move || {
            let mut taken = Vec::new();
            reader.read_to_end(&mut taken).map(|_| taken)
        });
        output.write_whole(&bytes).expect("somebody reads");
        drop(output);
        let taken = taken.join().expect("it does not panic");
        assert!(taken.expect("it is open") == bytes);
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error_at_once() {
        let (reader, mut output) = pipe(Wait::InAll(Duration::from_secs(60)));
        drop(reader);
        let error = output.write_whole(b"lost").expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
