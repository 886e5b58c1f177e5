//! Runs the checks one after the other, and reports their outcomes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use profiler_runtime::set_enabled;
use serde::Serialize;

use crate::device::{About, Gpu};
use crate::driver::Driver;
use crate::findings::{Check, Ended, Findings, Outcome, Theme};
use crate::machine::Machine;
use crate::neighbours::{self, Neighbours};

/// The exit status if there is nothing to test: neither success nor failure.
const NO_GPU: u8 = 77;
/// The exit status for a wrong command line.
pub(crate) const NOT_UNDERSTOOD: u8 = 2;

/// The parsed command line.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The file for the JSON; `None` is standard output.
    pub(crate) json: Option<PathBuf>,
    /// Run only the checks whose theme or name contains this.
    pub(crate) only: Option<String>,
    /// The time after which the run ends, even if a check hangs.
    pub(crate) limit: Duration,
}

impl Wanted {
    fn checks(&self, themes: &'static [Theme]) -> Vec<(&'static str, Check)> {
        let all = themes
            .iter()
            .flat_map(|theme| theme.checks.iter().map(|check| (theme.name, *check)));
        let wanted = |(theme, check): &(&str, Check)| {
            self.only.as_ref().is_none_or(|word| {
                theme.contains(word.as_str()) || check.name.contains(word.as_str())
            })
        };
        all.filter(wanted).collect()
    }
}

/// The report of a run.
#[derive(Debug, Serialize)]
struct Report<'a> {
    suite: &'static str,
    /// Seconds since 1970.
    began: u64,
    seconds: f64,
    machine: &'a Machine,
    /// `None` if there was no GPU.
    device: Option<&'a About>,
    /// What else used the device.
    neighbours: Option<&'a Neighbours>,
    /// `false` if the run was ended before all checks had their outcome.
    complete: bool,
    passed: usize,
    failed: usize,
    skipped: usize,
    checks: &'a [Ended],
}

/// The state of a run. It is shared, so that the results survive a check that hangs.
struct Run {
    wanted: Wanted,
    began: SystemTime,
    machine: Machine,
    device: Option<About>,
    neighbours: Option<&'static Neighbours>,
    ended: Mutex<Vec<Ended>>,
    current: Mutex<Option<(&'static str, Check)>>,
}

/// Runs all selected checks.
pub(crate) fn run(wanted: Wanted, themes: &'static [Theme]) -> ExitCode {
    let checks = wanted.checks(themes);
    if checks.is_empty() {
        eprintln!("no check is called like that; `--list` shows them all");
        return ExitCode::from(NOT_UNDERSTOOD);
    }
    // A driver may hang before the first check, and after the last one.
    let last = wanted.limit + Duration::from_secs(1);
    std::thread::spawn(move || {
        std::thread::sleep(last);
        println!("the process had not ended after {} s", last.as_secs());
        end_now(1);
    });
    let mut run = Run {
        wanted,
        began: SystemTime::now(),
        machine: Machine::this(),
        device: None,
        neighbours: None,
        ended: Mutex::default(),
        current: Mutex::default(),
    };
    let driver = match Driver::get() {
        Ok(driver) if driver.devices() > 0 => driver,
        Ok(_) => return run.without_gpu(&checks, "the CUDA driver found no device"),
        Err(reason) => return run.without_gpu(&checks, &reason),
    };
    // Before this process has a context, which would be one of those that use the device.
    run.neighbours = Some(neighbours::look(driver));
    let ready = Gpu::first(driver).and_then(|gpu| Ok((gpu.about()?, gpu)));
    let gpu = match ready {
        Ok((about, gpu)) => {
            run.device = Some(about);
            gpu
        }
        Err(trouble) => {
            let reason = format!("the device could not be set up: {trouble}");
            let (theme, check) = checks[0];
            run.add(Ended::failed(theme, &check, reason, 0.0));
            return run.close();
        }
    };
    println!("{}", run.heading());
    let run = Arc::new(run);
    watch(&run);
    for (theme, check) in checks {
        if let Some(reason) = run.time_is_up() {
            run.add(Ended::skipped(theme, &check, &reason));
            continue;
        }
        *lock(&run.current) = Some((theme, check));
        let (mut findings, began) = (Findings::default(), Instant::now());
        let result = catch_unwind(AssertUnwindSafe(|| {
            // Restores the state that the previous check may have changed: the device is current,
            // and the profiler is on.
            gpu.context.bind_to_thread()?;
            set_enabled(true);
            (check.run)(&gpu, &mut findings)
        }));
        let seconds = began.elapsed().as_secs_f64();
        run.add(match result {
            Ok(result) => Ended::new((theme, &check), findings, result, seconds),
            Err(_) => Ended::failed(theme, &check, "it panicked; see above".to_owned(), seconds),
        });
        *lock(&run.current) = None;
        run.save();
    }
    run.close()
}

impl Run {
    fn heading(&self) -> String {
        let device = self
            .device
            .as_ref()
            .map_or("no GPU".to_owned(), ToString::to_string);
        let beside = self.neighbours.map_or(String::new(), ToString::to_string);
        format!("{device}; {}\nbeside it: {beside}", self.machine)
    }

