//! The language of the control interface: a command per line.

use std::sync::Once;

use super::clock::Pace;
use super::fault::{Action, Fault, When};
use super::machine::{Locked, tell};
use super::policy::{self, HostCalls, Waiting};
use super::settings::{DeviceSettings, Settings};
use super::{control, exports, fault};

/// The variable that holds commands, or `@` and the path of a file of them.
const VARIABLE: &str = "SIMULATED_DRIVER";

/// What was wrong with a script, for the person who wrote it.
type Refusal = String;

/// Runs what the environment says, once, before anything else happens.
pub(crate) fn run_environment() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(mut script) = std::env::var(VARIABLE) else {
            return;
        };
        if let Some(path) = script.strip_prefix('@') {
            script = std::fs::read_to_string(path).unwrap_or_else(|error| {
                stop(&format!(
                    "cannot read the script {path} that {VARIABLE} names: {error}"
                ))
            });
        }
        if let Err(refusal) = run(&script) {
            stop(&format!("{VARIABLE} holds what is no script: {refusal}"));
        }
    });
}

/// A test that ran without the script it asked for would prove nothing.
fn stop(message: &str) -> ! {
    use std::io::Write;
    // Nothing is left to do when standard error is closed.
    let _ = writeln!(std::io::stderr(), "simulated driver: {message}");
    std::process::abort()
}

/// Runs commands, one per line or between semicolons; stops at the first that is wrong.
pub(crate) fn run(script: &str) -> Result<(), Refusal> {
    for line in script.split(['\n', ';']) {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            let words: Vec<&str> = line.split_whitespace().collect();
            command(line, &words).map_err(|refusal| format!("`{line}`: {refusal}"))?;
        }
    }
    Ok(())
}

/// Nanoseconds of `20us`, `5ms`, `1s`, `100ns` or `100`.
pub(crate) fn nanoseconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn duration(text: &str) -> Result<u64, Refusal> {
    nanoseconds(text).ok_or_else(|| format!("`{text}` is no duration such as 20us, 5ms or 100"))
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, Refusal> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number that fits here"))
}

fn command(line: &str, words: &[&str]) -> Result<(), Refusal> {
    match words {
        ["reset"] => reset(),
        ["clock", pace] => set_pace(pace)?,
        ["advance", time] => return advance(duration(time)?),
        ["release"] => release(),
        ["shutdown"] => policy::DOWN.store(true, std::sync::atomic::Ordering::Relaxed),
        ["shutdown", "at-exit"] => control::shut_down_at_exit(),
        ["report-at-exit", path] => control::report_at_exit(path),
        ["synchronise", "allow"] => policy::set_waiting(Waiting::Allow),
        ["synchronise", "abort"] => policy::set_waiting(Waiting::Abort),
        ["synchronise", "abort-from", path] => {
            policy::set_waiting(Waiting::AbortFrom((*path).to_owned()));
        }
        ["host-function-calls", "refuse"] => policy::set_host_calls(HostCalls::Refuse),
        ["host-function-calls", "allow"] => policy::set_host_calls(HostCalls::Allow),
        ["host-function-calls", "abort"] => policy::set_host_calls(HostCalls::Abort),
        ["log", "on"] => Locked::new().truth.logging = true,
        ["log", "off"] => Locked::new().truth.logging = false,
        ["log", "clear"] => Locked::new().truth.clear(),
        ["fault", entry, rest @ ..] => return add_fault(entry, rest),
        ["clear-faults"] => exports::all().for_each(super::entry::EntryPoint::clear_faults),
        ["contexts", "reused"] => Locked::new().contexts.reuse_handles(),
        ["sticky", device, code] => {
            let (device, code) = (number(device)?, number(code)?);
            let failed = Locked::new().fail_primary(device, code);
            return failed.map_err(|_| "this device has no primary context now".to_owned());
        }
        ["device", ..] | ["devices", _] => return device(line, words),
        _ => return setting(&mut Locked::new().settings, words),
    }
    Ok(())
}

fn setting(settings: &mut Settings, words: &[&str]) -> Result<(), Refusal> {
    match words {
        ["driver-version", version] => settings.driver_version = number(version)?,
        ["hide", entry] => {
            settings.hidden.insert((*entry).to_owned());
        }
        ["kernel", name, time] => {
            settings.kernels.insert((*name).to_owned(), duration(time)?);
        }
        ["default-kernel", time] => settings.default_kernel_ns = duration(time)?,
        ["launch-latency", time] => settings.launch_latency_ns = duration(time)?,
        ["launch-queue", "unlimited"] => settings.launch_queue = None,
        ["launch-queue", depth] => settings.launch_queue = Some(number::<usize>(depth)?.max(1)),
        ["copy", time] => settings.copy_ns = duration(time)?,
        ["copy-bytes-per-us", bytes] => settings.copy_bytes_per_us = number(bytes)?,
        ["event-resolution", time] => settings.event_resolution_ns = duration(time)?,
        ["clock-drift-ppm", drift] => settings.clock_drift_ppm = number(drift)?,
        ["current-context", "required"] => settings.current_context_required = true,
        ["current-context", "optional"] => settings.current_context_required = false,
        ["current-context", "everywhere"] => settings.current_context_everywhere = true,
        _ => return Err("no such command; see the README of simulated-driver".to_owned()),
    }
    Ok(())
}

