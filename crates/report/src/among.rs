//! Calls of CUDA among the scopes of their thread.

/// Returns the extents to draw for calls on a thread, so that they nest with its slices: the larger part of a call that
/// would cross the start or the end of one. The clocks of two processors may differ a little. `slices` come in the order of
/// their starts, each after those around it; `calls` in the order of their starts.
pub fn place_among(slices: &[(i64, i64)], calls: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut open: Vec<i64> = Vec::new();
    let (mut next, mut free) = (0, i64::MIN);
    let mut place = |(start, end): (i64, i64)| {
        let mut start = start.max(free);
        let mut end = end.max(start);
        loop {
            while let Some((begin, ends)) = slices.get(next).filter(|slice| slice.0 <= start) {
                open.retain(|end| end > begin);
                open.push(*ends);
                next += 1;
            }
            open.retain(|end| *end > start);
            let around = open.iter().copied().min().filter(|around| *around < end);
            if let Some(around) = around {
                if around - start >= end - around {
                    end = around;
                } else {
                    start = around;
                }
                continue;
            }
            let inside = slices[next..].iter().take_while(|slice| slice.0 < end);
            let crossed = inside
                .map(|slice| (slice.0, slice.1))
                .find(|slice| slice.1 > end);
            match crossed {
                None => break,
                Some((begin, _)) if begin - start >= end - begin => end = begin,
                Some((begin, _)) => start = begin,
            }
        }
        free = end;
        (start, end)
    };
    calls.iter().copied().map(&mut place).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::overlap::NestedTrack;

    #[test]
    fn a_call_that_would_cross_a_slice_keeps_its_larger_part() {
        let slices = [(100, 200), (120, 150), (200, 300)];
        let calls = [(90, 110), (110, 125), (148, 180), (195, 260)];
        assert_eq!(
            place_among(&slices, &calls),
            [(90, 100), (110, 120), (150, 180), (200, 260)]
        );
    }

    proptest! {
        #[test]
        fn calls_nest_with_the_slices_of_their_thread(
            slices in prop::collection::vec((0..1000_i64, 1..300_i64), 0..20),
            calls in prop::collection::vec((0..1000_i64, 0..50_i64), 0..20),
        ) {
            let mut slices: Vec<(i64, i64)> = slices.into_iter().map(|(start, length)| (start, start + length)).collect();
            slices.sort_by_key(|(start, end)| (*start, -end));
            let mut track = NestedTrack::default();
            slices.retain(|(start, end)| track.add(*start, *end));
            let mut calls: Vec<(i64, i64)> = calls.into_iter().map(|(start, length)| (start, start + length)).collect();
            calls.sort_unstable();
            let placed = place_among(&slices, &calls);
            prop_assert_eq!(placed.len(), calls.len());
            let mut all: Vec<(i64, i64)> = slices.iter().chain(&placed).copied().collect();
            all.sort_by_key(|(start, end)| (*start, -end));
            let mut track = NestedTrack::default();
            for (start, end) in all {
                prop_assert!(start <= end);
                prop_assert!(track.add(start, end), "{start} to {end}");
            }
        }
    }
}
