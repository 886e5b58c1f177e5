//! The script language: one command per line.

use std::sync::Once;

use super::clock::ClockMode;
use super::fault::{Action, Fault, When};
use super::policy::{self, HostCallPolicy, WaitPolicy};
use super::settings::{DeviceSettings, Settings};
use super::state::{LockedState, notify_all};
use super::{control, cupti, exports, fault, nvml};

/// The environment variable that holds a script, or `@` and the path of one.
const VARIABLE: &str = "SIMULATED_DRIVER";

/// The error message for a wrong script.
type ScriptError = String;

/// Runs the script in the environment variable, once and before anything else.
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
        if let Err(error) = run(&script) {
            stop(&format!("{VARIABLE} holds what is no script: {error}"));
        }
    });
}

/// Aborts the process: a test that runs without its script would prove nothing.
fn stop(message: &str) -> ! {
    use std::io::Write;
    // A failed write is ignored: standard error may be closed.
    let _ = writeln!(std::io::stderr(), "simulated driver: {message}");
    std::process::abort()
}

/// Runs commands, one per line or separated by semicolons. Stops at the first wrong one.
pub(crate) fn run(script: &str) -> Result<(), ScriptError> {
    for line in script.split(['\n', ';']) {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            let words: Vec<&str> = line.split_whitespace().collect();
            command(line, &words).map_err(|error| format!("`{line}`: {error}"))?;
        }
    }
    Ok(())
}

/// Parses `20us`, `5ms`, `1s`, `100ns` or `100` to nanoseconds.
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

pub(crate) fn duration(text: &str) -> Result<u64, ScriptError> {
    nanoseconds(text).ok_or_else(|| format!("`{text}` is no duration such as 20us, 5ms or 100"))
}

pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T, ScriptError> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number that fits here"))
}

fn command(line: &str, words: &[&str]) -> Result<(), ScriptError> {
    match words {
        ["reset"] => reset(),
        ["clock", pace] => set_pace(pace)?,
        ["advance", time] => return advance(duration(time)?),
        ["release"] => release(),
        ["shutdown"] => policy::SHUT_DOWN.store(true, std::sync::atomic::Ordering::Relaxed),
        ["shutdown", "at-exit"] => control::shut_down_at_exit(),
        // The only word that may have spaces in it.
        ["report-at-exit", path @ ..] => control::report_at_exit(&path.join(" ")),
        ["synchronise", "allow"] => policy::set_waiting(WaitPolicy::Allow),
        ["synchronise", "abort"] => policy::set_waiting(WaitPolicy::Abort),
        ["synchronise", "abort-from", path] => {
            policy::set_waiting(WaitPolicy::AbortFrom((*path).to_owned()));
        }
        ["host-function-calls", "refuse"] => policy::set_host_calls(HostCallPolicy::Refuse),
        ["host-function-calls", "allow"] => policy::set_host_calls(HostCallPolicy::Allow),
        ["host-function-calls", "abort"] => policy::set_host_calls(HostCallPolicy::Abort),
        ["log", "on"] => LockedState::new().log.logging = true,
        ["log", "off"] => LockedState::new().log.logging = false,
        ["fault", entry, rest @ ..] => return add_fault(entry, rest),
        ["clear-faults"] => {
            let all = exports::all().chain(exports::tools());
            all.for_each(super::entry::EntryPoint::clear_faults);
        }
        ["contexts", "reused"] => LockedState::new().contexts.reuse_handles(),
        ["sticky", device, code] => {
            let (device, code) = (number(device)?, number(code)?);
            let failed = LockedState::new().fail_primary(device, code);
            return failed.map_err(|_| "this device has no primary context now".to_owned());
        }
        ["nvml", rest @ ..] => return nvml::command(rest),
        ["cupti", rest @ ..] => return cupti::command(rest),
        ["device", ..] | ["devices", _] => return device(line, words),
        _ => return setting(&mut LockedState::new().settings, words),
    }
    Ok(())
}

