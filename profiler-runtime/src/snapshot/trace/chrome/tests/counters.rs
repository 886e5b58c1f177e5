//! Samples of devices as counters.

use profiler_report::internal::DeviceSamples;
use profiler_report::{GpuDevice, GpuQuantity, GpuReadings, GpuSample};

use super::*;

#[test]
fn samples_of_devices_are_counters_with_their_units() {
    let mut sample = Sample::new();
    sample.scope("chrome: sampled", 0, us(0), long(1000));
    let mut trace = sample.trace();
    let at = |power, unix_ns| {
        let mut readings = GpuReadings::NONE;
        readings.set(GpuQuantity::Power, Some(power));
        GpuSample {
            unix_ns,
            readings,
            ..GpuSample::default()
        }
    };
    let opened = trace.clock_line.unix_ns(trace.meta.opened);
    trace.gpu_samples.devices = vec![DeviceSamples {
        device: GpuDevice {
            ordinal: Some(1),
            ..GpuDevice::default()
        },
        samples: vec![at(99.5, opened - 1_000_000), at(231.4, opened + 10_000)],
        ..DeviceSamples::default()
    }];
    let events = events(&trace);
    let counters: Vec<&Value> = events
        .iter()
        .filter(|event| event["ph"] == "C" && event["name"] == "GPU 1 power (W)")
        .collect();
    let [first, second] = &counters[..] else {
        panic!("two values: {counters:?}")
    };
    assert_eq!(
        (&first["args"]["W"], &second["args"]["W"]),
        (&json!(99.5), &json!(231.4))
    );
    assert_eq!(ns(&second["ts"]) - ns(&first["ts"]), 10_000);
}
