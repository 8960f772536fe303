"""The maps of a pack that worlds use, each loaded once, in the slots of the `Maps` arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import PackError, ScenarioError
from roadworthy.kernels import kernel
from roadworthy.scenario.grid import CELL_M
from roadworthy.scenario.lanes.network import DEFAULT_LANE_WIDTH_M
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.pack.tables import PLACES, SECTIONS, PackedTables
from roadworthy.scenario.prepare import EDGE_LIST_LENGTH, LANE_LIST_LENGTH
from roadworthy.scenario.schema import EdgeType, Floats, Ints, LaneType, Longs
from roadworthy.sim import state
from roadworthy.sim.maps.road_points import entry_major
from roadworthy.sim.maps.slots import Slots
from roadworthy.sim.state import Maps

SPARE_SLOTS = 4  # at least, for maps that no world uses at the moment
KEPT_BYTES = 256 * 2**20  # unused maps stay up to this size, because reading a map again takes longer than a step
_PADDING = 16  # lines of arrays start at multiples of 64 bytes
_LEAST_SLOTS = 2  # arrays of fewer slots have another Numba type, for which kernels would be compiled again


class MapRoom(NamedTuple):
    """The capacity of a slot."""

    segments: int
    cells: int
    cell_edges: int
    lane_points: int
    edge_points: int
    lists: int
    lanes: int
    successors: int
    signs: int

    @classmethod
    def of(cls, packed: PackedTables) -> MapRoom:
        """Return the capacity that a map needs."""
        counts = {**packed.counts, "cells": packed.counts["columns"] * packed.counts["rows"]}
        return cls(*(counts[field] for field in cls._fields))

    def holds(self, needed: MapRoom) -> bool:
        """Return whether a map fits."""
        return all(own >= other for own, other in zip(self, needed, strict=True))

    def grown(self, needed: MapRoom) -> MapRoom:
        """Return a capacity for both, with a quarter to spare where it grows, so that it rarely grows."""
        pairs = zip(self, needed, strict=True)
        return MapRoom._make(own if own >= other else _padded(other + other // 4) for own, other in pairs)


class MapStore:
    """Keep maps of a pack in slots. A map stays in its slot until it is released as often as it was acquired.

    `maps` changes when larger arrays replace its arrays. Slots that were never filled take addresses
    but no memory.
    """

    def __init__(self, pack: Pack, holders: int, kept_bytes: int = KEPT_BYTES) -> None:
        self._pack, self._holders, self._kept_bytes = pack, holders, kept_bytes
        self._room = MapRoom(*[_PADDING] * len(MapRoom._fields))
        self._slots = Slots()
        # Kernels also run before the first map is read. Empty arrays would have another Numba type (they count as
        # contiguous), and everything would be compiled twice.
        self.maps = _make_maps(_LEAST_SLOTS, self._room)
        self.half_widths: Floats = np.zeros((_LEAST_SLOTS, self._room.lanes), np.float32)  # (M, lanes) m

    def acquire(self, number: int) -> int:
        """Return the slot of a map of the pack, and read the map if necessary."""
        slot = self._slots.hold(number)
        return self._slots.put(number, self._load(number)) if slot is None else slot

    def release(self, number: int) -> None:
        """Release a map that was acquired."""
        self._slots.release(number)

    def _load(self, number: int) -> int:
        packed = self._pack.packed_tables(number)
        if packed.counts["list_bytes"] != 2:
            raise ScenarioError(
                f"{self._pack.path}: map {number} has {packed.counts['lane_points']} lane points and "
                f"{packed.counts['edge_points']} edge points; the simulator supports up to 65535 of each: cut the map"
            )
        needed = MapRoom.of(packed)
        if not self._room.holds(needed) or not self._slots.count:
            self._grow(self._room.grown(needed))
        slot = self._slots.take()
        counts = packed.counts
        grid = counts["columns"], counts["rows"], counts["west"] * CELL_M, counts["south"] * CELL_M
        sections = packed.words, packed.starts, packed.lengths
        fault = _fill_map(sections, grid, self.maps, self.half_widths, slot)
        if fault >= 0:
            self._slots.give_back(slot)
            raise PackError(
                f"{self._pack.path}: map {number}: its table {list(SECTIONS)[fault]!r} refers to entries that do not "
                "exist; the pack was not written by Roadworthy, or by a faulty version: generate or import it again"
            )
        return slot

    @property
    def byte_count(self) -> int:
        """Return the bytes of the loaded maps."""
        return self._slots.filled * bytes_per_slot(self.maps)

    def _grow(self, room: MapRoom) -> None:
        """Replace the arrays by larger ones."""
        kept = self._kept_bytes // bytes_per_slot(_make_maps(1, room))
        slots = max(self._slots.count, min(self._pack.map_count, max(self._holders + SPARE_SLOTS, kept)))
        slots = max(slots, _LEAST_SLOTS)
        half_widths: Floats = np.zeros((slots, room.lanes), np.float32)
        larger = (*_make_maps(slots, room), half_widths)
        move_contents((*self.maps, self.half_widths), larger, self._slots.filled)
        self.maps, self.half_widths, self._room = Maps._make(larger[:-1]), half_widths, room
        self._slots.grow(slots)


def _padded(count: int) -> int:
    return -(-count // _PADDING) * _PADDING


def _make_maps(slots: int, room: MapRoom) -> Maps:
    def zeros(dtype: type, *shape: int) -> NDArray[Any]:
        return np.zeros((slots, *shape), dtype)

    return Maps(
        sizes=zeros(np.int32, state.SIZE_COLUMNS),
        origins=zeros(np.float32, 2),
        edges=entry_major((slots, state.EDGE_LINES, room.segments)),
        cell_edge_starts=zeros(np.int32, _padded(room.cells + 1)),
        cell_edges=zeros(np.int32, room.cell_edges),
        lane_points=entry_major((slots, state.LANE_POINT_LINES, room.lane_points)),
        lane_point_lanes=zeros(np.int32, room.lane_points),
        edge_points=entry_major((slots, state.EDGE_POINT_LINES, room.edge_points)),
        cell_lists=zeros(np.int32, room.cells),
        lane_lists=zeros(np.uint16, room.lists, LANE_LIST_LENGTH),
        edge_lists=zeros(np.uint16, room.lists, EDGE_LIST_LENGTH),
        lanes=zeros(np.int32, state.LANE_LINES, _padded(room.lanes + 1)),
        lane_lengths=zeros(np.float32, room.lanes),
        lane_boxes=zeros(np.float32, state.BOX_LINES, room.lanes),
        successors=zeros(np.int32, room.successors),
        signs=zeros(np.float32, state.STOP_LINE_LINES, room.signs),
        sign_lanes=zeros(np.int32, room.signs),
    )


def bytes_per_slot(arrays: Iterable[NDArray[Any]]) -> int:
    """Return the bytes of one slot of all these arrays."""
    return sum(array.nbytes // max(len(array), 1) for array in arrays)


def move_contents(arrays: Iterable[NDArray[Any]], larger: Iterable[NDArray[Any]], filled: int) -> None:
    """Copy the contents of the first slots to larger arrays."""
    for small, large in zip(arrays, larger, strict=True):
        large[(slice(filled), *(slice(size) for size in small.shape[1:]))] = small[:filled]


_BIKE_LANE, _MEDIAN = int(LaneType.BIKE_LANE), int(EdgeType.MEDIAN)
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_DEFAULT_HALF_WIDTH = np.float32(1.8)  # of a stop line
_DEFAULT_LANE_HALF_WIDTH = np.float32(0.5 * DEFAULT_LANE_WIDTH_M)
_INFINITE = np.float32(np.inf)
_LIST_LENGTH = LANE_LIST_LENGTH
# The words of a map's tables, and where each section starts and how long it is: see scenario.pack.tables.
Sections = tuple[Ints, Longs, Longs]
_EDGES, _LANE_POINTS, _EDGE_POINTS = PLACES["edge_x0"], PLACES["lane_point_x"], PLACES["edge_point_x"]
_LANE_POINT_ARCS, _LANE_POINT_LANES = PLACES["lane_point_arcs"], PLACES["lane_point_lanes"]
_LANE_LISTS, _EDGE_LISTS, _CELL_LISTS = PLACES["lane_lists"], PLACES["edge_lists"], PLACES["cell_lists"]
_CELL_EDGE_STARTS, _CELL_EDGES = PLACES["cell_edge_starts"], PLACES["cell_edges"]
_EDGE_POINT_TYPES, _LANE_POINT_STARTS = PLACES["edge_point_types"], PLACES["lane_point_starts"]
_SUCCESSOR_STARTS, _SUCCESSORS = PLACES["successor_starts"], PLACES["successors"]
_LEFT_NEIGHBOR, _RIGHT_NEIGHBOR, _LANE_TYPES = PLACES["left_neighbor"], PLACES["right_neighbor"], PLACES["lane_types"]
_LANE_LENGTHS, _LANE_LIMITS, _LANE_WIDTHS = PLACES["lane_lengths"], PLACES["lane_limits"], PLACES["lane_widths"]
_SIGN_LINES, _SIGN_LANES = PLACES["sign_lines"], PLACES["sign_lanes"]


@kernel
def _fill_map(
    sections: Sections, grid: tuple[int, int, float, float], maps: Maps, half_widths: Floats, slot: int
) -> int:
    """Copy a map to a slot that is large enough; return the section with an invalid number, or -1.

    Rules trust these numbers: an invalid one would make them read foreign memory. So all are checked.
    """
    (words, starts, lengths), (columns, rows, x0, y0) = sections, grid
    lanes, segments = lengths[_LANE_LENGTHS], lengths[_EDGES]
    lane_point_count, edge_point_count = lengths[_LANE_POINTS], lengths[_EDGE_POINTS]
    lists, signs = lengths[_LANE_LISTS] * 2 // _LIST_LENGTH, lengths[_SIGN_LANES]
    if columns < 1 or rows < 1:
        return _CELL_LISTS
    sizes = maps.sizes[slot]
    sizes[state.COLUMNS], sizes[state.ROWS] = columns, rows
    sizes[state.LANE_COUNT], sizes[state.EDGE_COUNT] = lanes, segments
    sizes[state.LANE_POINT_COUNT], sizes[state.EDGE_POINT_COUNT] = lane_point_count, edge_point_count
    sizes[state.SIGN_COUNT] = signs
    maps.origins[slot, 0], maps.origins[slot, 1] = x0, y0

    numbers = words.view(np.float32)
    _copy_lines(numbers, starts[_EDGES : _EDGES + 4], segments, maps.edges[slot])
    _copy_lines(numbers, starts[_LANE_POINTS : _LANE_POINTS + 5], lane_point_count, maps.lane_points[slot])
    _copy_lines(numbers, starts[_EDGE_POINTS : _EDGE_POINTS + 5], edge_point_count, maps.edge_points[slot])
    _copy(_floats(sections, _LANE_POINT_ARCS), maps.lane_points[slot, state.POINT_ARC])
    _copy(_floats(sections, _LANE_LENGTHS), maps.lane_lengths[slot])
    lines = _floats(sections, _SIGN_LINES)
    for k in range(state.STOP_LINE_LINES):
        _copy(lines[k * signs : (k + 1) * signs], maps.signs[slot, k])
    types = _section(sections, _EDGE_POINT_TYPES).view(np.uint8)
    for i in range(edge_point_count):
        maps.edge_points[slot, state.POINT_IS_MEDIAN, i] = _ONE if types[i] == _MEDIAN else _ZERO

    fault = -1
    for section, count in ((_LANE_LISTS, lane_point_count), (_EDGE_LISTS, edge_point_count)):
        listed = _section(sections, section).view(np.uint16)
        target = maps.lane_lists[slot] if section == _LANE_LISTS else maps.edge_lists[slot]
        highest = _copy_list(listed, target.reshape(target.size))
        if highest >= count and not _are_listed(listed, count):
            fault = section
    if not _copy_starts(_section(sections, _CELL_EDGE_STARTS), maps.cell_edge_starts[slot], lengths[_CELL_EDGES]):
        fault = _CELL_EDGE_STARTS
    if not _copy_numbers(_section(sections, _CELL_EDGES), maps.cell_edges[slot], 0, segments):
        fault = _CELL_EDGES
    if not _copy_numbers(_section(sections, _CELL_LISTS), maps.cell_lists[slot], 0, lists):
        fault = _CELL_LISTS
    if not _copy_numbers(_section(sections, _LANE_POINT_LANES), maps.lane_point_lanes[slot], 0, lanes):
        fault = _LANE_POINT_LANES
    if not _copy_numbers(_section(sections, _SUCCESSORS), maps.successors[slot], 0, lanes):
        fault = _SUCCESSORS
    if not _copy_numbers(_section(sections, _SIGN_LANES), maps.sign_lanes[slot], 0, lanes):
        fault = _SIGN_LANES
    lane_lines = maps.lanes[slot]
    if not _copy_starts(_section(sections, _LANE_POINT_STARTS), lane_lines[state.LANE_POINT_START], lane_point_count):
        return _LANE_POINT_STARTS
    if not _copy_starts(
        _section(sections, _SUCCESSOR_STARTS), lane_lines[state.LANE_SUCCESSOR_START], lengths[_SUCCESSORS]
    ):
        fault = _SUCCESSOR_STARTS
    if not _copy_numbers(_section(sections, _LEFT_NEIGHBOR), lane_lines[state.LANE_LEFT], -1, lanes):
        fault = _LEFT_NEIGHBOR
    if not _copy_numbers(_section(sections, _RIGHT_NEIGHBOR), lane_lines[state.LANE_RIGHT], -1, lanes):
        fault = _RIGHT_NEIGHBOR

    limits, widths = _floats(sections, _LANE_LIMITS), _floats(sections, _LANE_WIDTHS)
    lane_types = _section(sections, _LANE_TYPES)
    for lane in range(lanes):
        lane_lines[state.LANE_TYPE, lane] = lane_types[lane]
        half_widths[slot, lane] = widths[lane] * _HALF if widths[lane] > _ZERO else _DEFAULT_HALF_WIDTH
        is_bike = _ONE if lane_types[lane] == _BIKE_LANE else _ZERO
        for i in range(lane_lines[state.LANE_POINT_START, lane], lane_lines[state.LANE_POINT_START, lane + 1]):
            maps.lane_points[slot, state.POINT_LIMIT, i] = limits[lane]
            maps.lane_points[slot, state.POINT_IS_BIKE, i] = is_bike
    _bound_lanes(maps, slot, widths)
    return fault


@kernel
def _bound_lanes(maps: Maps, slot: int, widths: Floats) -> None:
    """Write the bounds of each lane's center line, extended by half its width on every side."""
    points, starts, boxes = maps.lane_points[slot], maps.lanes[slot, state.LANE_POINT_START], maps.lane_boxes[slot]
    for lane in range(len(widths)):
        west = south = _INFINITE
        east = north = -_INFINITE
        for i in range(starts[lane], starts[lane + 1]):
            x, y, half = points[state.POINT_X, i], points[state.POINT_Y, i], points[state.POINT_HALF, i]
            reach_x, reach_y = abs(points[state.POINT_COS, i]) * half, abs(points[state.POINT_SIN, i]) * half
            west, east = min(west, x - reach_x), max(east, x + reach_x)
            south, north = min(south, y - reach_y), max(north, y + reach_y)
        half_width = widths[lane] * _HALF if widths[lane] > _ZERO else _DEFAULT_LANE_HALF_WIDTH
        boxes[state.BOX_WEST, lane], boxes[state.BOX_SOUTH, lane] = west - half_width, south - half_width
        boxes[state.BOX_EAST, lane], boxes[state.BOX_NORTH, lane] = east + half_width, north + half_width
        boxes[state.BOX_HALF_WIDTH, lane] = half_width


