//! The conditions that must agree between runs that are compared.

use std::collections::BTreeSet;

use profiler_report::Environment;
use profiler_report::internal::InOrder as _;

use super::run::{Clocks, Run};

/// Settings that have no effect on times, or hold the names of files.
const FREE: [&str; 3] = ["PROFILER_SUMMARY", "PROFILER_CONTROL", "PROFILER_MAX_NAMES"];
/// Settings whose values are paths: it matters that they are set, not where they lead.
const PATHS: [&str; 2] = ["PROFILER_TRACE", "PROFILER_TENSORBOARD"];

/// Why times cannot be compared. `None` if they can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Obstacles {
    /// For times on the CPU, and for memory.
    pub(crate) cpu: Option<String>,
    /// For times on the GPU: also everything that prevents a comparison on the CPU.
    pub(crate) cuda: Option<String>,
    /// Prevents no comparison, but is part of all times on the GPU.
    pub(crate) warning: Option<String>,
}

/// Compares the environments of all runs. An environment that a file does not have agrees with all others.
pub(crate) fn obstacles(runs: &[&Run]) -> Obstacles {
    let environments: Vec<&Environment> = runs.iter().map(|run| &run.environment).collect();
    let known: Vec<&Environment> = environments
        .iter()
        .copied()
        .filter(|environment| !environment.system.is_empty())
        .collect();
    let processors = |environment: &Environment| environment.processors.to_string();
    let build = |environment: &Environment| {
        let build = if environment.debug_build {
            "debug"
        } else {
            "release"
        };
        build.to_owned()
    };
    let cpu = difference("the system", &known, |environment| {
        environment.system.clone()
    })
    .or_else(|| difference("the number of processors", &known, processors))
    .or_else(|| difference("the build", &known, build))
    .or_else(|| difference("a setting", &known, settings));
    let driver = |environment: &Environment| environment.driver.clone().unwrap_or_default();
    let devices = |environment: &Environment| environment.devices.join(", ");
    let with_devices: Vec<&Environment> = environments
        .into_iter()
        .filter(|environment| !environment.devices.is_empty())
        .collect();
    let with_driver: Vec<&Environment> = with_devices
        .iter()
        .copied()
        .filter(|environment| environment.driver.is_some())
        .collect();
    let (differs, warning) = clocks(runs);
    let cuda = difference("the device", &with_devices, devices)
        .or_else(|| difference("the driver", &with_driver, driver))
        .or_else(|| cpu.clone())
        .or(differs);
    Obstacles { cpu, cuda, warning }
}

/// Describes runs in which the clocks of the GPU were held back: first as an obstacle, if they were in some runs and not
/// in others, or else as a warning, if they were in all. Runs whose devices were not sampled agree with all others.
fn clocks(runs: &[&Run]) -> (Option<String>, Option<String>) {
    let sampled: Vec<&Clocks> = runs.iter().filter_map(|run| run.clocks.as_ref()).collect();
    let held: Vec<&Clocks> = sampled
        .iter()
        .copied()
        .filter(|clocks| clocks.are_held_back())
        .collect();
    if held.is_empty() {
        return (None, None);
    }
    let reasons: BTreeSet<&str> = held
        .iter()
        .flat_map(|clocks| clocks.reasons.iter().map(String::as_str))
        .collect();
    let reasons = reasons.into_iter().collect::<Vec<&str>>().join(", ");
    if held.len() < sampled.len() {
        let (held, sampled) = (held.len(), sampled.len());
        let differs = format!(
            "the clocks were held back in {held} of {sampled} runs ({reasons}): lock them, or let the device cool down \
             between runs"
        );
        return (Some(differs), None);
    }
    let warning = format!(
        "the clocks of the GPU were held back in all runs ({reasons}): its times are those of a device at its limit"
    );
    (None, Some(warning))
}

/// Describes the values of a property if there is more than one.
fn difference(
    what: &str,
    environments: &[&Environment],
    value: impl Fn(&Environment) -> String,
) -> Option<String> {
    let values: BTreeSet<String> = environments
        .iter()
        .map(|environment| value(environment))
        .collect();
    let shown: Vec<String> = values
        .into_iter()
        .map(|value| {
            if value.is_empty() {
                "none".to_owned()
            } else {
                value
            }
        })
        .collect();
    (shown.len() > 1).then(|| format!("{what} differs: {}", shown.join(" and ")))
}

fn settings(environment: &Environment) -> String {
    let settings = environment.settings.iter();
    let relevant: Vec<String> = settings
        .filter(|(name, _)| !FREE.contains(&name.as_str()))
        .map(|(name, value)| {
            if PATHS.contains(&name.as_str()) {
                name.clone()
            } else {
                format!("{name}={value}")
            }
        })
        .collect();
    relevant.join(" ")
}

