//! The metrics of the states of devices.

use std::collections::BTreeMap;

use profiler_host::diagnostics::printable;

use super::text::Text;
use crate::idle::OUTSIDE;
use crate::sampled_idle::SampledIdle;

/// How many functions have series of their own, for each device.
const MAX_CAUSES: usize = 16;

pub(super) fn write(text: &mut Text, devices: &[SampledIdle]) {
    // Not counters: what is read late moves from one state to another, and from one function to another.
    let help = "How long a device was busy, host-paced or idle since its first GPU time.";
    let mut metric = text.gauge("profiler_gpu_state_seconds", help);
    for device in devices {
        let gpu = label(device);
        let states = [
            ("busy", device.busy_ns),
            ("host-paced", device.host_paced_ns),
            ("idle", device.idle_ns),
            ("not-known", device.unknown_ns),
        ];
        for (state, ns) in states {
            metric.sample(&[("gpu", &gpu), ("state", state)], ns / 1e9);
        }
    }
    let help = "How long functions kept a device waiting, by samples.";
    let mut metric = text.gauge("profiler_gpu_idle_seconds", help);
    for device in devices {
        let gpu = label(device);
        for (cause, ns) in causes(device) {
            metric.sample(&[("gpu", &gpu), ("cause", &cause)], ns / 1e9);
        }
    }
}

/// Returns the parts of the idle time. Names that look alike are one.
fn causes(device: &SampledIdle) -> BTreeMap<String, f64> {
    let mut causes = BTreeMap::from([
        (OUTSIDE.to_owned(), device.outside_ns),
        ("(not sampled)".to_owned(), device.not_sampled_ns),
        ("(launched, not begun)".to_owned(), device.launched_ns),
    ]);
    for (index, charge) in device.charges.iter().enumerate() {
        let cause = if index < MAX_CAUSES {
            printable(&charge.name)
        } else {
            "(other)".to_owned()
        };
        *causes.entry(cause).or_default() += charge.idle_ns;
    }
    causes
}

fn label(device: &SampledIdle) -> String {
    device
        .device
        .map_or_else(String::new, |ordinal| ordinal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled_idle::SampledCharge;

    #[test]
    fn the_causes_are_the_idle_time() {
        let charge = |number: u32| SampledCharge {
            name: format!("function {number:02}"),
            idle_ns: 1e9 * f64::from(100 - number),
            ..SampledCharge::default()
        };
        let charges: Vec<SampledCharge> = (0..20).map(charge).collect();
        let of_functions: f64 = charges.iter().map(|charge| charge.idle_ns).sum();
        let device = SampledIdle {
            device: Some(1),
            busy_ns: 2e9,
            idle_ns: of_functions + 6e9,
            outside_ns: 1e9,
            not_sampled_ns: 2e9,
            launched_ns: 3e9,
            charges,
            ..SampledIdle::default()
        };
        let mut text = Text::default();
        write(&mut text, std::slice::from_ref(&device));
        let text = text.finish();
        let lines: Vec<&str> = text.lines().collect();
        let idle = lines.iter().filter_map(|line| {
            line.strip_prefix("profiler_gpu_idle_seconds{gpu=\"1\",cause=")?
                .rsplit_once(' ')
        });
        let idle: Vec<(&str, f64)> = idle
            .map(|(cause, seconds)| (cause, seconds.parse().expect("a number")))
            .collect();
        let sum: f64 = idle.iter().map(|(_, seconds)| seconds).sum();
        assert!((sum - device.idle_ns / 1e9).abs() < 1e-6, "{text}");
        assert_eq!(idle.len(), MAX_CAUSES + 4);
        assert!(idle.contains(&("\"function 00\"}", 100.0)), "{text}");
        let state = "profiler_gpu_state_seconds{gpu=\"1\",state=\"busy\"} 2";
        assert!(lines.contains(&state), "{text}");
    }
}
