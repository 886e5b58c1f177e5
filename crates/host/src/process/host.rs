//! The name of this machine.

use std::env;
use std::fs;
use std::sync::OnceLock;

/// The longest name that is returned, in characters.
const MAX_LENGTH: usize = 64;

/// The variable that leaves the name of the machine and the settings out of everything that is written.
pub const ANONYMOUS: &str = "PROFILER_ANONYMOUS";

/// Returns `true` if the variable asks for that. Read here, and not with the other variables, because a log may be opened
/// before these are read; and once, because the program may change its environment while the profiler's threads run.
pub fn is_anonymous() -> bool {
    static IS_ANONYMOUS: OnceLock<bool> = OnceLock::new();
    *IS_ANONYMOUS.get_or_init(|| means_yes(&env::var(ANONYMOUS).unwrap_or_default()))
}

fn means_yes(value: &str) -> bool {
    let value = value.trim();
    ["1", "true", "on", "yes"]
        .iter()
        .any(|yes| value.eq_ignore_ascii_case(yes))
}

/// Returns the host name from the kernel's files or the environment, or `localhost`. The name is safe in a file name.
pub fn name() -> String {
    if is_anonymous() {
        return sanitize("");
    }
    let kernel = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let file = || fs::read_to_string("/etc/hostname").ok();
    let variable = |name| move || env::var(name).ok();
    let name = kernel()
        .or_else(file)
        .or_else(variable("HOSTNAME"))
        .or_else(variable("COMPUTERNAME"))
        .unwrap_or_default();
    sanitize(&name)
}

/// Replaces the characters that are not safe in a file name on every system.
fn sanitize(name: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let sanitized: String = name
        .trim()
        .chars()
        .take(MAX_LENGTH)
        .map(|letter| if safe(letter) { letter } else { '_' })
        .collect();
    if sanitized.is_empty() {
        "localhost".to_owned()
    } else {
        sanitized
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_words_ask_for_anonymity() {
        for (value, expected) in [
            ("1", true),
            (" Yes ", true),
            ("", false),
            ("0", false),
            ("off", false),
        ] {
            assert_eq!(means_yes(value), expected, "{value}");
        }
    }

    #[test]
    fn a_host_name_is_safe_in_a_file_name() {
        assert_eq!(sanitize("node-7.cluster\n"), "node-7.cluster");
        assert_eq!(sanitize("../Büro pc"), ".._B_ro_pc");
        assert_eq!(sanitize(" \n"), "localhost");
        assert_eq!(sanitize(&"x".repeat(500)).len(), MAX_LENGTH);
    }
}
