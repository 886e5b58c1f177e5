//! Converts times of a device to times of the host.
//!
//! The driver tells only how far apart two events are. To find out when an event was passed on the host's time line,
//! the resolver records an event of its own, the anchor, on a stream that never has other work. The device passes it at
//! once, so readings of the host's clock before and after tell when, to within the distance of the two readings. The
//! time of any other event follows from its distance to the anchor.
//!
//! Two errors grow with that distance: the driver rounds it to the 24 bits of an `f32`, and the clocks of host and
//! device drift apart. So the anchor is renewed about once a second, and the drift is measured from one anchor to the
//! next.

use std::time::{Duration, SystemTime};

use profiler_cuda_sys::driver::{Event, Failed, Fault};
use profiler_report::internal::RawStream;

use crate::clock::{clock, now};
use crate::cuda::ffi::EventApi;

/// The anchor is renewed after this time. At a distance of a second, 24 bits resolve 60 ns.
const MAX_AGE_NS: f64 = 1e9;
/// An uncertainty below which no further attempt is made.
const GOOD_NS: f64 = 40_000.0;
const ATTEMPTS: usize = 3;
/// How long an attempt waits for the device to pass the event.
const PATIENCE_NS: f64 = 2e6;
/// The assumed drift until it has been measured: crystals are accurate to some parts in 10⁵.
const UNKNOWN_DRIFT: f64 = 1e-4;
/// A larger drift is not plausible: the host's clock was set.
const MAX_DRIFT: f64 = 1e-3;
/// The shortest time over which the drift is measured.
const MIN_DRIFT_SPAN_NS: f64 = 2e8;

/// The anchor of one context.
#[derive(Debug)]
pub(super) struct Anchor {
    stream: RawStream,
    /// The event in use, and the one before it: distances to the former anchor are needed once more after a renewal.
    events: [Event; 2],
    calibration: Option<Calibration>,
    /// When the last renewal was attempted, in ticks; zero for never.
    attempted_at: u64,
}

/// When the device passed the anchor's event, and how its clock relates to the host's.
#[derive(Clone, Copy, Debug)]
struct Calibration {
    /// The host's time between the two readings. Not converted from ticks: the length of a tick is known to some parts
    /// in 10⁴ only, which is a tenth of a millisecond in a second.
    wall: SystemTime,
    /// The distance of the two readings, in nanoseconds: the event was passed no farther from `wall`.
    uncertainty_ns: f64,
    /// Nanoseconds of the host per nanosecond of the device.
    rate: f64,
    /// The largest error of `rate`.
    rate_error: f64,
}

/// A time of the device, on the host's time line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTime {
    pub(crate) wall: SystemTime,
    pub(crate) uncertainty_ns: f64,
}

