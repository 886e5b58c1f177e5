//! What the devices did: a column for each time that the file was written.

use std::collections::VecDeque;

use profiler_report::{SampledIdle, Summary};

use super::line::Line;

/// The columns that are kept: more than a screen shows.
const COLUMNS: usize = 512;

/// From this share of busy time on, the device limits the program, and not the host.
const DEVICE_LIMITS: f64 = 0.6;

/// What a device did in a span, as shares of it. In the rest of the span it was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Piece {
    pub(super) busy: f64,
    /// Work was under way that the host did not launch fast enough: the device was partly idle.
    pub(super) host_paced: f64,
}

/// What the shares of a device come from. The label on the screen says it, because none of them says more than it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The account of the device in the summary: what it did from one GPU time to another, without streams counted twice.
    Account,
    /// The load that its sensor reported at the last sample: the time in which at least one kernel ran, of any program.
    Load,
    /// The GPU times of functions: ranges on streams, with pauses inside.
    Ranges,
}

/// What is known about one device, or about the only one.
#[derive(Debug, PartialEq)]
pub(super) struct Track {
    pub(super) label: String,
    pub(super) source: Source,
    /// What it did in the last span; `None` if that is not known yet.
    pub(super) latest: Option<Piece>,
    pub(super) columns: VecDeque<Piece>,
}

/// The devices of a program.
#[derive(Debug, Default)]
pub(super) struct Strip {
    pub(super) tracks: Vec<Track>,
}

impl Strip {
    /// Adds what the devices did from `before`, an earlier summary of the run, until `now`. Without one, the numbers are of
    /// the whole run so far, and are no column.
    pub(super) fn take(&mut self, now: &Summary, before: Option<&Summary>, lines: &[Line]) {
        if before.is_none() {
            self.tracks.clear();
        }
        let mut earlier = std::mem::take(&mut self.tracks);
        self.tracks = readings(now, before, lines).collect();
        for track in &mut self.tracks {
            let same = earlier.iter_mut().find(|same| same.label == track.label);
            track.columns =
                same.map_or_else(VecDeque::new, |same| std::mem::take(&mut same.columns));
            if before.is_some() {
                track.columns.extend(track.latest);
            }
            let surplus = track.columns.len().saturating_sub(COLUMNS);
            track.columns.drain(..surplus);
        }
    }

    /// Returns `true` if the devices limit the program: each was busy for most of the last span.
    pub(super) fn device_limits(&self) -> bool {
        let source = self.tracks.first().map(|track| track.source);
        let mut tracks = self
            .tracks
            .iter()
            .filter(|track| Some(track.source) == source);
        let busy = |track: &Track| track.latest.map_or(0.0, |latest| latest.busy);
        source.is_some() && tracks.all(|track| busy(track) >= DEVICE_LIMITS)
    }
}

/// Returns what the summary says about each device: the only place that decides where the strip comes from.
fn readings<'s>(
    now: &'s Summary,
    before: Option<&'s Summary>,
    lines: &'s [Line],
) -> impl Iterator<Item = Track> {
    let track = |label, source, latest| Track {
        label,
        source,
        latest,
        columns: VecDeque::new(),
    };
    let accounts = now.gpu_idle.iter().map(move |account| {
        let label = account
            .device
            .map_or_else(|| "GPU".to_owned(), |device| format!("GPU {device}"));
        let earlier = before.and_then(|before| {
            let mut accounts = before.gpu_idle.iter();
            accounts.find(|earlier| earlier.device == account.device)
        });
        track(label, Source::Account, since(account, earlier))
    });
    let loads = now.gpus.iter().filter_map(move |gpu| {
        let latest = Piece {
            busy: (gpu.utilization_last_percent? / 100.0).clamp(0.0, 1.0),
            host_paced: 0.0,
        };
        let label = format!("{} load", gpu.label());
        Some(track(label, Source::Load, Some(latest)))
    });
    // The account has these times too, and each at its place.
    let ranges = ranges(now, lines).filter(|_| now.gpu_idle.is_empty());
    let ranges = ranges.map(move |latest| {
        let label = "GPU ranges".to_owned();
        track(label, Source::Ranges, Some(latest))
    });
    accounts.chain(loads).chain(ranges)
}

/// Returns what a device did since an earlier account; `None` if no GPU time has ended since.
fn since(account: &SampledIdle, earlier: Option<&SampledIdle>) -> Option<Piece> {
    let of = |time_ns: fn(&SampledIdle) -> f64| time_ns(account) - earlier.map_or(0.0, time_ns);
    let wall_ns = of(SampledIdle::wall_ns);
    let share = |ns: f64| (ns / wall_ns).clamp(0.0, 1.0);
    (wall_ns > 0.0).then(|| {
        let busy = share(of(|account| account.busy_ns));
        // An account may move time from one state to another, so that the sum of two is longer than the span.
        let host_paced = share(of(|account| account.host_paced_ns)).min(1.0 - busy);
        Piece { busy, host_paced }
    })
}

/// Returns what the GPU times of functions say about the only device; `None` if there are several, whose times are not told
/// apart, or no GPU times.
///
/// A range counts as busy if its call returned before the work ended. Otherwise, or if the function has ranges inside, the
/// device was idle for an unknown part of it, as on pages. Streams are added up, to the whole span at most.
fn ranges(now: &Summary, lines: &[Line]) -> Option<Piece> {
    if now.environment.devices.len() > 1 || lines.iter().all(|line| line.cuda.is_none()) {
        return None;
    }
    let (mut busy, mut host_paced) = (0.0, 0.0);
    for line in lines {
        let cuda = line.cuda.unwrap_or(0.0);
        busy += cuda * line.busy_part;
        host_paced += cuda * (1.0 - line.busy_part);
    }
    let busy = busy.min(1.0);
    Some(Piece {
        busy,
        host_paced: host_paced.min(1.0 - busy),
    })
}

