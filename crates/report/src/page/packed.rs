//! Data that the script unpacks: JSON, compressed, in letters that HTML cannot mistake for markup.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Compresses a text and returns it as base64.
pub(super) fn pack(text: &str) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(8));
    // Writing to memory does not fail.
    let _ = encoder.write_all(text.as_bytes());
    base64(&encoder.finish().unwrap_or_default())
}

/// Encodes bytes as base64 (RFC 4648), with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index| group.get(index).copied().map_or(0, u32::from);
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit > group.len() {
                text.push('=');
            } else {
                let value = (bits >> (18 - 6 * digit)) & 63;
                text.push(char::from(ALPHABET[value as usize]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn base64_is_as_in_the_rfc() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn a_packed_text_is_gzip() {
        let packed = pack("</script>");
        assert!(!packed.contains('<'));
        let value = |char: u8| match char {
            b'A'..=b'Z' => char - b'A',
            b'a'..=b'z' => char - b'a' + 26,
            b'0'..=b'9' => char - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits = packed.trim_end_matches('=').bytes().map(value);
        let digits: Vec<u32> = digits.map(u32::from).collect();
        let bytes = digits.chunks(4).flat_map(|group| {
            let bits = (0..4).fold(0, |bits, at| bits << 6 | group.get(at).unwrap_or(&0));
            bits.to_be_bytes()[1..group.len()].to_vec()
        });
        let bytes: Vec<u8> = bytes.collect();
        let mut text = String::new();
        GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .expect("gzip");
        assert_eq!(text, "</script>");
    }
}
