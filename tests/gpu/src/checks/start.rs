//! The profiler finds the driver.

use std::collections::BTreeSet;

use profiler_runtime::cuda::{Status, status};
use profiler_runtime::{scope, summary};

use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::measured::{expect_all, settle};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "start",
    checks: &[
        Check {
            name: "the process has loaded one driver library",
            bound: "exactly one file; `libcuda.so` from a toolkit's `stubs` folder next to the \
                    real one means a wrong library path, and makes all other checks \
                    meaningless",
            run: one_library,
        },
        Check {
            name: "the profiler is ready and names the devices",
            bound: "as many names as the driver counts devices, and the driver's own version",
            run: is_ready,
        },
        Check {
            name: "the uncertainty of GPU times on the host's time line is known",
            bound: "above 0 and below 1 ms: it is the time that the host needs to observe one \
                    event on an idle stream, about 10 µs, and more on a busy host",
            run: uncertainty,
        },
    ],
};

fn one_library(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let paths = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    let is_driver = |path: &&str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        file.starts_with("libcuda.so") || file.starts_with("libprofiler_simulated_driver")
    };
    let files: BTreeSet<&str> = paths.filter(is_driver).collect();
    findings.expect(files.len() == 1, || format!("driver libraries: {files:?}"));
    findings.notes.extend(files.into_iter().map(str::to_owned));
    Ok(())
}

#[allow(clippy::unnecessary_wraps, reason = "all checks have one type")]
fn is_ready(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    match status() {
        Status::Ready {
            devices,
            driver_version,
        } => {
            let expected = u64::try_from(gpu.driver.devices()).unwrap_or(0);
            findings.expect_count("names of devices", devices.len() as u64, expected);
            let version = gpu.driver.version();
            findings.expect(driver_version == version, || {
                format!("the driver's version is {version}, the profiler says {driver_version}")
            });
        }
        other => findings.expect(false, || format!("the status is: {other}")),
    }
    findings.note(status().to_string());
    Ok(())
}

fn uncertainty(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    for _ in 0..20 {
        let _scope = scope!("placed", stream = &stream, log = |_, _, _| {});
        gpu.kernels.spin(raw(&stream), 20_000, 0)?;
    }
    expect_all(findings, "placed", 20)?;
    settle();
    let uncertainty = summary().cuda.uncertainty_ns;
    let ns = uncertainty.ok_or_else(|| Trouble::Missing("no uncertainty is known".to_owned()))?;
    findings.figure("uncertainty of positions", ns / 1e3, "µs");
    findings.expect(ns > 0.0 && ns < 1e6, || {
        format!("the uncertainty is {ns} ns")
    });
    Ok(())
}
