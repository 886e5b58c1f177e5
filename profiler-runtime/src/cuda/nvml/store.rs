//! The samples of all devices, in bounded memory.

use profiler_report::internal::{DeviceSamples, GpuSamples};
use profiler_report::{GpuDevice, GpuSample, ThrottleReasons};

/// The most samples that a device has. At one sample per second, the last hour is kept as it was.
const MAX_SAMPLES: usize = 8_192;
/// The most notes.
const MAX_NOTES: usize = 64;

/// All that the sampler has stored.
#[derive(Debug)]
pub(super) struct Store {
    devices: Vec<DeviceSamples>,
    notes: Vec<String>,
}

impl Store {
    pub(super) const fn new() -> Self {
        Self {
            devices: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the index of a device, which is added if it is new.
    pub(super) fn add_device(&mut self, device: GpuDevice) -> usize {
        let is_known = |known: &DeviceSamples| known.device.uuid == device.uuid;
        let place = self.devices.iter().position(is_known);
        let place = place.unwrap_or_else(|| {
            self.devices.push(DeviceSamples::default());
            self.devices.len() - 1
        });
        if let Some(entry) = self.devices.get_mut(place) {
            entry.device = device;
        }
        place
    }

    pub(super) fn device_mut(&mut self, place: usize) -> Option<&mut DeviceSamples> {
        self.devices.get_mut(place)
    }

    /// Leaves out all devices but those with these UUIDs.
    pub(super) fn keep_devices(&mut self, uuids: &[&str]) {
        self.devices
            .retain(|known| uuids.contains(&known.device.uuid.as_str()));
    }

    /// Adds a note, once.
    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Returns a copy of everything, without the devices that have no samples.
    pub(super) fn snapshot(&self, interval_ns: u64) -> GpuSamples {
        self.select(interval_ns, Clone::clone)
    }

    /// Returns the samples of a window.
    pub(super) fn between(&self, interval_ns: u64, (opened, closed): (i64, i64)) -> GpuSamples {
        self.select(interval_ns, |device| {
            let samples = within(&device.samples, interval_ns, (opened, closed));
            let mut selected = DeviceSamples {
                device: device.device.clone(),
                ..DeviceSamples::default()
            };
            for sample in samples {
                add(&mut selected, sample.clone());
            }
            selected
        })
    }

    fn select(
        &self,
        interval_ns: u64,
        copy: impl Fn(&DeviceSamples) -> DeviceSamples,
    ) -> GpuSamples {
        let mut selected = GpuSamples {
            interval_ns,
            notes: self.notes.clone(),
            devices: Vec::new(),
        };
        for device in &self.devices {
            let mut copied = copy(device);
            if copied.samples.is_empty() {
                continue;
            }
            let index = u32::try_from(selected.devices.len()).unwrap_or(u32::MAX);
            for sample in copied.samples.iter_mut().chain(&mut copied.totals.all) {
                sample.device = index;
            }
            selected.devices.push(copied);
        }
        selected
    }
}

/// Returns the samples between two times, and one on each side, unless it is more than two intervals away: sampling was
/// paused in between.
fn within(samples: &[GpuSample], interval_ns: u64, (opened, closed): (i64, i64)) -> &[GpuSample] {
    let mut first = samples.partition_point(|sample| sample.end_unix_ns() < opened);
    let mut end = samples.partition_point(|sample| sample.unix_ns <= closed);
    let is_near = |from: i64, to: i64| from.abs_diff(to) <= interval_ns.saturating_mul(2);
    let before = first.checked_sub(1);
    if before
        .and_then(|place| samples.get(place))
        .is_some_and(|sample| is_near(sample.end_unix_ns(), opened))
    {
        first -= 1;
    }
    if samples
        .get(end)
        .is_some_and(|sample| is_near(sample.unix_ns, closed))
    {
        end += 1;
    }
    samples.get(first..end).unwrap_or_default()
}

/// Adds a sample to a device.
pub(super) fn add(device: &mut DeviceSamples, sample: GpuSample) {
    let totals = &mut device.totals;
    if let Some(reasons) = sample.throttle {
        let samples = sample.samples();
        totals.with_reasons += samples;
        for (count, (reason, _)) in totals.reasons.iter_mut().zip(ThrottleReasons::NAMED) {
            *count += samples * u64::from(reasons.intersects(reason));
        }
    }
    totals.all = Some(match totals.all.take() {
        Some(all) => all.merge(&sample),
        None => sample.clone(),
    });
    if device.samples.len() >= MAX_SAMPLES {
        merge_older_half(&mut device.samples);
    }
    device.samples.push(sample);
}

/// Merges the older half of the samples, two at a time.
fn merge_older_half(samples: &mut Vec<GpuSample>) {
    let recent = samples.split_off(samples.len() / 2);
    let mut merged: Vec<GpuSample> = samples
        .chunks(2)
        .filter_map(|pair| match pair {
            [first, second] => Some(first.merge(second)),
            [single] => Some(single.clone()),
            _ => None,
        })
        .collect();
    merged.extend(recent);
    *samples = merged;
}

#[cfg(test)]
mod tests {
    use profiler_report::internal::Merged;
    use profiler_report::{GpuQuantity, GpuReadings};

    use super::*;

    fn sample(second: i64) -> GpuSample {
        let mut readings = GpuReadings::NONE;
        readings.set(GpuQuantity::Power, Some(second as f64));
        readings.set(GpuQuantity::Energy, Some(2.0));
        GpuSample {
            unix_ns: second * 1_000_000_000,
            readings,
            throttle: Some(ThrottleReasons::from_bits(u64::from(second % 4 == 0) * 4)),
            ..GpuSample::default()
        }
    }

    /// `docs/decisions/profiler-runtime.md` says 3.3 MB.
    const MAX_BYTES: usize = 3_350_000;

    fn bytes(samples: &[GpuSample]) -> usize {
        let merged = samples.iter().filter(|sample| sample.merged.is_some());
        size_of_val(samples) + merged.count() * size_of::<Merged>()
    }

    #[test]
    fn a_long_run_keeps_its_recent_samples_and_the_extremes_of_the_others() {
        const SAMPLES: i64 = 50_000;
        let mut device = DeviceSamples::default();
        for second in 1..=SAMPLES {
            add(&mut device, sample(second));
            assert!(device.samples.len() <= MAX_SAMPLES && bytes(&device.samples) < MAX_BYTES);
        }
        let counted: u64 = device.samples.iter().map(GpuSample::samples).sum();
        assert_eq!(counted, SAMPLES as u64);
        let energy = |sample: &GpuSample| sample.get(GpuQuantity::Energy).unwrap_or(0.0);
        let joules: f64 = device.samples.iter().map(energy).sum();
        assert!((joules - 2.0 * SAMPLES as f64).abs() < 1e-6);
        let last_quarter = &device.samples[device.samples.len() - MAX_SAMPLES / 4..];
        assert!(last_quarter.iter().all(|sample| sample.samples() == 1));
        let is_ordered = |pair: &[GpuSample]| pair[0].end_unix_ns() < pair[1].unix_ns;
        assert!(device.samples.windows(2).all(is_ordered));

        let all = device.totals.all.expect("samples");
        let power = GpuQuantity::Power;
        assert_eq!(
            (all.min(power), all.max(power)),
            (Some(1.0), Some(50_000.0))
        );
        assert!((all.get(power).unwrap_or(0.0) - 25_000.5).abs() < 1e-3);
        assert_eq!(all.held_back(), SAMPLES as u64 / 4);
        assert_eq!(device.totals.with_reasons, SAMPLES as u64);
        assert_eq!(device.totals.reasons[2], SAMPLES as u64 / 4);
    }

    #[test]
    fn a_window_has_one_sample_on_each_side() {
        let mut store = Store::new();
        let place = store.add_device(GpuDevice::default());
        for second in 1..=9 {
            add(store.device_mut(place).expect("the device"), sample(second));
        }
        // Times are in milliseconds.
        let sampled_every = |interval: u64, opened: i64, closed: i64| {
            let ends = (opened * 1_000_000, closed * 1_000_000);
            let samples = store.between(interval * 1_000_000, ends);
            let second = |sample: &GpuSample| sample.unix_ns / 1_000_000_000;
            let devices = samples.devices.iter();
            devices
                .flat_map(|device| device.samples.iter().map(second))
                .collect::<Vec<_>>()
        };
        let window = |opened, closed| sampled_every(1_000, opened, closed);
        assert_eq!(window(3_500, 5_500), [3, 4, 5, 6]);
        assert_eq!(window(3_200, 3_400), [3, 4]);
        assert_eq!(window(0, 1_500), [1, 2]);
        assert_eq!(window(9_500, 12_000), [9]);
        // A pause of the sampling on both sides.
        assert_eq!(sampled_every(200, 3_500, 5_500), [4, 5]);
        assert!(window(11_500, 12_000).is_empty());
    }

    #[test]
    fn notes_are_bounded_and_said_once() {
        let mut store = Store::new();
        for note in 0..1_000 {
            store.note(format!("note {}", note / 2));
        }
        assert_eq!(store.snapshot(0).notes.len(), MAX_NOTES);
    }
}
