//! The cost of the dependency itself: a clean default build, and the number of crates.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use bench_harness::median;
use serde::Serialize;

use crate::build::run;

#[derive(Serialize)]
pub(crate) struct Report {
    wall_seconds: f64,
    processor_seconds: Option<f64>,
    crates: usize,
}

const BUILDS: usize = 3;

impl Report {
    pub(crate) fn measure(folder: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut builds = Vec::new();
        for _ in 0..BUILDS {
            let target = folder.join("runtime");
            if target.exists() {
                fs::remove_dir_all(&target)?;
            }
            let mut command = cargo(&root);
            command
                .args(["build", "--release", "--package", "profiler-runtime"])
                .env("CARGO_TARGET_DIR", &target);
            builds.push(run(&mut command)?);
        }
        let wall: Vec<f64> = builds.iter().map(|took| took.wall).collect();
        let processor: Option<Vec<f64>> = builds.iter().map(|took| took.processor).collect();
        Ok(Self {
            wall_seconds: median(&wall),
            processor_seconds: processor.map(|processor| median(&processor)),
            crates: crates(&root)?,
        })
    }
}

/// Returns the number of crates that a default build compiles on this machine, including the
/// project's two.
fn crates(root: &Path) -> std::io::Result<usize> {
    let output = cargo(root)
        .args(["tree", "--package", "profiler-runtime"])
        .args(["--edges", "normal,build", "--prefix", "none"])
        .args(["--format", "{p}"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Count each name and version once; the rest of a line differs between uses of the same crate.
    let names: BTreeSet<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    Ok(names.len())
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root);
    command
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a clean build of profiler-runtime (default features, release): {:.1} s",
            self.wall_seconds
        )?;
        if let Some(processor) = self.processor_seconds {
            write!(f, " ({processor:.1} s of processor time)")?;
        }
        writeln!(f, ", {} crates", self.crates)
    }
}
