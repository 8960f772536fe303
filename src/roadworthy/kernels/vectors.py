"""Vectors of eight numbers, from which rules build code for the CPU.

These functions write LLVM's instructions (`ir`); an `intrinsic` is a function of such instructions for rules to call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir as ir  # type: ignore[import-untyped]
from numba import types as types
from numba.extending import intrinsic as intrinsic

from roadworthy.kernels.decorators import rule

EIGHT = 8
NUMBER_BYTES = 4  # of a float32
LONG, FLOAT = ir.IntType(64), ir.FloatType()
FLOATS, FOUR_FLOATS = ir.VectorType(FLOAT, EIGHT), ir.VectorType(FLOAT, EIGHT // 2)
WHOLES, LONGS = ir.VectorType(ir.IntType(32), EIGHT), ir.VectorType(LONG, EIGHT)


def long_number(value: int) -> ir.Constant:
    return ir.Constant(LONG, value)


def whole_number(value: int) -> ir.Constant:
    return ir.Constant(ir.IntType(32), value)


def eight_of(value: Any) -> ir.Constant:
    return ir.Constant(FLOATS, [float(np.float32(value))] * EIGHT)


def load_entries(builder: ir.IRBuilder, data: Any, entries: list[Any]) -> list[Any]:
    """The lines of eight entries, each of which is a vector in memory: line f holds number f of each entry.

    Halves of entries four apart are loaded into one vector. Then each vector holds what belongs to one half of a line,
    and two rounds of shuffles within halves, which are the cheap ones, put it in order.
    """
    places = [builder.gep(data, [builder.mul(entry, long_number(EIGHT))]) for entry in entries]
    lines = []
    for first in (0, EIGHT // 2):
        halves = []
        for place in places:
            half = builder.bitcast(builder.gep(place, [long_number(first)]), FOUR_FLOATS.as_pointer())
            halves.append(builder.load(half, align=NUMBER_BYTES))
        rows = [shuffled(builder, halves[i], halves[i + 4], range(EIGHT)) for i in range(4)]
        pairs = [
            shuffled(builder, rows[i], rows[i + 1], order)
            for i in (0, 2)
            for order in ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15))
        ]
        lines += [
            shuffled(builder, pairs[i], pairs[i + 2], order)
            for i in (0, 1)
            for order in ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
        ]
    return lines


def load_lines(builder: ir.IRBuilder, table: Any, k: Any, count: int) -> list[Any]:
    """The numbers k to k + 7 of the first lines of a table (lines, entries), each line contiguous."""
    start, stride = builder.ptrtoint(table.data, LONG), builder.extract_value(table.strides, 0)
    start = builder.add(start, builder.mul(k, long_number(NUMBER_BYTES)))
    lines = []
    for line in range(count):
        place = builder.inttoptr(builder.add(start, builder.mul(stride, long_number(line))), FLOATS.as_pointer())
        lines.append(builder.load(place, align=NUMBER_BYTES))
    return lines


def size_of(builder: ir.IRBuilder, value: Any) -> Any:
    """A vector without its signs."""
    without_sign = ir.Constant(WHOLES, [0x7FFFFFFF] * EIGHT)
    return builder.bitcast(builder.and_(builder.bitcast(value, WHOLES), without_sign), FLOATS)


def shuffled(builder: ir.IRBuilder, a: Any, b: Any, places: Sequence[int]) -> Any:
    """A vector of the numbers at these places of a and then, counted on, of b."""
    return builder.shuffle_vector(a, b, ir.Constant(WHOLES, list(places)))


def spread(builder: ir.IRBuilder, value: Any) -> Any:
    """A vector of one number."""
    kind = ir.VectorType(value.type, EIGHT)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, whole_number(0))
    return shuffled(builder, first, first, [0] * EIGHT)


def spread_each(builder: ir.IRBuilder, *groups: Any) -> list[Any]:
    """A vector of each number of some tuples."""
    return [spread(builder, builder.extract_value(group, i)) for group in groups for i in range(group.type.count)]


def bits_of(builder: ir.IRBuilder, flags: Any) -> Any:
    """Eight flags as the low bits of an int64."""
    return builder.zext(builder.bitcast(flags, ir.IntType(EIGHT)), LONG)


def prefetch(builder: ir.IRBuilder, place: Any) -> None:
    """Begin to bring what is at a place into the nearest cache, to be read."""
    byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
    instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    builder.call(instruction, [builder.bitcast(place, byte), whole_number(0), whole_number(3), whole_number(1)])


@intrinsic
def prefetch_entry(typing_context, array, k):
    """Begin to bring array[k] into the cache; k may be any number."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        prefetch(builder, builder.gep(data, [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def prefetch_eight(typing_context, table, numbers, k):
    """Begin to bring the entries numbers[k : k + 8] of a piece-major table into the cache."""

    def generate(context, builder, signature, args):
        table, numbers = (context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 1))
        for i in range(EIGHT):
            number = builder.load(builder.gep(numbers.data, [builder.add(args[2], long_number(i))]))
            prefetch(builder, builder.gep(table.data, [builder.mul(builder.zext(number, LONG), long_number(EIGHT))]))
        return context.get_dummy_value()

    return types.void(table, numbers, types.intp), generate


@intrinsic
def _lowest_bit(typing_context, bits):

    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def _lowest_bit_by_bit(bits: Any) -> Any:
    place = 0
    while (bits >> place) & 1 == 0:
        place += 1
    return place


@rule(inline=True, cuda=_lowest_bit_by_bit)
def lowest_bit(bits: Any) -> Any:
    """The place of the lowest bit that is set in an int64; there has to be one."""
    return _lowest_bit(bits)


@intrinsic
def count_below(typing_context, keys, k, key):
    """How many of the int32 keys[k : k + 8] are below a key."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), WHOLES.as_pointer())
        listed = builder.load(place, align=NUMBER_BYTES)
        return builder.ctpop(bits_of(builder, builder.icmp_signed("<", listed, spread(builder, args[2]))))

    return types.int64(keys, types.intp, types.int32), generate
