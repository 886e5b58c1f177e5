//! Child processes: this program again, for checks that end a process or must not affect others.

use std::io::Read;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::device::Gpu;
use crate::driver::Driver;
use crate::findings::Findings;
use crate::neighbours::{self, Harm};
use crate::trouble::Trouble;

/// The prefix of the line in which a child reports its results.
const MARK: &str = "child: ";
/// A child takes a second or two, most of it to initialize the device.
const LIMIT: Duration = Duration::from_secs(30);

/// A role that a child process runs.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) play: fn() -> Result<ExitCode, Trouble>,
}

/// The result of a child.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) status: ExitStatus,
    reported: Map<String, Value>,
    pub(crate) stderr: String,
    name: String,
}

/// Runs a role in this process.
pub(crate) fn play(parts: &[&'static [Part]], name: &str) -> ExitCode {
    let Some(part) = parts
        .iter()
        .copied()
        .flatten()
        .find(|part| part.name == name)
    else {
        eprintln!("there is no part called `{name}`; `--child` is for the suite itself");
        return ExitCode::from(2);
    };
    // The parent ends a child that takes too long, unless it has been ended itself.
    std::thread::spawn(|| {
        std::thread::sleep(LIMIT + Duration::from_secs(5));
        crate::runner::end_now(124);
    });
    (part.play)().unwrap_or_else(|trouble| {
        eprintln!("{trouble}");
        ExitCode::FAILURE
    })
}

/// Returns the device in a child.
pub(crate) fn gpu() -> Result<Gpu, Trouble> {
    Gpu::first(Driver::get().map_err(Trouble::Missing)?)
}

/// Returns `true` for a variable that configures the profiler differently from what the checks
/// assume, or by which a tool gets its ranges. The user may select the libraries.
pub(crate) fn is_disturbing(name: &str) -> bool {
    let libraries = [
        "PROFILER_CUDA_LIBRARY",
        "PROFILER_CUPTI_LIBRARY",
        "PROFILER_NVML_LIBRARY",
    ];
    name == profiler_nvtx_recorder::INJECTION
        || name.starts_with("PROFILER_") && !libraries.contains(&name)
}

/// Reports results to the parent.
pub(crate) fn report(seen: &Value) {
    println!("{MARK}{seen}");
}

/// Runs a role that makes findings of its own, and reports these to the parent.
#[allow(clippy::unnecessary_wraps, reason = "all parts have one type")]
pub(crate) fn judge(
    work: impl FnOnce(&Gpu, &mut Findings) -> Result<(), Trouble>,
) -> Result<ExitCode, Trouble> {
    let mut findings = Findings::default();
    let skipped = match gpu().and_then(|gpu| work(&gpu, &mut findings)) {
        Ok(()) => None,
        Err(Trouble::Skip(reason)) => Some(reason),
        Err(trouble) => {
            findings.failures.push(trouble.to_string());
            None
        }
    };
    report(&json!({ "findings": findings, "skipped": skipped }));
    Ok(ExitCode::SUCCESS)
}

/// Runs a role that [`judge`]s in another process, and adds what it found.
pub(crate) fn judged(
    name: &str,
    variables: &[(&str, &str)],
    findings: &mut Findings,
) -> Result<(), Trouble> {
    let child = run(name, variables)?.successful()?;
    findings.extend(serde_json::from_value(child.value("findings")?.clone())?);
    match child.value("skipped")?.as_str() {
        Some(reason) => Err(Trouble::Skip(reason.to_owned())),
        None => Ok(()),
    }
}

/// Skips a check if a program without the profiler fails in the same way: then the failure is the
/// driver's. Runs the program `times` times, since the failure may depend on timing.
pub(crate) fn expect_success_without_profiler(
    name: &str,
    code: i32,
    times: u32,
) -> Result<(), Trouble> {
    for _ in 0..times {
        let end = match run(name, &[("PROFILER_ENABLED", "0")]) {
            Ok(child) if child.status.code() == Some(code) => continue,
            Ok(child) => format!("ends with {}", child.status),
            Err(Trouble::Child { what, .. }) => what,
            Err(trouble) => return Err(trouble),
        };
        return Err(Trouble::Skip(format!(
            "with the profiler off the program {end} too"
        )));
    }
    Ok(())
}

/// Runs a role in another process, with these variables of the profiler, and of the others only the
/// one that selects the driver's library.
pub(crate) fn run(name: &str, variables: &[(&str, &str)]) -> Result<Played, Trouble> {
    neighbours::spare(Harm::Process)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--child", name]);
    for (key, _) in std::env::vars_os() {
        if is_disturbing(&key.to_string_lossy()) {
            command.env_remove(key);
        }
    }
    command.envs(variables.iter().copied());
    let Ended {
        status,
        stdout,
        stderr,
    } = finish(command, name, LIMIT)?;
    let reported = stdout
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(MARK))
        .unwrap_or("{}");
    Ok(Played {
        status,
        reported: serde_json::from_str(reported)?,
        stderr,
        name: name.to_owned(),
    })
}

/// A process that has ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command to its end, but for no longer than a limit.
pub(crate) fn finish(mut command: Command, name: &str, limit: Duration) -> Result<Ended, Trouble> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let began = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if began.elapsed() > limit => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if status.is_none() {
        child.kill()?;
        child.wait()?;
    }
    let (stdout, stderr) = (
        stdout.join().unwrap_or_default(),
        stderr.join().unwrap_or_default(),
    );
    match status {
        Some(status) => Ok(Ended {
            status,
            stdout,
            stderr,
        }),
        None => Err(Trouble::Child {
            child: name.to_owned(),
            what: format!("had not ended after {} s", limit.as_secs()),
            stderr,
        }),
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Lines that were read before an error are still results of the child.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Played {
    /// Returns the child if it exited successfully.
    pub(crate) fn successful(self) -> Result<Self, Trouble> {
        if self.status.success() {
            return Ok(self);
        }
        let what = format!("ended with {}", self.status);
        Err(Trouble::Child {
            child: self.name,
            what,
            stderr: self.stderr,
        })
    }

    pub(crate) fn value(&self, key: &str) -> Result<&Value, Trouble> {
        self.reported.get(key).ok_or_else(|| Trouble::Child {
            child: self.name.clone(),
            what: format!("did not tell `{key}`"),
            stderr: self.stderr.clone(),
        })
    }

    pub(crate) fn number(&self, key: &str) -> Result<f64, Trouble> {
        self.value(key)?
            .as_f64()
            .ok_or_else(|| self.not(key, "a number"))
    }

    pub(crate) fn count(&self, key: &str) -> Result<u64, Trouble> {
        self.value(key)?
            .as_u64()
            .ok_or_else(|| self.not(key, "a count"))
    }

    pub(crate) fn numbers(&self, key: &str) -> Result<Vec<f64>, Trouble> {
        let values = self
            .value(key)?
            .as_array()
            .ok_or_else(|| self.not(key, "a list"))?;
        Ok(values.iter().filter_map(Value::as_f64).collect())
    }

    fn not(&self, key: &str, what: &str) -> Trouble {
        Trouble::Child {
            child: self.name.clone(),
            what: format!("reported `{key}`, which is not {what}"),
            stderr: self.stderr.clone(),
        }
    }
}