/// Returns `true` if the runs of the two sides alternated on the same machines: what changes there meanwhile affects both
/// alike.
pub(crate) fn are_interleaved(base: &[Run], new: &[Run]) -> bool {
    let start = |run: &Run| run.environment.start_unix_ns;
    let mut starts: Vec<(i64, bool)> = base.iter().map(|run| (start(run), true)).collect();
    starts.extend(new.iter().map(|run| (start(run), false)));
    if starts.iter().any(|(start, _)| *start == 0) {
        return false;
    }
    let hosts = |runs: &[Run]| -> BTreeSet<String> {
        runs.iter()
            .map(|run| run.environment.host.clone())
            .collect()
    };
    if hosts(base) != hosts(new) {
        return false;
    }
    starts.order();
    let mean_place = |side: bool| {
        let places: Vec<f64> = starts
            .iter()
            .enumerate()
            .filter(|(_, (_, is_base))| *is_base == side)
            .map(|(place, _)| place as f64)
            .collect();
        places.iter().sum::<f64>() / places.len() as f64
    };
    // Without any alternation, the means lie half of all runs apart.
    (mean_place(true) - mean_place(false)).abs() <= starts.len() as f64 / 4.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(change: impl FnOnce(&mut Environment)) -> Run {
        let mut run = Run::default();
        run.environment.system = "linux x86_64".to_owned();
        run.environment.processors = 2;
        change(&mut run.environment);
        run
    }

    fn between(left: &Run, right: &Run) -> Obstacles {
        obstacles(&[left, right])
    }

    #[test]
    fn another_machine_or_build_is_an_obstacle_everywhere() {
        let base = run(|_| ());
        assert_eq!(between(&base, &base), Obstacles::default());
        let other_host = run(|environment| environment.host = "runner-7".to_owned());
        assert_eq!(between(&base, &other_host), Obstacles::default());
        let debug = run(|environment| environment.debug_build = true);
        let found = between(&base, &debug);
        assert_eq!(
            found.cpu.as_deref(),
            Some("the build differs: debug and release")
        );
        assert_eq!(found.cpu, found.cuda);
    }

    #[test]
    fn another_device_is_an_obstacle_on_the_gpu_only() {
        let on = |device: &str| {
            run(|environment| {
                environment.devices = vec![device.to_owned()];
                environment.driver = Some("13.0".to_owned());
            })
        };
        let found = between(&on("H100"), &on("T4"));
        assert_eq!(found.cpu, None);
        assert_eq!(
            found.cuda.as_deref(),
            Some("the device differs: H100 and T4")
        );
        assert_eq!(between(&on("H100"), &run(|_| ())), Obstacles::default());
    }

    #[test]
    fn clocks_that_were_held_back_in_some_runs_are_an_obstacle_on_the_gpu() {
        let with = |clocks: Option<(f64, &str)>| Run {
            clocks: clocks.map(|(share, reason)| Clocks {
                held_back: share,
                reasons: vec![reason.to_owned()],
            }),
            ..run(|_| ())
        };
        let (free, capped) = (with(Some((0.01, "idle"))), with(Some((0.38, "power cap"))));
        let found = between(&free, &capped);
        assert_eq!((&found.cpu, &found.warning), (&None, &None));
        let expected = "the clocks were held back in 1 of 2 runs (power cap): lock them, or let the device cool down between \
                        runs";
        assert_eq!(found.cuda.as_deref(), Some(expected));
        let not_sampled = with(None);
        assert_eq!(between(&free, &not_sampled), Obstacles::default());
        let found = between(&capped, &not_sampled);
        assert_eq!((found.cpu, found.cuda), (None, None));
        let expected = "the clocks of the GPU were held back in all runs (power cap): its times are those of a device at its \
                        limit";
        assert_eq!(found.warning.as_deref(), Some(expected));
    }

    #[test]
    fn settings_that_change_times_must_agree() {
        let with = |settings: &[(&str, &str)]| {
            run(|environment| {
                environment.settings = settings
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect();
            })
        };
        let plain = with(&[("PROFILER_SUMMARY", "a.json"), ("PROFILER_TRACE", "a")]);
        let other_files = with(&[("PROFILER_SUMMARY", "b.json"), ("PROFILER_TRACE", "b")]);
        assert_eq!(between(&plain, &other_files), Obstacles::default());
        let callers = with(&[("PROFILER_CALLERS", "1")]);
        let found = between(&callers, &with(&[])).cpu;
        let expected = "a setting differs: none and PROFILER_CALLERS=1";
        assert_eq!(found.as_deref(), Some(expected));
    }

    #[test]
    fn sides_that_ran_one_after_the_other_are_not_interleaved() {
        let at = |starts: &[i64]| -> Vec<Run> {
            let runs = starts.iter();
            runs.map(|start| run(|environment| environment.start_unix_ns = *start))
                .collect()
        };
        assert!(are_interleaved(
            &at(&[1, 4, 5, 8, 9]),
            &at(&[2, 3, 6, 7, 10])
        ));
        assert!(are_interleaved(
            &at(&[1, 3, 5, 7, 9]),
            &at(&[2, 4, 6, 8, 10])
        ));
        assert!(!are_interleaved(
            &at(&[1, 2, 3, 4, 5]),
            &at(&[6, 7, 8, 9, 10])
        ));
        assert!(!are_interleaved(&at(&[1, 0]), &at(&[2, 3])));
    }
}
