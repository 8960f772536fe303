"""The 64-bit checksum of a block, computed at memory speed.

A block of n words of 64 bits, each with a low half l and a high half h, has the checksum

    n * STEP_LOW + sum over i of l[i] * low(i) + h[i] * high(i)    modulo 2**64

where low(i) = i * STEP_LOW modulo 2**32 with its last two bits set to 01, and high(i) = i * STEP_HIGH with its last two
bits set to 11. These factors are odd and all different for fewer than 2**30 words (8 GiB). Therefore some damage always
changes the checksum: any damage within one half word, any two flipped bits, and an exchange of two low or two high
halves. Other damage, such as a page of zeros or a truncated end, is missed with a probability of one in billions or
less. The checksum does not protect against deliberate changes.
"""

from __future__ import annotations

from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel

WORD_BYTES = 8
_STEP_LOW = np.uint64(0x78DDE6C4)  # both are 4 times an odd number
_STEP_HIGH = np.uint64(0x17AF29AC)
_LOW_BITS = np.uint64(0b01)
_HIGH_BITS = np.uint64(0b11)
_HALF = np.uint64(0xFFFFFFFF)
_HALF_LENGTH = np.uint64(32)
_CHUNK = 1 << 16  # words that NumPy sums at once


def checksum(buffer: bytes | mmap, offset: int = 0, size: int | None = None) -> int:
    """Return the checksum of buffer[offset:offset + size], which must be whole words."""
    size = len(buffer) - offset if size is None else size
    return int(_weighted_sum(np.frombuffer(buffer, np.uint64, size // WORD_BYTES, offset)))


def _weighted_sum_in_chunks(words: NDArray[np.uint64]) -> Any:
    with np.errstate(over="ignore"):
        total = np.uint64(len(words)) * _STEP_LOW
        for start in range(0, len(words), _CHUNK):
            chunk = words[start : start + _CHUNK]
            places = np.arange(start, start + len(chunk), dtype=np.uint64)
            low, high = (places * _STEP_LOW | _LOW_BITS) & _HALF, (places * _STEP_HIGH | _HIGH_BITS) & _HALF
            total += ((chunk & _HALF) * low + (chunk >> _HALF_LENGTH) * high).sum(dtype=np.uint64)
    return total


@kernel(plain=_weighted_sum_in_chunks)
def _weighted_sum(words: NDArray[np.uint64]) -> Any:
    # A plain integer sum, which LLVM vectorizes in any order.
    total = np.uint64(len(words)) * _STEP_LOW
    for i in range(len(words)):
        word, place = words[i], np.uint64(i)
        low, high = (place * _STEP_LOW | _LOW_BITS) & _HALF, (place * _STEP_HIGH | _HIGH_BITS) & _HALF
        total += (word & _HALF) * low + (word >> _HALF_LENGTH) * high
    return total
