"""The layout of a pack file: its header and its index.

    header   64 bytes, see Header
    blocks   maps and scenarios in the order in which they were added, each a bundle whose size is a multiple of 64
    index    a bundle: offset, size and checksum of every block, each scenario's map, id and tags

The header has its own checksum (crc32) and holds that of the index (crc32), which holds those of the blocks (see
checksum), so every byte of the file is covered. All numbers are little-endian. The header has the same form in all
versions, so that readers can distinguish a newer file from a damaged one. Readers accept any minor version of their
major version and ignore arrays and values that they do not know.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import PackError
from roadworthy.scenario.pack.bundle import ALIGNMENT, ArraySpec, Buffer, Bundle, encode_bundle

# As in PNG: a first byte that is not text, and a newline that a transfer in text mode would change.
MAGIC = b"\x89RWPACK\n"
MAJOR_VERSION = 2
MINOR_VERSION = 1  # 1: optional arrays, see scenario.schema
HEADER_SIZE = 64
# magic, major, minor, header size, file size, maps, scenarios, index offset, index size, index crc32
_FIELDS = struct.Struct("<8sHHIQQQQQI")
_CRC = struct.Struct("<I")
assert _FIELDS.size + _CRC.size == HEADER_SIZE


@dataclass(frozen=True)
class Header:
    """The first 64 bytes of a pack; the last four are the checksum of the others."""

    file_size: int
    map_count: int
    scenario_count: int
    index_offset: int
    index_size: int
    index_crc: int
    crc: int = 0

    def encode(self) -> bytes:
        """Return the 64 bytes."""
        sizes = (self.file_size, self.map_count, self.scenario_count, self.index_offset, self.index_size)
        data = _FIELDS.pack(MAGIC, MAJOR_VERSION, MINOR_VERSION, HEADER_SIZE, *sizes, self.index_crc)
        return data + _CRC.pack(zlib.crc32(data))

    @classmethod
    def decode(cls, data: bytes) -> Header:
        """Decode the first bytes of a file; faults raise PackError."""
        if not data:
            raise PackError("the file is empty")
        if data[: len(MAGIC)] != MAGIC[: len(data)]:
            raise PackError("this is not a pack (bad magic bytes)")
        if len(data) < HEADER_SIZE:
            raise PackError(f"the file is truncated: {len(data)} bytes, but the header has {HEADER_SIZE}")
        _, major, _, header_size, file_size, maps, scenarios, index_offset, index_size, index_crc = _FIELDS.unpack_from(
            data
        )
        (crc,) = _CRC.unpack_from(data, _FIELDS.size)
        versions = f"version {major}, this Roadworthy reads version {MAJOR_VERSION}"
        if crc != zlib.crc32(data[: _FIELDS.size]):
            newer = f", or written by a newer version of Roadworthy ({versions})" if major > MAJOR_VERSION else ""
            raise PackError(f"the header is damaged (its checksum is wrong){newer}")
        if major > MAJOR_VERSION:
            raise PackError(f"the pack was written by a newer version of Roadworthy ({versions}); upgrade Roadworthy")
        if 1 <= major < MAJOR_VERSION:
            raise PackError(
                f"the pack was written by an older version of Roadworthy ({versions}); generate or import it again"
            )
        if major < 1 or header_size != HEADER_SIZE:
            raise PackError(f"the header has an unknown format ({versions})")
        header = cls(file_size, maps, scenarios, index_offset, index_size, index_crc, crc)
        if header.index_offset < HEADER_SIZE or header.index_offset + header.index_size != header.file_size:
            raise PackError("the header's numbers contradict each other")
        return header

    def size_fault(self, actual: int) -> str | None:
        """Return what is wrong with the size of the file, if anything."""
        if actual < self.file_size:
            return f"the file is truncated: {actual} of {self.file_size} bytes"
        if actual > self.file_size:
            return f"the file continues after its end: {actual} bytes instead of {self.file_size}"
        return None


INDEX_ARRAYS = {
    "map_offsets": ArraySpec("<i8", ("maps",)),
    "map_sizes": ArraySpec("<i8", ("maps",)),
    "map_checksums": ArraySpec("<u8", ("maps",)),
    "scenario_offsets": ArraySpec("<i8", ("scenarios",)),
    "scenario_sizes": ArraySpec("<i8", ("scenarios",)),
    "scenario_checksums": ArraySpec("<u8", ("scenarios",)),
    "scenario_maps": ArraySpec("<i4", ("scenarios",)),
    "id_starts": ArraySpec("<i8", ("scenarios + 1",)),
    "id_text": ArraySpec("|u1", ("id bytes",)),
    "tag_starts": ArraySpec("<i8", ("scenarios + 1",)),
    "tag_numbers": ArraySpec("<i4", ("tags in all",)),
}


@dataclass(frozen=True, eq=False)
class Index:
    """The places of M maps and N scenarios in the file, and what is known without reading their blocks."""

    map_offsets: NDArray[np.int64]  # (M,)
    map_sizes: NDArray[np.int64]  # (M,)
    map_checksums: NDArray[np.uint64]  # (M,) see checksum.py
    scenario_offsets: NDArray[np.int64]  # (N,)
    scenario_sizes: NDArray[np.int64]  # (N,)
    scenario_checksums: NDArray[np.uint64]  # (N,)
    scenario_maps: NDArray[np.int32]  # (N,) the map of a scenario
    id_starts: NDArray[np.int64]  # (N + 1,) the id of scenario i is id_text[id_starts[i]:id_starts[i + 1]]
    id_text: NDArray[np.uint8]  # ids in UTF-8, one after another
    tag_starts: NDArray[np.int64]  # (N + 1,) scenario i has tag_numbers[tag_starts[i]:tag_starts[i + 1]]
    tag_numbers: NDArray[np.int32]  # indices of tag_names
    tag_names: tuple[str, ...]

    def encode(self) -> bytes:
        """Return the block of the index."""
        return encode_bundle({name: getattr(self, name) for name in INDEX_ARRAYS}, {"tags": list(self.tag_names)})

    @classmethod
    def decode(cls, buffer: Buffer, header: Header) -> Index:
        """Decode the index and check its form; the caller has verified its checksum."""
        try:
            bundle = Bundle(buffer, header.index_offset, header.index_size)
            arrays = bundle.arrays(INDEX_ARRAYS)
            names = bundle.value("tags", list)
        except PackError as fault:
            raise PackError(f"the index is unreadable: {fault}") from None
        if not all(isinstance(name, str) for name in names):
            raise PackError("the index is unreadable: its tags are not strings")
        index = cls(**arrays, tag_names=tuple(names))
        for what in index._faults(header):
            raise PackError(f"the index is unreadable: {what}")
        return index

    def id(self, scenario: int) -> str:
        text = self.id_text[self.id_starts[scenario] : self.id_starts[scenario + 1]]
        return text.tobytes().decode(errors="replace")

    def tags(self, scenario: int) -> tuple[str, ...]:
        numbers = self.tag_numbers[self.tag_starts[scenario] : self.tag_starts[scenario + 1]]
        return tuple(self.tag_names[number] for number in numbers)

    def _faults(self, header: Header) -> Iterator[str]:
        maps, scenarios = len(self.map_offsets), len(self.scenario_offsets)
        if (maps, scenarios) != (header.map_count, header.scenario_count):
            yield (
                f"it lists {maps} maps and {scenarios} scenarios, the header {header.map_count} and "
                f"{header.scenario_count}"
            )
        offsets = np.concatenate([self.map_offsets, self.scenario_offsets])
        sizes = np.concatenate([self.map_sizes, self.scenario_sizes])
        if not _tile(offsets, sizes, HEADER_SIZE, header.index_offset):
            yield "its blocks don't follow each other from the header to the index"
        if scenarios and (self.scenario_maps.min() < 0 or self.scenario_maps.max() >= maps):
            yield f"scenarios lie on maps outside 0..{maps - 1}"
        for starts, owned, name in ((self.id_starts, self.id_text, "ids"), (self.tag_starts, self.tag_numbers, "tags")):
            if (
                len(starts) != scenarios + 1
                or starts[0] != 0
                or starts[-1] != len(owned)
                or (np.diff(starts) < 0).any()
            ):
                yield f"its {name} don't belong to its scenarios"
        if self.tag_numbers.size and not 0 <= self.tag_numbers.min() <= self.tag_numbers.max() < len(self.tag_names):
            yield "its scenarios have tags without a name"


def _tile(offsets: NDArray[np.int64], sizes: NDArray[np.int64], first: int, last: int) -> bool:
    """Return whether aligned blocks follow each other from first to last without gaps or overlaps."""
    if not len(offsets):
        return first == last
    # Check the bounds first, so that the sums below cannot overflow.
    if offsets.min() < first or offsets.max() >= last or sizes.min() < ALIGNMENT or sizes.max() > last:
        return False
    order = np.argsort(offsets, kind="stable")
    begin, end = offsets[order], offsets[order] + sizes[order]
    aligned = not (begin % ALIGNMENT).any()
    return bool(aligned and begin[0] == first and end[-1] == last and (end[:-1] == begin[1:]).all())