@kernel
def _section(sections: Sections, section: int) -> Ints:
    words, starts, lengths = sections
    return words[starts[section] : starts[section] + lengths[section]]


@kernel
def _floats(sections: Sections, section: int) -> Floats:
    return _section(sections, section).view(np.float32)


@kernel
def _copy_lines(numbers: Floats, starts: Longs, count: int, lines_out: Floats) -> None:
    """Copy lines of `count` numbers that begin at these places, entry by entry as the target stores them."""
    for i in range(count):
        for k in range(len(starts)):
            lines_out[k, i] = numbers[starts[k] + i]


@kernel
def _copy(source: Floats, target: Floats) -> None:
    for i in range(len(source)):
        target[i] = source[i]


@kernel
def _copy_list(source: NDArray[np.uint16], target: NDArray[np.uint16]) -> Any:
    """Copy a list and return its highest number."""
    highest = np.uint16(0)
    for i in range(len(source)):
        number = source[i]
        target[i] = number
        highest = max(highest, number)
    return highest


@kernel
def _are_listed(numbers: NDArray[np.uint16], count: int) -> bool:
    """Return whether lists refer to existing points as far as there are any."""
    for i in range(len(numbers)):
        if numbers[i] >= count and i % _LIST_LENGTH < count:
            return False
    return True


@kernel
def _copy_numbers(source: Ints, target: Ints, low: int, high: int) -> bool:
    """Copy numbers and return whether all are at least `low` and below `high`."""
    least, most = np.int32(low), np.int32(high - 1)
    lowest, highest = least, least if most < least else most
    for i in range(len(source)):
        number = source[i]
        target[i] = number
        lowest, highest = min(lowest, number), max(highest, number)
    return bool(len(source) == 0 or (lowest >= least and highest <= most))


@kernel
def _copy_starts(source: Ints, target: Ints, owned: int) -> bool:
    """Copy starts and return whether they ascend from 0 to the number of things owned."""
    falls = 0
    target[0] = source[0]
    for i in range(1, len(source)):
        target[i] = source[i]
        falls += source[i] < source[i - 1]
    return falls == 0 and source[0] == 0 and source[len(source) - 1] == owned
