#!/usr/bin/env bash
# What do builds take? Measures it, and keeps the figures in checks/measurements.json, where the documents have theirs from:
#
#     checks/builds.sh [runtime] [install] [program]
#     PROFILER_TESTS_BLESS=1 cargo test --workspace --test docs measurements
#
# All take some minutes on an idle machine. Processor time grows by a half or more on a machine that is busy.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR
CARGO_TARGET_DIR=$(mktemp -d)
trap 'rm -rf "$CARGO_TARGET_DIR"' EXIT
TIMEFORMAT='%U %S'

# timed COMMAND…: runs it, and sets how many seconds processors worked for it.
timed() {
    local user system
    { time "$@" >"$CARGO_TARGET_DIR/output" 2>&1; } 2>"$CARGO_TARGET_DIR/times"
    read -r user system <"$CARGO_TARGET_DIR/times"
    worked=$(awk "BEGIN { printf \"%.0f\", $user + $system }")
}

# crates-of PACKAGE: prints how many crates a build compiles, by name.
crates-of() {
    cargo tree --locked --package "$1" --edges normal,build --prefix none | sed -n 's/ v[0-9].*//p' | sort -u | wc -l
}

# keep RUN NAME=VALUE…: puts the figures of a run into the file, with what they were measured on.
keep() {
    python3 - "$@" <<'PYTHON'
import datetime, json, os, subprocess, sys

def of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()

with open("/proc/cpuinfo") as lines:
    processor = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
on = "{}, {} cores, load average {:.0f}".format(processor, os.cpu_count(), os.getloadavg()[1])
path = "checks/measurements.json"
with open(path) as file:
    kept = json.load(file)
kept[sys.argv[1]] = {
    "command": "checks/builds.sh " + sys.argv[1],
    "date": datetime.date.today().isoformat(),
    "commit": of("git", "rev-parse", "--short=7", "HEAD"),
    "on": on,
    "rustc": of("rustc", "--version").split()[1],
    "figures": dict(figure.split("=") for figure in sys.argv[2:]),
}
with open(path, "w") as file:
    json.dump(kept, file, indent=2, sort_keys=True, ensure_ascii=False)
    file.write("\n")
PYTHON
}

runtime() {
    timed cargo build --locked --package profiler-runtime
    keep runtime "runtime-crates=$(crates-of profiler-runtime)" "runtime-processor-s=$worked"
}

install() {
    timed cargo install --locked --path profiler-cli --root "$CARGO_TARGET_DIR/root"
    local bytes
    bytes=$(stat --format=%s "$CARGO_TARGET_DIR/root/bin/profiler")
    keep install "install-crates=$(crates-of profiler-runtime-cli)" "install-processor-s=$worked" \
        "install-mb=$(awk "BEGIN { printf \"%.1f\", $bytes / 1e6 }")"
}

# The size of a small program as a user builds it: a dev build of a crate outside of this workspace, with all debug
# information. Cargo compiles crates that are given by path incrementally, in more and smaller parts than those of a registry.
program() {
    local folder="$CARGO_TARGET_DIR/program"
    mkdir -p "$folder/src"
    cp Cargo.lock "$folder"
    cat >"$folder/Cargo.toml" <<TOML
[package]
name = "program"
edition = "2024"

[dependencies]
profiler-runtime = { path = "$PWD/profiler-runtime" }

[workspace]
TOML
    # The functions of the README.
    cat >"$folder/src/main.rs" <<'RUST'
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::{fs, io};

use profiler_runtime::{TensorBoardLogger, measure_execution_time};

static BOARD: LazyLock<Arc<TensorBoardLogger>> =
    LazyLock::new(|| Arc::new(TensorBoardLogger::new("runs/today").expect("a log")));

#[measure_execution_time]
fn load(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

#[measure_execution_time(log = BOARD)]
fn forward(x: &[f32]) -> Vec<f32> {
    x.iter().map(|x| x * 2.0).collect()
}

fn main() -> io::Result<()> {
    let bytes = load("Cargo.toml".as_ref())?;
    println!("{}", forward(&[bytes.len() as f32]).len());
    Ok(())
}
RUST
    # dev-mb VARIABLE=VALUE…: prints the megabytes of its dev build with variables.
    dev-mb() {
        env --unset=CARGO_INCREMENTAL --unset=CARGO_PROFILE_DEV_DEBUG "$@" \
            cargo build --quiet --manifest-path "$folder/Cargo.toml" || exit
        awk "BEGIN { printf \"%.0f\", $(stat --format=%s "$CARGO_TARGET_DIR/debug/program") / 1e6 }"
    }
    local by_path from_registry with_lines
    by_path=$(dev-mb)
    from_registry=$(dev-mb CARGO_INCREMENTAL=0)
    # The lines that the guide advises.
    sed -n '/^\[profile.dev.package.profiler-runtime\]/,/^```/p' docs/guide/functions.md | grep -v '```' \
        >>"$folder/Cargo.toml"
    with_lines=$(dev-mb)
    keep program "program-by-path-mb=$by_path" "program-mb=$from_registry" "program-lines-mb=$with_lines"
}

for what in "${@:-runtime install program}"; do
    for step in $what; do
        "$step"
    done
done
