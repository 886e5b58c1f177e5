//! What NVML answers the suite, in the units of the profiler.

use std::time::{SystemTime, UNIX_EPOCH};

use profiler_runtime::report::{GpuQuantity, GpuSample};

use crate::nvml::{NVLINK, Nvml, PCIE, POWER_INSTANT};

/// How far from a sample's time the suite's readings are compared, in nanoseconds.
const NEAR_NS: i64 = 150_000_000;

/// Returns what NVML answers for a quantity, in the unit of the profiler. Counters are those since NVML began to count.
fn ask(nvml: &Nvml, device: usize, quantity: GpuQuantity) -> Option<f64> {
    let number = |call: &dyn Fn(*mut u32) -> u32| {
        let mut value = 0;
        (call(&raw mut value) == 0).then_some(f64::from(value))
    };
    let percent = |which: usize| {
        let mut percent = [0; 2];
        let code = nvml.utilization(device, &raw mut percent);
        (code == 0).then_some(f64::from(percent[which]))
    };
    match quantity {
        GpuQuantity::Utilization => percent(0),
        GpuQuantity::MemoryUtilization => percent(1),
        GpuQuantity::MemoryUsed => {
            let mut bytes = [0; 3];
            let code = nvml.memory(device, &raw mut bytes);
            (code == 0).then_some(bytes[2] as f64)
        }
        GpuQuantity::Power => number(&|value| nvml.power(device, value)).map(|mw| mw / 1e3),
        GpuQuantity::PowerInstant => nvml.field(device, POWER_INSTANT).map(|mw| mw / 1e3),
        GpuQuantity::Temperature => number(&|value| nvml.temperature(device, 0, value)),
        GpuQuantity::SmClock => number(&|value| nvml.clock(device, 1, value)),
        GpuQuantity::MemoryClock => number(&|value| nvml.clock(device, 2, value)),
        GpuQuantity::PerformanceState => number(&|value| nvml.performance_state(device, value)),
        GpuQuantity::Energy => {
            let mut millijoules = 0;
            let code = nvml.energy(device, &raw mut millijoules);
            (code == 0).then_some(millijoules as f64 / 1e3)
        }
        GpuQuantity::PcieSent => nvml.field(device, PCIE[0]),
        GpuQuantity::PcieReceived => nvml.field(device, PCIE[1]),
        GpuQuantity::NvlinkSent => nvml.field(device, NVLINK[0]).map(|kib| kib * 1024.0),
        GpuQuantity::NvlinkReceived => nvml.field(device, NVLINK[1]).map(|kib| kib * 1024.0),
        _ => None,
    }
}

/// Returns the host's time in nanoseconds since the Unix epoch.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

/// The answers of NVML at one time.
pub(crate) struct Answers {
    pub(crate) began: i64,
    pub(crate) ended: i64,
    values: Vec<(GpuQuantity, f64)>,
    /// Why the clocks are lower, as bits.
    pub(crate) reasons: Option<u64>,
}

impl Answers {
    pub(crate) fn now(nvml: &Nvml, device: usize, quantities: &[GpuQuantity]) -> Self {
        let began = now();
        let asked = quantities.iter();
        let values = asked
            .filter_map(|quantity| Some((*quantity, ask(nvml, device, *quantity)?)))
            .collect();
        let mut bits = 0;
        let reasons = (nvml.reasons(device, &raw mut bits) == 0).then_some(bits);
        Self {
            began,
            ended: now(),
            values,
            reasons,
        }
    }

    /// Returns `true` if they are near the time of a sample.
    pub(crate) fn is_near(&self, sample: &GpuSample) -> bool {
        let uncertainty = i64::try_from(sample.uncertainty_ns).unwrap_or(i64::MAX);
        let near = NEAR_NS.saturating_add(uncertainty);
        self.ended >= sample.unix_ns - near && self.began <= sample.unix_ns + near
    }

    pub(crate) fn get(&self, quantity: GpuQuantity) -> Option<f64> {
        let mut values = self.values.iter();
        values
            .find(|(known, _)| *known == quantity)
            .map(|(_, value)| *value)
    }
}

/// Returns by how much a counter grew between two times at least and at most, by the suite's readings: two of them lie on
/// each side of each time.
pub(crate) fn grown(
    own: &[Answers],
    quantity: GpuQuantity,
    from: i64,
    to: i64,
) -> Option<(f64, f64)> {
    let around = |at: i64| {
        let before = own.iter().rev().filter(|answers| answers.ended <= at);
        let after = own.iter().filter(|answers| answers.began >= at);
        let before = before.filter_map(|answers| answers.get(quantity)).nth(1);
        let after = after.filter_map(|answers| answers.get(quantity)).nth(1);
        before.zip(after)
    };
    let (first, last) = (around(from)?, around(to)?);
    Some(((last.0 - first.1).max(0.0), last.1 - first.0))
}
