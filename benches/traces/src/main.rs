//! What the command line takes to read a trace: beside Python's `json.load`, by event, and with many GPUs. Fails where a goal is
//! missed by more than a tenth.

mod generate;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bench_harness::background::TOLERANCE;
use bench_harness::{Options, Outcome, Report, Table, median, row};

/// The runs of each command, unless `--rounds` is given.
const ROUNDS: usize = 3;
const EVENTS: u64 = 1_000_000;
/// The GPUs and the events of the traces that are compared.
const GPUS: (u64, u64) = (16, 200_000);
const JSON_LOAD: &str = "import json, sys; json.load(open(sys.argv[1]))";

/// What a process took.
struct Took {
    seconds: f64,
    bytes: f64,
}

fn main() -> Outcome<()> {
    let options = Options::from_command_line()?;
    let rounds = options.rounds.unwrap_or(ROUNDS);
    let mut report = Report::begin();
    let program = built()?;
    let folder = std::env::temp_dir().join("profiler-traces");
    std::fs::create_dir_all(&folder)?;
    let path = |name: &str| folder.join(name);
    let trace = |name: &str, events, gpus| {
        let path = path(name);
        let events = generate::trace(&path, events, gpus)?;
        Outcome::Ok((path, events as f64))
    };
    let command = |words: &str, file: &Path| {
        let mut command = Command::new(&program);
        command.args(words.split(' ')).arg(file);
        command
    };
    let mut python = Command::new("python3");
    let (large, events) = trace("large.json", EVENTS, 1)?;
    let (small, few) = trace("small.json", 1, 1)?;
    python.args(["-c", JSON_LOAD]).arg(&large);
    let [of_large, of_small, load] = medians(
        rounds,
        [command("report", &large), command("report", &small), python],
    )?;
    let mut figures = vec![
        (
            "report, of json.load",
            of_large.seconds / load.seconds,
            0.30,
        ),
        (
            "bytes an event",
            (of_large.bytes - of_small.bytes) / (events - few),
            250.0,
        ),
    ];
    let (one, _) = trace("one.json", GPUS.1, 1)?;
    let (many, _) = trace("many.json", GPUS.1, GPUS.0)?;
    let (page, perfetto) = (path("page.html"), path("trace.pftrace"));
    let html = format!("html -o {}", page.display());
    let perfetto = format!("convert --to perfetto -o {}", perfetto.display());
    for (name, words) in [
        ("report, 16 GPUs to 1", "report"),
        ("explain, 16 GPUs to 1", "explain"),
        ("page, 16 GPUs to 1", &html),
        ("Perfetto, 16 GPUs to 1", &perfetto),
    ] {
        let [many, one] = medians(rounds, [command(words, &many), command(words, &one)])?;
        figures.push((name, many.seconds / one.seconds, 1.3));
    }
    std::fs::remove_dir_all(&folder)?;
    let mut table = Table::new(
        format!(
            "{events} events: report {:.2} s, json.load {:.2} s",
            of_large.seconds, load.seconds
        ),
        "figure | measured .2 | goal .2",
    );
    let mut missed = Vec::new();
    for (name, figure, goal) in figures {
        row!(table, name, figure, goal);
        if figure > TOLERANCE * goal {
            missed.push(name);
        }
    }
    report.show(table);
    report.end(&options)?;
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("more than a tenth above the goal: {}", missed.join(", ")).into())
}

/// Builds the command line, and returns its path.
fn built() -> Outcome<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut build = Command::new("cargo");
    build.args([
        "build",
        "--release",
        "--locked",
        "-p",
        "profiler-runtime-cli",
    ]);
    build
        .current_dir(&root)
        .arg("--target-dir")
        .arg(root.join("target"));
    if !build.status()?.success() {
        return Err("the command line cannot be built".into());
    }
    Ok(root.join("target/release/profiler"))
}

/// Runs commands alternately. Returns the medians of their processor time and of their peak memory.
fn medians<const COMMANDS: usize>(
    rounds: usize,
    mut commands: [Command; COMMANDS],
) -> Outcome<[Took; COMMANDS]> {
    let mut runs = [const { Vec::new() }; COMMANDS];
    for _ in 0..rounds {
        for (command, runs) in commands.iter_mut().zip(&mut runs) {
            runs.push(run(command)?);
        }
    }
    Ok(runs.map(|runs| {
        let of = |figure: fn(&Took) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
        Took {
            seconds: of(|took| took.seconds),
            bytes: of(|took| took.bytes),
        }
    }))
}

fn run(command: &mut Command) -> Outcome<Took> {
    let child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let process = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: all of its fields are integers, of which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to variables of these types, and nothing else waits for the child.
    let ended = unsafe { libc::wait4(process, &raw mut status, 0, &raw mut usage) };
    if ended != process || status != 0 {
        return Err(format!("{command:?} failed").into());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Took {
        seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        bytes: usage.ru_maxrss as f64 * 1024.0,
    })
}
