//! Where GPU times stand on the host's time line.
//!
//! An event on a stream of our own that waits for nothing is passed right after it is recorded: readings
//! of the host's clock before and after tell when, and the distance between them how well that is known.
//! Events keep time by a clock of the device, and their distance is told with 24 bits only: the anchor is
//! taken anew before it is too old to say anything.

use std::time::{Duration, SystemTime};

use crate::clock::{clock, now};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::Failed;
use crate::cuda::ffi::driver::{Driver, Event};
use crate::stream_key::RawStream;

/// The step of the driver's numbers is 60 ns at a second.
const MAX_AGE_NS: f64 = 1e9;
/// Good enough to try no more.
const GOOD_NS: f64 = 20_000.0;
const TRIES: usize = 3;
/// How long the device may take to pass an event on a stream of its own.
const PATIENCE_NS: f64 = 2e6;
/// How far the clocks of a device and of a host may go apart, as long as it is not known: each of their crystals is
/// good to some parts in 10⁵.
const DRIFT: f64 = 1e-4;
/// No drift, but a clock that was set.
const SET: f64 = 1e-3;
/// Too short a time to learn a drift from.
const SHORT_NS: f64 = 2e8;

/// The anchor of one context.
#[derive(Debug)]
pub(crate) struct Anchor {
    stream: RawStream,
    /// The one in use, and the one before.
    events: [Event; 2],
    fix: Option<Fix>,
    tried: u64,
}

/// When the device passed the anchor's event.
#[derive(Clone, Copy, Debug)]
struct Fix {
    /// Read between the two readings. Ticks would become wall time to some parts in 10⁴ only: a tenth of a
    /// millisecond in a second.
    wall: SystemTime,
    /// The distance of the two readings: that of the event and of `wall` is no longer.
    width: f64,
    /// The host's nanoseconds for each of the device's.
    rate: f64,
    /// How far off that may be.
    rate_error: f64,
}

/// A place on the host's time line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) wall: SystemTime,
    pub(crate) uncertainty_ns: f64,
}

impl Anchor {
    /// In the current context.
    pub(crate) fn new(driver: &Driver) -> Result<Self, Failed> {
        let stream = driver.create_stream()?;
        match (driver.create_event(), driver.create_event()) {
            (Ok(one), Ok(other)) => Ok(Self {
                stream,
                events: [one, other],
                fix: None,
                tried: 0,
            }),
            (Err(failed), other) | (other, Err(failed)) => {
                if let Ok(other) = other {
                    driver.destroy_event(other);
                }
                driver.destroy_stream(stream);
                Err(failed)
            }
        }
    }

    /// In the current context.
    pub(crate) fn destroy(self, driver: &Driver) {
        self.events
            .iter()
            .for_each(|event| driver.destroy_event(*event));
        driver.destroy_stream(self.stream);
    }

    /// The event that all places are counted from.
    pub(crate) fn event(&self) -> Option<Event> {
        self.fix.map(|_| self.events[0])
    }

    /// How well places are known, in nanoseconds.
    pub(crate) fn uncertainty(&self) -> Option<f64> {
        self.fix.map(|fix| fix.width)
    }

    /// Takes it anew if it is too old; the event it was taken with before, where it was.
    pub(crate) fn renew_if_old(&mut self, driver: &Driver) -> Result<Option<Event>, Failed> {
        let age = clock().nanoseconds(now().saturating_sub(self.tried) as f64);
        if self.tried != 0 && age < MAX_AGE_NS {
            return Ok(None);
        }
        self.tried = now();
        let (before, known) = (self.event(), self.fix);
        self.events.swap(0, 1);
        let taken = self.try_to_take(driver);
        if self.fix.is_none() {
            // An old one is better than none.
            self.events.swap(0, 1);
            self.fix = known;
            return taken.map(|()| None);
        }
        if let (Some(before), Some(known)) = (before, known) {
            self.learn_rate(driver, before, known);
        }
        Ok(before)
    }

    /// How fast the two clocks go by each other, from where the anchor was to where it is.
    fn learn_rate(&mut self, driver: &Driver, before: Event, known: Fix) {
        let Some(fix) = &mut self.fix else { return };
        // Better than nothing where there is nothing new to be learnt.
        (fix.rate, fix.rate_error) = (known.rate, known.rate_error.max(DRIFT / 10.0));
        let Some(device) = driver.distance(before, self.events[0]) else {
            return;
        };
        let Ok(host) = fix.wall.duration_since(known.wall) else {
            return;
        };
        let rate = host.as_nanos() as f64 / device;
        let error = (fix.width + known.width) / device + f64::from(f32::EPSILON);
        if device > SHORT_NS && (rate - 1.0).abs() < SET && error < fix.rate_error {
            (fix.rate, fix.rate_error) = (rate, error);
        }
    }

    fn try_to_take(&mut self, driver: &Driver) -> Result<(), Failed> {
        for _ in 0..TRIES {
            // Each try records the event again.
            self.fix = None;
            self.fix = self.take(driver)?;
            if self.fix.is_some_and(|fix| fix.width < 2.0 * GOOD_NS) {
                break;
            }
        }
        Ok(())
    }

    /// None where the device does not answer in time; what is known then is nothing.
    fn take(&self, driver: &Driver) -> Result<Option<Fix>, Failed> {
        let before = now();
        driver.record(self.events[0], self.stream)?;
        let wall = SystemTime::now();
        loop {
            let code = driver.query(self.events[0]);
            let after = now();
            let width = clock().nanoseconds(after.saturating_sub(before) as f64);
            if code.is_ok() {
                return Ok(Some(Fix {
                    wall,
                    width,
                    rate: 1.0,
                    rate_error: DRIFT,
                }));
            }
            if code.fault() != crate::cuda::ffi::code::Fault::NotReady {
                return Err(Failed {
                    call: "cuEventQuery",
                    code,
                });
            }
            if width > PATIENCE_NS {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }

    /// When the device passed an event.
    pub(crate) fn place(&self, driver: &Driver, event: Event) -> Option<Place> {
        let fix = self.fix?;
        let ns = driver.distance(self.events[0], event)?;
        // The step of a number of 24 bits.
        let step = ns.abs() * f64::from(f32::EPSILON);
        let apart = Duration::try_from_secs_f64(ns.abs() * fix.rate / 1e9).ok()?;
        let wall = if ns < 0.0 {
            fix.wall.checked_sub(apart)
        } else {
            fix.wall.checked_add(apart)
        };
        Some(Place {
            wall: wall?,
            uncertainty_ns: fix.width + step + ns.abs() * fix.rate_error,
        })
    }
}
