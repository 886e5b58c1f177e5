//! The checksum of event files: CRC-32C, with Castagnoli's polynomial (RFC 3720, appendix B.4).

/// The polynomial, with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// How many bytes are looked up at once.
const SLICE: usize = 8;

/// The part of a checksum that each value of a byte adds, by how many bytes follow it in its slice ("slicing-by-8", Kounavis
/// and Berry, 2005).
static TABLES: [[u32; 256]; SLICE] = tables();

const fn tables() -> [[u32; 256]; SLICE] {
    let mut tables = [[0; 256]; SLICE];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut rest = byte;
        let mut bit = 0;
        while bit < 8 * SLICE {
            rest = (rest >> 1) ^ if rest & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
            if bit % 8 == 0 {
                tables[bit / 8 - 1][byte as usize] = rest;
            }
        }
        byte += 1;
    }
    tables
}

/// Returns the checksum of `data`.
pub(super) fn crc32c(data: &[u8]) -> u32 {
    let (slices, tail) = data.as_chunks::<SLICE>();
    let rest = slices.iter().fold(!0_u32, |rest, slice| {
        let mixed = u64::from_le_bytes(*slice) ^ u64::from(rest);
        let parts = TABLES.iter().rev().zip(mixed.to_le_bytes());
        parts.fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte)])
    });
    !tail.iter().fold(rest, |rest, byte| {
        let [low, ..] = rest.to_le_bytes();
        (rest >> 8) ^ TABLES[0][usize::from(low ^ byte)]
    })
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
        let ascending: Vec<u8> = (0..32).collect();
        let descending: Vec<u8> = (0..32).rev().collect();
        for (data, expected) in [
            ([0x00; 32].as_slice(), 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
            (b"123456789", 0xe306_9283),
            (b"", 0),
        ] {
            assert_eq!(crc32c(data), expected);
        }
    }
}
