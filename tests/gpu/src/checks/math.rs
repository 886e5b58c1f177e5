//! Other kernels: compiled at run time, or NVIDIA's own.

use profiler_runtime::scope;

use crate::cublas::Cublas;
use crate::device::{Event, Gpu, find, launch, load_module, raw};
use crate::driver::made;
use crate::figures::{differences, least, median};
use crate::findings::{Check, Findings, Theme};
use crate::measured::{LoggedTimes, expect_all};
use crate::nvrtc::Nvrtc;
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "libraries",
    checks: &[
        Check {
            name: "a kernel compiled by NVRTC is measured as any other",
            bound: "the median is at least 300 µs (the kernel) less a timer step and 3 %, and \
                    at most 120 µs more",
            run: compiled,
        },
        Check {
            name: "a product by cuBLAS is measured as by events around it",
            bound: "each call is at most 1 µs longer than by the events around it; the medians \
                    differ by at most 20 µs",
            run: product,
        },
    ],
};

const CALLS: usize = 20;
const SOURCE: &std::ffi::CStr = c"
extern \"C\" __global__ void spin_ns(unsigned long long length) {
    unsigned long long begin, now;
    asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(begin));
    do asm volatile(\"mov.u64 %0, %%globaltimer;\" : \"=l\"(now)); while (now - begin < length);
}";

fn compiled(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let nvrtc = Nvrtc::open()?;
    let (major, minor) = nvrtc.version()?;
    findings.note(format!("{} of CUDA {major}.{minor}", nvrtc.path));
    let ptx = nvrtc.compile(SOURCE)?;
    let module = match load_module(gpu.driver, &ptx) {
        // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        Err(Trouble::Driver { code: 222, .. }) => {
            let reason = format!("NVRTC {major}.{minor} is newer than the driver");
            return Err(Trouble::Skip(reason));
        }
        module => module?,
    };
    let (kernel, stream) = (find(gpu.driver, module, c"spin_ns")?, gpu.stream()?);
    for _ in 0..CALLS {
        let _scope = scope!("compiled", stream = &stream);
        launch(gpu.driver, kernel, raw(&stream), &mut [300_000])?;
    }
    let times = expect_all(findings, "compiled", CALLS as u64)?;
    findings.figure("median", times.p50_ns / 1e3, "µs");
    let least = 300_000.0 * 0.968 - gpu.timer_step - 1_000.0;
    findings.expect_between("the median in ns", times.p50_ns, least, 420_000.0);
    gpu.driver
        .check("cuModuleUnload", gpu.driver.cuModuleUnload(module))
}

fn product(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const SIDE: i32 = 2_048;
    if gpu.simulated {
        return Err(Trouble::Skip(
            "a simulated device computes nothing".to_owned(),
        ));
    }
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let cublas = Cublas::on(raw(&stream))?;
    findings.note(cublas.path.clone());
    let bytes = 2_048 * 2_048 * size_of::<f32>();
    let mut matrices = [0_u64; 3];
    for matrix in &mut matrices {
        *matrix = made(driver, "cuMemAlloc", |address| {
            driver.cuMemAlloc_v2(address, bytes)
        })?;
        driver.check("cuMemsetD8", driver.cuMemsetD8_v2(*matrix, 0, bytes))?;
    }
    cublas.multiply(SIDE, matrices)?;
    stream.synchronize()?;
    let pair = || Ok::<_, Trouble>((Event::new(driver)?, Event::new(driver)?));
    let around: Vec<(Event, Event)> = (0..CALLS).map(|_| pair()).collect::<Result<_, _>>()?;
    let times = LoggedTimes::default();
    gpu.plug(&stream, 20_000_000)?;
    for (begin, end) in &around {
        begin.record(raw(&stream))?;
        {
            let _scope = scope!("product", stream = &stream, log = times.logger());
            cublas.multiply(SIDE, matrices)?;
        }
        end.record(raw(&stream))?;
    }
    let ours = times.ns(CALLS)?;
    let outside: Vec<f64> = around
        .iter()
        .map(|(begin, end)| end.since(begin))
        .collect::<Result<_, _>>()?;
    let under = differences(&outside, &ours);
    let operations = 2.0 * f64::from(SIDE).powi(3);
    findings.figure("a product, median", median(&ours) / 1e3, "µs");
    findings.figure("which is", operations / median(&ours) / 1e3, "TFLOP/s");
    findings.spread_us("events around minus profiler", &under);
    findings.expect(least(&under) >= -1_000.0, || {
        format!(
            "a measurement is {} ns longer than the events around it",
            -least(&under)
        )
    });
    findings.expect_between(
        "the median difference in ns",
        median(&under),
        -1_000.0,
        20_000.0,
    );
    drop(cublas);
    for matrix in matrices {
        driver.check("cuMemFree", driver.cuMemFree_v2(matrix))?;
    }
    Ok(())
}
