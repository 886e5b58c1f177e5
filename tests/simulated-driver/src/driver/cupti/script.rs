//! The commands of a script that begin with `cupti`.

use super::fault::{CallbackFault, OtherClock, RecordFault};
use super::runtime;
use super::state::{self, Cupti, real_time};
use crate::driver::fault::When;
use crate::driver::script::{duration, number, when};

/// The releases of CUDA whose CUPTI can be simulated, with the version that CUPTI states.
const RELEASES: [(&str, u32); 7] = [
    ("11.8", 18),
    ("12.0", 18),
    ("12.4", 22),
    ("12.8", 26),
    ("12.9", 28),
    ("13.0", 130_001),
    ("13.5", 130_500),
];

/// Returns the version of CUPTI in a release of CUDA.
pub(crate) fn version_of(release: &str) -> Option<u32> {
    let known = RELEASES.iter().find(|(name, _)| *name == release);
    known.map(|(_, version)| *version)
}

/// Runs a command, without its first word.
pub(crate) fn command(words: &[&str]) -> Result<(), String> {
    // The client's callback runs without the lock.
    match words {
        ["runtime", "begin", callback] => return runtime::begin(number(callback)?),
        ["runtime", "end"] => return runtime::end(),
        _ => {}
    }
    let mut cupti = state::lock();
    let done = run(&mut cupti, words);
    cupti.update_activity();
    done
}

fn run(cupti: &mut Cupti, words: &[&str]) -> Result<(), String> {
    let faults = &mut cupti.faults;
    match words {
        ["release", release] => {
            let version = version_of(release).ok_or("no such release; see the README")?;
            (cupti.version, cupti.is_11_8) = (version, *release == "11.8");
        }
        ["holder", "none"] => faults.holder = None,
        ["holder", name @ ..] if !name.is_empty() => faults.holder = Some(name.join(" ")),
        ["callbacks", "normal"] => {
            faults.callbacks = CallbackFault::None;
            faults.lingering = None;
        }
        ["callbacks", "foreign"] => faults.callbacks = CallbackFault::Foreign,
        ["callbacks", "after-unsubscribe"] => faults.callbacks = CallbackFault::AfterUnsubscribe,
        ["record", rest @ ..] => {
            let (when, fault) = when(rest)?;
            add_record_fault(&mut faults.records, when, fault)?;
        }
        ["record-delay", time] => faults.record_delay = duration(time)?,
        ["early-records", "on"] => faults.early_records = true,
        ["early-records", "off"] => faults.early_records = false,
        ["keep-buffers", count] => faults.buffers_to_keep = number(count)?,
        ["clock", "ignored"] => faults.ignores_clock = true,
        ["clock", "ticks-per-us", ticks] => {
            faults.other_clock = Some(OtherClock {
                // It has run for some hours.
                zero: real_time().saturating_sub(10_000_000_000_000),
                ticks_per_us: number(ticks)?,
            });
        }
        ["clock-offset", time] => faults.clock_offset = duration(time)?,
        ["clear-faults"] => *faults = super::fault::CuptiFaults::default(),
        _ => return Err("no such command; see the README of simulated-driver".to_owned()),
    }
    Ok(())
}

fn add_record_fault(
    faults: &mut Vec<(When, RecordFault, u64)>,
    when: When,
    words: &[&str],
) -> Result<(), String> {
    let fault = match words {
        ["drop"] => RecordFault::Drop,
        ["lose"] => RecordFault::Lose,
        ["untimed"] => RecordFault::Untimed,
        ["after-unknown"] => RecordFault::AfterUnknown,
        ["after-overhead"] => RecordFault::AfterOverhead,
        ["correlation", number_] => RecordFault::Correlation(number(number_)?),
        ["previous"] => RecordFault::Previous,
        ["other-name"] => RecordFault::OtherName,
        _ => {
            return Err(
                "say what happens to the record: `drop`, `lose`, `untimed`, `after-unknown`, \
                `after-overhead`, `correlation N`, `previous` or `other-name`"
                    .to_owned(),
            );
        }
    };
    faults.push((when, fault, 0));
    Ok(())
}
