//! Several contexts, and several devices if there are any.

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::scope;

use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::measured::{expect_all, lost, lost_to, row};
use crate::own::Own;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "contexts",
    checks: &[
        Check {
            name: "two contexts on one device are measured independently",
            bound: "the medians are at least 100 and 400 µs (the kernels) less a timer step \
                    and 3 %, and at most 1 ms more, because the device switches between \
                    contexts; no call is lost",
            run: two_contexts,
        },
        Check {
            name: "two devices are measured independently",
            bound: "as for two contexts",
            run: two_devices,
        },
        Check {
            name: "a scope that ends while another context is current is measured correctly, or has a reason",
            bound: "as for two contexts; or a reason is counted for each call",
            run: ends_elsewhere,
        },
    ],
};

const CALLS: u64 = 20;

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
    let (stream, own) = (gpu.stream()?, Own::new(gpu.driver, device)?);
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
        // Contexts that both have work are time-sliced on the device, so each would include the
        // other's time.
        stream.synchronize()?;
        own.synchronize()?;
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
