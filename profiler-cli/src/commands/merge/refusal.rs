//! Traces that cannot be put on one time line.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::Rank;
use super::align::Offset;
use crate::error::Error;

/// Earlier times are not of the calendar, but of a clock that began with the machine: the year 2000.
const CALENDAR_NS: i64 = 946_684_800_000_000_000;

const CENTURIES: &str =
    "has times that are centuries from those of the other ranks: write the trace again";

fn refuse(path: &Path, reason: &str) -> Error {
    Error::Refused {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

pub(super) fn summary(path: &Path) -> Error {
    refuse(
        path,
        "is a summary, which has no single times: merge the traces of the ranks",
    )
}

/// Checks that the traces are of different ranks of one program, and have a common clock.
pub(super) fn check(ranks: &[Rank]) -> Result<(), Error> {
    for rank in ranks {
        if rank.timeline.slices.is_empty() {
            return Err(refuse(
                &rank.path,
                "holds no scope, so there is nothing to merge",
            ));
        }
        if rank.timeline.start_unix_ns < CALENDAR_NS {
            return Err(refuse(
                &rank.path,
                "has no wall time (`baseTimeNanoseconds`), so its clock cannot be compared with those of other ranks",
            ));
        }
    }
    for pair in ranks.windows(2) {
        if pair[0].number == pair[1].number {
            let reason = format!(
                "is of rank {}, as is {}: give one trace of each rank, of one window",
                pair[1].number,
                pair[0].path.display()
            );
            return Err(refuse(&pair[1].path, &reason));
        }
    }
    let Some((first, others)) = ranks.split_first() else {
        return Ok(());
    };
    let known: HashSet<&str> = names(first).collect();
    for rank in others {
        if !names(rank).any(|name| known.contains(name)) {
            let reason = format!(
                "has no function in common with {}: they are not ranks of one program",
                first.path.display()
            );
            return Err(refuse(&rank.path, &reason));
        }
    }
    Ok(())
}

/// The most by which clocks of machines that are set by a network differ, and more.
const MOST_APART_NS: u64 = 60_000_000_000;

/// Why traces seem to be of different jobs.
#[derive(Debug)]
pub(super) struct Doubt {
    path: PathBuf,
    reason: String,
}

impl Doubt {
    fn of(rank: &Rank, reason: String) -> Self {
        let path = rank.path.clone();
        Self { path, reason }
    }

    pub(super) fn refused(self) -> Error {
        let reason = format!(
            "{}: give the traces of one job, recorded at the same time, or merge them nonetheless with --force",
            self.reason
        );
        refuse(&self.path, &reason)
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.reason)
    }
}

/// Checks that what the ranks declare can be said of one job.
pub(super) fn check_job(ranks: &[Rank]) -> Result<(), Doubt> {
    let size = |rank: &Rank| {
        Some(match rank.timeline.world_size? {
            1 => "1 process".to_owned(),
            processes => format!("{processes} processes"),
        })
    };
    let backend = |rank: &Rank| Some(format!("the backend {}", rank.timeline.backend.as_deref()?));
    check_same(ranks, size)?;
    check_same(ranks, backend)?;
    // The different lists of ranks for each name, with the first rank that has it. Two groups may have one name if no
    // process is in both.
    let mut known: HashMap<&str, Vec<(&Rank, &[u64])>> = HashMap::new();
    for rank in ranks {
        for group in &rank.timeline.groups {
            let lists = known.entry(&group.name).or_default();
            if lists.iter().any(|(_, list)| *list == group.ranks) {
                continue;
            }
            let shares = |(first, list): &&(&Rank, &[u64])| {
                list.contains(&rank.number) || group.ranks.contains(&first.number)
            };
            if let Some((first, _)) = lists.iter().find(shares) {
                let reason = format!(
                    "has other ranks in the process group `{}` than {}",
                    group.name,
                    first.path.display()
                );
                return Err(Doubt::of(rank, reason));
            }
            lists.push((rank, &group.ranks));
        }
    }
    Ok(())
}

/// Checks that all ranks that declare something declare the same.
fn check_same(ranks: &[Rank], declared: impl Fn(&Rank) -> Option<String>) -> Result<(), Doubt> {
    let mut all = ranks
        .iter()
        .filter_map(|rank| Some((rank, declared(rank)?)));
    let Some((first, expected)) = all.next() else {
        return Ok(());
    };
    match all.find(|(_, declared)| *declared != expected) {
        Some((rank, declared)) => {
            let first = first.path.display();
            let reason = format!("is of a job with {declared}, and {first} of one with {expected}");
            Err(Doubt::of(rank, reason))
        }
        None => Ok(()),
    }
}

/// Checks that the clocks of the ranks are as near to each other as those of machines that are set.
pub(super) fn check_clocks(ranks: &[Rank], offsets: &[Offset]) -> Result<(), Doubt> {
    let clocks = || ranks.iter().zip(offsets);
    let ns = |(_, offset): &(&Rank, &Offset)| offset.ns;
    let (Some((slow, behind)), Some((fast, ahead))) =
        (clocks().min_by_key(ns), clocks().max_by_key(ns))
    else {
        return Ok(());
    };
    let apart = ahead.ns.abs_diff(behind.ns);
    if apart <= MOST_APART_NS {
        return Ok(());
    }
    let (rank, side, other) = if behind.ns.unsigned_abs() > ahead.ns.unsigned_abs() {
        (slow, "behind", fast)
    } else {
        (fast, "ahead of", slow)
    };
    let reason = format!(
        "has a clock that is {} {side} that of {}",
        super::report::time(i64::try_from(apart).unwrap_or(i64::MAX)),
        other.path.display()
    );
    Err(Doubt::of(rank, reason))
}

fn names(rank: &Rank) -> impl Iterator<Item = &str> {
    rank.timeline.names.iter().map(|name| &*name.text)
}

/// Checks that there is a time in which all ranks were recorded.
pub(super) fn check_overlap(ranks: &[Rank], offsets: &[Offset]) -> Result<(), Error> {
    let mut spans: Vec<(i64, i64, &Rank)> = Vec::new();
    for (rank, offset) in ranks.iter().zip(offsets) {
        let start = rank.timeline.start_unix_ns.checked_sub(offset.ns);
        let end = start.and_then(|start| start.checked_add(rank.timeline.duration_ns));
        let (Some(start), Some(end)) = (start, end) else {
            return Err(refuse(&rank.path, CENTURIES));
        };
        spans.push((start, end, rank));
    }
    let latest = spans.iter().max_by_key(|(start, _, _)| *start);
    let earliest = spans.iter().min_by_key(|(_, end, _)| *end);
    // Windows that have a time in common may still reach too far to both sides.
    let first = spans.iter().map(|(start, _, _)| *start).min();
    let too_far = spans
        .iter()
        .find(|(_, end, _)| first.is_some_and(|first| end.checked_sub(first).is_none()));
    if let Some((_, _, rank)) = too_far {
        return Err(refuse(&rank.path, CENTURIES));
    }
    match (latest, earliest) {
        (Some((start, _, late)), Some((_, end, early))) if start >= end => {
            let apart = super::report::time(start - end);
            let reason = format!(
                "begins {apart} after {} ends: record one window on all ranks at the same time",
                early.path.display()
            );
            Err(refuse(&late.path, &reason))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use profiler_report::ProcessGroup;

    use super::super::made_up;
    use super::*;

    fn rank(number: u64, timeline: profiler_report::Timeline) -> Rank {
        Rank {
            path: format!("rank{number}.json").into(),
            number,
            timeline: Box::new(timeline),
        }
    }

    fn refused(ranks: &[Rank]) -> String {
        let none = Offset {
            ns: 0,
            uncertainty_ns: None,
            pairs: 0,
        };
        let offsets = vec![none; ranks.len()];
        let checked = check(ranks).and_then(|()| check_overlap(ranks, &offsets));
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn ranks_of_one_window_are_accepted() {
        let ranks = [0, 1].map(|number| rank(number, made_up::Rank::new(number).steps(3)));
        assert_eq!(refused(&ranks), "");
    }

    fn doubt(ranks: &[Rank]) -> String {
        let doubt = check_job(ranks).err();
        doubt.map_or_else(String::new, |doubt| doubt.refused().to_string())
    }

    #[test]
    fn ranks_that_declare_different_jobs_are_refused() {
        let groups = |groups: &[(&str, &[u64])]| -> Vec<ProcessGroup> {
            let group = |(name, ranks): &(&str, &[u64])| ProcessGroup {
                name: (*name).to_owned(),
                ranks: ranks.to_vec(),
                ..ProcessGroup::default()
            };
            groups.iter().map(group).collect()
        };
        let two = |size: Option<u64>, backend: Option<&str>, of_group: Vec<ProcessGroup>| {
            let mut first = made_up::Rank::new(0).steps(3);
            first.world_size = Some(4);
            first.backend = Some("nccl".to_owned());
            first.groups = groups(&[("0", &[0, 1, 2, 3]), ("1", &[0, 2])]);
            let mut second = made_up::Rank::new(1).steps(3);
            (second.world_size, second.groups) = (size, of_group);
            second.backend = backend.map(str::to_owned);
            [rank(0, first), rank(1, second)]
        };
        let same = groups(&[("0", &[0, 1, 2, 3]), ("1", &[1, 3])]);
        assert_eq!(doubt(&two(Some(4), Some("nccl"), same)), "");
        assert_eq!(doubt(&two(None, None, Vec::new())), "");
        let of_jobs = doubt(&two(Some(2), Some("nccl"), Vec::new()));
        assert_eq!(
            of_jobs,
            "rank1.json: is of a job with 2 processes, and rank0.json of one with 4 processes: give the traces of one job, \
             recorded at the same time, or merge them nonetheless with --force"
        );
        let of_backends = doubt(&two(Some(4), Some("gloo"), Vec::new()));
        assert!(
            of_backends
                .contains("with the backend gloo, and rank0.json of one with the backend nccl")
        );
        for other in [groups(&[("0", &[0, 1])]), groups(&[("1", &[0, 1])])] {
            let of_groups = doubt(&two(Some(4), None, other));
            assert!(
                of_groups.contains("has other ranks in the process group `"),
                "{of_groups}"
            );
        }
    }

    #[test]
    fn clocks_that_are_more_than_a_minute_apart_are_refused() {
        let ranks = [0, 1, 2].map(|number| rank(number, made_up::Rank::new(number).steps(3)));
        let all = |clocks: &[i64]| {
            let offset = |ns: &i64| Offset {
                ns: *ns,
                uncertainty_ns: None,
                pairs: 9,
            };
            let offsets: Vec<Offset> = clocks.iter().map(offset).collect();
            check_clocks(&ranks[..clocks.len()], &offsets)
                .err()
                .map(|doubt| doubt.to_string())
        };
        let checked = |ns: i64| all(&[0, ns]);
        let minute = 60_000_000_000;
        assert_eq!((checked(minute), checked(-minute)), (None, None));
        let behind = checked(-735_003_000_000_000);
        let expected = "rank1.json has a clock that is 8.51 days behind that of rank0.json";
        assert_eq!(behind.as_deref(), Some(expected));
        let ahead = checked(i64::MAX).expect("it is far ahead");
        assert!(ahead.contains(" days ahead of "), "{ahead}");
        assert!(checked(i64::MIN).is_some());
        let both = all(&[0, 40_000_000_000, -50_000_000_000]);
        let expected = "rank2.json has a clock that is 90.0 s behind that of rank1.json";
        assert_eq!(both.as_deref(), Some(expected));
    }

    #[test]
    fn times_that_do_not_fit_on_one_time_line_are_refused() {
        let late = |unix_ns, duration_ns| {
            let mut line = made_up::Rank::new(1).steps(3);
            (line.start_unix_ns, line.duration_ns) = (unix_ns, duration_ns);
            [rank(0, made_up::Rank::new(0).steps(3)), rank(1, line)]
        };
        let offset = |ns| Offset {
            ns,
            uncertainty_ns: None,
            pairs: 0,
        };
        for (unix_ns, duration_ns, ahead) in [
            (i64::MAX, 1, 0),
            (i64::MAX - 5, 0, -9),
            (CALENDAR_NS, 8_000_000_000_000_000_000, i64::MAX),
        ] {
            let ranks = late(unix_ns, duration_ns);
            let checked = check_overlap(&ranks, &[offset(0), offset(ahead)]);
            let error = checked.expect_err("they are too far apart").to_string();
            assert!(error.contains("centuries from those of"), "{error}");
        }
    }

    #[test]
    fn each_reason_is_one_line_with_the_file() {
        let line = || made_up::Rank::new(0).steps(3);
        let mut without_clock = line();
        without_clock.start_unix_ns = 12_000;
        let mut of_another = line();
        for name in &mut of_another.names {
            name.text = "other".into();
        }
        let mut empty = line();
        empty.slices.clear();
        let later = made_up::Rank::new(1).first_step(50).steps(3);
        for (number, other, reason) in [
            (1, without_clock, "rank1.json: has no wall time"),
            (
                1,
                of_another,
                "rank1.json: has no function in common with rank0.json",
            ),
            (1, empty, "rank1.json: holds no scope"),
            (1, later, "rank1.json: begins 470 ms after rank0.json ends"),
            (0, line(), "rank0.json: is of rank 0, as is rank0.json"),
        ] {
            let text = refused(&[rank(0, line()), rank(number, other)]);
            assert!(
                text.starts_with(reason) && text.lines().count() == 1,
                "{text}"
            );
        }
    }
}
