"""The value of a record: its id with a checksum, padded to the configured size."""

import struct
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"kt01"
_HEAD = struct.Struct(">4sIq")
#: Behind magic and CRC: there begins what the CRC covers, and the id comes first in it.
_CHECKED_FROM = 8
_ID_FROM = 8

#: Bytes of the smallest payload: magic, CRC-32 of everything after it, record id.
HEADER_SIZE = _HEAD.size


class Encoder:
    """Makes payloads of one size, in bytes (at least ``HEADER_SIZE``), many at a time.

    It computes the checksums of a batch together. CRC-32 is affine over GF(2), so the checksum of a payload is the
    checksum for id 0, xor one term from a table for each byte of its id.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._padding = bytes(index & 0xFF for index in range(HEADER_SIZE, size))
        self._of_zero = self._checksum(0)
        of_bit = [self._checksum(1 << bit) ^ self._of_zero for bit in range(64)]
        self._terms = np.zeros((8, 256), np.uint32)
        for bit, term in enumerate(of_bit):
            byte_at, mask = bit // 8, 1 << bit % 8
            self._terms[byte_at, [byte for byte in range(256) if byte & mask]] ^= np.uint32(term)
        self._template = np.frombuffer(_HEAD.pack(_MAGIC, 0, 0) + self._padding, np.uint8)

    def __call__(self, first: int, count: int) -> list[bytes]:
        """The payloads of ``count`` records with consecutive ids from ``first`` on."""
        ids = np.arange(first, first + count, dtype=np.int64)
        checksums = np.full(count, self._of_zero, np.uint32)
        for byte_at in range(8):
            checksums ^= self._terms[byte_at, (ids >> (8 * byte_at)) & 0xFF]
        block = np.empty((count, self.size), np.uint8)
        block[:] = self._template
        block[:, 4:8] = checksums.astype(">u4").view(np.uint8).reshape(count, 4)
        block[:, _ID_FROM:HEADER_SIZE] = ids.astype(">i8").view(np.uint8).reshape(count, 8)
        payloads: list[bytes] = block.view(f"V{self.size}").ravel().tolist()
        return payloads

    def ids(self, payloads: list[bytes]) -> NDArray[np.int64]:
        """The record ids in payloads that this encoder made and that nobody has changed."""
        block = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), self.size)
        return block[:, _ID_FROM:HEADER_SIZE].copy().view(">i8").ravel().astype(np.int64)

    def _checksum(self, record_id: int) -> int:
        return crc32(self._padding, crc32((record_id & (1 << 64) - 1).to_bytes(8, "big")))


def decode(payload: bytes | None) -> tuple[int | None, bool]:
    """The record id in a payload, and whether the payload is intact.

    A payload of ours with a wrong checksum gives the id that can be read from it: ``(id, False)``. A payload that is
    not ours (another magic, too short, a tombstone) gives ``(None, False)``.
    """
    if payload is None or len(payload) < HEADER_SIZE:
        return None, False
    magic, checksum, record_id = _HEAD.unpack_from(payload)
    if magic != _MAGIC:
        return None, False
    return record_id, crc32(payload[_CHECKED_FROM:]) == checksum
