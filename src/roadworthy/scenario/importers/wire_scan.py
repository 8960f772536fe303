"""The compiled scan of a protobuf message, driven by the tables that `wire.MessageReader` prepares."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.schema import Bytes, Ints, Longs

VARINT, FIXED64, LENGTH_DELIMITED, FIXED32 = 0, 1, 2, 5

# A field of a table: its wire type, and where its value is stored. `place` is its number among the fields of its table;
# `child` is the table of its messages or repeated values.
Slot = np.dtype([("wire_type", "i4"), ("is_message", "?"), ("is_repeated", "?"), ("child", "i4"), ("place", "i4")])

_MAX_VARINT_BYTES = 10
_MAX_KEY = np.uint64(2**32 - 1)


class Fault(IntEnum):
    """Faults in the bytes of a message."""

    NONE = 0
    CUT = 1
    LONG_VARINT = 2
    BAD_KEY = 3
    BAD_WIRE_TYPE = 4
    OTHER_WIRE_TYPE = 5
    OVERLONG = 6
    UNEVEN = 7

    def describe(self) -> str:
        return _FAULTS[self]


_FAULTS = {
    Fault.CUT: "the message ends in the middle of a value",
    Fault.LONG_VARINT: "a number has more than ten bytes",
    Fault.BAD_KEY: "the field number is invalid",
    Fault.BAD_WIRE_TYPE: "wire types 3 and 4 (groups), 6 and 7 are not supported",
    Fault.OTHER_WIRE_TYPE: "the wire type is not that of the field's kind",
    Fault.OVERLONG: "it is longer than the rest of the enclosing message",
    Fault.UNEVEN: "packed numbers don't fill it evenly",
}


@kernel
def _varint(data: Bytes, at: int, end: int) -> Any:
    """Return a number of seven bits per byte, and its end; a negative end is a fault, negated."""
    value = np.uint64(0)
    for k in range(_MAX_VARINT_BYTES):
        if at + k >= end:
            return value, -Fault.CUT
        octet = np.uint64(data[at + k])
        value |= (octet & np.uint64(0x7F)) << np.uint64(7 * k)
        if octet < np.uint64(0x80):
            return value, at + k + 1
    return value, -Fault.LONG_VARINT


@kernel
def _fixed(data: Bytes, at: int, size: int) -> Any:
    """Return a little-endian number of `size` bytes."""
    value = np.uint64(0)
    for k in range(size):
        value |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return value


@kernel
def scan(
    data: Bytes, slot_of_number: Ints, slots: Any, totals: Longs, starts: Longs, cells_out: Longs, counts_out: Longs
) -> Any:
    """Count the rows of every table, fill the cells if there are any, and return fault, byte, table and field number.

    Table t has totals[t] rows. Its columns are stored one after another from cells_out[starts[t]] on: first the
    presence bits, then one column for each field. The values of a repeated field have a column of their own.
    """
    is_filling = len(cells_out) > 0
    counts_out[:] = 0
    counts_out[0] = 1
    last_parent = np.full(len(totals), -1)  # of the last row of each table
    ends, tables, rows = np.empty_like(totals), np.empty_like(totals), np.empty_like(totals)
    ends[0], tables[0], rows[0] = len(data), 0, 0
    depth = at = 0
    while True:
        while at == ends[depth]:
            if depth == 0:
                return Fault.NONE, 0, 0, 0
            depth -= 1
        end, table, row = ends[depth], tables[depth], rows[depth]

        begin = at
        key, at = _varint(data, at, end)
        if at < 0:
            return -at, begin, table, 0
        number, wire_type = np.int64(key >> np.uint64(3)), np.int64(key & np.uint64(7))
        if number == 0 or key > _MAX_KEY:
            return Fault.BAD_KEY, begin, table, 0
        value, stop = key, at
        if wire_type == VARINT:
            value, stop = _varint(data, at, end)
            if stop < 0:
                return -stop, begin, table, number
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
            stop = at + size
            if stop > end:
                return Fault.CUT, begin, table, number
            value = _fixed(data, at, size)
        elif wire_type == LENGTH_DELIMITED:
            length, at = _varint(data, at, end)
            if at < 0:
                return -at, begin, table, number
            if length > np.uint64(end - at):
                return Fault.OVERLONG, begin, table, number
            stop = at + np.int64(length)
            value = np.uint64(at) << np.uint64(32) | length
        else:
            return Fault.BAD_WIRE_TYPE, begin, table, number

        slot = slot_of_number[table, number] if number < slot_of_number.shape[1] else -1
        if slot < 0:
            at = stop
            continue
        field = slots[slot]
        is_packed = wire_type == LENGTH_DELIMITED and field.is_repeated and field.wire_type != LENGTH_DELIMITED
        if wire_type != field.wire_type and not is_packed:
            return Fault.OTHER_WIRE_TYPE, begin, table, number
        cell = starts[table] + (1 + field.place) * totals[table] + row
        if is_filling:
            cells_out[starts[table] + row] |= 1 << field.place
        child = field.child
        before = counts_out[child] if child >= 0 else 0
        if field.is_message:
            # A single message may come in parts, which are merged into one row.
            if field.is_repeated or last_parent[child] != row:
                last_parent[child] = row
                counts_out[child] += 1
            depth += 1
            ends[depth], tables[depth], rows[depth] = stop, child, counts_out[child] - 1
        elif is_packed:
            while at < stop:
                if field.wire_type == VARINT:
                    value, at = _varint(data, at, stop)
                else:
                    size = 8 if field.wire_type == FIXED64 else 4
                    if at + size > stop:
                        return Fault.UNEVEN, begin, table, number
                    value = _fixed(data, at, size)
                    at += size
                if at < 0:
                    return Fault.UNEVEN if at == -Fault.CUT else -at, begin, table, number
                if is_filling:
                    cells_out[starts[child] + counts_out[child]] = np.int64(value)
                counts_out[child] += 1
        else:
            if is_filling:
                cells_out[cell if child < 0 else starts[child] + counts_out[child]] = np.int64(value)
            if child >= 0:
                counts_out[child] += 1
            at = stop
        if is_filling and child >= 0:
            cells_out[cell] += counts_out[child] - before
