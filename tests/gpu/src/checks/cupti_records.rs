//! Compares with CUPTI's times of the same kernels, in a child process that uses CUPTI alone.

use std::process::ExitCode;
use std::time::Instant;

use profiler_runtime::scope;
use serde_json::json;

use crate::child::{self, Part};
use crate::cupti::{Cupti, Kernel};
use crate::device::{Gpu, raw};
use crate::driver::Driver;
use crate::figures::{differences, least, median};
use crate::findings::{Check, Findings, Theme};
use crate::measured::LoggedTimes;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "beside CUPTI",
    checks: &[Check {
        name: "measurements agree with CUPTI's records of the same kernels",
        bound: "none is shorter by more than 1 µs (the resolution of events); the median is at \
                most 20 µs longer: events include the start and the end of a kernel, CUPTI's \
                records do not, and CUPTI lengthens both",
        run: agree,
    }],
};

pub(crate) const PARTS: &[Part] = &[Part {
    name: "cupti",
    play: record,
}];

const LENGTHS: [u64; 3] = [20_000, 200_000, 2_000_000];
const CALLS: usize = 50;
const LAUNCHES: u32 = 500;

fn agree(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    if gpu.simulated {
        return Err(Trouble::Skip(
            "CUPTI does not support a simulated device".to_owned(),
        ));
    }
    let child = child::run("cupti", &[])?.successful()?;
    if let Some(reason) = child.value("skipped")?.as_str() {
        return Err(Trouble::Skip(reason.to_owned()));
    }
    findings.note(format!(
        "{} of version {}",
        child.value("path")?,
        child.value("version")?
    ));
    for length in LENGTHS {
        let micros = length / 1_000;
        let ours = child.numbers(&format!("ours {length}"))?;
        let records = child.numbers(&format!("records {length}"))?;
        findings.expect_count("times of the profiler", ours.len() as u64, CALLS as u64);
        findings.expect_count("records of CUPTI", records.len() as u64, CALLS as u64);
        let more = differences(&ours, &records);
        findings.figure(
            format!("{micros} µs: CUPTI, median"),
            median(&records) / 1e3,
            "µs",
        );
        findings.spread_us(&format!("{micros} µs: profiler minus CUPTI"), &more);
        findings.expect(least(&more) >= -1_000.0, || {
            format!(
                "a measurement is {} ns shorter than CUPTI's record",
                -least(&more)
            )
        });
        findings.expect_between(
            "the median difference in ns",
            median(&more),
            -1_000.0,
            20_000.0,
        );
    }
    findings.figure(
        "a launch with CUPTI recording",
        child.number("launch ns")?,
        "ns",
    );
    Ok(())
}

/// Runs in the child.
fn record() -> Result<ExitCode, Trouble> {
    // CUPTI needs a loaded driver, but no context yet.
    Driver::get().map_err(Trouble::Missing)?;
    let cupti = match Cupti::start() {
        Ok(cupti) => cupti,
        Err(Trouble::Skip(reason)) => {
            child::report(&json!({ "skipped": reason }));
            return Ok(ExitCode::SUCCESS);
        }
        Err(refused @ Trouble::Library { .. }) => {
            // Another tool may be using CUPTI, or the driver restricts access to it.
            child::report(&json!({ "skipped": refused.to_string() }));
            return Ok(ExitCode::SUCCESS);
        }
        Err(other) => return Err(other),
    };
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    let mut reported = json!({ "skipped": null, "path": cupti.path, "version": cupti.version });
    for length in LENGTHS {
        stream.synchronize()?;
        cupti.take()?;
        let times = LoggedTimes::default();
        gpu.plug(&stream, 20_000_000)?;
        for _ in 0..CALLS {
            let _scope = scope!(
                format!("traced {length}"),
                stream = &stream,
                log = times.logger()
            );
            gpu.kernels.spin(raw(&stream), length, 0)?;
        }
        stream.synchronize()?;
        // The first kernel only kept the device busy.
        let records: Vec<f64> = cupti.take()?.iter().skip(1).map(Kernel::ns).collect();
        reported[format!("ours {length}")] = json!(times.ns(CALLS)?);
        reported[format!("records {length}")] = json!(records);
    }
    let began = Instant::now();
    for _ in 0..LAUNCHES {
        gpu.kernels.empty(raw(&stream))?;
    }
    reported["launch ns"] = json!(began.elapsed().as_nanos() as f64 / f64::from(LAUNCHES));
    stream.synchronize()?;
    child::report(&reported);
    Ok(ExitCode::SUCCESS)
}
