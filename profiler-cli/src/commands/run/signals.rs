//! Signals while a program runs.

#[cfg(not(unix))]
pub(super) use self::none::Signals;
#[cfg(unix)]
pub(super) use self::unix::Signals;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::process::{Child, Command, ExitStatus};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
    use signal_hook::flag::{register, register_conditional_shutdown};
    use signal_hook::iterator::Signals as Received;

    /// Notes signals that would end this program, and lets the program that runs end first; then nothing else is started.
    ///
    /// A terminal sends Ctrl-C to both programs; the second one ends this program at once. A service manager sends SIGTERM
    /// to this program alone, which passes it on: the other one would stay.
    pub(in super::super) struct Signals {
        interrupted: Arc<AtomicBool>,
        is_terminated: bool,
        /// `None` if the system refuses it. SIGTERM then ends this program alone.
        received: Option<Received>,
    }

    impl Signals {
        pub(in super::super) fn watch() -> Self {
            let interrupted = Arc::new(AtomicBool::new(false));
            // The first of these acts on the second signal, since the other one sets the flag after it. Without them, the
            // signal ends this program at once, and the files are complete all the same.
            let _ = register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupted));
            let _ = register(SIGINT, Arc::clone(&interrupted));
            Self {
                interrupted,
                is_terminated: false,
                received: Received::new([SIGTERM, SIGCHLD]).ok(),
            }
        }

        /// Runs a program to its end.
        pub(in super::super) fn run(&mut self, command: &mut Command) -> io::Result<ExitStatus> {
            let mut child = command.spawn()?;
            let Some(received) = &mut self.received else {
                return child.wait();
            };
            loop {
                // A SIGCHLD that comes after this question ends the wait below.
                if let Some(status) = child.try_wait()? {
                    return Ok(status);
                }
                for signal in received.wait() {
                    if signal == SIGTERM {
                        self.is_terminated = true;
                        terminate(&child);
                    }
                }
            }
        }

        /// Returns the exit status of this program if a signal has asked it to end.
        pub(in super::super) fn exit_code(&mut self) -> Option<u8> {
            let pending = self.received.iter_mut().flat_map(Received::pending);
            self.is_terminated |= pending.into_iter().any(|signal| signal == SIGTERM);
            if self.is_terminated {
                Some(128 + 15)
            } else {
                self.interrupted.load(Relaxed).then_some(130)
            }
        }
    }

    /// Asks the child to end. It has not been waited for, so its number is not that of another process.
    fn terminate(child: &Child) {
        // It fails only if the child has other rights than this program.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
}

#[cfg(not(unix))]
mod none {
    use std::io;
    use std::process::{Command, ExitStatus};

    /// Does nothing: here, Ctrl-C ends both programs at once.
    pub(in super::super) struct Signals;

    impl Signals {
        pub(in super::super) fn watch() -> Self {
            Self
        }

        #[allow(clippy::unused_self, reason = "as on Unix")]
        pub(in super::super) fn run(&mut self, command: &mut Command) -> io::Result<ExitStatus> {
            command.status()
        }

        #[allow(clippy::unused_self, reason = "as on Unix")]
        pub(in super::super) fn exit_code(&mut self) -> Option<u8> {
            None
        }
    }
}
