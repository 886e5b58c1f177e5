//! The metrics of devices that are sampled.

use super::text::{Metric, Text};
use crate::sampled_gpu::SampledGpu;

pub(super) fn write(text: &mut Text, gpus: &[SampledGpu]) {
    let labels: Vec<String> = gpus.iter().map(label).collect();
    let write = |mut metric: Metric<'_>, value: &dyn Fn(&SampledGpu) -> Option<f64>| {
        for (gpu, label) in gpus.iter().zip(&labels) {
            if let Some(value) = value(gpu) {
                metric.sample(&[("gpu", label), ("uuid", &gpu.uuid)], value);
            }
        }
    };
    let help = "Power at the last sample.";
    write(text.gauge("profiler_gpu_power_watts", help), &|gpu| {
        gpu.power_last_w
    });
    let help = "Energy since the first sample.";
    write(
        text.counter("profiler_gpu_energy_joules_total", help),
        &|gpu| gpu.energy_j,
    );
    let help = "Memory in use by all processes at the last sample.";
    write(text.gauge("profiler_gpu_memory_used_bytes", help), &|gpu| {
        gpu.memory_last_bytes
    });
    let help = "The size of the memory.";
    write(text.gauge("profiler_gpu_memory_size_bytes", help), &|gpu| {
        gpu.memory_total_bytes.map(|bytes| bytes as f64)
    });
    let help =
        "The share of time in which at least one kernel ran, at the last sample: from 0 to 1.";
    write(text.gauge("profiler_gpu_utilization_ratio", help), &|gpu| {
        gpu.utilization_last_percent.map(|percent| percent / 100.0)
    });
    let help = "Samples in which the clocks were held back: by power, heat or other devices.";
    write(
        text.counter("profiler_gpu_held_back_samples_total", help),
        &|gpu| Some(gpu.held_back_samples as f64),
    );
    let help = "Samples of the sensors.";
    write(text.counter("profiler_gpu_samples_total", help), &|gpu| {
        Some(gpu.samples as f64)
    });
}

/// Returns the number of a device in CUDA or, if it has none, that in `nvidia-smi`.
fn label(gpu: &SampledGpu) -> String {
    gpu.ordinal.map_or_else(
        || format!("nvml{}", gpu.nvml_index),
        |ordinal| ordinal.to_string(),
    )
}
