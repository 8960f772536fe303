"""Tables of road points: memory layout and loading of entries.

The numbers of one entry are used together, so tables lie entry by entry in memory (entry-major). The CPU loads eight
entries as vectors and transposes them in registers, see simd.load_entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from roadworthy.kernels import rule
from roadworthy.kernels.vectors import EIGHT, NUMBER_BYTES
from roadworthy.scenario.schema import Floats
from roadworthy.sim.state import Whole

_ENTRY_BYTES = NUMBER_BYTES * EIGHT
_ZERO = np.float32(0.0)


def entry_major(shape: tuple[int, int, int]) -> Floats:
    """Return zeros of shape (tables, lines, entries), at most eight lines, entry-major."""
    tables, lines, entries = shape
    return np.zeros((tables, entries, EIGHT), np.float32)[:, :, :lines].transpose(0, 2, 1)


def _always(table: Floats) -> bool:
    return True


@rule(inline=True, cuda=_always)
def is_entry_major(table: Floats) -> bool:
    """Return whether a table (lines, entries) is entry-major with room for eight numbers per entry."""
    return table.strides[0] == NUMBER_BYTES and table.strides[1] == _ENTRY_BYTES


@rule(inline=True)
def load_entry(table: Floats, number: Whole) -> Any:
    """Return the eight numbers of an entry; lines that the table does not have are 0."""
    lines = table.shape[0]
    return (
        table[0, number],
        table[1, number],
        table[2, number],
        table[3, number],
        table[4, number],
        table[5, number] if lines > 5 else _ZERO,
        table[6, number] if lines > 6 else _ZERO,
        table[7, number] if lines > 7 else _ZERO,
    )
