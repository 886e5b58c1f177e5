//! All kinds of streams, and all ways to specify one.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::{Stream, clear_default_stream, set_default_stream, with_stream};
use profiler_runtime::{MeasureFuture, measure_execution_time, scope};

use crate::device::{Gpu, raw};
use crate::driver::made;
use crate::findings::{Check, Findings, Theme};
use crate::measured::{expect_all, row};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "streams",
    checks: &[
        Check {
            name: "default, blocking, non-blocking and per-thread streams are measured alike",
            bound: "the median of kernels of 500 µs is between 500 µs less a timer step and 3 \
                    % (percentiles come from buckets), and 620 µs; all calls have a GPU time",
            run: all_kinds,
        },
        Check {
            name: "a scope on a stream without work measures almost nothing, regardless of other streams",
            bound: "the median is below 100 µs while another non-blocking stream runs kernels \
                    of 2 ms",
            run: idle_stream,
        },
        Check {
            name: "the thread's current stream, a raw handle, a context and a future select the right stream",
            bound: "as for the kinds of streams",
            run: ways,
        },
        Check {
            name: "a function with the attribute is measured on the stream that it names",
            bound: "as for the kinds of streams",
            run: attribute,
        },
        Check {
            name: "without a stream, the default stream of the process is used, and otherwise none",
            bound: "work on the legacy default stream, set as that of the process, is measured \
                    as above; without one, the calls only have a CPU time, and are counted if \
                    a context is current",
            run: unnamed,
        },
    ],
};

const LENGTH: u64 = 500_000;
const CALLS: u64 = 20;

/// Checks that all calls of a name have a GPU time, which equals that of the kernel.
fn judge(gpu: &Gpu, findings: &mut Findings, name: &str) -> Result<(), Trouble> {
    let times = expect_all(findings, name, CALLS)?;
    findings.figure(format!("{name}, median"), times.p50_ns / 1e3, "µs");
    let below = gpu.timer_step + 1_000.0 + 0.032 * LENGTH as f64;
    let (least, most) = (LENGTH as f64 - below, LENGTH as f64 + 120_000.0);
    findings.expect_between(
        &format!("{name}: the median in ns"),
        times.p50_ns,
        least,
        most,
    );
    findings.note(format!("{name}: on {}", row(name)?.streams.join(", ")));
    Ok(())
}

fn all_kinds(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let driver = gpu.driver;
    let blocking = made(driver, "cuStreamCreate", |stream| {
        driver.cuStreamCreate(stream, 0)
    })?;
    // SAFETY: the stream belongs to this context, and is destroyed after the last use of the
    // wrapper.
    let wrapped = unsafe { gpu.context.wrap_borrowed_stream(blocking as _) };
    let kinds: [(&str, Arc<CudaStream>); 4] = [
        ("default stream", gpu.context.default_stream()),
        ("blocking stream", wrapped),
        ("non-blocking stream", gpu.stream()?),
        ("per-thread stream", gpu.context.per_thread_stream()),
    ];
    for (name, stream) in &kinds {
        for _ in 0..CALLS {
            let _scope = scope!(*name, stream = stream);
            gpu.kernels.spin(raw(stream), LENGTH, 0)?;
        }
        judge(gpu, findings, name)?;
    }
    drop(kinds);
    driver.check("cuStreamDestroy", driver.cuStreamDestroy_v2(blocking))
}

fn idle_stream(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (busy, idle) = (gpu.stream()?, gpu.stream()?);
    for _ in 0..CALLS {
        let _scope = scope!("stream without work", stream = &idle);
        gpu.kernels.spin(raw(&busy), 2_000_000, 0)?;
    }
    let times = expect_all(findings, "stream without work", CALLS)?;
    findings.figure("median", times.p50_ns / 1e3, "µs");
    findings.expect_between("the median in ns", times.p50_ns, 0.0, 100_000.0);
    busy.synchronize().map_err(Trouble::from)
}

fn ways(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    let handle = raw(&stream);
    for _ in 0..CALLS {
        with_stream(&stream, || {
            let _scope = scope!("current stream");
            gpu.kernels.spin(handle, LENGTH, 0)
        })?;
    }
    judge(gpu, findings, "current stream")?;
    // SAFETY: the stream and its context outlive the scopes.
    let by_handle = unsafe { Stream::from_raw(handle as _, gpu.context.cu_ctx().cast()) };
    for _ in 0..CALLS {
        let _scope = scope!("raw handle", stream = &by_handle);
        gpu.kernels.spin(handle, LENGTH, 0)?;
    }
    judge(gpu, findings, "raw handle")?;
    for _ in 0..CALLS {
        let _scope = scope!("context", stream = &gpu.context);
        gpu.kernels.spin(0, LENGTH, 0)?;
    }
    judge(gpu, findings, "context")?;
    for _ in 0..CALLS {
        let work = async { gpu.kernels.spin(handle, LENGTH, 0) };
        finish(work.measure_execution_time("future").stream(&stream))?;
    }
    judge(gpu, findings, "future")
}

/// Runs a future that is always ready.
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(value) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return value;
        }
    }
}

struct Layer<'a> {
    gpu: &'a Gpu,
    stream: Arc<CudaStream>,
}

impl Layer<'_> {
    #[measure_execution_time(name = "attribute", stream = &self.stream)]
    fn forward(&self) -> Result<(), Trouble> {
        self.gpu.kernels.spin(raw(&self.stream), LENGTH, 0)
    }
}

fn attribute(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let layer = Layer {
        gpu,
        stream: gpu.stream()?,
    };
    for _ in 0..CALLS {
        layer.forward()?;
    }
    judge(gpu, findings, "attribute")
}

fn unnamed(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    gpu.context.bind_to_thread()?;
    set_default_stream(&gpu.context);
    for _ in 0..CALLS {
        let _scope = scope!("default of the process");
        gpu.kernels.spin(0, LENGTH, 0)?;
    }
    judge(gpu, findings, "default of the process")?;
    clear_default_stream();
    (0..CALLS).for_each(|_| drop(scope!("no stream named")));
    let thread = std::thread::spawn(|| (0..CALLS).for_each(|_| drop(scope!("no context"))));
    thread
        .join()
        .map_err(|_| Trouble::Missing("the thread panicked".to_owned()))?;
    for (name, without) in [("no stream named", CALLS), ("no context", 0)] {
        let row = row(name)?;
        findings.expect_count(&format!("{name}: calls"), row.calls, CALLS);
        findings.expect_count(
            &format!("{name}: calls counted as without a stream"),
            row.without_stream,
            without,
        );
        findings.expect(row.cuda.is_none(), || format!("{name}: has a GPU time"));
    }
    Ok(())
}
