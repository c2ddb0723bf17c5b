"""What a record's value is: its id under a checksum, padded to the configured size."""

import struct
from zlib import crc32

_MAGIC = b"kt01"
_HEAD = struct.Struct(">4sIq")
_ID = struct.Struct(">q")
_CHECKED_FROM = 8

#: Bytes of the smallest payload: magic, checksum, record id.
HEADER_SIZE = _HEAD.size


class Encoder:
    """Makes payloads of one size, in bytes (at least ``HEADER_SIZE``)."""

    def __init__(self, size: int) -> None:
        self._padding = bytes(index & 0xFF for index in range(HEADER_SIZE, size))

    def __call__(self, record_id: int) -> bytes:
        """The payload of a record: magic, CRC-32 of all that follows it, id, padding."""
        checksum = crc32(self._padding, crc32(_ID.pack(record_id)))
        return _HEAD.pack(_MAGIC, checksum, record_id) + self._padding


def decode(payload: bytes | None) -> tuple[int | None, bool]:
    """The record id that a payload carries, and whether the payload is what was sent.

    A payload of ours whose checksum fails keeps the id that can be read from it: ``(id, False)``. One that is not of
    ours at all (another magic, too short, a tombstone) is ``(None, False)``.
    """
    if payload is None or len(payload) < HEADER_SIZE:
        return None, False
    magic, checksum, record_id = _HEAD.unpack_from(payload)
    if magic != _MAGIC:
        return None, False
    return record_id, crc32(payload[_CHECKED_FROM:]) == checksum