fn setting(settings: &mut Settings, words: &[&str]) -> Result<(), ScriptError> {
    match words {
        ["driver-version", version] => settings.driver_version = number(version)?,
        ["hide", entry] => {
            settings.hidden.insert((*entry).to_owned());
        }
        ["kernel", name, time] => {
            settings.kernels.insert((*name).to_owned(), duration(time)?);
        }
        ["default-kernel", time] => settings.default_kernel_ns = duration(time)?,
        ["launch-queue", depth] => settings.launch_queue = Some(number::<usize>(depth)?.max(1)),
        ["copy", time] => settings.copy_ns = duration(time)?,
        ["clock-drift-ppm", drift] => settings.clock_drift_ppm = number(drift)?,
        ["current-context", "required"] => settings.current_context_required = true,
        ["current-context", "optional"] => settings.current_context_required = false,
        ["current-context", "everywhere"] => settings.current_context_everywhere = true,
        _ => return Err("no such command; see the README of simulated-driver".to_owned()),
    }
    Ok(())
}

/// Sets the properties of devices, which are fixed at `cuInit`.
fn device(line: &str, words: &[&str]) -> Result<(), ScriptError> {
    let mut state = LockedState::new();
    if state.initialised {
        return Err("set devices before cuInit is called, or after `reset`".to_owned());
    }
    let devices = &mut state.settings.devices;
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
        ["attribute", attribute, value] => {
            device.attributes.insert(number(attribute)?, number(value)?);
        }
        _ => return Err("a device has a name and attributes".to_owned()),
    }
    Ok(())
}

fn set_pace(pace: &str) -> Result<(), ScriptError> {
    let pace = match pace {
        "real" => ClockMode::Real,
        "virtual" => ClockMode::Virtual,
        _ => return Err("the clock is `real` or `virtual`".to_owned()),
    };
    LockedState::new().clock.set_pace(pace);
    notify_all();
    Ok(())
}

/// Advances the clock, unless its pace is real.
pub(crate) fn advance(time: u64) -> Result<(), ScriptError> {
    let mut state = LockedState::new();
    if state.clock.pace() == ClockMode::Real {
        return Err("the real clock moves by itself; set `clock virtual` first".to_owned());
    }
    let at = state.clock.now().saturating_add(time);
    state.advance_to(at);
    Ok(())
}

fn release() {
    let mut state = LockedState::new();
    state.releases += 1;
    state.release_stalled();
    drop(state);
    notify_all();
}

fn reset() {
    for entry in exports::all().chain(exports::tools()) {
        entry.clear_faults();
        entry.forget_calls();
    }
    cupti::reset();
    fault::forget_happened();
    policy::set_waiting(WaitPolicy::Allow);
    policy::set_host_calls(HostCallPolicy::Refuse);
    policy::SHUT_DOWN.store(false, std::sync::atomic::Ordering::Relaxed);
    LockedState::new().reset();
    notify_all();
}

/// Parses `always`, `nth N`, `every N` or `from N`. Returns the rest of the command too.
pub(crate) fn when<'a>(words: &'a [&'a str]) -> Result<(When, &'a [&'a str]), ScriptError> {
    Ok(match words {
        ["always", rest @ ..] => (When::Always, rest),
        ["nth", call, rest @ ..] => (When::Nth(number(call)?), rest),
        ["every", step, rest @ ..] => (When::Every(number::<u64>(step)?.max(1)), rest),
        ["from", call, rest @ ..] => (When::From(number(call)?), rest),
        _ => return Err("say which calls: `always`, `nth N`, `every N` or `from N`".to_owned()),
    })
}

/// Parses `fault ENTRY always|nth N|every N|from N ACTION [after]`, where `*` is every entry point.
fn add_fault(entry: &str, words: &[&str]) -> Result<(), ScriptError> {
    let (when, action) = when(words)?;
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
    let driver = exports::all().filter(|known| entry == "*" || known.name == entry);
    let mut hit = driver
        .chain(exports::tools().filter(|known| known.name == entry))
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
