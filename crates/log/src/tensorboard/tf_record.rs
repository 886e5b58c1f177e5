//! `TFRecord` frames, which an event file consists of: length, checksum, data, checksum.

use super::crc32c::crc32c;

/// Added to a rotated checksum by the format, which keeps checksums of data that contains checksums strong.
const MASK_DELTA: u32 = 0xa282_ead8;

/// Appends one frame that holds `data`.
pub(super) fn append(out: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    out.extend_from_slice(&length);
    out.extend_from_slice(&masked_checksum(&length).to_le_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(&masked_checksum(data).to_le_bytes());
}

fn masked_checksum(data: &[u8]) -> u32 {
    crc32c(data).rotate_right(15).wrapping_add(MASK_DELTA)
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn a_record_equals_the_one_tensorboard_writes() {
        // tensorboard.summary.writer.record_writer.RecordWriter, for the first event of a file.
        let data = b"\x09\0\0\0\0\0\0\xf0\x3f\x1a\x0dbrain.Event:2";
        let mut record = Vec::new();
        append(&mut record, data);
        let expected = [
            b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22".as_slice(),
            data,
            b"\x86\xbf\x57\x7a",
        ];
        assert_eq!(record, expected.concat());
    }
}
