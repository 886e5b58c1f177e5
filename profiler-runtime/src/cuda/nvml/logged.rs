//! The samples of a device on their way to the log of the run.

use profiler_report::{GpuDevice, GpuSample};

use crate::collect;

/// The most samples that wait for the device's number in CUDA: a minute, at one sample per second.
const MAX_HELD: usize = 60;

/// The samples of one device. The log names it by its number in CUDA, or by that of NVML if it has none, and by one of
/// them in the whole run: the first samples wait until the number is known.
#[derive(Debug, Default)]
pub(super) struct Logged {
    /// The device as the log names it, once that is decided.
    device: Option<GpuDevice>,
    held: Vec<GpuSample>,
    /// The number of samples: the step of the next one.
    samples: u64,
}

impl Logged {
    /// Logs a sample, or holds it back.
    pub(super) fn add(&mut self, device: &GpuDevice, sample: GpuSample) {
        self.add_with(device, sample, collect::log_gpu_sample);
    }

    /// Logs the samples that were held back. `device` has a number in CUDA now, or gets none.
    pub(super) fn decide(&mut self, device: &GpuDevice) {
        self.decide_with(device, collect::log_gpu_sample);
    }

    fn add_with(
        &mut self,
        device: &GpuDevice,
        sample: GpuSample,
        mut log: impl FnMut(&GpuDevice, &GpuSample, u64),
    ) {
        match &self.device {
            Some(named) => log(named, &sample, self.samples),
            None => self.held.push(sample),
        }
        self.samples += 1;
        if self.held.len() >= MAX_HELD {
            self.decide_with(device, log);
        }
    }

    fn decide_with(
        &mut self,
        device: &GpuDevice,
        mut log: impl FnMut(&GpuDevice, &GpuSample, u64),
    ) {
        let named = &*self.device.get_or_insert_with(|| device.clone());
        for (step, sample) in (0..).zip(std::mem::take(&mut self.held)) {
            log(named, &sample, step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(ordinal: Option<u32>) -> GpuDevice {
        GpuDevice {
            ordinal,
            ..GpuDevice::default()
        }
    }

    #[test]
    fn a_device_has_one_name_from_the_first_sample_on() {
        let mut logged = Logged::default();
        let mut found = Vec::new();
        let mut log = |device: &GpuDevice, _: &GpuSample, step| found.push((device.ordinal, step));
        for _ in 0..2 {
            logged.add_with(&device(None), GpuSample::default(), &mut log);
        }
        for _ in 0..2 {
            logged.decide_with(&device(Some(3)), &mut log);
        }
        logged.add_with(&device(Some(3)), GpuSample::default(), &mut log);
        assert_eq!(found, [(Some(3), 0), (Some(3), 1), (Some(3), 2)]);
    }

    #[test]
    fn a_device_that_has_no_number_for_long_keeps_that_of_nvml() {
        let mut logged = Logged::default();
        let mut found = Vec::new();
        let mut log = |device: &GpuDevice, _: &GpuSample, step| found.push((device.ordinal, step));
        for _ in 0..MAX_HELD {
            logged.add_with(&device(None), GpuSample::default(), &mut log);
        }
        logged.add_with(&device(Some(3)), GpuSample::default(), &mut log);
        let expected: Vec<_> = (0..=MAX_HELD as u64).map(|step| (None, step)).collect();
        assert_eq!(found, expected);
    }
}
