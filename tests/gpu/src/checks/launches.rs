//! The launches that CUPTI records, and their cost: in a child process, since CUPTI may slow down all later launches.

use std::ffi::c_void;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::json;

use crate::child::{self, Part};
use crate::cupti::{Cupti, VARIABLE, check};
use crate::device::{Gpu, raw};
use crate::figures::median;
use crate::findings::{Check, Findings, Theme};
use crate::trouble::Trouble;

pub(crate) const THEME: Theme = Theme {
    name: "launches under CUPTI",
    checks: &[Check {
        name: "a kernel's record has the correlation id of the callback at its launch, in two windows",
        bound: "all ids are equal, in the order of the launches on one stream: the profiler finds the scope of a \
                kernel by them. The costs are figures",
        run: correlate,
    }],
};

pub(crate) const PARTS: &[Part] = &[Part {
    name: "launches",
    play: launches,
}];

const LAUNCHES: usize = 200;
const ROUNDS: usize = 11;
/// The callback domain of the driver's functions, and `cuLaunchKernel` in it.
const DRIVER: u32 = 1;
const LAUNCH_KERNEL: u32 = 307;
/// Where `CUpti_CallbackData` has the number of the call.
const CORRELATION: usize = 64;

/// The states of CUPTI in which launches are timed.
const STATES: [&str; 5] = [
    "before CUPTI",
    "callbacks",
    "records",
    "callbacks and records",
    "after both were turned off",
];

fn correlate(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    if gpu.simulated && std::env::var_os(VARIABLE).is_none() {
        return Err(Trouble::Skip(
            "CUPTI does not support a simulated device".to_owned(),
        ));
    }
    let child = child::run("launches", &[])?.successful()?;
    if let Some(reason) = child.value("skipped")?.as_str() {
        return Err(Trouble::Skip(reason.to_owned()));
    }
    for window in 1..=2 {
        let called = child.numbers(&format!("callbacks {window}"))?;
        let recorded = child.numbers(&format!("records {window}"))?;
        findings.expect_count("callbacks", called.len() as u64, LAUNCHES as u64);
        findings.expect_count("records", recorded.len() as u64, LAUNCHES as u64);
        let differing = called
            .iter()
            .zip(&recorded)
            .filter(|(a, b)| a.to_bits() != b.to_bits());
        findings.expect_count("ids that differ", differing.count() as u64, 0);
    }
    findings.figure("first enable", child.number("first enable ns")? / 1e6, "ms");
    findings.figure("record of a kernel", child.number("stride")?, "bytes");
    for state in STATES {
        findings.figure(format!("a launch, {state}"), child.number(state)?, "ns");
    }
    Ok(())
}

/// The correlation ids of the launches.
static IDS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

extern "C" fn on_launch(_: *mut c_void, _: u32, _: u32, data: *const u32) {
    // SAFETY: `CUpti_CallbackData` has the site and the correlation id there in all versions.
    let (site, id) = unsafe { (data.read(), data.byte_add(CORRELATION).read()) };
    if site == 0
        && let Ok(mut ids) = IDS.lock()
    {
        ids.push(id);
    }
}

type Callback = extern "C" fn(*mut c_void, u32, u32, *const u32);
type Subscribe = unsafe extern "C" fn(*mut usize, Callback, *mut c_void) -> u32;
type Unsubscribe = unsafe extern "C" fn(usize) -> u32;
type Enable = unsafe extern "C" fn(u32, usize, u32, u32) -> u32;

/// Returns the functions and numbers as they are declared here.
#[cfg(test)]
pub(crate) fn declared() -> Vec<header_check::Item> {
    use header_check::Item;

    vec![
        Item::function_type::<Callback>("CUpti_CallbackFunc"),
        Item::function::<Subscribe>("cuptiSubscribe"),
        Item::function::<Unsubscribe>("cuptiUnsubscribe"),
        Item::function::<Enable>("cuptiEnableCallback"),
        Item::constant("CUPTI_CB_DOMAIN_DRIVER_API", &DRIVER),
        Item::callback("CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel", LAUNCH_KERNEL),
        Item::field::<u32>("CUpti_CallbackData", "callbackSite", 0),
        Item::field::<u32>("CUpti_CallbackData", "correlationId", CORRELATION),
    ]
}

