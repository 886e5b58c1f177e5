//! Several contexts, and several devices where there are.

use profiler_runtime::cuda::{CudaLoss, Stream};
use profiler_runtime::{scope, summary};

use crate::device::{Gpu, Kernels, raw};
use crate::driver::{Driver, made};
use crate::findings::{Check, Findings, Theme};
use crate::measured::{expect_all, lost, lost_to, row, settle};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "contexts",
    checks: &[
        Check {
            name: "two contexts on one device are read each by itself",
            bound: "medians of kernels of 100 and 400 µs less a timer step and 3 %, to 1 ms more, since \
                    the device changes between contexts; no call is lost",
            run: two_contexts,
        },
        Check {
            name: "two devices are read each by itself",
            bound: "as for two contexts",
            run: two_devices,
        },
        Check {
            name: "a scope that ends while another context is current is right, or refused with a reason",
            bound: "as for two contexts; or a reason counted for each call",
            run: ends_elsewhere,
        },
        Check {
            name: "a context that is destroyed takes nothing with it but its open readings",
            bound: "calls and reasons add up; the other context is measured as before",
            run: destroyed,
        },
    ],
};

const CALLS: u64 = 20;

/// A context of the suite's own, with a stream and kernels.
struct Own {
    driver: &'static Driver,
    context: usize,
    stream: usize,
    kernels: Kernels,
}

impl Own {
    /// Makes one on a device, and leaves current what was.
    fn new(driver: &'static Driver, device: i32) -> Result<Self, Trouble> {
        let before = driver.current();
        let context = made(driver, "cuCtxCreate", |context| {
            driver.cuCtxCreate_v2(context, 0, device)
        })?;
        let stream = made(driver, "cuStreamCreate", |stream| {
            driver.cuStreamCreate(stream, 1)
        })?;
        let kernels = Kernels::load(driver)?;
        let own = Self {
            driver,
            context,
            stream,
            kernels,
        };
        own.spin(0)?;
        driver.check("cuCtxSynchronize", driver.cuCtxSynchronize())?;
        driver.check("cuCtxSetCurrent", driver.cuCtxSetCurrent(before))?;
        Ok(own)
    }

    fn as_stream(&self) -> Stream {
        // SAFETY: the checks drop every scope, and flush, before they destroy the stream; the one that
        // does not is about what happens then, and drops its scopes too.
        unsafe { Stream::from_raw(self.stream as _, self.context as _) }
    }

    fn spin(&self, ns: u64) -> Result<(), Trouble> {
        self.kernels.spin(self.stream, ns, 0)
    }

    /// Runs `work` with this context current.
    fn with<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let before = self.driver.current();
        self.driver
            .check("cuCtxSetCurrent", self.driver.cuCtxSetCurrent(self.context))?;
        let done = work();
        self.driver
            .check("cuCtxSetCurrent", self.driver.cuCtxSetCurrent(before))?;
        done
    }

    fn destroy(self) -> Result<(), Trouble> {
        let (driver, context, stream) = (self.driver, self.context, self.stream);
        self.with(|| driver.check("cuStreamDestroy", driver.cuStreamDestroy_v2(stream)))?;
        driver.check("cuCtxDestroy", driver.cuCtxDestroy_v2(context))
    }
}

fn judge(gpu: &Gpu, findings: &mut Findings, name: &str, length: f64) -> Result<(), Trouble> {
    let times = expect_all(findings, name, CALLS)?;
    findings.figure(format!("{name}, median"), times.p50_ns / 1e3, "µs");
    let least = length * 0.968 - gpu.timer_step - 1_000.0;
    findings.expect_between(
        &format!("{name}: the median in ns"),
        times.p50_ns,
        least,
        length + 1e6,
    );
    Ok(())
}

fn two_contexts(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    beside_another(gpu, findings, 0, ["first context", "second context"])
}

fn two_devices(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    if gpu.driver.devices() < 2 {
        return Err(Trouble::Skip("there is one device".to_owned()));
    }
    beside_another(gpu, findings, 1, ["first device", "second device"])
}

fn beside_another(
    gpu: &Gpu,
    findings: &mut Findings,
    device: i32,
    [first, second]: [&str; 2],
) -> Result<(), Trouble> {
    let driver = gpu.driver;
    let (stream, own) = (gpu.stream()?, Own::new(driver, device)?);
    let other = own.as_stream();
    for _ in 0..CALLS {
        {
            let _scope = scope!(first, stream = &stream);
            gpu.kernels.spin(raw(&stream), 100_000, 0)?;
        }
        own.with(|| {
            let _scope = scope!(second, stream = &other);
            own.spin(400_000)
        })?;
        // Contexts that both have work take turns on the device, and each would read the other's.
        stream.synchronize()?;
        driver.check(
            "cuStreamSynchronize",
            driver.cuStreamSynchronize(own.stream),
        )?;
    }
    judge(gpu, findings, first, 100_000.0)?;
    judge(gpu, findings, second, 400_000.0)?;
    drop(other);
    own.destroy()
}

fn ends_elsewhere(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (stream, own) = (gpu.stream()?, Own::new(gpu.driver, 0)?);
    let name = "ends elsewhere";
    for _ in 0..CALLS {
        let scope = scope!(name, stream = &stream);
        gpu.kernels.spin(raw(&stream), 100_000, 0)?;
        own.with(|| {
            drop(scope);
            Ok(())
        })?;
    }
    let row = row(name)?;
    findings.expect_count("calls", row.calls, CALLS);
    findings.figure("calls without GPU time", row.without_cuda as f64, "");
    if row.without_cuda > 0 {
        let reasons = lost_to(CudaLoss::OtherContext) + lost_to(CudaLoss::DriverRefused);
        findings.expect(reasons >= row.without_cuda, || {
            format!("reasons counted: {:?}", lost())
        });
    }
    if let Some(times) = row.cuda {
        findings.expect_count(
            "calls with a time or a reason",
            times.calls + row.without_cuda,
            CALLS,
        );
        findings.figure("median", times.p50_ns / 1e3, "µs");
        let least = 100_000.0 * 0.968 - gpu.timer_step - 1_000.0;
        findings.expect_between("the median in ns", times.p50_ns, least, 1_100_000.0);
    }
    own.destroy()
}

fn destroyed(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (stream, own) = (gpu.stream()?, Own::new(gpu.driver, 0)?);
    let other = own.as_stream();
    let before = summary().cuda.in_flight;
    own.with(|| {
        for _ in 0..CALLS {
            let _scope = scope!("in a doomed context", stream = &other);
            own.spin(1_000_000)?;
        }
        Ok(())
    })?;
    drop(other);
    // While its scopes are in flight; destroying waits for the kernels, not for the profiler.
    own.destroy()?;
    for _ in 0..CALLS {
        let _scope = scope!("beside a doomed context", stream = &stream);
        gpu.kernels.spin(raw(&stream), 100_000, 0)?;
    }
    judge(gpu, findings, "beside a doomed context", 100_000.0)?;
    settle();
    let row = row("in a doomed context")?;
    let read = row.cuda.map_or(0, |times| times.calls);
    findings.figure("calls in flight before", before as f64, "");
    findings.figure("calls read before it was destroyed", read as f64, "");
    findings.expect_count("calls", row.calls, CALLS);
    findings.expect_count(
        "calls with a time or a reason",
        read + row.without_cuda,
        CALLS,
    );
    Ok(())
}
