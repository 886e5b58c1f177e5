//! Whether the process may do more than whoever started it.

/// Returns whether the process runs with raised privileges: started from a set-user-ID or set-group-ID file, or from
/// one with capabilities. Its environment is then chosen by somebody who may do less.
///
/// Linux says so in the auxiliary vector, which also covers capabilities and security modules, and which stays as it
/// is when the process gives its privileges up.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn are_raised() -> bool {
    // SAFETY: reads a number that the kernel gave the process when it was started.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Returns whether the process runs with another user's or group's privileges than those of whoever started it.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(crate) fn are_raised() -> bool {
    // SAFETY: these functions take nothing, and always succeed.
    unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() }
}

/// Other systems start no process with more privileges than its environment's author has.
#[cfg(not(unix))]
pub(crate) fn are_raised() -> bool {
    false
}
