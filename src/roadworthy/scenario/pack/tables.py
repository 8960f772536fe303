"""The tables of a map as one array of 32-bit words, which the simulator copies at once.

The words start with a header (HEADER) of a few counts, which determine the length of every table. The tables follow in
the order of SECTIONS, each at a multiple of 64 bytes, with zeros between them. Besides MapTables they hold speed
limits, types and widths of lanes, and the stop lines of signs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import PackError
from roadworthy.kernels import kernel
from roadworthy.scenario.grid import CELL_M
from roadworthy.scenario.pack.bundle import ALIGNMENT
from roadworthy.scenario.pack.signs import sign_lines
from roadworthy.scenario.prepare import EDGE_LIST_LENGTH, LANE_LIST_LENGTH, TABLE_ARRAYS, TABLES_VERSION, MapTables
from roadworthy.scenario.schema import Ints, Longs, RoadMap

# Words of the header, int32.
HEADER = (
    "version",  # prepare.TABLES_VERSION
    "words",  # all words, with the header
    "west",  # MapTables.x0 and y0, in cells
    "south",
    "columns",
    "rows",
    "segments",  # of road edges
    "cell_edges",
    "lane_points",
    "edge_points",
    "lists",  # listed cells
    "list_bytes",  # bytes of a number in a list: 2 (uint16) or 4 (int32)
    "lanes",
    "successors",
    "lane_vertices",  # points of the map that belong to lanes
    "signs",  # stop lines of stop signs
)
_ALIGNED_WORDS = ALIGNMENT // 4
assert len(HEADER) == _ALIGNED_WORDS


class Section(NamedTuple):
    """A table within the words."""

    dtype: str  # "list": uint16 or int32, see list_bytes
    per: str  # a word of HEADER, or "cells": the table has an entry for each
    more: int = 0  # further entries
    width: int = 1  # numbers per entry


def _sections(names: str, dtype: str, per: str, more: int = 0, width: int = 1) -> dict[str, Section]:
    return dict.fromkeys(names.split(), Section(dtype, per, more, width))


SECTIONS: dict[str, Section] = {
    **_sections("edge_x0 edge_y0 edge_x1 edge_y1", "<f4", "segments"),
    **_sections("lane_point_x lane_point_y lane_point_cos lane_point_sin", "<f4", "lane_points"),
    **_sections("lane_point_half_lengths lane_point_arcs", "<f4", "lane_points"),
    **_sections("edge_point_x edge_point_y edge_point_cos edge_point_sin", "<f4", "edge_points"),
    **_sections("edge_point_half_lengths", "<f4", "edge_points"),
    **_sections("lane_lists", "list", "lists", width=LANE_LIST_LENGTH),
    **_sections("edge_lists", "list", "lists", width=EDGE_LIST_LENGTH),
    **_sections("cell_edge_starts", "<i4", "cells", more=1),
    **_sections("cell_edges", "<i4", "cell_edges"),
    **_sections("cell_lists", "<i4", "cells"),
    **_sections("edge_features", "<i4", "segments"),
    **_sections("lane_point_lanes", "<i4", "lane_points"),
    **_sections("edge_point_types", "|u1", "edge_points"),
    **_sections("lane_point_starts successor_starts", "<i4", "lanes", more=1),
    **_sections("successors", "<i4", "successors"),
    **_sections("predecessor_starts", "<i4", "lanes", more=1),
    **_sections("predecessors", "<i4", "successors"),
    **_sections("left_neighbor right_neighbor", "<i4", "lanes"),
    **_sections("lane_starts", "<i4", "lanes", more=1),
    **_sections("lane_arcs", "<f4", "lane_vertices"),
    **_sections("lane_lengths", "<f4", "lanes"),
    **_sections("lane_limits", "<f4", "lanes"),  # m/s, 0 where unknown
    **_sections("lane_types", "<i4", "lanes"),  # LaneType
    **_sections("lane_widths", "<f4", "lanes"),  # m, NaN where unknown
    **_sections("sign_lines", "<f4", "signs", width=5),  # (5, signs), see signs.py
    **_sections("sign_lanes", "<i4", "signs"),
}
# A table that is declared but not stored would be lost silently.
assert set(TABLE_ARRAYS) <= set(SECTIONS)
PLACES = {name: place for place, name in enumerate(SECTIONS)}


class PackedTables(NamedTuple):
    """The words of a map's tables."""

    words: Ints  # (n,)
    counts: dict[str, int]  # by name in HEADER
    starts: Longs  # (sections,) section s, in the order of SECTIONS, is words[starts[s]:starts[s] + lengths[s]]
    lengths: Longs  # (sections,)

    def section(self, name: str) -> NDArray[Any]:
        """Return a flat view of a table."""
        place = PLACES[name]
        words = self.words[self.starts[place] :][: self.lengths[place]]
        dtype = SECTIONS[name].dtype
        if dtype == "list":
            return words.view("<u2" if self.counts["list_bytes"] == 2 else "<i4")
        return words.view(dtype)[: self.counts["edge_points"]] if dtype == "|u1" else words.view(dtype)


