//! `profiler merge`: the ranks of a job on one time line.

mod align;
mod join;
mod late;
#[cfg(test)]
mod made_up;
mod refusal;
mod report;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::Args;
use profiler_report::Timeline;
use profiler_report::internal::InOrder as _;

use self::align::align;
use self::join::{Member, join};
use super::folder::{self, Wanted};
use super::{read, say_what_is_missing};
use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Input, Limits};
use crate::output::Stdout;
use crate::staging::{Staging, replaces_input};

/// Puts the traces of several ranks on one time line, and names the rank that keeps the others waiting.
///
/// Clocks are aligned by the wall times in the traces and, if all ranks have collectives such as those of NCCL, by the ends
/// of these, which all ranks see at one time.
#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Traces, one of each rank: of profiler-runtime or of PyTorch. Of a folder, all.
    #[arg(required = true, value_name = "RANK")]
    files: Vec<PathBuf>,
    /// The trace to write: `.json`, `.json.gz` or `.pftrace`.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Aligns by functions and kernels whose names contain this text, instead of by known collectives.
    #[arg(long, value_name = "TEXT")]
    collective: Option<String>,
    /// Merges traces that seem to be of different jobs: those that declare different ones, or whose clocks are more than a
    /// minute apart.
    #[arg(long)]
    force: bool,
    /// Takes what can be read of traces that are cut off or damaged.
    #[arg(long)]
    partial: bool,
    #[command(flatten)]
    limits: Limits,
}

/// The trace of one rank.
pub(super) struct Rank {
    path: PathBuf,
    number: u64,
    timeline: Box<Timeline>,
}

/// The formats of the merged trace.
#[derive(Clone, Copy)]
enum Format {
    Chrome,
    Perfetto,
}

/// Returns how many ranks a time line has.
fn ranks_of(line: &Timeline) -> usize {
    let ranks: HashSet<u64> = line.tracks.iter().filter_map(|track| track.rank).collect();
    ranks.len()
}

impl Merge {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let format = self.format()?;
        let files = folder::all(&self.files, Wanted::Traces, Some(&self.output))?;
        if let [only] = &files[..] {
            return Err(Error::Usage(format!(
                "{}: is the trace of one rank: give those of two or more, or a folder with them",
                only.display()
            )));
        }
        let staging = Staging::new(&self.output, &files)?;
        let limits = Limits {
            is_whole: !self.partial,
            ..self.limits
        };
        self.check_left_out(limits)?;
        let mut ranks = Vec::new();
        for (place, path) in files.iter().enumerate() {
            let input = read(path, limits)?;
            say_what_is_missing(path, &input);
            let Input::Timeline(timeline) = input else {
                return Err(refusal::summary(path));
            };
            let own = timeline.tracks.iter().find_map(|track| track.rank);
            ranks.push(Rank {
                path: path.clone(),
                number: own.unwrap_or(place as u64),
                timeline,
            });
        }
        ranks.order_by_key(|rank| rank.number);
        refusal::check(&ranks)?;
        let mut doubt = refusal::check_job(&ranks);
        let lines: Vec<&Timeline> = ranks.iter().map(|rank| &*rank.timeline).collect();
        let aligned = align(&lines, self.collective.as_deref());
        doubt = doubt.and_then(|()| refusal::check_clocks(&ranks, &aligned.offsets));
        let forced = match doubt {
            Err(doubt) if !self.force => return Err(doubt.refused()),
            doubt => doubt.err(),
        };
        refusal::check_overlap(&ranks, &aligned.offsets)?;
        let late = late::late(&lines, &aligned);

        let members: Vec<Member<'_>> = ranks
            .iter()
            .zip(&aligned.offsets)
            .map(|(rank, offset)| Member {
                rank: rank.number,
                timeline: &rank.timeline,
                ahead_ns: offset.ns,
            })
            .collect();
        let joined = join(&members);
        let written = match format {
            Format::Chrome => joined.export_chrome_trace(staging.path()),
            Format::Perfetto => joined.export_perfetto(staging.path()),
        };
        written.map_err(|error| Error::export(&self.output, error))?;
        staging.finish()?;

        let mut output = Stdout::new();
        if let Some(doubt) = forced {
            output.line(format_args!("Merged with --force: {doubt}."))?;
        }
        for line in report::lines(&ranks, &aligned.offsets, &late) {
            output.line(format_args!("{line}"))?;
        }
        output.finish()?;
        Ok(Exit::Done)
    }

    /// Refuses to replace the trace of one rank in a folder of which all traces are merged. Others of the output's name are
    /// left out: what an earlier merge wrote has several ranks.
    fn check_left_out(&self, limits: Limits) -> Result<(), Error> {
        let is_in = |folder: &PathBuf| {
            let parent = self.output.canonicalize().ok();
            let parent = parent.as_deref().and_then(Path::parent);
            folder.is_dir() && parent.is_some() && folder.canonicalize().ok().as_deref() == parent
        };
        if !self.files.iter().any(is_in) {
            return Ok(());
        }
        // One that is not whole is the trace of a rank all the same.
        let limits = Limits {
            is_whole: false,
            ..limits
        };
        match Input::read(&self.output, limits) {
            Ok(Input::Timeline(line)) if ranks_of(&line) < 2 => Err(replaces_input(&self.output)),
            _ => Ok(()),
        }
    }

    fn format(&self) -> Result<Format, Error> {
        const ENDINGS: [(&str, Format); 4] = [
            (".json", Format::Chrome),
            (".json.gz", Format::Chrome),
            (".pftrace", Format::Perfetto),
            (".pftrace.gz", Format::Perfetto),
        ];
        let name = self.output.file_name().unwrap_or_default();
        let name = name.to_string_lossy().to_lowercase();
        let known = ENDINGS
            .into_iter()
            .find(|(ending, _)| name.ends_with(ending));
        known.map(|(_, format)| format).ok_or_else(|| {
            Error::Usage(format!(
                "{}: merge writes traces: end the name in `.json`, `.json.gz` or `.pftrace`",
                self.output.display()
            ))
        })
    }
}
