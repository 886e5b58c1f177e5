"""The records of a TensorBoard event file, read byte by byte.

TensorBoard's own readers stop at a broken record silently, and may not verify checksums. This reader shares
no code with them or with the writer: it has its own definition of the CRC-32C polynomial and of the record
layout.

A record is the length of its data (64 bits, little endian), the masked checksum of those 8 bytes, the
data, and the masked checksum of the data.
"""

import struct

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
# Castagnoli's polynomial, bit-reversed.
_POLYNOMIAL = 0x82F63B78


class BrokenRecord(Exception):
    """A record is truncated or has a wrong checksum."""


def _table():
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        yield value


_TABLE = tuple(_table())


def crc32c(data):
    """Returns the CRC-32C of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data):
    """Returns the masked checksum of a record: rotated, with a constant added, so that a checksum over data
    that contains checksums still detects errors."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def encode(data):
    """Encodes data as a record."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        (
            length,
            _FOOTER.pack(masked_crc32c(length)),
            data,
            _FOOTER.pack(masked_crc32c(data)),
        )
    )


def read(content):
    """Yields the data of each record in the content of a file.

    Raises BrokenRecord at the first record that is truncated or has a wrong checksum.
    """
    at = 0
    while at < len(content):
        if len(content) - at < _HEADER.size:
            raise BrokenRecord(f"the file ends within the length of the record at byte {at}")
        length, length_crc = _HEADER.unpack_from(content, at)
        if masked_crc32c(content[at : at + 8]) != length_crc:
            raise BrokenRecord(f"the checksum of the length of the record at byte {at} is wrong")
        start, end = at + _HEADER.size, at + _HEADER.size + length
        if end + _FOOTER.size > len(content):
            raise BrokenRecord(f"the file ends within the record at byte {at}")
        data = content[start:end]
        if masked_crc32c(data) != _FOOTER.unpack_from(content, end)[0]:
            raise BrokenRecord(f"the checksum of the data of the record at byte {at} is wrong")
        yield data
        at = end + _FOOTER.size
