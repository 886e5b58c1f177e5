//! A round of the thread that makes all calls of CUPTI: it subscribes, enables, flushes and unsubscribes.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, Release},
};
use std::time::{Duration, Instant};

use super::super::losses::{WorkLoss, lose};
use super::super::ready::{MAX_WAITING, with_ready};
use super::super::record::kind;
use super::super::status::KernelStatus;
use super::super::table::{Code, Cupti, Refused, Subscriber};
use super::super::{buffers, callback, calls, discovery, names};
use super::{
    ATTEMPT, ATTEMPTED, Demand, FLUSH, FLUSHED, GATE, IS_STARTING, IS_SUBSCRIBED, RECORDING,
    Recording, set_status, status, wake,
};
use crate::clock::{clock, now, unix_ns};
use crate::cuda::ffi::driver::Driver;
use crate::cuda::ffi::library;
use crate::diagnostics;
use crate::process::platform;
use crate::switch::with_control;
use crate::sync::RaceCell;

/// The records that are asked for. Only kernels are indispensable.
const KINDS: [u32; 5] = [
    kind::CONCURRENT_KERNEL,
    kind::MEMCPY,
    kind::MEMCPY_PEER,
    kind::MEMSET,
    kind::SYNCHRONIZATION,
];
/// The pause between rounds while something is recorded or awaited.
const PAUSE: Duration = Duration::from_millis(10);
/// The pause between flushes that no window has asked for: they keep buffers from filling up.
const FLUSH_PERIOD: Duration = Duration::from_millis(100);
/// A difference between CUPTI's clock and the profiler's that is attributed to the readings themselves, in nanoseconds.
const CLOCK_TOLERANCE: i64 = 1_000;

/// The time by which CUPTI dates its records: the system's clock, as the windows' time line.
extern "C" fn clock_ns() -> u64 {
    u64::try_from(unix_ns(platform::wall_time())).unwrap_or_default()
}

#[derive(Debug, Default)]
pub(super) struct Recorder {
    subscriber: Option<(&'static Cupti, Subscriber)>,
    is_recording: bool,
    /// The attempt that failed last, which is not repeated.
    failed: Option<u32>,
    /// The nanoseconds that are added to CUPTI's times.
    clock_offset: i64,
    /// When the last flush began, in ticks.
    flushed: u64,
}

impl Drop for Recorder {
    /// After a panic: lets other tools use CUPTI, and windows be delivered.
    fn drop(&mut self) {
        IS_STARTING.store(false, Relaxed);
        // While the process exits, CUPTI may be gone.
        let inside = GATE.enter(now());
        if inside.is_some() {
            self.pause();
            if let Some((cupti, subscriber)) = self.subscriber.take() {
                let _ = cupti.unsubscribe(subscriber);
            }
        }
        callback::stop();
        *RECORDING.lock() = None;
        IS_SUBSCRIBED.store(false, Release);
    }
}

impl Recorder {
    /// Runs one round. Returns how long to wait until the next one, or `None` while nothing is wanted.
    pub(super) fn round(&mut self) -> Option<Duration> {
        let _inside = GATE.enter(now())?;
        let driver = library::driver()?;
        let (demand, attempt) = (Demand::now(), ATTEMPT.load(Relaxed));
        let wants = demand >= Demand::IfPossible;
        if wants && !self.is_recording && self.failed != Some(attempt) {
            self.attempt(driver, demand, attempt);
            if GATE.is_closed() {
                return None;
            }
        } else if wants {
            // It records already, or has failed.
            ATTEMPTED.store(attempt, Release);
        } else if self.is_recording {
            self.pause();
        }
        let begun = now();
        let asked = FLUSH.swap(0, Relaxed);
        if let Some((cupti, _)) = self.subscriber {
            let period = clock().in_ticks(FLUSH_PERIOD);
            let is_due = self.is_recording && begun.saturating_sub(self.flushed) >= period;
            if asked > 0 || is_due {
                let is_forced = asked > 1 && !self.is_recording;
                let _ = cupti.flush(is_forced);
                self.flushed = begun;
                lose(WorkLoss::Dropped, cupti.take_dropped());
            }
        }
        self.collect();
        // After `collect`: a window that sees the flush finds what it gave.
        if asked > 0 {
            FLUSHED[0].store(begun, Release);
        }
        if asked > 1 {
            FLUSHED[1].store(begun, Release);
        }
        if demand == Demand::Nothing {
            self.end();
        }
        let is_waiting = wants && self.failed != Some(attempt);
        (is_waiting || self.subscriber.is_some()).then_some(PAUSE)
    }

