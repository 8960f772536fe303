"""Find all faults of a pack file."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path

import numpy as np

from roadworthy.errors import PackError
from roadworthy.scenario.pack.blocks import check_bytes, decode_map, decode_names, decode_scenario, decode_tables
from roadworthy.scenario.pack.bundle import Bundle, first_array
from roadworthy.scenario.pack.checksum import checksum
from roadworthy.scenario.pack.layout import Index
from roadworthy.scenario.pack.outline import OUTLINE_WORDS, outline_of, read_scenario
from roadworthy.scenario.pack.reader import map_file
from roadworthy.scenario.pack.tables import PackedTables, unpack_tables
from roadworthy.scenario.schema import RoadMap


@dataclass(frozen=True)
class Fault:
    """A fault of a pack file."""

    where: str  # "file", "index", "map 3" or "scenario 'id'"
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def inspect(
    path: str | os.PathLike[str], on_progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Fault]:
    """Return all faults of a pack file: damage to the header, the index and blocks, and inconsistent data.

    A damaged header or a truncated file (which has lost its index) ends the search. on_progress is called with the
    number of inspected blocks and their total number.
    """
    return list(_faults(Path(path).absolute(), on_progress))


def _faults(path: Path, on_progress: Callable[[int, int], None]) -> Iterator[Fault]:
    try:
        buffer, header = map_file(path)
    except PackError as error:
        yield Fault("file", str(error).removeprefix(f"{path}: "))
        return
    size_fault = header.size_fault(len(buffer))
    if size_fault:
        yield Fault("file", size_fault)
    if len(buffer) < header.file_size:
        return
    view = memoryview(buffer)
    if zlib.crc32(view[header.index_offset : header.file_size]) != header.index_crc:
        yield Fault("index", "it is damaged (its checksum is wrong); ids and tags may be wrong")
    try:
        index = Index.decode(buffer, header)
    except PackError as error:
        yield Fault("index", f"{error}; so the blocks can't be found")
        return
    total = header.map_count + header.scenario_count
    maps: dict[int, RoadMap] = {}
    for number in range(header.map_count):
        yield from _map_faults(buffer, index, number, maps)
        on_progress(number + 1, total)
    seen: dict[str, int] = {}
    for number in range(header.scenario_count):
        first = seen.setdefault(index.id(number), number)
        if first != number:
            yield Fault(f"scenario {index.id(number)!r}", f"scenarios {first} and {number} have the same id")
        yield from _scenario_faults(buffer, index, number, maps)
        on_progress(header.map_count + number + 1, total)


def _map_faults(buffer: mmap, index: Index, number: int, maps: dict[int, RoadMap]) -> Iterator[Fault]:
    where = f"map {number}"
    bundle, fault = _open(buffer, index.map_offsets[number], index.map_sizes[number], index.map_checksums[number])
    if bundle is None:
        yield Fault(where, fault)
        return
    try:
        road_map, packed = decode_map(bundle), decode_tables(bundle)
    except PackError as error:
        yield Fault(where, str(error))
        return
    found = list(road_map.check())
    yield from (Fault(where, what) for what in found)
    if packed is not None:
        yield from (Fault(where, f"tables: {what}") for what in _table_faults(packed, road_map))
    if not found:
        maps[number] = road_map


def _table_faults(packed: PackedTables, road_map: RoadMap) -> Iterator[str]:
    yield from unpack_tables(packed).check()
    lanes = packed.counts["lanes"]
    if lanes != road_map.lane_count:
        yield f"they are of {lanes} lanes, the map has {road_map.lane_count}"
    sign_lanes = packed.section("sign_lanes")
    if sign_lanes.size and not 0 <= sign_lanes.min() <= sign_lanes.max() < lanes:
        yield f"stop signs name lanes outside 0..{lanes - 1}"


def _scenario_faults(buffer: mmap, index: Index, number: int, maps: dict[int, RoadMap]) -> Iterator[Fault]:
    where = f"scenario {index.id(number)!r}"
    bundle, fault = _open(
        buffer, index.scenario_offsets[number], index.scenario_sizes[number], index.scenario_checksums[number]
    )
    if bundle is None:
        yield Fault(where, fault)
        return
    map_number = int(index.scenario_maps[number])
    if map_number not in maps:
        yield Fault(where, f"its map {map_number} has faults, so the scenario was not looked at further")
        return
    try:
        if decode_names(bundle) != (index.id(number), index.tags(number)):
            yield Fault(where, "its id and tags are not those that the index gives")
        scenario = decode_scenario(bundle, maps[map_number])
    except PackError as error:
        yield Fault(where, str(error))
        return
    outline = read_scenario(
        first_array(buffer, int(index.scenario_offsets[number]), int(index.scenario_sizes[number]), "<i4")
    )
    if outline is not None and not np.array_equal(outline.words[:OUTLINE_WORDS], outline_of(scenario)):
        yield Fault(where, "its outline is that of another scenario")
    yield from (Fault(where, what) for what in check_bytes(scenario))
    yield from (Fault(where, what) for what in scenario.check())


def _open(buffer: mmap, offset: np.int64, size: np.int64, expected: np.uint64) -> tuple[Bundle | None, str]:
    """Return a block, or what is wrong with it."""
    start, length = int(offset), int(size)
    if checksum(buffer, start, length) != expected:
        return None, "its block is damaged (its checksum is wrong)"
    try:
        return Bundle(buffer, start, length), ""
    except PackError as error:
        return None, str(error)
