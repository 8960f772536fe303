"""Write packs atomically: the file appears complete or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import zlib
from pathlib import Path
from typing import IO
from weakref import WeakKeyDictionary

import numpy as np

from roadworthy.errors import PackError, ScenarioError, UsageError
from roadworthy.scenario.pack.blocks import EncodedScenarios, decode_names, encode_map, encode_scenario
from roadworthy.scenario.pack.bundle import ALIGNMENT, Bundle
from roadworthy.scenario.pack.checksum import checksum
from roadworthy.scenario.pack.layout import HEADER_SIZE, Header, Index
from roadworthy.scenario.schema import RoadMap, Scenario


class PackWriter:
    """A pack that is written: `with PackWriter(path) as writer: writer.add(scenario)`.

    Blocks are written in the order in which they are added, to a temporary file in the same folder, which is renamed
    when the `with` block ends. Missing folders are created. After an exception nothing is left, and an existing file of
    that name is unchanged. Equal additions in equal order give equal bytes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.tmp")
        self._file: IO[bytes] | None = None
        self._size = HEADER_SIZE
        self._maps: list[tuple[int, int, int]] = []  # offset, size, checksum
        self._scenarios: list[tuple[int, int, int]] = []
        self._scenario_maps: list[int] = []
        self._tags: list[tuple[str, ...]] = []
        self._numbers: dict[str, int] = {}  # id: scenario, in the order of scenarios
        self._maps_by_content: dict[bytes, int] = {}
        self._new_folders: list[Path] = []
        self._maps_by_object: WeakKeyDictionary[RoadMap, int] = WeakKeyDictionary()

    def __enter__(self) -> PackWriter:
        if self.path.is_dir():
            raise PackError(f"{self.path}: can't be written: it is a folder; name a file in it")
        self._new_folders = [folder for folder in self.path.parents if not folder.exists()]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._temporary, "xb")
        except OSError as error:
            raise self._failure(error) from error
        self._write(bytes(HEADER_SIZE))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._abandon()
            return
        if self._file is None:
            raise PackError(f"{self.path}: not written, because writing failed before")
        try:
            self._finish(self._file)
        except OSError as fault:
            self._abandon()
            raise self._failure(fault) from fault
        except BaseException:
            self._abandon()
            raise

    def add_map(self, road_map: RoadMap) -> int:
        """Add a map, unless the pack has it, and return its number."""
        number = self._maps_by_object.get(road_map)
        if number is None:
            number = self.add_encoded_map(encode_map(road_map))
            self._maps_by_object[road_map] = number
        return number

    def add_encoded_map(self, block: bytes) -> int:
        """Add a block of encode_map, unless the pack has it, and return the map's number."""
        content = hashlib.blake2b(block, digest_size=16).digest()
        number = self._maps_by_content.get(content)
        if number is None:
            self._maps.append(self._append(block))
            number = self._maps_by_content[content] = len(self._maps) - 1
        return number

    def add(self, scenario: Scenario, map_number: int | None = None) -> int:
        """Add a scenario, and its map unless map_number is given, and return the scenario's number."""
        block = encode_scenario(scenario)
        return self.add_encoded(block, self.add_map(scenario.map) if map_number is None else map_number)

    def add_encoded(self, block: bytes, map_number: int) -> int:
        """Add a block of encode_scenario, on a map that was added before, and return the scenario's number."""
        if not 0 <= map_number < len(self._maps):
            raise UsageError(f"map number {map_number} was not added; there are {len(self._maps)} maps: add it first")
        id, tags = decode_names(Bundle(block, 0, len(block)))
        if id in self._numbers:
            raise ScenarioError(f"scenario id {id!r} is in {self.path.name} already; ids must be unique in a pack")
        self._scenarios.append(self._append(block))
        self._scenario_maps.append(map_number)
        self._tags.append(tags)
        self._numbers[id] = len(self._scenarios) - 1
        return self._numbers[id]

    def add_all_encoded(self, encoded: EncodedScenarios) -> None:
        """Add the blocks of encode_scenarios."""
        numbers = [self.add_encoded_map(block) for block in encoded.maps]
        for block, number in encoded.scenarios:
            self.add_encoded(block, numbers[number])

    def _append(self, block: bytes) -> tuple[int, int, int]:
        if not block or len(block) % ALIGNMENT:
            raise UsageError(
                f"a block of {len(block)} bytes was given; expected a result of encode_map or encode_scenario"
            )
        entry = self._size, len(block), checksum(block)
        self._write(block)
        self._size += len(block)
        return entry

    def _write(self, data: bytes) -> None:
        if self._file is None:
            raise UsageError(f"{self.path}: this PackWriter is not open; use it in a `with` statement")
        try:
            self._file.write(data)
        except OSError as error:
            # Part of the block may be in the file, so nothing can follow it.
            self._abandon()
            raise self._failure(error) from error

    def _finish(self, file: IO[bytes]) -> None:
        index = self._index().encode()
        header = Header(
            file_size=self._size + len(index),
            map_count=len(self._maps),
            scenario_count=len(self._scenarios),
            index_offset=self._size,
            index_size=len(index),
            index_crc=zlib.crc32(index),
        )
        file.write(index)
        file.seek(0)
        file.write(header.encode())
        file.flush()
        os.fsync(file.fileno())
        file.close()
        os.replace(self._temporary, self.path)
        self._file = None
        _sync_folder(self.path.parent)

    def _index(self) -> Index:
        # Checksums use all 64 bits, offsets and sizes fewer.
        maps = np.array(self._maps, np.uint64).reshape(-1, 3)
        scenarios = np.array(self._scenarios, np.uint64).reshape(-1, 3)
        ids = [id.encode() for id in self._numbers]
        names = sorted({tag for tags in self._tags for tag in tags})
        places = {name: place for place, name in enumerate(names)}
        return Index(
            map_offsets=maps[:, 0].astype(np.int64),
            map_sizes=maps[:, 1].astype(np.int64),
            map_checksums=maps[:, 2],
            scenario_offsets=scenarios[:, 0].astype(np.int64),
            scenario_sizes=scenarios[:, 1].astype(np.int64),
            scenario_checksums=scenarios[:, 2],
            scenario_maps=np.array(self._scenario_maps, np.int32),
            id_starts=np.cumsum([0, *map(len, ids)], dtype=np.int64),
            id_text=np.frombuffer(b"".join(ids), np.uint8),
            tag_starts=np.cumsum([0, *map(len, self._tags)], dtype=np.int64),
            tag_numbers=np.array([places[tag] for tags in self._tags for tag in tags], np.int32),
            tag_names=tuple(names),
        )

    def _abandon(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            # Closing flushes buffered data, which may fail as well.
            with contextlib.suppress(OSError):
                file.close()
            self._temporary.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                for folder in self._new_folders:
                    folder.rmdir()

    def _failure(self, error: OSError) -> PackError:
        return PackError(f"{self.path}: can't be written: {error.strerror or error}")


def _sync_folder(folder: Path) -> None:
    """Make a renaming survive a power failure, where the system supports it."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
