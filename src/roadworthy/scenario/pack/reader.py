"""Read packs: the file is mapped into memory, and the arrays of a scenario are views of it."""

from __future__ import annotations

import difflib
import operator
import os
import stat
import zlib
from collections.abc import Iterator
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, SupportsIndex
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import PackError, UsageError
from roadworthy.scenario.pack.blocks import decode_map, decode_scenario, decode_tables, encode_scenario
from roadworthy.scenario.pack.bundle import Bundle, first_array
from roadworthy.scenario.pack.checksum import checksum
from roadworthy.scenario.pack.layout import HEADER_SIZE, Header, Index
from roadworthy.scenario.pack.outline import PackedScenario, read_scenario
from roadworthy.scenario.pack.tables import PackedTables, pack_tables, read_tables, unpack_tables
from roadworthy.scenario.prepare import MapTables, prepare
from roadworthy.scenario.schema import RoadMap, Scenario


def map_file(path: Path) -> tuple[mmap, Header]:
    """Map a pack into memory and decode its header; the size of the file may still differ from the header's."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise PackError(f"{path}: this is a folder, not a pack; name a file in it")
        if not stat.S_ISREG(mode):
            raise PackError(f"{path}: this is not a regular file, so not a pack")
        with open(path, "rb") as file:
            header = Header.decode(file.read(HEADER_SIZE))
            return mmap(file.fileno(), 0, access=ACCESS_READ), header
    except FileNotFoundError:
        raise PackError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        raise PackError(f"{path}: can't be opened: {error}") from error


class Pack:
    """An open pack: a sequence of scenarios.

    Opening reads only the header and the index. Arrays are read-only views of the file and remain usable after close().
    The checksum of a block is verified when it is first read. A Pack can be sent to other processes, which open the
    file again.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        try:
            self._buffer, self._header = map_file(self.path)
            fault = self._header.size_fault(len(self._buffer))
            if fault:
                raise PackError(fault)
            if zlib.crc32(memoryview(self._buffer)[self._header.index_offset :]) != self._header.index_crc:
                raise PackError("the index is damaged (its checksum is wrong)")
            self._index = Index.decode(self._buffer, self._header)
        except PackError as error:
            raise self._named(error) from error.__cause__
        self._is_open = True
        self._verified: set[int] = set()  # offsets of blocks whose checksum is right
        self._maps: WeakValueDictionary[int, RoadMap] = WeakValueDictionary()
        self._tables: WeakValueDictionary[int, MapTables] = WeakValueDictionary()

    def __len__(self) -> int:
        return self._header.scenario_count

    def __getitem__(self, number: SupportsIndex) -> Scenario:
        """Return a scenario by number; negative numbers count from the end."""
        number = self._scenario_number(number)
        road_map = self.map_of(number)
        try:
            return decode_scenario(self._scenario_block(number), road_map)
        except PackError as error:
            raise self._named(error, self._scenario_name(number)) from None

    def __iter__(self) -> Iterator[Scenario]:
        return (self[number] for number in range(len(self)))

    def scenario(self, id: str) -> Scenario:
        """Return a scenario by its id."""
        return self[self.number(id)]

    def number(self, id: str) -> int:
        """Return the number of the scenario with this id."""
        self._require_open()
        try:
            return self._numbers[id]
        except KeyError:
            near = difflib.get_close_matches(str(id), self.ids, n=3, cutoff=0.3)
            nearest = f"; the nearest are {', '.join(map(repr, near))}" if near else ""
            raise UsageError(
                f"{self.path}: no scenario has the id {id!r} (it has {len(self)} scenarios){nearest}"
            ) from None

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of all scenarios."""
        self._require_open()
        return tuple(self._index.id(number) for number in range(len(self)))

    def tags(self, number: SupportsIndex) -> tuple[str, ...]:
        """Return the tags of a scenario without reading it."""
        place = self._scenario_number(number)
        return self._index.tags(place)

    @cached_property
    def tag_counts(self) -> dict[str, int]:
        """Return the number of scenarios with each tag."""
        self._require_open()
        names = self._index.tag_names
        counts = np.bincount(self._index.tag_numbers, minlength=len(names))
        return dict(zip(names, counts.tolist(), strict=True))

    def select(self, tag: str) -> NDArray[np.int64]:
        """Return the numbers of all scenarios with a tag, ascending."""
        self._require_open()
        index = self._index
        if tag not in index.tag_names:
            known = ", ".join(index.tag_names) or "none"
            raise UsageError(f"{self.path}: no scenario has the tag {tag!r}; its tags are: {known}")
        places = np.flatnonzero(index.tag_numbers == index.tag_names.index(tag))
        return np.unique(np.searchsorted(index.tag_starts, places, side="right") - 1).astype(np.int64)

    @property
    def map_count(self) -> int:
        return self._header.map_count

    def map(self, number: SupportsIndex) -> RoadMap:
        """Return a map: the same object while there is a reference to it."""
        number = self._map_number(number)
        road_map = self._maps.get(number)
        if road_map is None:
            try:
                road_map = decode_map(self._map_block(number))
            except PackError as error:
                raise self._named(error, f"map {number}") from None
            self._maps[number] = road_map
        return road_map

    def map_number(self, scenario: SupportsIndex) -> int:
        """Return the number of a scenario's map."""
        place = self._scenario_number(scenario)
        return int(self._index.scenario_maps[place])

    def map_checksum(self, scenario: SupportsIndex) -> int:
        """Return the checksum of a scenario's map, which is the same for the same map in another pack."""
        return int(self._index.map_checksums[self.map_number(scenario)])

    def map_of(self, scenario: SupportsIndex) -> RoadMap:
        """Return a scenario's map."""
        return self.map(self.map_number(scenario))

    def tables(self, number: SupportsIndex) -> MapTables:
        """Return the tables of a map from the file; tables of another version are computed again."""
        number = self._map_number(number)
        tables = self._tables.get(number)
        if tables is None:
            try:
                packed = decode_tables(self._map_block(number))
                tables = unpack_tables(packed) if packed is not None else _prepare_sound(self.map(number))
            except PackError as error:
                raise self._named(error, f"map {number}") from None
            self._tables[number] = tables
        return tables

    def packed_tables(self, number: SupportsIndex) -> PackedTables:
        """Return the tables of a map as words, without caching them or reading other arrays of the map."""
        number = self._map_number(number)
        try:
            offset, size = self._verified_map(number)
            packed = read_tables(first_array(self._buffer, offset, size, "<i4"))
            return packed if packed is not None else pack_tables(_prepare_sound(self.map(number)), self.map(number))
        except PackError as error:
            raise self._named(error, f"map {number}") from None

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._header.file_size

    def verify(self) -> None:
        """Verify the checksums of all blocks, at several GB per second, so that later reads need not do it.

        Damaged blocks raise PackError when they are read; `inspect` lists them.
        """
        self._require_open()
        index = self._index
        for blocks in (
            (index.map_offsets, index.map_sizes, index.map_checksums),
            (index.scenario_offsets, index.scenario_sizes, index.scenario_checksums),
        ):
            for offset, size, expected in zip(*(array.tolist() for array in blocks), strict=True):
                if offset not in self._verified and checksum(self._buffer, offset, size) == expected:
                    self._verified.add(offset)

    def packed_scenario(self, number: SupportsIndex) -> PackedScenario:
        """Return a scenario as words, without its map, id and tags."""
        place = self._scenario_number(number)
        index = self._index
        offset, size = int(index.scenario_offsets[place]), int(index.scenario_sizes[place])
        try:
            self._verify(offset, size, index.scenario_checksums[place])
            packed = read_scenario(first_array(self._buffer, offset, size, "<i4"))
        except PackError as error:
            raise self._named(error, self._scenario_name(place)) from None
        if packed is None:
            scenario = self[place]
            for fault in scenario.check():
                raise self._named(PackError(fault), self._scenario_name(place))
            block = encode_scenario(scenario)
            packed = read_scenario(first_array(block, 0, len(block), "<i4"))
            assert packed is not None
        return packed

    def close(self) -> None:
        """Close the file. It stays mapped while arrays of it are in use."""
        if self._is_open:
            self._is_open = False
            del self._buffer, self._index

    def __enter__(self) -> Pack:
        self._require_open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        self._require_open()
        return _reopen, (str(self.path), self._header)

    def __repr__(self) -> str:
        state = "" if self._is_open else ", closed"
        return f"Pack({str(self.path)!r}, {len(self)} scenarios on {self.map_count} maps{state})"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {id: number for number, id in enumerate(self.ids)}

    def _scenario_block(self, number: int) -> Bundle:
        index = self._index
        offset, size = int(index.scenario_offsets[number]), int(index.scenario_sizes[number])
        self._verify(offset, size, index.scenario_checksums[number])
        return Bundle(self._buffer, offset, size)

    def _map_block(self, number: int) -> Bundle:
        return Bundle(self._buffer, *self._verified_map(number))

    def _verified_map(self, number: int) -> tuple[int, int]:
        """Verify the block of a map and return its offset and size."""
        index = self._index
        offset, size = int(index.map_offsets[number]), int(index.map_sizes[number])
        self._verify(offset, size, index.map_checksums[number])
        return offset, size

    def _verify(self, offset: int, size: int, expected: np.uint64) -> None:
        """Verify the checksum of a block once."""
        if offset not in self._verified:
            if checksum(self._buffer, offset, size) != expected:
                raise PackError("its block is damaged (its checksum is wrong)")
            self._verified.add(offset)

    def _scenario_name(self, number: int) -> str:
        return f"scenario {self._index.id(number)!r}"

    def _scenario_number(self, number: SupportsIndex) -> int:
        return self._within(number, len(self), "scenario")

    def _map_number(self, number: SupportsIndex) -> int:
        return self._within(number, self.map_count, "map")

    def _within(self, number: SupportsIndex, count: int, what: str) -> int:
        self._require_open()
        place = operator.index(number)
        if not -count <= place < count:
            allowed = f"0 to {count - 1}" if count else f"none: there is no {what}"
            raise UsageError(f"{self.path}: {what} number {place} was asked for; allowed: {allowed}")
        return place % count

    def _require_open(self) -> None:
        if not self._is_open:
            raise UsageError(f"{self.path}: this Pack is closed; open it again with Pack(path)")

    def _named(self, error: PackError, owner: str | None = None) -> PackError:
        """Return the error with the file's name."""
        text = str(error)
        if text.startswith(f"{self.path}: "):
            return error
        return PackError(f"{self.path}: {owner}: {text}" if owner else f"{self.path}: {text}")


def _prepare_sound(road_map: RoadMap) -> MapTables:
    for fault in road_map.check():
        raise PackError(fault)
    return prepare(road_map)


def _reopen(path: str, header: Header) -> Pack:
    pack = Pack(path)
    if pack._header != header:
        raise PackError(f"{path}: the file was replaced since it was opened; open it again")
    return pack