#[cfg(test)]
mod tests {
    use profiler_report::SampledGpu;

    use super::*;

    fn line(cuda: f64, busy_part: f64) -> Line {
        Line {
            cuda: Some(cuda),
            busy_part,
            ..Line::default()
        }
    }

    fn piece(busy: f64, host_paced: f64) -> Piece {
        Piece { busy, host_paced }
    }

    #[test]
    fn ranges_are_busy_in_the_part_in_which_the_device_surely_worked() {
        let lines = [line(0.25, 1.0), line(0.125, 0.5), line(0.125, 0.0)];
        let mut summary = Summary::default();
        assert_eq!(ranges(&summary, &lines), Some(piece(0.3125, 0.1875)));
        assert_eq!(ranges(&summary, &[Line::default()]), None);
        // Streams together may have worked for longer than the span.
        let streams = [line(0.75, 1.0), line(0.5, 0.0)];
        assert_eq!(ranges(&summary, &streams), Some(piece(0.75, 0.25)));
        summary.environment.devices = vec!["one".to_owned(), "other".to_owned()];
        assert_eq!(ranges(&summary, &lines), None);
    }

    #[test]
    fn each_write_of_a_run_adds_a_column_except_the_first() {
        let mut strip = Strip::default();
        let mut summary = Summary::default();
        let mut gpu = SampledGpu::default();
        gpu.ordinal = Some(0);
        for (load, is_new, columns) in [
            (90.0, true, 0),
            (50.0, false, 1),
            (70.0, false, 2),
            (40.0, true, 0),
        ] {
            gpu.utilization_last_percent = Some(load);
            summary.gpus = vec![gpu.clone()];
            let before = (!is_new).then(Summary::default);
            let lines = [line(0.5, 1.0)];
            strip.take(&summary, before.as_ref(), &lines);
            let labels: Vec<&str> = strip.tracks.iter().map(|track| &*track.label).collect();
            assert_eq!(labels, ["GPU 0 load", "GPU ranges"]);
            assert_eq!(strip.tracks[0].latest, Some(piece(load / 100.0, 0.0)));
            assert_eq!(strip.tracks[0].columns.len(), columns);
        }
        for _ in 0..2 * COLUMNS {
            strip.take(&summary, Some(&Summary::default()), &[]);
        }
        assert_eq!(strip.tracks[0].columns.len(), COLUMNS);
    }

    #[test]
    fn an_account_stands_first_and_its_columns_are_what_it_has_more_than_before() {
        let of = |accounts: &[(u32, f64, f64, f64)]| {
            let account =
                |(device, busy_ns, host_paced_ns, idle_ns): &(u32, f64, f64, f64)| SampledIdle {
                    device: Some(*device),
                    busy_ns: *busy_ns,
                    host_paced_ns: *host_paced_ns,
                    idle_ns: *idle_ns,
                    ..SampledIdle::default()
                };
            Summary {
                gpu_idle: accounts.iter().map(account).collect(),
                ..Summary::default()
            }
        };
        let lines = [line(0.5, 1.0)];
        let mut strip = Strip::default();
        let first = of(&[(0, 1.0, 1.0, 2.0)]);
        strip.take(&first, None, &lines);
        let tracks = |strip: &Strip| -> Vec<(String, Option<Piece>, usize)> {
            let tracks = strip.tracks.iter();
            tracks
                .map(|track| (track.label.clone(), track.latest, track.columns.len()))
                .collect()
        };
        assert_eq!(
            tracks(&strip),
            [("GPU 0".to_owned(), Some(piece(0.25, 0.25)), 0)]
        );
        let second = of(&[(0, 4.0, 1.0, 3.0), (1, 1.0, 0.0, 0.0)]);
        strip.take(&second, Some(&first), &lines);
        let both = [
            ("GPU 0".to_owned(), Some(piece(0.75, 0.0)), 1),
            ("GPU 1".to_owned(), Some(piece(1.0, 0.0)), 1),
        ];
        assert_eq!(tracks(&strip), both);
        assert!(strip.device_limits());
        // What was idle turned out not to be.
        let third = of(&[(0, 7.0, 3.0, 1.0), (1, 1.0, 0.0, 0.0)]);
        let mut moved = Strip::default();
        moved.take(&third, Some(&second), &lines);
        assert_eq!(tracks(&moved)[0].1, Some(piece(1.0, 0.0)));
        // Nothing has ended since: what it does is not known, and the columns stay.
        strip.take(&second, Some(&second), &lines);
        assert_eq!(tracks(&strip)[0], ("GPU 0".to_owned(), None, 1));
        assert!(!strip.device_limits());
    }

    #[test]
    fn devices_limit_if_all_are_busy_by_the_first_source() {
        let of_loads = |loads: &[f64]| {
            let gpu = |load: &f64| {
                let mut gpu = SampledGpu::default();
                gpu.utilization_last_percent = Some(*load);
                gpu
            };
            let summary = Summary {
                gpus: loads.iter().map(gpu).collect(),
                ..Summary::default()
            };
            let mut strip = Strip::default();
            strip.take(&summary, None, &[line(0.1, 1.0)]);
            strip.device_limits()
        };
        assert!(of_loads(&[60.0, 90.0]));
        assert!(!of_loads(&[59.0, 90.0]));
        assert!(!of_loads(&[]));
        assert!(!Strip::default().device_limits());
    }
}
