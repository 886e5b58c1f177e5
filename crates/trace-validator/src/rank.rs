//! The rank of a trace as HTA finds it, without parsing.

use memchr::memmem;

/// The text before the rank.
const KEY: &[u8] = b"\"rank\":";

/// Searches the bytes of a file for the first digits after `"rank":` and a space, in any context.
#[derive(Debug, Default)]
pub(super) struct RankFinder {
    state: ScanState,
}

#[derive(Debug)]
enum ScanState {
    /// This many bytes of the key matched.
    Key(usize),
    /// The key matched, and this many spaces.
    Space(u64),
    /// Digits and their value; `None` if that is too large for a rank.
    Digits(Option<i64>),
    Found(Option<i64>),
}

impl Default for ScanState {
    fn default() -> Self {
        Self::Key(0)
    }
}

impl RankFinder {
    pub(super) fn look(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !matches!(self.state, ScanState::Found(_)) {
            if matches!(self.state, ScanState::Key(0)) {
                // Without the key, its beginning may still be at the end.
                let most = rest.len().saturating_sub(KEY.len() - 1);
                rest = &rest[memmem::find(rest, KEY).unwrap_or(most)..];
            }
            let Some((byte, after)) = rest.split_first() else {
                return;
            };
            self.state = self.state.next(*byte);
            rest = after;
        }
    }

    pub(super) fn rank(&self) -> Option<i64> {
        match self.state {
            ScanState::Digits(rank) | ScanState::Found(rank) => rank,
            ScanState::Key(_) | ScanState::Space(_) => None,
        }
    }
}

impl ScanState {
    fn next(&self, byte: u8) -> Self {
        match *self {
            Self::Key(seen) if KEY.get(seen) == Some(&byte) && seen + 1 == KEY.len() => {
                Self::Space(0)
            }
            Self::Key(seen) if KEY.get(seen) == Some(&byte) => Self::Key(seen + 1),
            // The second quote of the key may be the first quote of another key.
            Self::Key(6) if byte == b'r' => Self::Key(2),
            Self::Space(spaces) if byte.is_ascii_whitespace() => {
                Self::Space(spaces.saturating_add(1))
            }
            Self::Space(1..) if byte.is_ascii_digit() => Self::Digits(digit(Some(0), byte)),
            Self::Digits(rank) if byte.is_ascii_digit() => Self::Digits(digit(rank, byte)),
            Self::Digits(rank) | Self::Found(rank) => Self::Found(rank),
            Self::Key(_) | Self::Space(_) => Self::Key(usize::from(byte == KEY[0])),
        }
    }
}

fn digit(rank: Option<i64>, byte: u8) -> Option<i64> {
    rank?.checked_mul(10)?.checked_add(i64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the rank by a regular expression instead.
    fn by_expression(text: &str) -> Option<i64> {
        let expression = regex_lite::Regex::new(r#""rank":\s+([0-9]+)"#).unwrap();
        expression.captures(text)?[1].parse().ok()
    }

    proptest! {
        #[test]
        fn the_rank_is_found_as_a_regular_expression_finds_it(
            parts in prop::collection::vec(
                prop::sample::select(vec!["\"rank\":", "\"rank", "\"", "rank", ":", " ", "\n", "7", "12", "{", "-"]),
                0..12,
            ),
            piece in 1_usize..9,
        ) {
            let text = parts.concat();
            let mut finder = RankFinder::default();
            text.as_bytes().chunks(piece).for_each(|bytes| finder.look(bytes));
            prop_assert_eq!(finder.rank(), by_expression(&text), "{:?}", text);
        }
    }
}
