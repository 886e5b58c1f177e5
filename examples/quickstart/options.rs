//! The command line, and the files that the program writes.

use std::env;
use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;

const USAGE: &str = "\
Trains a small network and shows where the time goes.

usage: cargo run --release --example quickstart [-- --out DIR] [--trace]

    --out DIR    the folder to write to; created if missing (default: profiles/quickstart)
    --trace      also write a trace of every call: DIR/window.html for a browser, DIR/trace.pftrace for Perfetto,
                 DIR/trace.json for other viewers, and one for TensorBoard
    --help       show this";

pub(crate) struct Options {
    out: PathBuf,
    /// `true` if traces are written.
    pub(crate) trace: bool,
}

impl Options {
    /// Reads the arguments. Returns `None` after printing the help.
    pub(crate) fn from_arguments() -> Result<Option<Self>, Box<dyn Error>> {
        let mut out = PathBuf::from("profiles/quickstart");
        let mut trace = false;
        let mut arguments = env::args_os().skip(1);
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy();
            if text == "--help" || text == "-h" {
                println!("{USAGE}");
                return Ok(None);
            } else if text == "--trace" {
                trace = true;
            } else if text == "--out" {
                out = arguments.next().unwrap_or_default().into();
            } else if let Some(dir) = text.strip_prefix("--out=") {
                out = dir.into();
            } else {
                return Err(format!("unknown argument `{text}`\n\n{USAGE}").into());
            }
        }
        if out.as_os_str().is_empty() {
            return Err(format!("`--out` needs a folder\n\n{USAGE}").into());
        }
        Ok(Some(Self { out, trace }))
    }

    /// Returns the folder for `TensorBoard`. It contains a folder for each run, so that runs can be
    /// compared and do not overwrite each other.
    pub(crate) fn log_dir(&self) -> PathBuf {
        self.out.join("tensorboard")
    }

    /// Creates a new folder for the log of this run: `run-1`, `run-2`, …
    pub(crate) fn new_run(&self) -> Result<PathBuf, Box<dyn Error>> {
        let parent = self.log_dir();
        let with_advice = |error: io::Error| {
            let parent = parent.display();
            format!("cannot write to {parent}: {error}; choose another folder with `-- --out DIR`")
        };
        fs::create_dir_all(&parent).map_err(with_advice)?;
        for number in 1_u32.. {
            let run = parent.join(format!("run-{number}"));
            match fs::create_dir(&run) {
                Ok(()) => return Ok(run),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(with_advice(error).into()),
            }
        }
        Err("there are too many runs; choose another folder with `-- --out DIR`".into())
    }

    /// Returns the trace file for Perfetto and similar viewers.
    pub(crate) fn trace_file(&self) -> PathBuf {
        self.out.join("trace.json")
    }

    /// Returns the file for the page, which opens in a browser.
    pub(crate) fn page_file(&self) -> PathBuf {
        self.out.join("run.html")
    }

    /// Returns the file for the page of the recorded window, which has a time line too.
    pub(crate) fn window_page_file(&self) -> PathBuf {
        self.out.join("window.html")
    }

    /// Returns the file for the numbers of the table, for programs to read.
    pub(crate) fn summary_file(&self) -> PathBuf {
        self.out.join("summary.json")
    }
}
