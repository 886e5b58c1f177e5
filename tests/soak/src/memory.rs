//! The resident memory of the process.

use std::fs;

/// The allowed growth in the second half of a run, for heap fragmentation. By then, pools and rings
/// have reached their sizes.
const GROWTH_KIB: u64 = 8 * 1024;

/// Returns the resident memory in KiB, if the system shows it.
///
/// Free memory of the heap is given back first. How much of it there is depends on how far the profiler's threads were
/// behind at any time, and so on how busy the machine is.
pub(crate) fn resident_kib() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function only releases free memory, and may be called from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Returns an error if much more memory is resident than at any report in the first half of the run.
pub(crate) fn compare(first_half: Option<u64>) -> Result<(), String> {
    match (first_half, resident_kib()) {
        (Some(before), Some(now)) if now > before + GROWTH_KIB => Err(format!(
            "resident memory grew from {before} to {now} KiB in the second half of the run"
        )),
        _ => Ok(()),
    }
}
