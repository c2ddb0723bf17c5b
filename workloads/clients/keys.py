"""Record keys, and the partition of each key."""

from zlib import crc32

import numpy as np
from numpy.typing import NDArray


def key_names(count: int) -> list[str]:
    """``k0``, ``k1`` …"""
    return [f"k{index}" for index in range(count)]


def partitions_of_keys(count: int, partitions: int) -> NDArray[np.int64]:
    """For each key the number of its partition: CRC-32 of the key, modulo ``partitions``."""
    return np.array([crc32(name.encode()) % partitions for name in key_names(count)], np.int64)
