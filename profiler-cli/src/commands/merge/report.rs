//! The alignment and the slow ranks, as text.

use std::collections::BTreeMap;

use profiler_report::internal::{InOrder as _, format_time};

use super::Rank;
use super::align::{Offset, median};
use super::late::Late;

/// Steps that are listed one by one; of more, those with the longest waits.
const MAX_LISTED: usize = 20;

/// Formats a time with three digits.
pub(super) fn time(ns: i64) -> String {
    format_time(ns as f64)
}

/// Returns what is printed, a line each.
pub(super) fn lines(ranks: &[Rank], offsets: &[Offset], late: &[Late]) -> Vec<String> {
    let mut lines = vec![heading(ranks, offsets)];
    for (rank, offset) in ranks.iter().zip(offsets) {
        lines.push(clock(rank, offset, rank.number == ranks[0].number));
    }
    let uncertainty = uncertainty(offsets);
    let shown = listed(late);
    if shown.len() < late.len() {
        lines.push(format!(
            "The {} longest waits of {}:",
            shown.len(),
            late.len()
        ));
    }
    lines.extend(shown.iter().map(|late| step(ranks, late, uncertainty)));
    lines.push(verdict(ranks, late, uncertainty));
    lines
}

/// Returns the uncertainty of a difference of two ranks; `None` if the clocks are trusted.
fn uncertainty(offsets: &[Offset]) -> Option<i64> {
    let others = offsets.iter().skip(1);
    others
        .map(|offset| offset.uncertainty_ns)
        .collect::<Option<Vec<i64>>>()?
        .into_iter()
        .max()
}

fn heading(ranks: &[Rank], offsets: &[Offset]) -> String {
    let count = ranks.len();
    match uncertainty(offsets) {
        Some(uncertainty) => format!(
            "{count} ranks, aligned by the ends of their collectives to ±{}.",
            time(uncertainty)
        ),
        None => format!(
            "{count} ranks, aligned by their wall clocks alone: they share fewer than three collectives (`--collective TEXT` \
             names others). The uncertainty is that of the clocks, and is not known; between machines it is often some \
             milliseconds."
        ),
    }
}

fn clock(rank: &Rank, offset: &Offset, is_first: bool) -> String {
    let (number, path) = (rank.number, rank.path.display());
    match offset.uncertainty_ns {
        _ if is_first => format!("  rank {number}: {path}, the reference"),
        None => format!("  rank {number}: {path}"),
        Some(uncertainty) => format!(
            "  rank {number}: {path}, its clock is {} {} ±{} ({} collectives)",
            time(offset.ns.abs()),
            if offset.ns < 0 { "behind" } else { "ahead" },
            time(uncertainty),
            offset.pairs
        ),
    }
}

/// Returns the steps to list, in their order.
fn listed(late: &[Late]) -> Vec<Late> {
    let mut listed = late.to_vec();
    if listed.len() > MAX_LISTED {
        listed.order_by_key(|late| -late.by_ns);
        listed.truncate(MAX_LISTED);
        listed.order_by_key(|late| late.at_ns);
    }
    listed
}

fn step(ranks: &[Rank], late: &Late, uncertainty: Option<i64>) -> String {
    let place = late.step.map_or_else(
        || format!("after {}", time(late.at_ns)),
        |step| format!("step {step}"),
    );
    if uncertainty.is_some_and(|uncertainty| late.by_ns <= uncertainty) {
        return format!(
            "{place}: no rank is last by more than the uncertainty ({})",
            time(late.by_ns)
        );
    }
    format!(
        "{place}: rank {} is last, {} after the others",
        ranks[late.rank].number,
        time(late.by_ns)
    )
}

/// Says which rank is last most often.
fn verdict(ranks: &[Rank], late: &[Late], uncertainty: Option<i64>) -> String {
    let certain = late
        .iter()
        .filter(|late| late.by_ns > uncertainty.unwrap_or(0));
    let mut by_rank: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
    for late in certain {
        by_rank.entry(late.rank).or_default().push(late.by_ns);
    }
    let all = late.len();
    if all == 0 {
        return "The ranks share no steps and no collectives: no rank can be called slow."
            .to_owned();
    }
    let Some((rank, mut waits)) = by_rank.into_iter().max_by_key(|(_, waits)| waits.len()) else {
        return "No rank keeps the others waiting.".to_owned();
    };
    let often = waits.len();
    let wait = time(median(&mut waits));
    let doubt = if uncertainty.is_none() {
        ", if the wall clocks agree"
    } else {
        ""
    };
    format!(
        "Rank {} is last in {often} of {all}, by {wait} in the median{doubt}.",
        ranks[rank].number
    )
}

#[cfg(test)]
mod tests {
    use super::super::align::align;
    use super::super::{late, made_up};
    use super::*;

    fn told(lines: Vec<profiler_report::Timeline>) -> Vec<String> {
        let ranks: Vec<Rank> = (0..)
            .zip(lines)
            .map(|(rank, timeline)| Rank {
                path: format!("rank{rank}.json").into(),
                number: rank,
                timeline: Box::new(timeline),
            })
            .collect();
        let lines: Vec<_> = ranks.iter().map(|rank| &*rank.timeline).collect();
        let aligned = align(&lines, None);
        let late = late::late(&lines, &aligned);
        super::lines(&ranks, &aligned.offsets, &late)
    }

    #[test]
    fn the_slow_rank_is_named_with_the_uncertainty() {
        let slow = made_up::Rank::new(1).ahead(1_250_000).late(1_800_000);
        let told = told(vec![
            made_up::Rank::new(0).steps(3),
            slow.steps(3),
            made_up::Rank::new(2).steps(3),
        ]);
        assert_eq!(
            told,
            [
                "3 ranks, aligned by the ends of their collectives to ±1.00 µs.",
                "  rank 0: rank0.json, the reference",
                "  rank 1: rank1.json, its clock is 1.25 ms ahead ±1.00 µs (3 collectives)",
                "  rank 2: rank2.json, its clock is 0 ns ahead ±1.00 µs (3 collectives)",
                "step 0: rank 1 is last, 1.80 ms after the others",
                "step 1: rank 1 is last, 1.80 ms after the others",
                "step 2: rank 1 is last, 1.80 ms after the others",
                "Rank 1 is last in 3 of 3, by 1.80 ms in the median.",
            ]
        );
    }

    #[test]
    fn waits_within_the_uncertainty_name_no_rank() {
        let told = told(vec![
            made_up::Rank::new(0).steps(30),
            made_up::Rank::new(1).late(400).steps(30),
        ]);
        assert_eq!(told[3], "The 20 longest waits of 30:");
        assert_eq!(
            told[4],
            "step 0: no rank is last by more than the uncertainty (400 ns)"
        );
        assert_eq!(
            told.last().map(String::as_str),
            Some("No rank keeps the others waiting.")
        );
    }

    #[test]
    fn wall_clocks_alone_are_said_to_be_uncertain() {
        let mut lines = vec![
            made_up::Rank::new(0).steps(3),
            made_up::Rank::new(1).ahead(5_000).steps(3),
        ];
        for line in &mut lines {
            line.slices.retain(|slice| slice.parent.is_none());
        }
        let told = told(lines);
        assert!(told[0].contains("wall clocks alone"), "{told:?}");
        let last = "Rank 1 is last in 3 of 3, by 5.00 µs in the median, if the wall clocks agree.";
        assert_eq!(told.last().map(String::as_str), Some(last));
    }
}
