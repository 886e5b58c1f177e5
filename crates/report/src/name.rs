//! The bound on the length of a name.

use std::borrow::Cow;

/// The length of the longest name, in bytes. Longer names are truncated; see [`truncate`].
pub const MAX_LENGTH: usize = 1024;

/// Separates the beginning of a truncated name from its hash.
const MARK: &str = "…";
/// The number of hexadecimal digits of the hash.
const DIGITS: usize = 16;

/// A buffer for a truncated name, so that calls do not allocate.
pub type Buffer = [u8; MAX_LENGTH];

/// Truncates a name that is longer than [`MAX_LENGTH`].
///
/// The result is the beginning of the name up to a character boundary, `…`, and a 64-bit hash of the whole name, so that
/// two names that differ only at their ends remain two.
pub fn truncate(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_LENGTH {
        return Cow::Borrowed(name);
    }
    Cow::Owned(truncate_into(name, &mut [0; MAX_LENGTH]).to_owned())
}

/// Truncates as [`truncate`] does, into `buffer` instead of a new allocation.
pub fn truncate_into<'b>(name: &'b str, buffer: &'b mut Buffer) -> &'b str {
    if name.len() <= MAX_LENGTH {
        return name;
    }
    let longest = MAX_LENGTH - MARK.len() - DIGITS;
    let end = (0..=longest).rfind(|end| name.is_char_boundary(*end));
    let end = end.unwrap_or_default();
    let (kept, rest) = buffer.split_at_mut(end);
    kept.copy_from_slice(&name.as_bytes()[..end]);
    let (mark, rest) = rest.split_at_mut(MARK.len());
    mark.copy_from_slice(MARK.as_bytes());
    let hash = hash(name.as_bytes());
    for (place, digit) in rest[..DIGITS].iter_mut().enumerate() {
        let nibble = hash >> (4 * (DIGITS - 1 - place)) & 0xf;
        *digit = b"0123456789abcdef"[nibble as usize];
    }
    std::str::from_utf8(&buffer[..end + MARK.len() + DIGITS]).unwrap_or_default()
}

/// FNV-1a. Unlike the standard library's hashes it is the same in every build and on every machine, so that a name has
/// the same tag in every run.
fn hash(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
    }

    proptest! {
        #[test]
        fn a_name_is_truncated_at_a_character_boundary(name in "\\PC{0,600}", times in 1_usize..20) {
            let name = name.repeat(times);
            let cut = truncate(&name);
            prop_assert!(cut.len() <= MAX_LENGTH);
            if name.len() <= MAX_LENGTH {
                prop_assert_eq!(&*cut, name.as_str());
            } else {
                // At most one character shorter than the buffer allows.
                prop_assert!(cut.len() > MAX_LENGTH - 4);
                let (kept, digits) = cut.rsplit_once(MARK).unwrap();
                prop_assert!(name.starts_with(kept));
                prop_assert_eq!(digits.len(), DIGITS);
            }
        }

        #[test]
        fn names_that_differ_only_at_the_end_remain_two(one in "[a-z]{0,40}", other in "[a-z]{0,40}") {
            let long = "x".repeat(MAX_LENGTH);
            let [cut_one, cut_other] = [&one, &other].map(|end| truncate(&format!("{long}{end}")).into_owned());
            prop_assert_eq!(one == other, cut_one == cut_other);
        }

        #[test]
        fn a_truncated_name_is_not_truncated_again(name in "\\PC{300,600}", times in 1_usize..8) {
            let name = name.repeat(times);
            let once = truncate(&name).into_owned();
            prop_assert_eq!(&*truncate(&once), once.as_str());
        }
    }
}
