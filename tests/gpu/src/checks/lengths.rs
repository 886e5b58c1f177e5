//! Kernels of known length, and scopes without kernels.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::report::TimeSource;
use profiler_runtime::scope;

use crate::device::{Gpu, Stamp, Stamps, raw};
use crate::figures::{differences, least, median, most};
use crate::findings::{Check, Findings, Theme};
use crate::measured::{LoggedTimes, expect_all, row};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "lengths",
    checks: &[
        Check {
            name: "a kernel of known length, queued, is measured with that length",
            bound: "the median of the measurement minus the kernel's own stamps is between \
                    minus one step of the device's timer and 1 µs (the resolution of events), \
                    and 10 µs and 0.1 %: the start and the end of a kernel are between the \
                    events too, about 1 to 3 µs",
            run: queued,
        },
        Check {
            name: "a kernel of known length on an idle stream is measured with that length and the launch",
            bound: "the lower bound as above; the upper bound is 100 µs and 0.1 %, because the \
                    device waits between the first event and the kernel until the host has \
                    launched the kernel",
            run: idle,
        },
        Check {
            name: "a scope without work measures almost nothing",
            bound: "the median is between 0 and 20 µs: two consecutive events take about 1 to \
                    5 µs",
            run: floor,
        },
        Check {
            name: "total time includes inner scopes, self time excludes them",
            bound: "the outer self time, a spin of 200 µs, as above; total minus self equals \
                    the inner total within 1 µs per call and 0.1 %, because both come from the \
                    same events",
            run: nested,
        },
    ],
};

/// Lengths in nanoseconds, and the number of kernels of each: half a second in total.
const LENGTHS: [(u64, usize); 6] = [
    (10_000, 50),
    (30_000, 50),
    (100_000, 50),
    (1_000_000, 30),
    (10_000_000, 8),
    (100_000_000, 3),
];
/// Longer than it takes to queue the following work.
const PLUG: u64 = 20_000_000;

fn queued(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    findings.figure("step of the device's timer", gpu.timer_step / 1e3, "µs");
    let stream = gpu.stream()?;
    for (length, count) in LENGTHS {
        let name = format!("queued {}", in_words(length));
        kernels(gpu, findings, &stream, &name, (length, count))?;
    }
    Ok(())
}

fn idle(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    for (length, _) in LENGTHS
        .into_iter()
        .filter(|(length, _)| *length <= 10_000_000)
    {
        let name = format!("idle {}", in_words(length));
        let times = LoggedTimes::default();
        let (calls, stamps) = (10, Stamps::new(gpu.driver, 10)?);
        for call in 0..calls {
            stream.synchronize()?;
            let _scope = scope!(&*name, stream = &stream, log = times.logger());
            gpu.kernels.spin(raw(&stream), length, stamps.of(call))?;
        }
        judge(
            gpu,
            findings,
            &name,
            length,
            &times.ns(calls)?,
            &stamps.lengths()?,
            100_000.0,
        );
    }
    Ok(())
}

fn kernels(
    gpu: &Gpu,
    findings: &mut Findings,
    stream: &Arc<CudaStream>,
    name: &str,
    (length, count): (u64, usize),
) -> Result<(), Trouble> {
    let (times, stamps) = (LoggedTimes::default(), Stamps::new(gpu.driver, count)?);
    // Allocating the stamps has waited for the device.
    gpu.plug(stream, PLUG)?;
    for call in 0..count {
        let _scope = scope!(name, stream = stream, log = times.logger());
        gpu.kernels.spin(raw(stream), length, stamps.of(call))?;
    }
    let (read, truth) = (times.ns(count)?, stamps.lengths()?);
    judge(gpu, findings, name, length, &read, &truth, 10_000.0);
    if !gpu.simulated {
        let speeds: Vec<f64> = stamps.read()?.iter().map(Stamp::cycles_per_ns).collect();
        findings.figure(
            format!("{name}: clock of the multiprocessor"),
            median(&speeds),
            "GHz",
        );
    }
    let row = row(name)?;
    findings.expect(row.source == TimeSource::Cuda, || {
        format!("the logger of `{name}` gets times of {:?}", row.source)
    });
    let times = expect_all(findings, name, count as u64)?;
    let mean = read.iter().sum::<f64>() / count as f64;
    // The logger receives milliseconds and the row sums nanoseconds, so they differ by rounding.
    findings.expect_between(
        "the row's mean by that of the logged times",
        times.mean_ns / mean,
        0.9999,
        1.0001,
    );
    Ok(())
}

fn judge(
    gpu: &Gpu,
    findings: &mut Findings,
    name: &str,
    length: u64,
    read: &[f64],
    truth: &[f64],
    above: f64,
) {
    let errors = differences(read, truth);
    findings.spread_us(&format!("{name}: error"), &errors);
    let share = 0.001 * length as f64;
    let below = gpu.timer_step + 1_000.0;
    findings.expect_between(
        &format!("{name}: median error in ns"),
        median(&errors),
        -below,
        above + share,
    );
}

fn in_words(ns: u64) -> String {
    if ns < 1_000_000 {
        format!("{} us", ns / 1_000)
    } else {
        format!("{} ms", ns / 1_000_000)
    }
}

fn floor(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    for (name, is_queued) in [("nothing, queued", true), ("nothing, idle", false)] {
        let times = LoggedTimes::default();
        if is_queued {
            gpu.plug(&stream, PLUG)?;
        }
        for _ in 0..200 {
            let _scope = scope!(name, stream = &stream, log = times.logger());
        }
        let read = times.ns(200)?;
        findings.spread_us(name, &read);
        findings.expect_between(
            &format!("{name}: the median in ns"),
            median(&read),
            0.0,
            20_000.0,
        );
        findings.expect(least(&read) >= 0.0, || {
            format!("a negative time: {}", least(&read))
        });
    }
    Ok(())
}

fn nested(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    gpu.plug(&stream, PLUG)?;
    let (calls, handle) = (20, raw(&stream));
    for _ in 0..calls {
        let _outer = scope!("outer", stream = &stream);
        gpu.kernels.spin(handle, 200_000, 0)?;
        for _ in 0..2 {
            let _inner = scope!("inner", stream = &stream);
            gpu.kernels.spin(handle, 100_000, 0)?;
        }
    }
    let outer = expect_all(findings, "outer", calls)?;
    let inner = expect_all(findings, "inner", 2 * calls)?;
    let calls = calls as f64;
    findings.figure("outer, total of a call", outer.total_ns / calls / 1e3, "µs");
    findings.figure("outer, self of a call", outer.self_ns / calls / 1e3, "µs");
    findings.figure("inner, total of a call", inner.total_ns / calls / 2e3, "µs");
    let below = gpu.timer_step + 1_000.0;
    // The outer self time contains three pairs of events and one kernel.
    findings.expect_between(
        "outer self of a call in ns",
        outer.self_ns / calls,
        200_000.0 - below,
        230_000.0,
    );
    let apart = (outer.total_ns - outer.self_ns - inner.total_ns).abs();
    findings.expect_between(
        "what total and self leave open, in ns a call",
        apart / calls,
        0.0,
        1_200.0,
    );
    findings.expect(
        most(&[outer.self_ns, outer.total_ns]) <= outer.total_ns,
        || "self is more than total".to_owned(),
    );
    Ok(())
}
