//! Raised privileges: a process that may do more than the user who started it.

/// Returns `true` if the process runs with raised privileges: it was started from a set-user-ID or set-group-ID file, or
/// from one with capabilities. The user who chose its environment may then do less than the process.
///
/// Linux reports this in the auxiliary vector, which also covers capabilities and security modules, and does not change
/// when the process drops its privileges. See `AT_SECURE` in getauxval(3).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn are_raised() -> bool {
    // Miri knows no such vector.
    if cfg!(miri) {
        return false;
    }
    // SAFETY: reads a number that the kernel passed to the process at its start.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns `true` if the effective user or group of the process is not its real one.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub fn are_raised() -> bool {
    // SAFETY: these functions take no arguments and always succeed.
    unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() }
}

/// Returns `false`: other systems start no process with more privileges than the author of its environment has.
#[cfg(not(unix))]
pub fn are_raised() -> bool {
    false
}
