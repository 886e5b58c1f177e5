//! The terminal: it is the program's while `top` runs, and is restored however it ends.

use std::io::{self, BufWriter, IsTerminal, Stdout};
use std::panic;
#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
#[cfg(unix)]
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

use super::canvas::Frame;
use super::keys::View;
use super::ranks::Job;
use super::screen;
use crate::error::Error;

/// How often the file is looked at, and its age is drawn.
const TICK: Duration = Duration::from_millis(200);

/// More than the changes of most frames: each is one write then, and the terminal shows nothing half drawn.
const FRAME: usize = 1 << 16;

/// How long a signal waits until the terminal is restored.
#[cfg(unix)]
const RESTORE: Duration = Duration::from_secs(1);

/// A terminal to which only what has changed is written.
struct Screen {
    output: BufWriter<Stdout>,
    shown: Frame,
}

impl Screen {
    fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        let (columns, rows) = size()?;
        let mut frame = Frame::new(columns.into(), rows.into());
        let (area, shown) = (frame.area(), self.shown.area());
        if (area.width, area.height) != (shown.width, shown.height) {
            queue!(self.output, Clear(ClearType::All))?;
            self.shown = Frame::new(columns.into(), rows.into());
        }
        draw(&mut frame);
        frame.write_changes(&self.shown, &mut self.output)?;
        self.shown = frame;
        Ok(())
    }
}

/// Takes the terminal. A panic gives it back before it says what is wrong.
fn enter() -> io::Result<Screen> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let _ = leave();
        hook(info);
    }));
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)?;
    Ok(Screen {
        output: BufWriter::with_capacity(FRAME, io::stdout()),
        shown: Frame::new(0, 0),
    })
}

/// Gives the terminal back as it was.
fn leave() -> io::Result<()> {
    let raw = disable_raw_mode();
    execute!(io::stdout(), LeaveAlternateScreen, Show)?;
    raw
}

/// Shows the files until a key or a signal ends it.
pub(super) fn run(job: Job, view: View) -> Result<(), Error> {
    if !io::stdin().is_terminal() {
        return Err(Error::Usage(
            "`top` needs a terminal to read keys from: with `| cat`, it prints one screen"
                .to_owned(),
        ));
    }
    let signals = Signals::watch().map_err(Error::Stdout)?;
    let shown = enter().and_then(|mut terminal| show(&mut terminal, job, view, &signals));
    let restored = leave();
    // The shell sees which signal ended the program.
    signals.raise();
    shown.and(restored).map_err(Error::Stdout)
}

fn show(terminal: &mut Screen, mut job: Job, mut view: View, signals: &Signals) -> io::Result<()> {
    loop {
        if !view.is_paused {
            job.look();
        }
        let now = SystemTime::now();
        terminal.draw(|frame| screen::draw(frame, &job, &mut view, now))?;
        // All keys that are there before the next drawing: a terminal sends a burst when text is pasted.
        let end = Instant::now() + TICK;
        let mut wait = TICK;
        while signals.pending().is_none() && event::poll(wait)? {
            if let Event::Key(key) = event::read()?
                && !view.press(key)
            {
                return Ok(());
            }
            wait = if Instant::now() < end {
                Duration::ZERO
            } else {
                break;
            };
        }
        if signals.pending().is_some() {
            return Ok(());
        }
    }
}

/// The signals that end the program: it restores the terminal first.
struct Signals {
    #[cfg(unix)]
    pending: Arc<AtomicI32>,
}

#[cfg(unix)]
impl Signals {
    fn watch() -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

        let pending = Arc::new(AtomicI32::new(0));
        let received = Arc::clone(&pending);
        let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
        let wait = move || {
            for signal in signals.forever() {
                received.store(signal, Relaxed);
                // Once its terminal is gone, crossterm waits for keys without end.
                thread::sleep(RESTORE);
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        };
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait)?;
        Ok(Self { pending })
    }

    fn pending(&self) -> Option<i32> {
        Some(self.pending.load(Relaxed)).filter(|signal| *signal != 0)
    }

    /// Ends the program as the signal would have ended it.
    fn raise(&self) {
        if let Some(signal) = self.pending() {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

/// On Windows, closing the console ends the program, and Ctrl-C is a key.
#[cfg(not(unix))]
impl Signals {
    fn watch() -> io::Result<Self> {
        Ok(Self {})
    }

    fn pending(&self) -> Option<i32> {
        None
    }

    fn raise(&self) {}
}
