//! The bound on the length of a name.

use std::borrow::Cow;

/// The longest name, in bytes. What is longer is cut; see [`cut`].
pub(crate) const MAX_LENGTH: usize = 1024;

/// Stands between what is left of a cut name and its hash.
const MARK: &str = "…";
/// The hash of the whole name in hexadecimal digits.
const DIGITS: usize = 16;

/// Room for a cut name, so that no call allocates for one.
pub(crate) type Buffer = [u8; MAX_LENGTH];

/// Cuts a name that is longer than [`MAX_LENGTH`]: its beginning up to a character's boundary, `…`, and a 64-bit hash
/// of the whole name, so that two names that differ only after the cut stay two.
pub(crate) fn cut(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_LENGTH {
        return Cow::Borrowed(name);
    }
    Cow::Owned(cut_into(name, &mut [0; MAX_LENGTH]).to_owned())
}

/// The same without an allocation: the cut name stands in `buffer`.
pub(crate) fn cut_into<'b>(name: &'b str, buffer: &'b mut Buffer) -> &'b str {
    if name.len() <= MAX_LENGTH {
        return name;
    }
    let room = MAX_LENGTH - MARK.len() - DIGITS;
    let end = (0..=room).rfind(|end| name.is_char_boundary(*end));
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

/// FNV-1a: the same in each build and on each machine, so that a name's tag is the same in each run.
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
        fn a_name_is_cut_at_a_boundary_and_says_so(name in "\\PC{0,600}", times in 1_usize..20) {
            let name = name.repeat(times);
            let cut = cut(&name);
            prop_assert!(cut.len() <= MAX_LENGTH);
            if name.len() <= MAX_LENGTH {
                prop_assert_eq!(&*cut, name.as_str());
            } else {
                // At most one character less than there is room for.
                prop_assert!(cut.len() > MAX_LENGTH - 4);
                let (kept, digits) = cut.rsplit_once(MARK).unwrap();
                prop_assert!(name.starts_with(kept));
                prop_assert_eq!(digits.len(), DIGITS);
            }
        }

        #[test]
        fn names_that_differ_after_the_cut_stay_two(one in "[a-z]{0,40}", other in "[a-z]{0,40}") {
            let long = "x".repeat(MAX_LENGTH);
            let [cut_one, cut_other] = [&one, &other].map(|end| cut(&format!("{long}{end}")).into_owned());
            prop_assert_eq!(one == other, cut_one == cut_other);
        }

        #[test]
        fn what_is_cut_is_not_cut_again(name in "\\PC{300,600}", times in 1_usize..8) {
            let name = name.repeat(times);
            let once = cut(&name).into_owned();
            prop_assert_eq!(&*cut(&once), once.as_str());
        }
    }
}
