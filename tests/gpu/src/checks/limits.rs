//! Limits of the driver: its launch queue, its hardware queues, and where it must not be called.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use profiler_runtime::cuda::{CudaLoss, Stream};
use profiler_runtime::{scope, summary};
use serde_json::json;

use crate::child::{self, Part};
use crate::device::{Gpu, raw};
use crate::driver::Driver;
use crate::findings::{Check, Findings, Theme};
use crate::measured::{lost_to, row};
use crate::neighbours::{self, Harm};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "limits",
    checks: &[
        Check {
            name: "calls keep their GPU times while the launch queue is full",
            bound: "1500 calls after a kernel of 100 ms: all have a GPU time. Results without \
                    a bound: how many launches fit into the queue until one waits, bare and \
                    measured, and what the profiler reports",
            run: full_queue,
        },
        Check {
            name: "what does the driver return inside a host function?",
            bound: "calls and reasons add up, and the process continues, if the driver itself \
                    returns there; otherwise no bound",
            run: host_function,
        },
        Check {
            name: "how much of other streams' work does a measurement include, with 8 queues and with 32?",
            bound: "20 calls with each setting have a GPU time; otherwise no bound",
            run: connections,
        },
    ],
};

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "full queue",
        play: part_full_queue,
    },
    Part {
        name: "host function",
        play: part_host_function,
    },
    Part {
        name: "connections",
        play: part_connections,
    },
];

const QUEUED: u64 = 1_500;
/// A launch that takes longer waited for something.
const WAITS: Duration = Duration::from_millis(1);

fn full_queue(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let child = child::run("full queue", &[])?.successful()?;
    for (key, name) in [
        ("launches", "launches before one waited, bare"),
        ("scopes", "measured launches before one waited"),
        ("timed records", "records that were timed"),
        ("long records", "records over 0.1 ms"),
    ] {
        findings.figure(name, child.number(key)?, "");
    }
    findings.note("-1 where none waited");
    findings.figure("the longest record", child.number("longest")? / 1e3, "µs");
    findings.expect_count("calls", child.count("calls")?, QUEUED);
    findings.expect_count("calls with a GPU time", child.count("timed")?, QUEUED);
    Ok(())
}

fn part_full_queue() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    gpu.driver.simulate(c"launch-queue 1024");
    // Warm up: the first call registers the context and creates events.
    drop(scope!("before a full queue", stream = &stream));
    stream.synchronize()?;
    // Count the launches until one waits for the device.
    let until_one_waits = |launch: &dyn Fn() -> Result<(), Trouble>| {
        gpu.plug(&stream, 100_000_000)?;
        let mut first = None;
        for number in 0..QUEUED {
            let began = Instant::now();
            launch()?;
            if began.elapsed() > WAITS {
                first = first.or(Some(number));
            }
        }
        stream.synchronize()?;
        Ok::<_, Trouble>(first.map_or(-1.0, |number| number as f64))
    };
    let launches = until_one_waits(&|| gpu.kernels.empty(raw(&stream)))?;
    let scopes = until_one_waits(&|| {
        let _scope = scope!("behind a full queue", stream = &stream);
        gpu.kernels.empty(raw(&stream))
    })?;
    let row = row("behind a full queue")?;
    let records = summary().cuda.records;
    child::report(&json!({
        "launches": launches,
        "scopes": scopes,
        "calls": row.calls,
        "timed": row.cuda.map_or(0, |times| times.calls),
        "timed records": records.timed,
        "long records": records.long,
        "longest": records.longest_ns,
    }));
    Ok(ExitCode::SUCCESS)
}

const CALLS: u64 = 20;

fn host_function(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    // Where the driver does not return, the process ends as it is.
    neighbours::spare(Harm::UnfinishedWork)?;
    let child = child::run("host function", &[])?.successful()?;
    let stage = child.count("stage")?;
    for (call, code) in ["cuCtxGetCurrent", "cuStreamIsCapturing", "cuEventQuery"]
        .iter()
        .zip(child.numbers("codes")?)
    {
        findings.note(format!("{call}: {code}"));
    }
    if stage < 2 {
        findings.note("the driver had not returned from a call of the suite's own after 5 s");
        return Ok(());
    }
    findings.expect(stage == 3, || {
        "measured calls had not returned after 5 s".to_owned()
    });
    let [timed, without] = [child.count("timed")?, child.count("without")?];
    findings.figure("calls with a GPU time", timed as f64, "");
    findings.figure(
        "left out as inside a host function",
        child.number("barred")?,
        "",
    );
    findings.expect_count("calls with a time or a reason", timed + without, CALLS);
    findings.expect_count("GPU times afterwards", child.count("after")?, CALLS);
    Ok(())
}