    /// Returns why no further check begins: each takes at most a quarter of the limit.
    fn time_is_up(&self) -> Option<String> {
        let elapsed = self.began.elapsed().unwrap_or_default();
        let seconds = elapsed.as_secs_f64();
        (elapsed > self.wanted.limit / 4 * 3).then(|| {
            format!(
                "the run had taken {seconds:.0} s by then: raise `--limit`, or choose with `--only`"
            )
        })
    }

    fn add(&self, ended: Ended) {
        ended.print();
        lock(&self.ended).push(ended);
    }

    fn without_gpu(&self, checks: &[(&'static str, Check)], reason: &str) -> ExitCode {
        println!("{reason}: nothing was checked");
        let skip = |(theme, check): &(&'static str, Check)| Ended::skipped(theme, check, reason);
        lock(&self.ended).extend(checks.iter().map(skip));
        if self.report(true) {
            ExitCode::from(NO_GPU)
        } else {
            ExitCode::FAILURE
        }
    }

    fn close(&self) -> ExitCode {
        let reported = self.report(true);
        let failed = self.count(Outcome::Failed) > 0;
        if reported && !failed {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn count(&self, outcome: Outcome) -> usize {
        lock(&self.ended)
            .iter()
            .filter(|ended| ended.outcome == outcome)
            .count()
    }

    fn counts(&self) -> [usize; 3] {
        [Outcome::Passed, Outcome::Failed, Outcome::Skipped].map(|outcome| self.count(outcome))
    }

    /// Writes what is known so far into the file for the JSON, for when the process is ended from outside.
    fn save(&self) {
        if self.wanted.json.is_some() {
            // The last report says if this is not possible.
            let _ = self.write_report(false);
        }
    }

    fn write_report(&self, complete: bool) -> std::io::Result<()> {
        let [passed, failed, skipped] = self.counts();
        let began = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let ended = lock(&self.ended);
        let report = Report {
            suite: env!("CARGO_PKG_NAME"),
            began: began.as_secs(),
            seconds: self.began.elapsed().unwrap_or_default().as_secs_f64(),
            machine: &self.machine,
            device: self.device.as_ref(),
            neighbours: self.neighbours,
            complete,
            passed,
            failed,
            skipped,
            checks: &ended,
        };
        self.write(&report)
    }

    /// Writes the JSON and the closing line. Returns `false` if the JSON could not be written.
    fn report(&self, complete: bool) -> bool {
        let written = self.write_report(complete);
        let [passed, failed, skipped] = self.counts();
        if let Err(error) = &written {
            println!(
                "the JSON could not be written ({error}): name a file in a folder that exists"
            );
        }
        let skipped = if skipped > 0 {
            format!(", {skipped} skipped")
        } else {
            String::new()
        };
        println!("{passed} passed, {failed} failed{skipped}");
        written.is_ok()
    }

    fn write(&self, report: &Report<'_>) -> std::io::Result<()> {
        let json = serde_json::to_string_pretty(report)?;
        if let Some(path) = &self.wanted.json {
            return std::fs::write(path, json + "\n");
        }
        println!("{json}");
        Ok(())
    }
}

/// Ends the process if the run takes too long: calls to a device that hangs do not return.
fn watch(run: &Arc<Run>) {
    let run = Arc::clone(run);
    std::thread::spawn(move || {
        let elapsed = run.began.elapsed().unwrap_or_default();
        std::thread::sleep(run.wanted.limit.saturating_sub(elapsed));
        let limit = run.wanted.limit.as_secs();
        if let Some((theme, check)) = *lock(&run.current) {
            let reason = format!("it had not ended {limit} s after the suite began");
            run.add(Ended::failed(theme, &check, reason, 0.0));
        }
        run.report(false);
        end_now(1);
    });
}

/// Ends the process without running exit handlers, which may hang too.
pub(crate) fn end_now(code: i32) -> ! {
    unsafe extern "C" {
        safe fn _exit(code: i32) -> !;
    }
    _exit(code)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
