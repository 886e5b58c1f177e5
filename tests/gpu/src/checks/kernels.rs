//! The kernels of a window, in child processes: their scopes, names, lengths and places.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::kernel_status;
use profiler_runtime::scope;
use profiler_runtime::session::GpuEvent;

use crate::answers::now;
use crate::child::{self, Part};
use crate::device::{Gpu, Stamps, raw};
use crate::figures::{differences, least, median, most};
use crate::findings::{Check, Findings, Theme};
use crate::trouble::Trouble;
use crate::window::{self, Window, Work};

pub(crate) const THEME: Theme = Theme {
    name: "kernels of windows",
    checks: &[
        Check {
            name: "each kernel of a window is under its scope, with its name and its length, in two windows",
            bound: "as many kernels as were launched, each under the scope around its launch, and nothing is lost. Minus the \
                    kernel's own stamps, no length is below minus one step of the device's timer, 1 µs and 0.02 % (the \
                    clocks have rates of their own), and the median is at most 5 µs and 0.1 %: the kernel's start and \
                    end are outside of its stamps. No GPU time of a scope is below the length of its kernel by more \
                    than 1 µs (the resolution of events) and 0.02 %, and the median is at most 20 µs above. The table of kernels has the same counts and sums",
            run: |gpu, findings| {
                window::expect_cupti(gpu)?;
                child::judged(LENGTHS_OF_KERNELS, &[], findings)
            },
        },
        Check {
            name: "a kernel lies between the launch and the end that the host observes",
            bound: "40 kernels of 200 µs on an idle stream, over a second: none begins before the host launched it, or ends \
                    after the host's wait for it, by more than 50 µs; half of them begin within 100 µs and the \
                    reported uncertainty of the GPU times of their scopes. Minus the device's timer, their starts vary \
                    by at most 100 µs and 0.05 % of the time between them: both clocks run at about one rate",
            run: |gpu, findings| {
                window::expect_cupti(gpu)?;
                child::judged(PLACES_OF_KERNELS, &[], findings)
            },
        },
    ],
};

const LENGTHS_OF_KERNELS: &str = "kernels";
const PLACES_OF_KERNELS: &str = "places of kernels";

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: LENGTHS_OF_KERNELS,
        play: || child::judge(two_windows),
    },
    Part {
        name: PLACES_OF_KERNELS,
        play: || child::judge(places),
    },
];

/// Lengths in nanoseconds, and the number of kernels of each.
const LENGTHS: [(u64, usize); 5] = [
    (2_000, 60),
    (20_000, 60),
    (200_000, 40),
    (2_000_000, 10),
    (10_000_000, 4),
];
/// Longer than it takes to queue the kernels of one length.
const PLUG: u64 = 10_000_000;
/// The calls of the scopes that nest, and of the one with another kernel.
const CALLS: usize = 20;
const OUTER: &str = "outer kernel";
const INNER: &str = "inner kernel";
const EMPTY: &str = "empty kernel";

fn name_of(length: u64) -> String {
    format!("kernel of {} us", length / 1_000)
}

fn two_windows(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    // The second window subscribes to CUPTI again.
    for name in ["first window", "second window"] {
        let mut of_window = Findings::default();
        let judged = lengths(gpu, &mut of_window);
        findings.add(name, of_window);
        judged?;
    }
    findings.note(kernel_status().to_string());
    Ok(())
}

fn lengths(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    let stamps = LENGTHS
        .iter()
        .map(|(_, count)| Stamps::new(gpu.driver, *count))
        .collect::<Result<Vec<_>, _>>()?;
    let window = Window::record(gpu, findings, || {
        for ((length, count), stamps) in LENGTHS.iter().zip(&stamps) {
            gpu.plug(&stream, PLUG)?;
            let name = name_of(*length);
            for call in 0..*count {
                let _scope = scope!(&*name, stream = &stream);
                gpu.kernels.spin(raw(&stream), *length, stamps.of(call))?;
            }
            stream.synchronize()?;
        }
        others(gpu, &stream)
    })?;
    let work = window.work();
    for ((length, count), stamps) in LENGTHS.iter().zip(&stamps) {
        let truth = stamps.lengths()?;
        one_length(gpu, findings, (&window, &work), (*length, *count), &truth);
    }
    for (name, kernel, count) in [
        (OUTER, "spin_ns", 2 * CALLS),
        (INNER, "spin_ns", CALLS),
        (EMPTY, "empty", CALLS),
    ] {
        expect_kernels(findings, &work, name, kernel, count);
    }
    let launched: usize = LENGTHS.iter().map(|(_, count)| count).sum();
    let without_scope = work.iter().filter(|work| work.scope.is_none()).count();
    findings.expect_count(
        "kernels outside of scopes, which only keep the device busy",
        without_scope as u64,
        LENGTHS.len() as u64,
    );
    findings.expect_count(
        "kernels of the window",
        work.iter().filter(|work| work.is_kernel()).count() as u64,
        (launched + 4 * CALLS + LENGTHS.len()) as u64,
    );
    table(findings, &window, &work);
    Ok(())
}

