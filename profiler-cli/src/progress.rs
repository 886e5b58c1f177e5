//! The progress of long work, on standard error if that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use profiler_host::diagnostics::printable;

/// Work that ends sooner shows no progress.
const QUIET: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(100);

/// A line that says how far the work is. It disappears when it is dropped.
pub(crate) struct Progress {
    what: String,
    total: u64,
    done: u64,
    /// When the line is next written; `None` if standard error is no terminal.
    next: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    /// Begins work of this many units; 0 if that is not known.
    pub(crate) fn new(what: &str, total: u64) -> Self {
        Self {
            what: printable(what),
            total,
            done: 0,
            next: io::stderr().is_terminal().then(|| Instant::now() + QUIET),
            is_shown: false,
        }
    }

    /// Adds units that are done.
    pub(crate) fn advance(&mut self, units: u64) {
        self.done += units;
        let Some(next) = self.next else { return };
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + PAUSE);
        self.is_shown = true;
        let line = self.line();
        // If standard error is closed, the work continues.
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
    }

    fn line(&self) -> String {
        match (100 * self.done).checked_div(self.total) {
            Some(percent) => format!("{}: {}%", self.what, percent.min(100)),
            None => format!("{}: {} MiB", self.what, self.done >> 20),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_the_work_is() {
        let mut progress = Progress::new("reading a\nb", 300);
        progress.advance(100);
        assert_eq!(progress.line(), "reading a\u{fffd}b: 33%");
        progress.advance(1000);
        assert_eq!(progress.line(), "reading a\u{fffd}b: 100%");
        let mut progress = Progress::new("reading a pipe", 0);
        progress.advance(5 << 20);
        assert_eq!(progress.line(), "reading a pipe: 5 MiB");
    }
}
