"""Road points and partners written to observations, eight at a time on the CPU.

An observation stores the entries of a block feature by feature. LLVM does not vectorize a loop over numbered entries,
because a store to the row could change the table. So eight entries are loaded as vectors, transposed in registers,
moved to the agent's frame and stored. `write_one` does the same for one entry of a table of any memory layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import rule, vectors
from roadworthy.kernels.vectors import EIGHT, eight_of, intrinsic, ir, long_number, spread, spread_each, types
from roadworthy.scenario.schema import Floats
from roadworthy.sim.layout import CLIP, EDGE, LANE, PARTNER, Feature
from roadworthy.sim.maps.road_points import is_entry_major, load_entry
from roadworthy.sim.rules.observation import clipped
from roadworthy.sim.state import Pose, Real, Whole

LANE_SCALES = tuple(np.float32(1.0 / f.scale) for f in LANE)
EDGE_SCALES = tuple(np.float32(1.0 / f.scale) for f in EDGE)
PARTNER_SCALES = tuple(np.float32(1.0 / f.scale) for f in PARTNER)
Numbers = NDArray[Any]  # integers


@rule(inline=True)
def write_one(
    table: Floats, number: Whole, scales: tuple[Real, ...], pose: Pose, row: Floats, at: Whole, n: Whole
) -> None:
    """Write an entry in the frame of an agent with this pose: feature f goes to row[at + f * n].

    The lines of the table are x, y, cos, sin and the other features; each feature is multiplied by its scale.
    """
    write_entry(load_entry(table, number), scales, pose, row, at, n)


@rule(inline=True)
def write_entry(
    entry: tuple[Real, ...], scales: tuple[Real, ...], pose: Pose, row: Floats, at: Whole, n: Whole
) -> None:
    """Write an entry that is already loaded, as `write_one` does."""
    x, y, cos, sin = pose
    dx, dy = entry[0] - x, entry[1] - y
    row[at] = clipped((dx * cos + dy * sin) * scales[0])
    row[at + n] = clipped((dy * cos - dx * sin) * scales[1])
    row[at + 2 * n] = clipped(entry[2] * cos + entry[3] * sin)
    row[at + 3 * n] = clipped(entry[3] * cos - entry[2] * sin)
    for f in range(4, len(scales)):
        row[at + f * n] = clipped(entry[f] * scales[f])


def _write_eight(features: Sequence[Feature]) -> Callable[..., None]:
    """Return an intrinsic that writes the entries numbers[k : k + 8] of an entry-major table; from `valid` on, zeros.

    write(table, numbers, k, valid, pose, row, at, n).
    """
    scales = [1.0 / feature.scale for feature in features]

    @intrinsic
    def write(typing_context, table, numbers, k, valid, pose, row, at, n):
        signature = types.void(table, numbers, types.intp, types.intp, pose, row, types.intp, types.intp)

        def generate(context, builder, signature, args):
            table, numbers, row = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1, 5))
            entries = []
            for entry in range(EIGHT):
                place = builder.gep(numbers.data, [builder.add(args[2], long_number(entry))])
                entries.append(builder.zext(builder.load(place), vectors.LONG))
            loaded = vectors.load_entries(builder, table.data, entries)
            seen = _in_frame(builder, loaded, spread_each(builder, args[4]), scales)
            is_valid = builder.icmp_signed(
                "<", ir.Constant(vectors.LONGS, list(range(EIGHT))), spread(builder, args[3])
            )
            for f, line in enumerate(seen):
                place = builder.add(args[6], builder.mul(args[7], long_number(f)))
                target = builder.bitcast(builder.gep(row.data, [place]), vectors.FLOATS.as_pointer())
                builder.store(builder.select(is_valid, line, eight_of(0.0)), target, align=vectors.NUMBER_BYTES)
            return context.get_dummy_value()

        return signature, generate

    return write


def _in_frame(builder: ir.IRBuilder, lines: list[Any], pose: list[Any], scales: list[float]) -> list[Any]:
    """Return the lines of eight entries as `write_one` writes them."""
    x, y, cos, sin = pose

    def turned(u: Any, v: Any) -> tuple[Any, Any]:
        ahead = builder.fadd(builder.fmul(u, cos), builder.fmul(v, sin))
        return ahead, builder.fsub(builder.fmul(v, cos), builder.fmul(u, sin))

    places = turned(builder.fsub(lines[0], x), builder.fsub(lines[1], y))
    seen = [*places, *turned(lines[2], lines[3]), *lines[4 : len(scales)]]
    high, low = eight_of(CLIP), eight_of(-CLIP)
    clipped_lines = []
    for line, scale in zip(seen, scales, strict=True):
        value = line if scale == 1.0 else builder.fmul(line, eight_of(scale))
        value = builder.select(builder.fcmp_ordered(">", value, low), value, low)
        clipped_lines.append(builder.select(builder.fcmp_ordered("<", value, high), value, high))
    return clipped_lines


def _writer(features: Sequence[Feature], scales: tuple[Real, ...], is_padded: bool) -> Callable[..., None]:
    """Return a rule that writes the first `count` numbered entries of a table to a block of n that starts at row[at].

    write(table, numbers, count, pose, row, at, n).

    is_padded: numbers are padded to a multiple of eight with those of any entries; the padding writes zeros.
    """
    write_eight = _write_eight(features)

    @rule(inline=True)
    def write(table: Floats, numbers: Numbers, count: Whole, pose: Pose, row: Floats, at: Whole, n: Whole) -> None:
        room = n if is_padded else count
        if room < EIGHT or not is_entry_major(table):
            for k in range(count):
                write_one(table, numbers[k], scales, pose, row, at + k, n)
            return
        for k in range(0, count, EIGHT):
            first = min(k, room - EIGHT)
            valid = count - first if is_padded else EIGHT
            write_eight(table, numbers, first, valid, pose, row, at + first, n)

    return write


write_lanes, write_edges = _writer(LANE, LANE_SCALES, False), _writer(EDGE, EDGE_SCALES, False)
write_partners = _writer(PARTNER, PARTNER_SCALES, True)