/// Devices are what they are from `cuInit` on.
fn device(line: &str, words: &[&str]) -> Result<(), Refusal> {
    let mut machine = Locked::new();
    if machine.initialised {
        return Err("set devices before cuInit is called, or after `reset`".to_owned());
    }
    let devices = &mut machine.settings.devices;
    if let ["devices", count] = words {
        *devices = (0..number(count)?).map(DeviceSettings::new).collect();
        return Ok(());
    }
    let ordinal: usize = number(words.get(1).ok_or("name a device by its number")?)?;
    let device = devices
        .get_mut(ordinal)
        .ok_or("there is no such device; see `devices`")?;
    match &words[2..] {
        ["name", _, ..] => {
            let name = line.split_once(" name ").map_or("", |(_, name)| name);
            name.trim().clone_into(&mut device.name);
        }
        ["memory", bytes] => device.bytes = number(bytes)?,
        ["attribute", attribute, value] => {
            device.attributes.insert(number(attribute)?, number(value)?);
        }
        _ => return Err("a device has a name, a memory and attributes".to_owned()),
    }
    Ok(())
}

fn set_pace(pace: &str) -> Result<(), Refusal> {
    let pace = match pace {
        "real" => Pace::Real,
        "virtual" => Pace::Virtual,
        "manual" => Pace::Manual,
        _ => return Err("the clock is `real`, `virtual` or `manual`".to_owned()),
    };
    Locked::new().clock.set_pace(pace);
    tell();
    Ok(())
}

/// Moves a clock that is not real.
pub(crate) fn advance(time: u64) -> Result<(), Refusal> {
    let mut machine = Locked::new();
    if machine.clock.pace() == Pace::Real {
        return Err("the real clock moves by itself; set `clock virtual` first".to_owned());
    }
    let at = machine.clock.now().saturating_add(time);
    machine.advance_to(at);
    Ok(())
}

fn release() {
    let mut machine = Locked::new();
    machine.releases += 1;
    machine.release_stalled();
    drop(machine);
    tell();
}

fn reset() {
    for entry in exports::all() {
        entry.clear_faults();
        entry.forget_calls();
    }
    fault::forget_happened();
    policy::set_waiting(Waiting::Allow);
    policy::set_host_calls(HostCalls::Refuse);
    policy::DOWN.store(false, std::sync::atomic::Ordering::Relaxed);
    Locked::new().reset();
    tell();
}

/// `fault ENTRY always|nth N|every N|from N ACTION [after]`; `*` is every entry point.
fn add_fault(entry: &str, words: &[&str]) -> Result<(), Refusal> {
    let (when, action) = match words {
        ["always", action @ ..] => (When::Always, action),
        ["nth", call, action @ ..] => (When::Nth(number(call)?), action),
        ["every", step, action @ ..] => (When::Every(number::<u64>(step)?.max(1)), action),
        ["from", call, action @ ..] => (When::From(number(call)?), action),
        _ => return Err("say which calls: `always`, `nth N`, `every N` or `from N`".to_owned()),
    };
    let (action, after) = match action {
        ["return", code] => (Action::Return(number(code)?), false),
        ["return", code, "after"] => (Action::Return(number(code)?), true),
        ["sticky", code] => (Action::Sticky(number(code)?), false),
        ["fail", code] => (Action::Fail(number(code)?), false),
        ["delay", time] => (Action::Delay(duration(time)?), false),
        ["hang"] => (Action::Hang, false),
        ["stall"] => (Action::Stall, false),
        ["time", ms] => (Action::Time(number::<f32>(ms)?.to_bits()), false),
        _ => {
            return Err(
                "say what happens: `return CODE [after]`, `sticky CODE`, `fail CODE`, \
                `delay TIME`, `hang`, `stall` or `time MILLISECONDS`"
                    .to_owned(),
            );
        }
    };
    let fault = Fault {
        when,
        action,
        after,
        since: 0,
    };
    let mut hit = exports::all()
        .filter(|known| entry == "*" || known.name == entry)
        .peekable();
    if hit.peek().is_none() {
        return Err(format!("`{entry}` is no entry point of this driver"));
    }
    hit.for_each(|entry| entry.add_fault(fault));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn durations_have_units() {
        let read = [
            "7", "7ns", "20us", "5ms", "1s", "", "us", "5 ms", "1h", "-1",
        ]
        .map(nanoseconds);
        let expected = [7, 7, 20_000, 5_000_000, 1_000_000_000].map(Some);
        assert_eq!(read[..5], expected);
        assert_eq!(read[5..], [None; 5]);
    }
}
