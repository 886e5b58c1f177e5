//! Output: all files and streams that the profiler writes to.
//!
//! A write raises no signal in the program, waits for a reader for a bounded time, and never goes to a descriptor that the
//! program has closed and reused.

mod folder;
pub mod folder_lock;
pub mod new_file;
mod own_file;
mod owners;
mod place;
mod standard;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use self::own_file::OwnFile;
pub use self::own_file::non_blocking;
pub use self::place::{Existing, FolderBeside, Place};
use super::signals;

/// The usual bound on the wait for a reader that empties a pipe or opens a FIFO.
pub const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// The bound on waits for the reader of a pipe, a socket or a terminal. A regular file needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteTimeout {
    /// Bounds the sum of all waits: the output must not delay the end of the program for longer.
    Total(Duration),
    /// Bounds each wait in which no byte is taken: a slow reader gets everything.
    WithoutProgress(Duration),
}

impl WriteTimeout {
    /// Returns the bound.
    pub fn duration(self) -> Duration {
        let (Self::Total(limit) | Self::WithoutProgress(limit)) = self;
        limit
    }
}

/// A file that the profiler has opened, or a standard stream of the program.
#[derive(Debug)]
#[cfg_attr(
    not(unix),
    allow(dead_code, reason = "other systems have no bounded writes")
)]
pub struct Output {
    target: Destination,
    timeout: WriteTimeout,
    /// The rest of the timeout.
    left: Duration,
    /// `true` if a write may block: the target is not a regular file.
    may_block: bool,
}

#[derive(Debug)]
enum Destination {
    Own(OwnFile),
    /// The descriptor of a standard stream, wherever the program has redirected it. Used for a terminal only if it cannot
    /// be opened once more.
    Standard(i32),
}

impl Output {
    /// Writes to a file that the profiler has opened.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it does not report the metadata of the file.
    pub fn new(file: File, timeout: WriteTimeout) -> io::Result<Self> {
        let may_block = !file.metadata()?.is_file();
        Ok(Self::of(
            Destination::Own(OwnFile::new(file)?),
            timeout,
            may_block,
        ))
    }

    /// Writes to standard output, without the lock of the standard library, which another thread may hold for any time,
    /// and without its buffer, whose contents are written later.
    pub fn stdout(timeout: WriteTimeout) -> Self {
        Self::standard(1, timeout)
    }

    /// Writes to standard error; see [`stdout`](Self::stdout).
    pub fn stderr(timeout: WriteTimeout) -> Self {
        Self::standard(2, timeout)
    }

    fn standard(descriptor: i32, timeout: WriteTimeout) -> Self {
        let terminal = standard::reopen_terminal(descriptor);
        let target = terminal.map_or(Destination::Standard(descriptor), Destination::Own);
        Self::of(target, timeout, !standard::is_regular_file(descriptor))
    }

    fn of(target: Destination, timeout: WriteTimeout, may_block: bool) -> Self {
        Self {
            target,
            timeout,
            left: timeout.duration(),
            may_block,
        }
    }

    /// Returns the file, for immediate use.
    ///
    /// # Errors
    ///
    /// Returns an error if this is a standard stream, or if the program has closed the descriptor.
    pub fn file(&self) -> io::Result<&File> {
        match &self.target {
            Destination::Own(file) => file.get(),
            Destination::Standard(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns `true` if the descriptor still refers to the file that was opened.
    pub fn is_intact(&self) -> bool {
        match &self.target {
            Destination::Own(file) => file.is_intact(),
            Destination::Standard(_) => true,
        }
    }

    /// Returns `true` if the file was removed, so that what is written to it is lost.
    pub fn is_removed(&self) -> bool {
        match &self.target {
            Destination::Own(file) => file.is_removed(),
            Destination::Standard(_) => false,
        }
    }

    /// Opens a file again whose descriptor the program has closed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened, and for a standard stream.
    pub fn reopen(&mut self, path: &Path) -> io::Result<()> {
        match &mut self.target {
            Destination::Own(file) => file.reopen(path),
            Destination::Standard(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or [`io::ErrorKind::TimedOut`] if the reader was too slow. If some bytes were written, the
    /// message says how many.
    pub fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
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
            Destination::Own(file) => file.get()?.write(bytes),
            Destination::Standard(descriptor) => standard::write(*descriptor, bytes),
        }
    }

    #[cfg(not(unix))]
    fn write_bounded(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_now(bytes)
    }

    /// Writes some bytes once the target takes them.
    ///
    /// The program shares the flag that makes a descriptor non-blocking, so the flag is not changed. A blocking descriptor
    /// is written to only when `poll` reports it as writable, and then with at most `PIPE_BUF` bytes, for which there is space. Another thread
    /// of the program may take that space in between; then this call waits as long as the program itself would.
    #[cfg(unix)]
    fn write_bounded(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(libc::PIPE_BUF)];
        loop {
            self.wait_until_writable()?;
            match self.write_now(piece) {
                // A non-blocking target is writable, but takes fewer bytes than these.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.pause(Duration::from_millis(1))?;
                }
                Err(error) => return Err(error),
                Ok(written) => {
                    if let WriteTimeout::WithoutProgress(limit) = self.timeout {
                        self.left = limit;
                    }
                    return Ok(written);
                }
            }
        }
    }

    /// Waits until a write returns at once, with bytes taken or with an error.
    #[cfg(unix)]
    fn wait_until_writable(&mut self) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        use std::time::Instant;

        let descriptor = match &self.target {
            Destination::Own(file) => file.get()?.as_raw_fd(),
            Destination::Standard(descriptor) => *descriptor,
        };
        loop {
            let mut request = libc::pollfd {
                fd: descriptor,
                events: libc::POLLOUT,
                revents: 0,
            };
            let start = Instant::now();
            // Round up to milliseconds: rounded down, the last fraction would be a busy loop of zero timeouts.
            let limit = i32::try_from(self.left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
            // SAFETY: one structure, which is valid during the call.
            let ready = unsafe { libc::poll(&raw mut request, 1, limit) };
            let error = io::Error::last_os_error();
            self.left = self.left.saturating_sub(start.elapsed());
            match ready {
                0 => return Err(timed_out(self.timeout)),
                1.. => return Ok(()),
                _ if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                // A signal of the program: wait for the rest of the time.
                _ => {}
            }
        }
    }

    #[cfg(unix)]
    fn pause(&mut self, time: Duration) -> io::Result<()> {
        if self.left.is_zero() {
            return Err(timed_out(self.timeout));
        }
        std::thread::sleep(time);
        self.left = self.left.saturating_sub(time);
        Ok(())
    }
}

#[cfg(unix)]
fn timed_out(timeout: WriteTimeout) -> io::Error {
    let limit = timeout.duration();
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("its reader has taken nothing for {limit:?}"),
    )
}

#[cfg(all(test, unix))]
mod tests;