/// Launches in scopes that nest, and another kernel.
fn others(gpu: &Gpu, stream: &Arc<CudaStream>) -> Result<(), Trouble> {
    let handle = raw(stream);
    for _ in 0..CALLS {
        let _outer = scope!("outer kernel", stream = stream);
        gpu.kernels.spin(handle, 20_000, 0)?;
        {
            let _inner = scope!("inner kernel", stream = stream);
            gpu.kernels.spin(handle, 20_000, 0)?;
        }
        gpu.kernels.spin(handle, 20_000, 0)?;
    }
    for _ in 0..CALLS {
        let _scope = scope!("empty kernel");
        gpu.kernels.empty(handle)?;
    }
    Ok(())
}

/// Expects kernels of one name under a scope, and no other work.
fn expect_kernels(
    findings: &mut Findings,
    work: &[Work<'_>],
    scope: &str,
    kernel: &str,
    count: usize,
) {
    let of_scope = || work.iter().filter(|work| work.scope == Some(scope));
    findings.expect_count(
        &format!("kernels under `{scope}`"),
        of_scope().count() as u64,
        count as u64,
    );
    if let Some(other) = of_scope().find(|work| work.name != kernel) {
        findings.failures.push(format!(
            "a kernel under `{scope}` has the name {:?}, not {kernel:?}",
            other.name
        ));
    }
}

fn one_length(
    gpu: &Gpu,
    findings: &mut Findings,
    (window, work): (&Window, &[Work<'_>]),
    (length, count): (u64, usize),
    truth: &[f64],
) {
    let name = name_of(length);
    expect_kernels(findings, work, &name, "spin_ns", count);
    let (mut lengths, mut scopes, mut alone) = (Vec::new(), Vec::new(), 0);
    for event in window.trace.events().filter(|event| event.name() == name) {
        let mut own = event.gpu_work();
        let (first, second) = (own.next(), own.next());
        let length = first.and_then(GpuEvent::duration);
        alone += u64::from(first.is_some() && second.is_none());
        lengths.push(length.map_or(f64::NAN, |length| length.as_nanos() as f64));
        scopes.push(event.gpu().map_or(f64::NAN, |gpu| gpu.ns));
    }
    findings.expect_count(
        &format!("calls of `{name}`"),
        lengths.len() as u64,
        count as u64,
    );
    findings.expect_count(
        &format!("calls of `{name}` with one kernel"),
        alone,
        count as u64,
    );
    let below = 1_000.0 + 0.0002 * length as f64;
    let errors = differences(&lengths, truth);
    findings.spread_us(&format!("{name}: length minus stamps"), &errors);
    findings.expect_at_least(
        &format!("{name}: the least length minus stamps in ns"),
        least(&errors),
        -(gpu.timer_step + below),
    );
    findings.expect_between(
        &format!("{name}: the median length minus stamps in ns"),
        median(&errors),
        -(gpu.timer_step + below),
        5_000.0 + 0.001 * length as f64,
    );
    let more = differences(&scopes, &lengths);
    findings.spread_us(
        &format!("{name}: GPU time of the scope minus length"),
        &more,
    );
    findings.expect_at_least(
        &format!("{name}: the least GPU time minus length in ns"),
        least(&more),
        -below,
    );
    findings.expect_between(
        &format!("{name}: the median GPU time minus length in ns"),
        median(&more),
        -below,
        20_000.0,
    );
}

/// Compares the table of kernels with the single ones.
fn table(findings: &mut Findings, window: &Window, work: &[Work<'_>]) {
    let kernels = window.trace.key_averages().kernels();
    let names = LENGTHS.iter().map(|(length, _)| name_of(*length));
    for name in names.chain([OUTER, INNER, EMPTY].map(str::to_owned)) {
        let of_scope = || work.iter().filter(|work| work.scope == Some(&name));
        let sum: i64 = of_scope().map(|work| work.ns).sum();
        let scope = kernels
            .scopes
            .iter()
            .find(|scope| scope.scope.as_ref() == Some(&name));
        let rows = scope.map_or(&[][..], |scope| &scope.rows);
        let runs: u64 = rows.iter().map(|row| row.times.calls).sum();
        findings.expect_count(
            &format!("kernels of `{name}` in the table"),
            runs,
            of_scope().count() as u64,
        );
        let total: f64 = rows.iter().map(|row| row.times.total_ns).sum();
        findings.expect_between(
            &format!("`{name}`: the total of the table by the sum of the kernels"),
            total / (sum as f64).max(1.0),
            0.999,
            1.001,
        );
    }
}

const PLACED: usize = 40;
const PLACED_LENGTH: u64 = 200_000;
const SLACK_NS: f64 = 50_000.0;

fn places(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (stream, stamps) = (gpu.stream()?, Stamps::new(gpu.driver, PLACED)?);
    let mut bounds = Vec::with_capacity(PLACED);
    let window = Window::record(gpu, findings, || {
        for call in 0..PLACED {
            let before = now();
            {
                let _scope = scope!("placed kernel", stream = &stream);
                gpu.kernels
                    .spin(raw(&stream), PLACED_LENGTH, stamps.of(call))?;
            }
            stream.synchronize()?;
            bounds.push((before, now()));
            std::thread::sleep(Duration::from_millis(25));
        }
        Ok(())
    })?;
    let work = window.work();
    let mut kernels: Vec<&Work<'_>> = work
        .iter()
        .filter(|work| work.scope == Some("placed kernel"))
        .collect();
    kernels.sort_unstable_by_key(|work| work.start_ns);
    findings.expect_count("kernels", kernels.len() as u64, PLACED as u64);
    let pairs = || kernels.iter().zip(&bounds);
    let after_launch: Vec<f64> = pairs()
        .map(|(kernel, (before, _))| (kernel.start_ns - before) as f64)
        .collect();
    let before_end: Vec<f64> = pairs()
        .map(|(kernel, (_, after))| (after - kernel.end_ns()) as f64)
        .collect();
    findings.spread_us(
        "from before the launch to the kernel's begin",
        &after_launch,
    );
    findings.spread_us(
        "from the kernel's end to that of the host's wait",
        &before_end,
    );
    for (what, margins) in [
        ("the host launched it", &after_launch),
        ("its end, as the host observed it", &before_end),
    ] {
        findings.expect_at_least(
            &format!("the least distance to when {what}, in ns"),
            least(margins),
            -SLACK_NS,
        );
    }
    beside_scopes(findings, &window);
    let stamps = stamps.read()?;
    let starts = kernels.iter().map(|kernel| kernel.start_ns);
    // The two clocks have different origins, so the first kernel is the reference.
    let offsets: Vec<i64> = starts
        .zip(&stamps)
        .map(|(start, stamp)| start - i64::try_from(stamp.begin).unwrap_or(0))
        .collect();
    let origin = offsets.first().copied().unwrap_or(0);
    let offsets: Vec<f64> = offsets
        .iter()
        .map(|offset| (offset - origin) as f64)
        .collect();
    let spread = most(&offsets) - least(&offsets);
    let [first, last] =
        [kernels.first(), kernels.last()].map(|kernel| kernel.map_or(0, |kernel| kernel.start_ns));
    let between = (last - first) as f64;
    findings.figure(
        "start minus the device's timer varies by",
        spread / 1e3,
        "µs",
    );
    findings.expect_between(
        "the variation of start minus the device's timer in ns",
        spread,
        0.0,
        100_000.0 + 0.0005 * between,
    );
    Ok(())
}

/// Compares the places of kernels with those of the GPU times of their scopes, which come from events.
fn beside_scopes(findings: &mut Findings, window: &Window) {
    let (mut later, mut uncertainties) = (Vec::new(), Vec::new());
    let events = window.trace.events();
    for event in events.filter(|event| event.name() == "placed kernel") {
        let kernel = event.gpu_work().next().and_then(GpuEvent::start_ns);
        let place = event
            .gpu()
            .and_then(|gpu| gpu.start_ns.zip(Some(gpu.uncertainty_ns)));
        if let (Some(kernel), Some((scope, uncertainty))) = (kernel, place) {
            later.push((kernel - scope) as f64);
            uncertainties.push(uncertainty);
        }
    }
    findings.expect_count(
        "kernels and scopes with places",
        later.len() as u64,
        PLACED as u64,
    );
    findings.spread_us(
        "from the begin of the scope's GPU time to the kernel's",
        &later,
    );
    let most = 100_000.0 + median(&uncertainties);
    findings.expect_between(
        "the median from the begin of the scope's GPU time to the kernel's in ns",
        median(&later),
        -most,
        most,
    );
}
