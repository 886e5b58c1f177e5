//! The lines about a device below a table.

use profiler_host::diagnostics::printable;

use super::SampledGpu;
use crate::gpu_sample::GpuDevice;
use crate::text::units::{bytes, number, time};

/// Returns the device as notes, counters and tables name it.
pub fn label(device: &GpuDevice) -> String {
    label_of(device.ordinal, device.nvml_index)
}

fn label_of(ordinal: Option<u32>, nvml_index: u32) -> String {
    ordinal.map_or_else(
        || format!("GPU {nvml_index} of nvidia-smi"),
        |ordinal| format!("GPU {ordinal}"),
    )
}

impl SampledGpu {
    /// Returns the device as notes name it: `GPU 0`.
    #[doc(hidden)]
    #[must_use]
    pub fn label(&self) -> String {
        label_of(self.ordinal, self.nvml_index)
    }

    /// Returns the line of a summary about the device.
    pub(crate) fn line(&self) -> String {
        let readings = [self.power(), self.memory(), self.clocks()];
        let readings = readings.into_iter().flatten();
        let parts: Vec<String> = readings.chain([self.limits()]).collect();
        let name = printable(&self.name);
        format!("{} ({name}): {}", self.label(), parts.join("; "))
    }

    fn power(&self) -> Option<String> {
        let limit = self
            .power_limit_w
            .map_or_else(String::new, |limit| format!(" of {limit:.0} W"));
        let peak = self
            .power_peak_w
            .map_or_else(String::new, |peak| format!(", {peak:.0} W peak"));
        let mean = self.power_mean_w?;
        Some(format!("{mean:.0} W mean{peak}{limit}"))
    }

    fn memory(&self) -> Option<String> {
        let used = amount(self.memory_peak_bytes?);
        let total = self.memory_total_bytes.map(|total| amount(total as f64));
        let Some(total) = total else {
            return Some(format!("{used} peak"));
        };
        let unit = |amount: &str| amount.split_once(' ').map(|(_, unit)| unit.to_owned());
        let is_same = unit(&used) == unit(&total);
        let total = match total.split_once(' ') {
            // A unit that both have stands once.
            Some((digits, _)) if is_same => digits,
            _ => &total,
        };
        Some(format!("{used} peak of {total}"))
    }

    fn clocks(&self) -> Option<String> {
        let mean = self.sm_clock_mean_mhz? / 1e3;
        let max = self.sm_clock_max_mhz.map(|max| f64::from(max) / 1e3);
        let max = max.map_or_else(String::new, |max| format!(" of {max:.2}"));
        Some(format!("clocks {mean:.2}{max} GHz"))
    }

    /// Says in how many samples the clocks were held back, and why.
    fn limits(&self) -> String {
        if self.clock_samples == 0 {
            return counted(self.samples);
        }
        // Those that know the reasons: the shares refer to them.
        let samples = counted(self.clock_samples);
        let share = |held: u64| percent(held, self.clock_samples);
        if self.held_back_samples == 0 {
            return format!("not held back in {samples}");
        }
        let reasons: Vec<String> = match &self.held_back[..] {
            [only] => vec![only.reason.clone()],
            several => several
                .iter()
                .map(|held| format!("{} ({})", held.reason, share(held.samples)))
                .collect(),
        };
        let held = share(self.held_back_samples);
        format!("held back in {held} of {samples}: {}", reasons.join(", "))
    }

    /// Returns the line about the energy; `None` if there is none.
    pub(crate) fn energy_line(&self) -> Option<String> {
        let energy = number(self.energy_j?);
        let label = self.label();
        if let Some(reason) = &self.not_shared {
            return Some(format!(
                "energy of {label}: {energy} J, not shared out among the names: {reason}"
            ));
        }
        let unmeasured = number(self.unmeasured_j?);
        let step = time(self.energy_step_ns?);
        let source = if self.is_energy_from_power {
            format!("power read every {step}")
        } else {
            format!("counter step {step}")
        };
        Some(format!(
            "energy of {label}: {energy} J, {unmeasured} J of them in (no measured scope); energy is shared out by GPU self \
             time; {source}, {}",
            counted(self.samples)
        ))
    }
}

fn counted(samples: u64) -> String {
    let plural = if samples == 1 { "" } else { "s" };
    format!("{samples} sample{plural}")
}

/// Formats a share of samples. A share that is neither none nor all is shown neither as 0 nor as 100.
fn percent(part: u64, all: u64) -> String {
    let percent = part as f64 / all.max(1) as f64 * 100.0;
    if part == 0 || part == all {
        format!("{percent:.0} %")
    } else {
        format!("{:.0} %", percent.clamp(1.0, 99.0))
    }
}

#[allow(clippy::cast_possible_truncation, reason = "no memory is as large")]
fn amount(size: f64) -> String {
    let text = bytes(size as i64);
    // Whole numbers without decimals: `80 GiB`.
    match text.split_once(' ') {
        Some((digits, unit)) if digits.contains('.') => {
            let digits = digits.trim_end_matches('0').trim_end_matches('.');
            format!("{digits} {unit}")
        }
        _ => text,
    }
}
