"""Reading packs: the file is mapped into memory, and a scenario is a set of views of it."""

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
from types import TracebackType
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
    """Map a pack into memory and read its header; the file may still be longer or shorter than that says."""
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
    """A pack opened for reading: a sequence of scenarios.

    Opening reads the header and the index alone. Arrays that are handed out are read-only views of the file and stay
    usable after close(). A block's checksum is verified when it is first read. A Pack can be sent to other processes,
    which open the file again.
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
        self._verified: set[int] = set()  # offsets of blocks whose checksum was found right
        self._maps: WeakValueDictionary[int, RoadMap] = WeakValueDictionary()
        self._tables: WeakValueDictionary[int, MapTables] = WeakValueDictionary()

    def __len__(self) -> int:
        return self._header.scenario_count

    def __getitem__(self, number: SupportsIndex) -> Scenario:
        """A scenario by number; negative numbers count from the end."""
        number = self._scenario_number(number)
        road_map = self.map_of(number)
        try:
            return decode_scenario(self._scenario_block(number), road_map)
        except PackError as error:
            raise self._named(error, self._scenario_name(number)) from None

    def __iter__(self) -> Iterator[Scenario]:
        return (self[number] for number in range(len(self)))

    def scenario(self, id: str) -> Scenario:
        """A scenario by its id."""
        return self[self.number(id)]

    def number(self, id: str) -> int:
        """The number of the scenario with this id."""
        self._require_open()
        try:
            return self._numbers[id]
        except KeyError:
            near = difflib.get_close_matches(str(id), self.ids, n=3, cutoff=0.3)
            nearest = f"; the nearest are {', '.join(map(repr, near))}" if near else ""
            raise UsageError(f"{self.path}: no scenario has the id {id!r} ({len(self)} are there){nearest}") from None

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all scenarios."""
        self._require_open()
        return tuple(self._index.id(number) for number in range(len(self)))

    def tags(self, number: SupportsIndex) -> tuple[str, ...]:
        """The tags of a scenario, without reading it."""
        place = self._scenario_number(number)
        return self._index.tags(place)

    @cached_property
    def tag_counts(self) -> dict[str, int]:
        """How many scenarios have each tag."""
        self._require_open()
        names = self._index.tag_names
        counts = np.bincount(self._index.tag_numbers, minlength=len(names))
        return dict(zip(names, counts.tolist(), strict=True))

    def select(self, tag: str) -> NDArray[np.int64]:
        """The numbers of all scenarios with a tag, ascending."""
        self._require_open()
        index = self._index
        if tag not in index.tag_names:
            known = ", ".join(index.tag_names) or "none"
            raise UsageError(f"{self.path}: no scenario has the tag {tag!r}; tags that are there: {known}")
        places = np.flatnonzero(index.tag_numbers == index.tag_names.index(tag))
        return np.unique(np.searchsorted(index.tag_starts, places, side="right") - 1).astype(np.int64)

    @property
    def map_count(self) -> int:
        return self._header.map_count

    def map(self, number: SupportsIndex) -> RoadMap:
        """A map; as long as somebody holds it, the same object is handed out."""
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
        """The number of the map that a scenario lies on."""
        place = self._scenario_number(scenario)
        return int(self._index.scenario_maps[place])

    def map_of(self, scenario: SupportsIndex) -> RoadMap:
        """The map that a scenario lies on."""
        return self.map(self.map_number(scenario))

    def tables(self, number: SupportsIndex) -> MapTables:
        """The tables of a map, from the file; only those of another version of the tables are worked out anew."""
        number = self._map_number(number)
        tables = self._tables.get(number)
        if tables is None:
            try:
                packed = decode_tables(self._map_block(number))
                tables = unpack_tables(packed) if packed is not None else _prepare_anew(self.map(number))
            except PackError as error:
                raise self._named(error, f"map {number}") from None
            self._tables[number] = tables
        return tables

    def packed_tables(self, number: SupportsIndex) -> PackedTables:
        """The tables of a map as words. Unlike `tables` it keeps nothing and looks at no other array of the map."""
        number = self._map_number(number)
        try:
            offset, size = self._verified_map(number)
            packed = read_tables(first_array(self._buffer, offset, size, "<i4"))
            return packed if packed is not None else pack_tables(_prepare_anew(self.map(number)), self.map(number))
        except PackError as error:
            raise self._named(error, f"map {number}") from None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._header.file_size

    def verify(self) -> None:
        """Compare the checksums of all blocks, at several GB a second, so that no first reading has to wait for it.

        Blocks that are damaged raise PackError when they are read, as ever; `inspect` lists them.
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
        """A scenario as words, without its map, id and tags."""
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
        """Let go of the file. Arrays that were handed out keep it mapped until they are gone."""
        if self._is_open:
            self._is_open = False
            del self._buffer, self._index

    def __enter__(self) -> Pack:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
        """Offset and size of a map's block, which is sound."""
        index = self._index
        offset, size = int(index.map_offsets[number]), int(index.map_sizes[number])
        self._verify(offset, size, index.map_checksums[number])
        return offset, size

    def _verify(self, offset: int, size: int, expected: np.uint64) -> None:
        """Compare the checksum of a block, unless that was done before."""
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
        """The same error, naming the file."""
        text = str(error)
        if text.startswith(f"{self.path}: "):
            return error
        return PackError(f"{self.path}: {owner}: {text}" if owner else f"{self.path}: {text}")


def _prepare_anew(road_map: RoadMap) -> MapTables:
    for fault in road_map.check():
        raise PackError(fault)
    return prepare(road_map)


def _reopen(path: str, header: Header) -> Pack:
    pack = Pack(path)
    if pack._header != header:
        raise PackError(f"{path}: the file was replaced since it was opened; open it anew")
    return pack
