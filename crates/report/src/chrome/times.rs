//! Times in a trace: microseconds with three decimals, from a base that all ranks share.

/// The base is the last multiple of this period, so that all ranks of a job share it, as HTA needs. It is half of
/// kineto's three months: readers such as Perfetto multiply microseconds in 64-bit floating point by 1000, which is
/// exact to the nanosecond only below 2^42 µs (51 days).
const PERIOD_NS: i64 = 7_889_238 / 2 * 1_000_000_000;

/// Returns the base of a window that opened at this time, in nanoseconds since the Unix epoch.
pub(super) fn shared_base(opened: i64) -> i64 {
    let opened = opened.max(0);
    opened - opened % PERIOD_NS
}

/// An end as readers compute it, by adding `ts` and `dur` in 64-bit floating point. The sums of two slices that end
/// together may differ in the last digit, and TensorBoard's trace plugin drops a slice that seems to end after its
/// parent.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct ReadEnd(f64);

impl ReadEnd {
    pub(super) const NEVER: Self = Self(f64::INFINITY);

    pub(super) fn sum(start: i64, length: i64) -> Self {
        Self(microseconds(start) + microseconds(length))
    }

    /// Returns the last time from `start` to `end` that readers see before this end, or `start` if there is none.
    pub(super) fn last_before(self, start: i64, end: i64) -> i64 {
        let mut steps = Steps::default();
        let mut last = end;
        while last > start && microseconds(last) >= self.0 {
            last = last.saturating_sub(steps.next()).max(start);
        }
        last
    }
}

/// By how many nanoseconds a time is shortened next: one, as long as floating point tells times so near apart, and then
/// ever more.
#[derive(Default)]
struct Steps(u32);

impl Steps {
    fn next(&mut self) -> i64 {
        const NEAR: u32 = 4;
        self.0 += 1;
        1 << self.0.saturating_sub(NEAR).min(62)
    }
}

fn microseconds(ns: i64) -> f64 {
    ns as f64 / 1000.0
}

/// Returns the length to write for a slice from `start` to `end`, so that readers see it end neither after its parent
/// nor after a slice that begins at `end`: its exact length, or one or two nanoseconds less.
pub(super) fn length(start: i64, end: i64, around: ReadEnd) -> (i64, ReadEnd) {
    let latest = ReadEnd(microseconds(end).min(around.0));
    let mut length = end.saturating_sub(start).max(0);
    let mut steps = Steps::default();
    while length > 0 && ReadEnd::sum(start, length) > latest {
        length = length.saturating_sub(steps.next()).max(0);
    }
    (length, ReadEnd::sum(start, length))
}

/// Writes a time as `ts` and `dur` need it.
#[inline]
pub(super) fn write_us(out: &mut Vec<u8>, ns: i64) {
    let ns = ns.max(0).unsigned_abs();
    write_whole(out, ns / 1000);
    let digit = |place: u64| b'0' + (ns / place % 10) as u8;
    out.extend([b'.', digit(100), digit(10), digit(1)]);
}

/// The most digits of a number.
const DIGITS: usize = 20;

/// Writes a number. `fmt` takes several times as long, and a large trace has ten million numbers.
#[inline]
pub(super) fn write_whole(out: &mut Vec<u8>, mut number: u64) {
    let len = number.checked_ilog10().unwrap_or(0) as usize + 1;
    // Room of constant size, which is cut: to copy digits whose number the compiler does not know takes longer.
    let start = out.len();
    out.extend([b'0'; DIGITS]);
    let text = &mut out[start..start + len];
    let mut first = len;
    while number >= 10 {
        let pair = 2 * (number % 100) as usize;
        number /= 100;
        first -= 2;
        text[first..first + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if first > 0 {
        text[0] = b'0' + (number % 10) as u8;
    }
    out.truncate(start + len);
}

/// The numbers from 00 to 99.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        let at = 2 * number as usize;
        pairs[at] = b'0' + number / 10;
        pairs[at + 1] = b'0' + number % 10;
        number += 1;
    }
    pairs
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(ns: i64) -> f64 {
        let mut text = Vec::new();
        write_us(&mut text, ns);
        String::from_utf8(text)
            .expect("digits")
            .parse()
            .expect("a number")
    }

    #[test]
    fn numbers_are_written_with_all_their_digits() {
        for number in [0, 7, 10, 99, 100, 105, 4_390_909_464_805, u64::MAX] {
            let mut text = Vec::new();
            write_whole(&mut text, number);
            assert_eq!(text, number.to_string().into_bytes());
        }
        let mut text = Vec::new();
        write_us(&mut text, 1_002_030);
        assert_eq!(text, b"1002.030");
    }

    proptest! {
        #[test]
        fn each_nanosecond_is_read(ns in prop_oneof![0..PERIOD_NS, PERIOD_NS - 1_000_000..PERIOD_NS]) {
            let difference = (read(ns) * 1000.0).round() - ns as f64;
            prop_assert!(difference.abs() < 0.5, "{}", difference);
        }

        #[test]
        fn a_child_is_read_to_end_in_its_parent_and_before_what_follows(
            start in 0..PERIOD_NS,
            outer in 0_i64..10_000_000,
            offset in 0_i64..10_000_000,
            inner in 0_i64..10_000_000,
        ) {
            let end = start + outer;
            let child = (start + offset).min(end);
            let child_end = (child + inner).min(end);
            let (outer_length, around) = length(start, end, ReadEnd::NEVER);
            let (inner_length, _) = length(child, child_end, around);
            let sum = |start, length| read(start) + read(length);
            prop_assert!(sum(start, outer_length) <= read(end));
            if inner_length > 0 {
                prop_assert!(sum(child, inner_length) <= sum(start, outer_length));
            }
            prop_assert!(outer - outer_length <= 2, "{outer} became {outer_length}");
            prop_assert!(child_end - child - inner_length <= 4);
        }
    }
}
