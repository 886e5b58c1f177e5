//! Measures the layer's cost for the service: instructions and processor time of a request, and requests in a second.
//!
//! `cargo run --release --bin cost [ROUNDS]`, with valgrind installed. In each round, each variant runs in a process of its
//! own, and this one sends the requests. The service has one thread, so that waking others is not measured. On a busy machine,
//! instructions say more than the processor time, and that more than the rate.

#![allow(
    clippy::cast_precision_loss,
    reason = "52 bits are enough for any of the numbers"
)]

mod client;

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use profiler_runtime::ProfilerLayer;
use tracing::subscriber::set_global_default;
use tracing_subscriber::layer::{Identity, SubscriberExt};
use tracing_subscriber::registry;

const VARIANTS: [&str; 4] = ["no subscriber", "registry", "layer", "whole spans"];
const WARM_UP: u64 = 2_000;
const REQUESTS: u64 = 20_000;
/// Requests whose instructions are counted, after as many others.
const COUNTED: u64 = 1_000;
/// How often they are counted.
const PAIRS: usize = 7;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    match arguments.next().as_deref() {
        Some("serve") => serve(&arguments.next().unwrap_or_default()),
        rounds => compare(rounds.map_or(Ok(11), str::parse)?),
    }
}

/// Runs the service, on a port that it prints, until its standard input ends.
#[tokio::main(flavor = "current_thread")]
async fn serve(variant: &str) -> Result<()> {
    match variant {
        "registry" => set_global_default(registry().with(Identity::new()))?,
        "layer" => set_global_default(registry().with(ProfilerLayer::new()))?,
        "whole spans" => set_global_default(registry().with(ProfilerLayer::new().whole_spans()))?,
        _ => {}
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        stop.send(())
    });
    tokio::select! {
        served = async { axum::serve(listener, spans_of_a_service::routes()).await } => served?,
        _ = stopped => {}
    }
    Ok(())
}

/// A service in a process of its own.
struct Service {
    process: Child,
    address: SocketAddr,
}

impl Service {
    /// Starts the service, with this command in front of its own.
    fn start(under: &[&str], variant: &str) -> Result<Self> {
        let executable = env::current_exe()?.display().to_string();
        let mut words = under
            .iter()
            .copied()
            .chain([&*executable, "serve", variant]);
        let mut process = Command::new(words.next().unwrap_or_default())
            .args(words)
            // While the profiler looks for a driver, calls take a slower path.
            .env("PROFILER_BACKEND", "cpu")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut line)?;
        let address = line.trim().parse()?;
        Ok(Self { process, address })
    }

    /// Returns the processor time of all threads so far, in nanoseconds.
    fn processor_time(&self) -> io::Result<u64> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let times = fs::read_to_string(task?.path().join("schedstat"))?;
            let first = times.split_whitespace().next();
            sum += first.and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }

    /// Stops the service, and returns its standard error.
    fn stop(mut self) -> Result<String> {
        drop(self.process.stdin.take());
        let mut written = String::new();
        let mut errors = self.process.stderr.take().ok_or("no standard error")?;
        errors.read_to_string(&mut written)?;
        Ok(written)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The processor time of a request in microseconds, and requests in a second.
#[derive(Clone, Copy)]
struct Cost {
    processor: f64,
    rate: f64,
}

/// Returns the instructions of a service that answers this many requests.
fn instructions(variant: &str, requests: u64) -> Result<f64> {
    let callgrind = [
        "valgrind",
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
    ];
    let service = Service::start(&callgrind, variant)?;
    client::send(service.address, requests)?;
    let written = service.stop()?;
    let mut lines = written.lines();
    let collected = lines.find_map(|line| line.split_once("Collected : "));
    Ok(collected
        .ok_or("callgrind counted nothing")?
        .1
        .trim()
        .parse()?)
}

/// Returns the instructions of a request, a median: how often the service finds nothing to read yet, and waits, differs from
/// run to run. The difference of two runs leaves out all that is done once.
fn instructions_of_one(variant: &str) -> Result<f64> {
    let differences: Vec<f64> = (0..PAIRS)
        .map(|_| {
            let once = instructions(variant, COUNTED)?;
            let twice = instructions(variant, 2 * COUNTED)?;
            Ok((twice - once) / COUNTED as f64)
        })
        .collect::<Result<_>>()?;
    Ok(median(differences.into_iter()))
}

fn measure(variant: &str) -> Result<Cost> {
    let service = Service::start(&[], variant)?;
    client::send(service.address, WARM_UP)?;
    let (start, before) = (Instant::now(), service.processor_time()?);
    client::send(service.address, REQUESTS)?;
    let (elapsed, after) = (start.elapsed(), service.processor_time()?);
    Ok(Cost {
        processor: (after - before) as f64 / 1e3 / REQUESTS as f64,
        rate: REQUESTS as f64 / elapsed.as_secs_f64(),
    })
}

fn compare(rounds: usize) -> Result<()> {
    let mut costs: Vec<[Cost; VARIANTS.len()]> = Vec::new();
    for round in 0..rounds {
        let mut row = [Cost {
            processor: 0.0,
            rate: 0.0,
        }; VARIANTS.len()];
        // Each variant comes first in turn.
        for place in 0..VARIANTS.len() {
            let variant = (place + round) % VARIANTS.len();
            row[variant] = measure(VARIANTS[variant])?;
        }
        costs.push(row);
    }
    println!(
        "medians of {rounds} rounds of {REQUESTS} requests; ratios within a round, to no subscriber"
    );
    println!(
        "{:<14} {:>12} {:>7} {:>13} {:>7} {:>11} {:>7}",
        "", "instructions", "ratio", "processor, us", "ratio", "requests/s", "ratio"
    );
    let counts = VARIANTS.map(instructions_of_one);
    let counts: Vec<f64> = counts.into_iter().collect::<Result<_>>()?;
    for (variant, name) in VARIANTS.iter().enumerate() {
        let processor = |cost: &Cost| cost.processor;
        let rate = |cost: &Cost| cost.rate;
        let of =
            |value: &dyn Fn(&Cost) -> f64| median(costs.iter().map(|row| value(&row[variant])));
        let ratio = |value: &dyn Fn(&Cost) -> f64| {
            median(
                costs
                    .iter()
                    .map(|row| value(&row[variant]) / value(&row[0])),
            )
        };
        println!(
            "{name:<14} {:>12.0} {:>7.3} {:>13.2} {:>7.3} {:>11.0} {:>7.3}",
            counts[variant],
            counts[variant] / counts[0],
            of(&processor),
            ratio(&processor),
            of(&rate),
            ratio(&rate)
        );
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
