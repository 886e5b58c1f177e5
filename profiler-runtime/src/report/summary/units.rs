//! Units of time for the columns of a table.

/// A unit of time.
pub(super) struct Unit {
    pub(super) name: &'static str,
    pub(super) nanoseconds: f64,
}

impl Unit {
    const fn new(name: &'static str, nanoseconds: f64) -> Self {
        Self { name, nanoseconds }
    }
}

static UNITS: [Unit; 4] = [
    Unit::new("ns", 1.0),
    Unit::new("µs", 1e3),
    Unit::new("ms", 1e6),
    Unit::new("s", 1e9),
];

impl Unit {
    /// Returns the largest unit in which the shortest time is at least a tenth, or a larger one if the longest time
    /// would have more than seven digits before the point.
    pub(super) fn for_times(times: impl Iterator<Item = f64> + Clone) -> &'static Self {
        let shown = times.filter(|time| *time > 0.0);
        let shortest = shown.clone().fold(f64::INFINITY, f64::min);
        let longest = shown.fold(0.0, f64::max);
        let [ns, us, ms, s] = &UNITS;
        let fine = [s, ms, us]
            .into_iter()
            .find(|unit| shortest >= 0.1 * unit.nanoseconds);
        let fine = if longest > 0.0 {
            fine.unwrap_or(ns)
        } else {
            ns
        };
        let coarse = [ns, us, ms]
            .into_iter()
            .find(|unit| longest / unit.nanoseconds < 1e7);
        let coarse = coarse.unwrap_or(s);
        if fine.nanoseconds >= coarse.nanoseconds {
            fine
        } else {
            coarse
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_show_the_shortest_and_the_longest() {
        let unit = |times: &[f64]| Unit::for_times(times.iter().copied()).name;
        assert_eq!(unit(&[1_500.0, 2_500_000.0]), "µs");
        assert_eq!(unit(&[80e6]), "ms");
        assert_eq!(unit(&[30e6, 12e9]), "ms");
        assert_eq!(unit(&[2e9, 12e9]), "s");
        assert_eq!(unit(&[12.0]), "ns");
        assert_eq!(
            unit(&[12.0, 90e9]),
            "ms",
            "not eleven digits, even if the shortest reads as zero"
        );
        assert_eq!(unit(&[0.0, 0.0]), "ns");
        assert_eq!(unit(&[]), "ns");
    }
}
