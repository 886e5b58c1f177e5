//! Texts that are UTF-16, as PowerShell writes what it redirects, or that have a byte order mark.

use std::io::{self, Cursor, Read};

/// Returns the content as UTF-8 without a byte order mark.
pub(super) fn in_utf8<'r>(mut content: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut mark = Vec::new();
    content.by_ref().take(3).read_to_end(&mut mark)?;
    let is_big_endian = mark.starts_with(&[0xfe, 0xff]);
    let in_utf16 = is_big_endian || mark.starts_with(&[0xff, 0xfe]);
    if mark == [0xef, 0xbb, 0xbf] {
        return Ok(Box::new(content));
    }
    let beginning = mark.split_off(if in_utf16 { 2 } else { 0 });
    let content = Cursor::new(beginning).chain(content);
    Ok(if in_utf16 {
        Box::new(Utf16 {
            content,
            is_big_endian,
            high: None,
            decoded: Cursor::default(),
        })
    } else {
        Box::new(content)
    })
}

struct Utf16<R> {
    content: R,
    is_big_endian: bool,
    /// The first half of a character whose second half was not read yet.
    high: Option<u16>,
    decoded: Cursor<Vec<u8>>,
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.decoded.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let mut bytes = Vec::new();
            self.content.by_ref().take(8192).read_to_end(&mut bytes)?;
            let units = bytes.chunks(2).map(|unit| {
                let unit = [unit[0], unit.get(1).copied().unwrap_or_default()];
                if self.is_big_endian {
                    u16::from_be_bytes(unit)
                } else {
                    u16::from_le_bytes(unit)
                }
            });
            let mut units: Vec<u16> = self.high.take().into_iter().chain(units).collect();
            if units.is_empty() {
                return Ok(0);
            }
            if !bytes.is_empty() {
                self.high = units.pop_if(|last| (0xd800..0xdc00).contains(last));
            }
            let text = char::decode_utf16(units)
                .map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER));
            self.decoded = Cursor::new(text.collect::<String>().into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_with_a_mark_is_read() {
        let text = "aé\u{1f600}".repeat(5000);
        let utf16 = |to_bytes: fn(u16) -> [u8; 2]| {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(to_bytes).collect::<Vec<u8>>()
        };
        let marked = format!("\u{feff}{text}").into_bytes();
        for bytes in [
            text.clone().into_bytes(),
            marked,
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
        ] {
            let mut read = String::new();
            let mut content = in_utf8(&*bytes).expect("memory is read");
            content.read_to_string(&mut read).expect("it is UTF-8");
            assert_eq!(read, text);
        }
    }
}
