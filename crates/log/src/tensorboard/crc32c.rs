//! The checksum of event files: CRC-32C, with Castagnoli's polynomial (RFC 3720, appendix B.4).

/// The polynomial, with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The part of a checksum that each value of a byte adds.
static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0_u32;
    while byte < 256 {
        let mut rest = byte;
        let mut bit = 0;
        while bit < 8 {
            rest = (rest >> 1) ^ if rest & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[byte as usize] = rest;
        byte += 1;
    }
    table
}

/// Returns the checksum of `data`.
pub(super) fn crc32c(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |rest: u32, byte| {
        let [low, ..] = rest.to_le_bytes();
        (rest >> 8) ^ TABLE[usize::from(low ^ byte)]
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
