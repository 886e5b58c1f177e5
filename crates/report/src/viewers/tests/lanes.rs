use proptest::prelude::*;

use super::super::lanes::{Span, divide};

fn span(start: i64, end: i64) -> Span {
    Span {
        start,
        end,
        frame: 0,
    }
}

#[test]
fn slices_that_nest_are_one_lane_with_outer_ones_first() {
    let spans = vec![
        span(4, 6),
        span(0, 10),
        span(4, 5),
        span(10, 12),
        span(4, 4),
    ];
    let expected = [
        span(0, 10),
        span(4, 6),
        span(4, 5),
        span(4, 4),
        span(10, 12),
    ];
    assert_eq!(divide(spans), [expected.to_vec()]);
}

#[test]
fn slices_that_overlap_are_two_lanes() {
    let spans = vec![span(0, 10), span(5, 15), span(11, 14), span(16, 17)];
    let lanes = divide(spans);
    assert_eq!(lanes.len(), 2);
    assert_eq!(lanes[0][0], span(0, 10));
    assert_eq!(lanes[1][..2], [span(5, 15), span(11, 14)]);
}

proptest! {
    #[test]
    fn every_lane_nests(ends in prop::collection::vec((0..50_i64, 0..20_i64), 0..60)) {
        let spans: Vec<Span> = ends.iter().map(|(start, length)| span(*start, start + length)).collect();
        let lanes = divide(spans.clone());
        prop_assert_eq!(lanes.iter().map(Vec::len).sum::<usize>(), spans.len());
        for lane in lanes {
            let mut open: Vec<Span> = Vec::new();
            for span in lane {
                while open.pop_if(|open| open.end <= span.start).is_some() {}
                if let Some(outer) = open.last() {
                    prop_assert!(outer.start <= span.start && span.end <= outer.end);
                }
                open.push(span);
            }
        }
    }
}
