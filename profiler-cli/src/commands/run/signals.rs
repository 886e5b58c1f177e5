//! Signals while a program runs.

#[cfg(not(unix))]
pub(super) use self::none::Signals;
#[cfg(unix)]
pub(super) use self::unix::Signals;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::process::{Child, Command, ExitStatus};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::thread;

    use rustix::io::retry_on_intr;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
    use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
    use signal_hook::flag::{register, register_conditional_shutdown};
    use signal_hook::iterator::Signals as Received;

    use super::super::RunError;

    /// Notes signals that would end this program, and lets the program that runs end first; then nothing else is started.
    ///
    /// A terminal sends Ctrl-C to both programs; the second one ends this program at once. SIGTERM is passed on: if it was
    /// sent to this program alone, the other one would stay. Service managers and `timeout` send it to both, so the other
    /// one may get it twice.
    ///
    /// A signal that was blocked when this program started remains blocked, here and in the program that runs, as in any
    /// program. Waiting for the end of the other one needs no signal.
    pub(in super::super) struct Signals {
        interrupted: Arc<AtomicBool>,
        terminated: Arc<AtomicBool>,
        running: Arc<Running>,
    }

    impl Signals {
        pub(in super::super) fn watch() -> Self {
            let interrupted = Arc::new(AtomicBool::new(false));
            // The first of these acts on the second signal, since the other one sets the flag after it. Without them, the
            // signal ends this program at once, and the files are complete all the same.
            let _ = register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupted));
            let _ = register(SIGINT, Arc::clone(&interrupted));
            // If SIGCHLD was ignored when this program started, it has no exit status of another one.
            let _ = register(SIGCHLD, Arc::new(AtomicBool::new(false)));
            let terminated = Arc::new(AtomicBool::new(false));
            let running = Arc::new(Running(Mutex::new(None)));
            // The flag comes first: `run` looks at it after the thread may have found no program.
            if register(SIGTERM, Arc::clone(&terminated)).is_ok() {
                pass_on(SIGTERM, Arc::clone(&running));
            }
            Self {
                interrupted,
                terminated,
                running,
            }
        }

        /// Runs a program to its end. Returns the id that its process had, and its status.
        pub(in super::super) fn run(
            &self,
            command: &mut Command,
        ) -> Result<(u32, ExitStatus), RunError> {
            let mut child = command.spawn().map_err(RunError::Start)?;
            self.running.begin(&child);
            // A signal that came before is not passed on by the thread.
            if self.terminated.load(Relaxed) {
                self.running.terminate();
            }
            let status = self.running.end(&mut child).map_err(RunError::Wait)?;
            Ok((child.id(), status))
        }

        /// Returns the exit status of this program if a signal has asked it to end.
        pub(in super::super) fn exit_code(&self) -> Option<u8> {
            if self.terminated.load(Relaxed) {
                Some(128 + 15)
            } else {
                self.interrupted.load(Relaxed).then_some(130)
            }
        }
    }

    /// Starts a thread that passes a signal on. If the system refuses it, the program that runs ends by itself first.
    fn pass_on(signal: i32, running: Arc<Running>) {
        let Ok(mut received) = Received::new([signal]) else {
            return;
        };
        let wait = move || {
            for _ in received.forever() {
                running.terminate();
            }
        };
        let _ = thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait);
    }

    /// The process of the program that runs, until it is waited for: after that, its number may be that of another process.
    struct Running(Mutex<Option<Pid>>);

    impl Running {
        fn lock(&self) -> MutexGuard<'_, Option<Pid>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn begin(&self, child: &Child) {
            *self.lock() = Some(Pid::from_child(child));
        }

        /// Asks the process to end, if there is one.
        fn terminate(&self) {
            // The lock is held meanwhile, so the process has not been waited for.
            if let Some(process) = *self.lock() {
                // It fails only if the process has other rights than this program.
                let _ = kill_process(process, Signal::TERM);
            }
        }

        /// Waits for the end of the process, and removes it from the system.
        fn end(&self, child: &mut Child) -> io::Result<ExitStatus> {
            let id = WaitId::Pid(Pid::from_child(child));
            // The process keeps its number here. If this fails, the other wait says why.
            let _ =
                retry_on_intr(|| waitid(id.clone(), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
            *self.lock() = None;
            child.wait()
        }
    }
}

#[cfg(not(unix))]
mod none {
    use std::process::{Command, ExitStatus};

    use super::super::RunError;

    /// Does nothing: here, Ctrl-C ends both programs at once.
    pub(in super::super) struct Signals;

    impl Signals {
        pub(in super::super) fn watch() -> Self {
            Self
        }

        #[allow(clippy::unused_self, reason = "as on Unix")]
        pub(in super::super) fn run(
            &self,
            command: &mut Command,
        ) -> Result<(u32, ExitStatus), RunError> {
            let mut child = command.spawn().map_err(RunError::Start)?;
            let status = child.wait().map_err(RunError::Wait)?;
            Ok((child.id(), status))
        }

        #[allow(clippy::unused_self, reason = "as on Unix")]
        pub(in super::super) fn exit_code(&self) -> Option<u8> {
            None
        }
    }
}
