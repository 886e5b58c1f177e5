//! The standard streams of the program, below the locks and buffers of the standard library.

use std::io;

use super::own_file::OwnFile;

/// Returns `true` if a descriptor is a regular file. A write to one never blocks, and is not interleaved with those of
/// other threads and processes.
#[cfg(unix)]
pub(super) fn is_regular_file(descriptor: i32) -> bool {
    let mut status = std::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the structure is valid for writes, and all bits zero is a value of it. The call fails if the descriptor is
    // not open.
    let status = unsafe {
        if libc::fstat(descriptor, status.as_mut_ptr()) != 0 {
            return false;
        }
        status.assume_init()
    };
    status.st_mode & libc::S_IFMT == libc::S_IFREG
}

#[cfg(not(unix))]
pub(super) fn is_regular_file(_descriptor: i32) -> bool {
    false
}

/// Opens the terminal of a standard stream once more, for non-blocking writes. Returns `None` if the stream is not a
/// terminal, or if that fails.
///
/// `poll` reports a terminal as writable if it takes any bytes at all, maybe fewer than `PIPE_BUF`; a blocking write would
/// then wait until someone reads. `O_NONBLOCK` belongs to the open file description, so the program's own writes block as
/// before.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn reopen_terminal(descriptor: i32) -> Option<OwnFile> {
    use std::fs::OpenOptions;
    use std::os::unix::fs::OpenOptionsExt;

    // SAFETY: takes a plain number, and fails if the descriptor is not open.
    if unsafe { libc::isatty(descriptor) } != 1 {
        return None;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    // This path leads to the terminal even in a container, where its name may be unknown.
    let file = options.open(format!("/proc/self/fd/{descriptor}")).ok()?;
    OwnFile::new(file).ok()
}

/// Returns `None`: on other systems a terminal can be opened only by its name.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn reopen_terminal(_descriptor: i32) -> Option<OwnFile> {
    None
}

/// Writes to standard output or standard error, for which a WebAssembly module without a system has no descriptors.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(super) fn write(descriptor: i32, bytes: &[u8]) -> io::Result<usize> {
    use std::io::Write;

    match descriptor {
        1 => io::stdout().write(bytes),
        _ => io::stderr().write(bytes),
    }
}

/// Writes to a descriptor.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(super) fn write(descriptor: i32, bytes: &[u8]) -> io::Result<usize> {
    #[cfg_attr(
        unix,
        allow(clippy::useless_conversion, reason = "other systems take 32 bits")
    )]
    let length = bytes.len().try_into().unwrap_or_default();
    // SAFETY: the bytes are valid during the call, which fails if the descriptor is not open. If the program has reused
    // the number of a standard stream for something else, it has redirected that stream.
    let written = unsafe { libc::write(descriptor, bytes.as_ptr().cast(), length) };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}