def pack_tables(tables: MapTables, road_map: RoadMap) -> PackedTables:
    """Return tables of prepare(), and what else the simulator needs of the map, as words."""
    lines, sign_lanes = sign_lines(road_map, tables)
    lanes = road_map.lane_count
    further = {
        "lane_limits": np.nan_to_num(road_map.speed_limits, nan=0.0),
        "lane_types": road_map.types[:lanes].astype(np.int32),
        "lane_widths": road_map.lane_widths,
        "sign_lines": lines,
        "sign_lanes": sign_lanes,
    }
    pieces = [b""]
    for name, section in SECTIONS.items():
        array = further[name] if name in further else getattr(tables, name)
        data = array.astype(array.dtype if section.dtype == "list" else section.dtype, copy=False).tobytes()
        pieces.append(data + bytes(-len(data) % ALIGNMENT))
    counts = {
        "version": TABLES_VERSION,
        "words": len(HEADER) + sum(map(len, pieces)) // 4,
        "west": round(tables.x0 / CELL_M),
        "south": round(tables.y0 / CELL_M),
        "columns": tables.columns,
        "rows": tables.rows,
        "segments": len(tables.edge_x0),
        "cell_edges": len(tables.cell_edges),
        "lane_points": len(tables.lane_point_x),
        "edge_points": len(tables.edge_point_x),
        "lists": len(tables.lane_lists),
        "list_bytes": tables.lane_lists.itemsize,
        "lanes": lanes,
        "successors": len(tables.successors),
        "lane_vertices": len(tables.lane_arcs),
        "signs": len(sign_lanes),
    }
    pieces[0] = np.array([counts[name] for name in HEADER], "<i4").tobytes()
    packed = read_tables(np.frombuffer(b"".join(pieces), "<i4"))
    assert packed is not None
    return packed


def read_tables(words: Ints) -> PackedTables | None:
    """Return the stored tables, which other words may follow; None if their version is not the current one."""
    if len(words) and words[0] != TABLES_VERSION:
        return None
    starts, lengths = np.empty(len(SECTIONS), np.int64), np.empty(len(SECTIONS), np.int64)
    if len(words) < len(HEADER) or not _find_sections(words, starts, lengths):
        raise PackError("the lengths of its tables do not match their counts")
    counts = dict(zip(HEADER, words[: len(HEADER)].tolist(), strict=True))
    return PackedTables(words[: counts["words"]], counts, starts, lengths)


def unpack_tables(packed: PackedTables) -> MapTables:
    """Return the tables of a map as views of the words."""
    arrays = {name: packed.section(name) for name in TABLE_ARRAYS}
    for name, width in (("lane_lists", LANE_LIST_LENGTH), ("edge_lists", EDGE_LIST_LENGTH)):
        arrays[name] = arrays[name].reshape(-1, width)
    counts = packed.counts
    x0, y0 = counts["west"] * CELL_M, counts["south"] * CELL_M
    return MapTables(x0=x0, y0=y0, columns=counts["columns"], rows=counts["rows"], **arrays)


# What the kernel below needs of HEADER and SECTIONS.
_WORDS, _COLUMNS, _ROWS, _LIST_BYTES = (HEADER.index(name) for name in ("words", "columns", "rows", "list_bytes"))
_HEADER_LENGTH, _MOST_CELLS = len(HEADER), np.int64(2**31)
_COUNTS = np.array([[*HEADER, "cells"].index(section.per) for section in SECTIONS.values()])
_MORE = np.array([section.more for section in SECTIONS.values()])
_IS_LIST = np.array([section.dtype == "list" for section in SECTIONS.values()])
_ITEM_BYTES = {"<f4": 4, "<i4": 4, "|u1": 1, "list": 1}
_ENTRY_BYTES = np.array([section.width * _ITEM_BYTES[section.dtype] for section in SECTIONS.values()])


@kernel(plain=True)
def _find_sections(words: Ints, starts_out: Longs, lengths_out: Longs) -> bool:
    """Compute from the header where sections start and their lengths. Return False if the header is inconsistent."""
    counts = np.zeros(_HEADER_LENGTH + 1, np.int64)
    for k in range(_COLUMNS, _HEADER_LENGTH):
        counts[k] = words[k]
        if words[k] < 0:
            return False
    counts[_HEADER_LENGTH] = counts[_COLUMNS] * counts[_ROWS]
    list_bytes = counts[_LIST_BYTES]
    if counts[_HEADER_LENGTH] >= _MOST_CELLS or not (list_bytes == 2 or list_bytes == 4):
        return False
    end = np.int64(_HEADER_LENGTH)
    for s in range(len(starts_out)):
        entry = _ENTRY_BYTES[s] * (list_bytes if _IS_LIST[s] else 1)
        starts_out[s] = end
        lengths_out[s] = ((counts[_COUNTS[s]] + _MORE[s]) * entry + 3) // 4
        end += -(-lengths_out[s] // _ALIGNED_WORDS) * _ALIGNED_WORDS
    return bool(end == words[_WORDS] and end <= len(words))