    /// Begins to record, if the program has initialised the driver.
    fn attempt(&mut self, driver: &Driver, demand: Demand, attempt: u32) {
        if !driver.is_initialised() {
            set_status(KernelStatus::NoDriver);
        } else if let Err(status) = self.start_watched(driver) {
            self.failed = Some(attempt);
            if demand == Demand::Required && !GATE.is_closed() {
                diagnostics::warn_once(&format!("{status}; kernels are left out"));
            }
            set_status(status);
        }
        ATTEMPTED.store(attempt, Release);
    }

    /// Begins to record. An exit of the process waits longer meanwhile.
    fn start_watched(&mut self, driver: &Driver) -> Result<(), KernelStatus> {
        IS_STARTING.store(true, Relaxed);
        let started = self.start(driver);
        IS_STARTING.store(false, Relaxed);
        started
    }

    fn start(&mut self, driver: &Driver) -> Result<(), KernelStatus> {
        let begun = Instant::now();
        if !self.was_ready() {
            set_status(KernelStatus::Starting);
        }
        let cupti = library_of(driver)?;
        let refused = |refused: Refused| KernelStatus::Refused {
            call: refused.call.to_owned(),
            code: refused.code.0,
            name: cupti.name_of(refused.code),
        };
        unless_exiting().map_err(refused)?;
        let subscriber = match self.subscriber {
            Some((_, subscriber)) => subscriber,
            None => subscribe(cupti).map_err(|error| match error.code {
                code if code.means_taken() => KernelStatus::Taken {
                    tool: cupti.subscribed_tool(callback::callback),
                },
                _ => refused(error),
            })?,
        };
        self.subscriber = Some((cupti, subscriber));
        if let Err(error) = enable(cupti, subscriber) {
            // While the process exits, CUPTI is not called any more.
            if !GATE.is_closed() {
                self.end();
            }
            return Err(refused(error));
        }
        self.clock_offset = clock_offset(cupti);
        // Before the first call is noted: what windows see of the period is complete.
        *RECORDING.lock() = Some(Recording {
            since: now(),
            clock_offset: self.clock_offset,
        });
        IS_SUBSCRIBED.store(true, Release);
        callback::start(wake);
        self.is_recording = true;
        if !self.was_ready() {
            set_status(KernelStatus::Ready {
                library: cupti.library.clone(),
                version: cupti.version(),
                first_enable: begun.elapsed(),
            });
        }
        Ok(())
    }

    /// Returns `true` if CUPTI has recorded before, so that how long its first start took is known.
    #[allow(clippy::unused_self, reason = "the recorder's state, kept for users")]
    fn was_ready(&self) -> bool {
        status().is_ready()
    }

    /// Ends the recording. CUPTI still records the work that was launched before.
    fn pause(&mut self) {
        callback::stop();
        self.is_recording = false;
        *RECORDING.lock() = None;
        let Some((cupti, subscriber)) = self.subscriber else {
            return;
        };
        for call in calls::all() {
            let _ = cupti.set_callback(false, subscriber, call.domain, call.number);
        }
        for kind in KINDS {
            let _ = cupti.disable(kind);
        }
    }

    /// Lets other tools use CUPTI. Before that, takes what it has, though nothing waits for it.
    fn end(&mut self) {
        let Some((cupti, subscriber)) = self.subscriber else {
            return;
        };
        self.pause();
        let _ = cupti.flush(true);
        lose(WorkLoss::Dropped, cupti.take_dropped());
        self.collect();
        let _ = cupti.unsubscribe(subscriber);
        self.subscriber = None;
        IS_SUBSCRIBED.store(false, Release);
    }