/// Runs in the child.
fn launches() -> Result<ExitCode, Trouble> {
    match measure() {
        Ok(()) => {}
        Err(Trouble::Skip(reason)) => child::report(&json!({ "skipped": reason })),
        Err(refused @ Trouble::Library { .. }) => {
            // Another tool may be using CUPTI.
            child::report(&json!({ "skipped": refused.to_string() }));
        }
        Err(other) => return Err(other),
    }
    Ok(ExitCode::SUCCESS)
}

fn measure() -> Result<(), Trouble> {
    let gpu = child::gpu()?;
    let stream = gpu.stream()?;
    let cost = || -> Result<f64, Trouble> {
        let mut rounds = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let began = Instant::now();
            for _ in 0..LAUNCHES {
                gpu.kernels.empty(raw(&stream))?;
            }
            rounds.push(began.elapsed().as_nanos() as f64 / LAUNCHES as f64);
            stream.synchronize()?;
        }
        Ok(median(&rounds))
    };
    let ids = || IDS.lock().map(|mut ids| std::mem::take(&mut *ids));
    let ids = || ids().unwrap_or_default();
    let before = cost()?;
    let mut seen = json!({ "skipped": null, STATES[0]: before });

    let cupti = Cupti::open()?;
    // SAFETY: CUPTI exports the functions with these types (cupti_callbacks.h).
    let (subscribe, unsubscribe, enable) = unsafe {
        (
            *cupti.library.get::<Subscribe>(b"cuptiSubscribe")?,
            *cupti.library.get::<Unsubscribe>(b"cuptiUnsubscribe")?,
            *cupti.library.get::<Enable>(b"cuptiEnableCallback")?,
        )
    };
    let mut subscriber = 0;
    // SAFETY: the callback has the type that CUPTI calls, and the pointer is to this stack.
    let code = unsafe { subscribe(&raw mut subscriber, on_launch, std::ptr::null_mut()) };
    check("cuptiSubscribe", code)?;
    let callbacks = |on: bool| {
        // SAFETY: the subscriber exists.
        let code = unsafe { enable(u32::from(on), subscriber, DRIVER, LAUNCH_KERNEL) };
        check("cuptiEnableCallback", code)
    };
    callbacks(true)?;
    seen[STATES[1]] = json!(cost()?);
    callbacks(false)?;
    let began = Instant::now();
    cupti.enable()?;
    seen["first enable ns"] = json!(began.elapsed().as_nanos() as f64);
    seen[STATES[2]] = json!(cost()?);
    callbacks(true)?;
    seen[STATES[3]] = json!(cost()?);
    for window in 1..=2 {
        stream.synchronize()?;
        cupti.take()?;
        ids();
        for _ in 0..LAUNCHES {
            gpu.kernels.empty(raw(&stream))?;
        }
        stream.synchronize()?;
        let recorded: Vec<u32> = cupti
            .take()?
            .iter()
            .map(|kernel| kernel.correlation)
            .collect();
        seen[format!("callbacks {window}")] = json!(ids());
        seen[format!("records {window}")] = json!(recorded);
        // The next window begins with records that were off.
        cupti.disable()?;
        if window == 1 {
            cupti.enable()?;
        }
    }
    callbacks(false)?;
    // SAFETY: the subscriber exists and is not used any more.
    check("cuptiUnsubscribe", unsafe { unsubscribe(subscriber) })?;
    seen[STATES[4]] = json!(cost()?);
    seen["stride"] = json!(Cupti::stride());
    child::report(&seen);
    Ok(())
}
