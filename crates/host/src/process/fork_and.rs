//! Code in the child of a fork, for tests. The tests of other crates include this file.

/// Runs `in_child` in a forked process; panics unless it returns `true` within a minute.
#[track_caller]
pub(crate) fn fork_and(in_child: impl FnOnce() -> bool) {
    // SAFETY: the child runs the closure and exits without returning to the test harness, whose locks other threads
    // may have held at the fork.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: neither call touches memory. The alarm kills a child that hangs.
        unsafe {
            libc::alarm(60);
            libc::_exit(i32::from(!in_child()));
        }
    }
    let mut status = 0;
    // SAFETY: `child` is a child of this process, and `status` is valid for writes.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    assert_eq!(status, 0, "the child failed, or hung until its alarm");
}