    /// Moves launches and records to where the windows take them.
    fn collect(&mut self) {
        let offset = self.clock_offset;
        with_ready(|ready| {
            callback::drain(|launch| {
                if ready.launches.len() < MAX_WAITING {
                    ready.launches.push(launch);
                } else {
                    lose(WorkLoss::LaunchQueueFull, 1);
                }
            });
            buffers::read(|mut activity| {
                for time in [&mut activity.start, &mut activity.end] {
                    if *time != 0 {
                        *time = time.saturating_add_signed(offset);
                    }
                }
                if ready.activities.len() < MAX_WAITING {
                    ready.activities.push(activity);
                } else {
                    lose(WorkLoss::QueueFull, 1);
                }
            });
            ready.names.extend(names::take_new());
        });
    }
}

/// Returns CUPTI's library, and looks for it on the first call that finds it.
fn library_of(driver: &Driver) -> Result<&'static Cupti, KernelStatus> {
    static LIBRARY: RaceCell<Cupti> = RaceCell::new();
    if let Some(known) = LIBRARY.get() {
        return Ok(known);
    }
    let setting = with_control(|control| control.settings.cupti_library.clone());
    let found = discovery::find(setting.as_deref(), driver.version())?;
    Ok(LIBRARY.get_or_init(|| found))
}

fn subscribe(cupti: &'static Cupti) -> Result<Subscriber, Refused> {
    // Before any other call: it tells whether another tool is there.
    let subscriber = cupti.subscribe(callback::callback)?;
    if !buffers::prepare(cupti, wake) {
        let _ = cupti.unsubscribe(subscriber);
        return Err(Refused {
            call: "buffers",
            code: Code::OUT_OF_MEMORY,
        });
    }
    Ok(subscriber)
}

/// Returns an error if the process exits: then CUPTI is called no more.
fn unless_exiting() -> Result<(), Refused> {
    if GATE.is_closed() {
        return Err(Refused {
            call: "the exit of the process",
            code: Code::UNKNOWN,
        });
    }
    Ok(())
}

/// Enables the callbacks and the records. The first time may take seconds.
fn enable(cupti: &'static Cupti, subscriber: Subscriber) -> Result<(), Refused> {
    static HAS_CLOCK: AtomicBool = AtomicBool::new(false);
    cupti.register_buffers(buffers::requested, buffers::completed)?;
    if !HAS_CLOCK.swap(true, Relaxed) {
        cupti.buffers_are_zeroed();
        cupti.register_clock(clock_ns);
    }
    for call in calls::all() {
        unless_exiting()?;
        // Older libraries know fewer calls.
        let enabled = cupti.set_callback(true, subscriber, call.domain, call.number);
        if call.is_essential() {
            enabled?;
        }
    }
    for kind in KINDS {
        unless_exiting()?;
        let enabled = cupti.enable(kind);
        if kind == kind::CONCURRENT_KERNEL {
            enabled?;
        }
    }
    Ok(())
}

/// Returns what must be added to CUPTI's times to get the profiler's, in nanoseconds: zero if CUPTI uses the profiler's
/// clock. Compares one reading of its clock with readings around it.
fn clock_offset(cupti: &Cupti) -> i64 {
    let before = clock_ns();
    let Some(read) = cupti.timestamp() else {
        return 0;
    };
    offset_of(before, read, clock_ns())
}

fn offset_of(before: u64, read: u64, after: u64) -> i64 {
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let (before, read, after) = (signed(before), signed(read), signed(after));
    if (before - CLOCK_TOLERANCE..=after.saturating_add(CLOCK_TOLERANCE)).contains(&read) {
        return 0;
    }
    (before + (after - before) / 2).saturating_sub(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_between_two_readings_is_the_same_one() {
        assert_eq!(offset_of(10_000, 10_500, 11_000), 0);
        assert_eq!(offset_of(10_000, 9_500, 11_000), 0);
        assert_eq!(offset_of(10_000, 500, 11_000), 10_000);
        assert_eq!(offset_of(10_000, 20_500, 11_000), -10_000);
    }
}