impl Anchor {
    /// Creates an anchor in the current context.
    pub(super) fn new(driver: &impl EventApi) -> Result<Self, Failed> {
        let stream = driver.create_stream()?;
        match (driver.create_event(), driver.create_event()) {
            (Ok(one), Ok(other)) => Ok(Self {
                stream,
                events: [one, other],
                calibration: None,
                attempted_at: 0,
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

    /// Destroys the anchor, whose context must be current.
    pub(super) fn destroy(self, driver: &impl EventApi) {
        self.events
            .iter()
            .for_each(|event| driver.destroy_event(*event));
        driver.destroy_stream(self.stream);
    }

    /// Returns the event that all distances are measured from, once the device has passed it.
    pub(super) fn event(&self) -> Option<Event> {
        self.calibration.map(|_| self.events[0])
    }

    /// Returns the uncertainty of the anchor itself, in nanoseconds.
    pub(super) fn uncertainty(&self) -> Option<f64> {
        self.calibration
            .map(|calibration| calibration.uncertainty_ns)
    }

    /// Renews the anchor if it is too old. Returns the former event if another one is in use now: distances to it are
    /// still known.
    pub(super) fn renew_if_old(&mut self, driver: &impl EventApi) -> Result<Option<Event>, Failed> {
        let age = clock().nanoseconds(now().saturating_sub(self.attempted_at) as f64);
        if self.attempted_at != 0 && age < MAX_AGE_NS {
            return Ok(None);
        }
        self.attempted_at = now();
        let (before, known) = (self.event(), self.calibration);
        self.events.swap(0, 1);
        let calibrated = self.calibrate(driver);
        if self.calibration.is_none() {
            // An old anchor is better than none.
            self.events.swap(0, 1);
            self.calibration = known;
            return calibrated.map(|()| None);
        }
        if let (Some(before), Some(known)) = (before, known) {
            self.measure_drift(driver, before, known);
        }
        Ok(before)
    }

    /// Computes the rate of the two clocks from the former anchor and this one.
    fn measure_drift(&mut self, driver: &impl EventApi, before: Event, known: Calibration) {
        let Some(calibration) = &mut self.calibration else {
            return;
        };
        // The former rate is the best guess until a new one is known, with an error that does not shrink forever: the
        // drift changes with the temperature.
        calibration.rate = known.rate;
        calibration.rate_error = known.rate_error.max(UNKNOWN_DRIFT / 10.0);
        let Some(device) = driver.distance(before, self.events[0]) else {
            return;
        };
        let Ok(host) = calibration.wall.duration_since(known.wall) else {
            return;
        };
        let rate = host.as_nanos() as f64 / device;
        let error =
            (calibration.uncertainty_ns + known.uncertainty_ns) / device + f64::from(f32::EPSILON);
        let is_plausible = device > MIN_DRIFT_SPAN_NS && (rate - 1.0).abs() < MAX_DRIFT;
        if is_plausible && error < calibration.rate_error {
            (calibration.rate, calibration.rate_error) = (rate, error);
        }
    }

    /// Records the event until the device passes it quickly enough, [`ATTEMPTS`] times at most.
    fn calibrate(&mut self, driver: &impl EventApi) -> Result<(), Failed> {
        for _ in 0..ATTEMPTS {
            // Recording the event again makes the attempt before void.
            self.calibration = None;
            self.calibration = self.attempt(driver)?;
            if self.uncertainty().is_some_and(|ns| ns < GOOD_NS) {
                break;
            }
        }
        Ok(())
    }

    /// Records the event and waits for the device. Returns `None` if that takes too long.
    fn attempt(&self, driver: &impl EventApi) -> Result<Option<Calibration>, Failed> {
        let before = now();
        driver.record(self.events[0], self.stream)?;
        let wall = SystemTime::now();
        loop {
            let code = driver.query(self.events[0]);
            let after = now();
            let uncertainty_ns = clock().nanoseconds(after.saturating_sub(before) as f64);
            if code.is_ok() {
                return Ok(Some(Calibration {
                    wall,
                    uncertainty_ns,
                    rate: 1.0,
                    rate_error: UNKNOWN_DRIFT,
                }));
            }
            if code.fault() != Fault::NotReady {
                return Err(Failed {
                    call: "cuEventQuery",
                    code,
                });
            }
            if uncertainty_ns > PATIENCE_NS {
                return Ok(None);
            }
            std::hint::spin_loop();
        }
    }

    /// Returns when the device passed an event, on the host's time line.
    pub(super) fn host_time(&self, driver: &impl EventApi, event: Event) -> Option<HostTime> {
        let calibration = self.calibration?;
        let ns = driver.distance(self.events[0], event)?;
        let rounding = ns.abs() * f64::from(f32::EPSILON);
        let distance = Duration::try_from_secs_f64(ns.abs() * calibration.rate / 1e9).ok()?;
        let wall = if ns < 0.0 {
            calibration.wall.checked_sub(distance)
        } else {
            calibration.wall.checked_add(distance)
        };
        Some(HostTime {
            wall: wall?,
            uncertainty_ns: calibration.uncertainty_ns
                + rounding
                + ns.abs() * calibration.rate_error,
        })
    }
}

#[cfg(test)]
mod tests;
