//! Kernels that are timed in several ways at the same time.

use std::time::Instant;

use profiler_runtime::scope;

use crate::device::{Event, Gpu, Stamps, raw};
use crate::figures::{differences, least, median};
use crate::findings::{Check, Findings, Theme};
use crate::measured::LoggedTimes;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "beside others",
    checks: &[
        Check {
            name: "a measurement lies between the kernel's own stamps and events around the scope",
            bound: "for each call, within 1 µs (the resolution of events) and one step of the \
                    device's timer: the inner interval is never longer than the outer one",
            run: between,
        },
        Check {
            name: "a measurement is no longer than that of a synchronizing timer on the host",
            bound: "for each call, within 1 µs; the medians differ by at most 200 µs, because \
                    the timer's interval includes the launch and the notification of the host, \
                    about 10 to 30 µs",
            run: host_timer,
        },
        Check {
            name: "`sync` measures the same as the resolver",
            bound: "the medians differ by at most 20 µs and 0.1 %: both use two events around \
                    one kernel on an idle stream, and only the launch gap varies",
            run: synchronous,
        },
    ],
};

const LENGTH: u64 = 200_000;
const CALLS: usize = 50;

fn between(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    let (times, stamps) = (LoggedTimes::default(), Stamps::new(gpu.driver, CALLS)?);
    let pair = || Ok::<_, Trouble>((Event::new(gpu.driver)?, Event::new(gpu.driver)?));
    let around: Vec<(Event, Event)> = (0..CALLS).map(|_| pair()).collect::<Result<_, _>>()?;
    gpu.plug(&stream, 20_000_000)?;
    for (call, (begin, end)) in around.iter().enumerate() {
        begin.record(raw(&stream))?;
        {
            let _scope = scope!("between", stream = &stream, log = times.logger());
            gpu.kernels.spin(raw(&stream), LENGTH, stamps.of(call))?;
        }
        end.record(raw(&stream))?;
    }
    let inside = stamps.lengths()?;
    let ours = times.ns(CALLS)?;
    let outside: Vec<f64> = around
        .iter()
        .map(|(begin, end)| end.since(begin))
        .collect::<Result<_, _>>()?;
    let (over, under) = (differences(&ours, &inside), differences(&outside, &ours));
    findings.spread_us("profiler minus the kernel's stamps", &over);
    findings.spread_us("events around minus profiler", &under);
    let below = -(gpu.timer_step + 1_000.0);
    findings.expect(least(&over) >= below, || {
        format!(
            "a measurement is {} ns shorter than its kernel",
            -least(&over)
        )
    });
    findings.expect(least(&under) >= -1_000.0, || {
        format!(
            "a measurement is {} ns longer than the events around it",
            -least(&under)
        )
    });
    Ok(())
}

fn host_timer(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    let times = LoggedTimes::default();
    let mut seen = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        stream.synchronize()?;
        let began = Instant::now();
        {
            let _scope = scope!("host timer", stream = &stream, log = times.logger());
            gpu.kernels.spin(raw(&stream), LENGTH, 0)?;
        }
        stream.synchronize()?;
        seen.push(began.elapsed().as_nanos() as f64);
    }
    let ours = times.ns(CALLS)?;
    let more = differences(&seen, &ours);
    findings.figure("profiler, median", median(&ours) / 1e3, "µs");
    findings.spread_us("synchronizing timer minus profiler", &more);
    findings.expect(least(&more) >= -1_000.0, || {
        format!(
            "a measurement is {} ns longer than the host waited",
            -least(&more)
        )
    });
    if !gpu.simulated {
        findings.expect_between(
            "the median difference in ns",
            median(&more),
            -1_000.0,
            200_000.0,
        );
    }
    Ok(())
}

fn synchronous(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    let (waiting, later) = (LoggedTimes::default(), LoggedTimes::default());
    for _ in 0..CALLS {
        stream.synchronize()?;
        {
            let _scope = scope!(
                "read by waiting",
                sync,
                stream = &stream,
                log = waiting.logger()
            );
            gpu.kernels.spin(raw(&stream), LENGTH, 0)?;
        }
        stream.synchronize()?;
        let _scope = scope!("read later", stream = &stream, log = later.logger());
        gpu.kernels.spin(raw(&stream), LENGTH, 0)?;
    }
    let (waiting, later) = (waiting.ns(CALLS)?, later.ns(CALLS)?);
    findings.spread_us("with `sync`", &waiting);
    findings.spread_us("by the resolver", &later);
    let apart = (median(&waiting) - median(&later)).abs();
    findings.expect_between(
        "the difference of the medians in ns",
        apart,
        0.0,
        20_000.0 + 0.001 * LENGTH as f64,
    );
    Ok(())
}
