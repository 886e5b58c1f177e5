//! One device that is sampled.

use std::time::SystemTime;

use profiler_cuda_sys::nvml::Table;
use profiler_host::diagnostics;
use profiler_host::process::platform::Instant;
use profiler_host::sync::Lock;
use profiler_report::internal::EnergySource;
use profiler_report::{GpuQuantity, GpuSample};
use profiler_sensors::{EnergyReading, Note, Observer, Sampled, Sensors};

use super::energy::{self, Reading};
use super::intervals::Measured;
use super::logged::Logged;
use super::store::{self, Store};
use crate::clock::{now, unix_ns};

/// One device, with what the next sample is compared with.
pub(super) struct SampledDevice {
    pub(super) sensors: Sensors,
    before: Option<Before>,
    logged: Logged,
}

/// The last reading of the energy.
#[derive(Clone, Copy)]
struct Before {
    energy: Option<EnergyReading>,
    at: Instant,
}

impl SampledDevice {
    pub(super) fn new(sensors: Sensors) -> Self {
        Self {
            sensors,
            before: None,
            logged: Logged::default(),
        }
    }

    /// Takes a sample and stores it.
    pub(super) fn sample(&mut self, table: &Table, observer: &impl Observer, store: &Lock<Store>) {
        if self.sensors.is_lost {
            return;
        }
        let begun = unix_ns(SystemTime::now());
        let mut sampled = self.sensors.read(table, observer);
        // Readings are missing from then on.
        if observer.has_ended() {
            return;
        }
        let at = Instant::now();
        let ended = unix_ns(SystemTime::now());
        let read_at = energy::reading_at(
            now(),
            ended,
            sampled.energy.and_then(|energy| energy.unix_ns),
        );
        let reading = self.reading(&mut sampled, at);
        let sample = GpuSample {
            device: 0,
            unix_ns: begun.midpoint(ended),
            uncertainty_ns: ended.abs_diff(begun) / 2,
            readings: sampled.readings,
            throttle: sampled.throttle,
            merged: None,
            non_exhaustive: (),
        };
        for note in self.sensors.notes.drain(..) {
            let (Note::Known(text) | Note::Warning(text)) = &note;
            store.lock().note(text.clone());
            if let Note::Warning(text) = &note {
                diagnostics::warn_once(text);
            }
        }
        if sample.readings.iter().next().is_none() {
            return;
        }
        let logged = sample.clone();
        let mut stored = store.lock();
        let place = stored.add_device(self.sensors.device.clone());
        if let Some(entry) = stored.device_mut(place) {
            store::add(entry, sample);
        }
        drop(stored);
        if let Some(reading) = reading {
            energy::read(&self.sensors.device, read_at, reading);
        }
        self.logged.add(&self.sensors.device, logged);
    }

    /// Forgets what the next sample would be compared with.
    pub(super) fn rest(&mut self) {
        self.before = None;
        self.sensors.forget_counters();
    }

    /// Decides how the log names the device.
    pub(super) fn decide_name(&mut self) {
        self.logged.decide(&self.sensors.device);
    }

    /// Returns the energy since the last sample in which it was known; `None` if the counter has not advanced since.
    fn reading(&mut self, sampled: &mut Sampled, at: Instant) -> Option<Reading> {
        let now = Before {
            energy: sampled.energy,
            at,
        };
        let Some(before) = self.before else {
            self.before = Some(now);
            return Some(Reading::First);
        };
        let host_ns = at.saturating_duration_since(before.at).as_nanos() as f64;
        if let (Some(counter), Some(known)) = (now.energy, before.energy) {
            let Some(millijoules) = counter.millijoules.since(known.millijoules) else {
                let index = self.sensors.device.nvml_index;
                self.sensors.notes.push(Note::Warning(format!(
                    "the energy counter of GPU {index} of nvidia-smi went back: the energy of one interval is missing"
                )));
                self.before = Some(now);
                return Some(Reading::First);
            };
            sampled
                .readings
                .set(GpuQuantity::Energy, Some(millijoules / 1e3));
            // Between two steps of the counter, the next sample has the energy of both intervals.
            if counter.millijoules == known.millijoules {
                return None;
            }
            let device_ns = counter.unix_ns.zip(known.unix_ns);
            let device_ns = device_ns.map(|(now, before)| now.saturating_sub(before) as f64);
            self.before = Some(now);
            return Some(Reading::Measured(Measured {
                source: EnergySource::Counter,
                joules: millijoules / 1e3,
                ns: device_ns.filter(|ns| *ns > 0.0).unwrap_or(host_ns),
            }));
        }
        self.before = Some(now);
        let Some(watts) = sampled.readings.get(GpuQuantity::Power) else {
            return Some(Reading::First);
        };
        let joules = watts * host_ns / 1e9;
        sampled.readings.set(GpuQuantity::Energy, Some(joules));
        Some(Reading::Measured(Measured {
            source: EnergySource::Power,
            joules,
            ns: host_ns,
        }))
    }
}
