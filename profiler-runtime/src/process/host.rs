//! What this machine is called.

use std::env;
use std::fs;

const LONGEST: usize = 64;

/// The host's name as far as it can be had without a system call of its own; safe in a file name.
pub(crate) fn name() -> String {
    let kernel = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let file = || fs::read_to_string("/etc/hostname").ok();
    let variable = |name| move || env::var(name).ok();
    let name = kernel()
        .or_else(file)
        .or_else(variable("HOSTNAME"))
        .or_else(variable("COMPUTERNAME"))
        .unwrap_or_default();
    tidy(&name)
}

/// Keeps what is safe in a file name on every system.
fn tidy(name: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let tidy: String = name
        .trim()
        .chars()
        .take(LONGEST)
        .map(|letter| if safe(letter) { letter } else { '_' })
        .collect();
    if tidy.is_empty() {
        "localhost".to_owned()
    } else {
        tidy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_safe_in_a_file_name() {
        assert_eq!(tidy("node-7.cluster\n"), "node-7.cluster");
        assert_eq!(tidy("../Büro pc"), ".._B_ro_pc");
        assert_eq!(tidy(" \n"), "localhost");
        assert_eq!(tidy(&"x".repeat(500)).len(), LONGEST);
    }
}