/// The progress of the host function: 1 it has begun, 2 the suite's calls have returned, 3 it has
/// ended.
static STAGE: AtomicU32 = AtomicU32::new(0);
static CODES: [AtomicU32; 3] = [const { AtomicU32::new(u32::MAX) }; 3];
static HANDLES: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

extern "C" fn call_the_driver(_: usize) {
    STAGE.store(1, SeqCst);
    let Ok(driver) = Driver::get() else { return };
    let [stream, context, event] = HANDLES.each_ref().map(|handle| handle.load(SeqCst));
    let (mut current, mut capturing) = (0, 0);
    CODES[0].store(driver.cuCtxGetCurrent(&raw mut current), SeqCst);
    CODES[1].store(
        driver.cuStreamIsCapturing(stream, &raw mut capturing),
        SeqCst,
    );
    CODES[2].store(driver.cuEventQuery(event), SeqCst);
    STAGE.store(2, SeqCst);
    // SAFETY: the stream and its context live as long as the process.
    let stream = unsafe { Stream::from_raw(stream as _, context as _) };
    for _ in 0..CALLS {
        let _scope = scope!("in a host function", stream = &stream);
    }
    STAGE.store(3, SeqCst);
}

fn part_host_function() -> Result<ExitCode, Trouble> {
    let gpu = child::gpu()?;
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let event = crate::device::Event::new(driver)?;
    event.record(raw(&stream))?;
    stream.synchronize()?;
    let context = gpu.context.cu_ctx() as usize;
    for (place, handle) in HANDLES.iter().zip([raw(&stream), context, event.handle]) {
        place.store(handle, SeqCst);
    }
    // Let the profiler register the context first.
    drop(scope!("before a host function", stream = &stream));
    let code = driver.cuLaunchHostFunc(raw(&stream), call_the_driver, 0);
    driver.check("cuLaunchHostFunc", code)?;
    let began = Instant::now();
    while STAGE.load(SeqCst) < 3 && began.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let stage = STAGE.load(SeqCst);
    let codes = CODES.each_ref().map(|code| code.load(SeqCst));
    if stage < 3 {
        child::report(&json!({ "stage": stage, "codes": codes }));
        // A call that waits inside the driver would be noticed here.
        crate::runner::end_now(0);
    }
    for _ in 0..CALLS {
        let _scope = scope!("after a host function", stream = &stream);
        gpu.kernels.empty(raw(&stream))?;
    }
    let (inside, after) = (row("in a host function")?, row("after a host function")?);
    child::report(&json!({
        "stage": stage,
        "codes": codes,
        "timed": inside.cuda.map_or(0, |times| times.calls),
        "without": inside.without_cuda,
        "barred": lost_to(CudaLoss::HostFunction),
        "after": after.cuda.map_or(0, |times| times.calls),
    }));
    Ok(ExitCode::SUCCESS)
}

fn connections(_: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    for queues in ["8", "32"] {
        let variables = [("CUDA_DEVICE_MAX_CONNECTIONS", queues)];
        let child = child::run("connections", &variables)?.successful()?;
        for key in ["median", "greatest"] {
            let name = format!("kernels of 200 µs with 15 busy streams, {queues} queues: {key}");
            findings.figure(name, child.number(key)? / 1e3, "µs");
        }
        findings.expect_count("calls with a GPU time", child.count("timed")?, CALLS);
    }
    Ok(())
}

fn part_connections() -> Result<ExitCode, Trouble> {
    const STREAMS: usize = 15;
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    let busy: Vec<_> = (0..STREAMS)
        .map(|_| gpu.stream())
        .collect::<Result<_, _>>()?;
    for _ in 0..CALLS {
        for other in &busy {
            gpu.kernels.spin(raw(other), 2_000_000, 0)?;
        }
        {
            let _scope = scope!("beside busy streams", stream = &stream);
            gpu.kernels.spin(raw(&stream), 200_000, 0)?;
        }
        gpu.context.synchronize()?;
    }
    let times = row("beside busy streams")?.cuda;
    let times = times.ok_or_else(|| Trouble::Missing("no GPU times".to_owned()))?;
    child::report(&json!({
        "timed": times.calls,
        "median": times.p50_ns,
        "greatest": times.max_ns,
    }));
    Ok(ExitCode::SUCCESS)
}
