"""Encode maps and scenarios as blocks of bytes, and decode them.

The block of a map holds its tables and the map; the block of a scenario holds everything but its map. Each block starts
with the tables or an outline, which is all that the simulator reads. Encoding needs no pack, so worker processes can
encode their scenarios.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import PackError, ScenarioError
from roadworthy.scenario import schema
from roadworthy.scenario.pack.bundle import ArraySpec, Bundle, encode_bundle, require_fit
from roadworthy.scenario.pack.outline import outline_of
from roadworthy.scenario.pack.tables import PackedTables, pack_tables, read_tables
from roadworthy.scenario.prepare import prepare
from roadworthy.scenario.schema import RoadMap, Scenario

MAP_SPECS = {
    "origin": ArraySpec("<f8", (3,)),
    "points": ArraySpec("<f4", ("points", 3)),
    "starts": ArraySpec("<i4", ("features + 1",)),
    "kinds": ArraySpec("|u1", ("features",)),
    "types": ArraySpec("|u1", ("features",)),
    "ids": ArraySpec("<i8", ("features",)),
    "speed_limits": ArraySpec("<f4", ("lanes",)),
    "lane_widths": ArraySpec("<f4", ("lanes",)),
    "successors": ArraySpec("<i4", ("successors", 2)),
    "left_neighbors": ArraySpec("<i4", ("left neighbors", 2)),
    "right_neighbors": ArraySpec("<i4", ("right neighbors", 2)),
    "yields": ArraySpec("<i4", ("yields", 2)),
    "stop_signs": ArraySpec("<i4", ("stop signs", 2)),
    "stop_lines": ArraySpec("<f4", ("stop lines", 2, 2)),
    "stop_line_lanes": ArraySpec("<i4", ("stop lines",)),
    "left_neighbor_ranges": ArraySpec("<i4", ("left neighbors", 4)),
    "right_neighbor_ranges": ArraySpec("<i4", ("right neighbors", 4)),
    "source_points": ArraySpec("<f4", ("points", 3)),
}
SCENARIO_SPECS = {
    "agent_ids": ArraySpec("<i8", ("agents",)),
    "agent_types": ArraySpec("|u1", ("agents",)),
    "sizes": ArraySpec("<f4", ("agents", 3)),
    "positions": ArraySpec("<f4", ("agents", "steps", 3)),
    "headings": ArraySpec("<f4", ("agents", "steps")),
    "velocities": ArraySpec("<f4", ("agents", "steps", 2)),
    "valid": ArraySpec("|b1", ("agents", "steps")),
    "predict": ArraySpec("<i4", ("predicted",)),
    "light_lanes": ArraySpec("<i4", ("lights",)),
    "light_stops": ArraySpec("<f4", ("lights", 3)),
    "light_states": ArraySpec("|u1", ("lights", "steps")),
    "light_listed": ArraySpec("|b1", ("lights", "steps")),
    "source_light_stops": ArraySpec("<f4", ("lights", "steps", 3)),
    "source_positions": ArraySpec("<f4", ("agents", "steps", 3)),
    "source_headings": ArraySpec("<f4", ("agents", "steps")),
}
SCENARIO_VALUES: dict[str, type] = {
    "id": str,
    "source": str,
    "tags": list,
    "dt": float,
    "current_step": int,
    "sdc": int,
}
TABLES_SPEC = ArraySpec("<i4", ("words of tables",))
# A field that is declared but not stored would be lost silently.
assert set(MAP_SPECS) == {*schema.MAP_ARRAYS, *schema.OPTIONAL_MAP_ARRAYS}
assert set(SCENARIO_SPECS) == {*schema.SCENARIO_ARRAYS, *schema.OPTIONAL_SCENARIO_ARRAYS}


def encode_map(road_map: RoadMap) -> bytes:
    """Encode a map and its tables as a block. An inconsistent map raises ScenarioError."""
    arrays = _stored(road_map, schema.MAP_ARRAYS, schema.OPTIONAL_MAP_ARRAYS)
    require_fit(arrays, MAP_SPECS, "map")
    for fault in road_map.check():
        raise ScenarioError(f"map: {fault}")
    packed = pack_tables(prepare(road_map), road_map)
    return encode_bundle({"tables": packed.words, **arrays}, {})


def encode_scenario(scenario: Scenario) -> bytes:
    """Encode a scenario without its map as a block. An inconsistent scenario raises ScenarioError."""
    owner = f"scenario {scenario.id!r}"
    arrays = _stored(scenario, schema.SCENARIO_ARRAYS, schema.OPTIONAL_SCENARIO_ARRAYS)
    require_fit(arrays, SCENARIO_SPECS, owner)
    scenario.require_sound()
    if not scenario.id:
        raise ScenarioError("a scenario has an empty id; give it one that is unique in its pack")
    if type(scenario.tags) is not tuple or len(set(scenario.tags)) != len(scenario.tags):
        raise ScenarioError(f"{owner}: tags are {scenario.tags!r}, expected a tuple of different words")
    values = {
        "id": scenario.id,
        "source": scenario.source,
        "tags": list(scenario.tags),
        "dt": float(scenario.dt),
        "current_step": int(scenario.current_step),
        "sdc": int(scenario.sdc),
    }
    return encode_bundle({"outline": outline_of(scenario), **arrays}, values)


class EncodedScenarios(NamedTuple):
    """Blocks for `PackWriter.add_all_encoded`, with each map once."""

    maps: tuple[bytes, ...]
    scenarios: tuple[tuple[bytes, int], ...]  # block, number of the map among `maps`


def encode_scenarios(scenarios: Iterable[Scenario]) -> EncodedScenarios:
    """Encode scenarios and their maps. Scenarios that share a map object share its block."""
    maps: dict[RoadMap, bytes] = {}
    blocks: list[tuple[bytes, int]] = []
    for scenario in scenarios:
        if scenario.map not in maps:
            maps[scenario.map] = encode_map(scenario.map)
        blocks.append((encode_scenario(scenario), list(maps).index(scenario.map)))
    return EncodedScenarios(tuple(maps.values()), tuple(blocks))


def _stored(item: RoadMap | Scenario, names: Iterable[str], optional: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays that a block stores; empty optional ones are not stored."""
    arrays = {name: getattr(item, name) for name in names}
    return arrays | {name: getattr(item, name) for name in optional if getattr(item, name).size}


def decode_map(bundle: Bundle) -> RoadMap:
    """Return the map of a block, with views as arrays."""
    return RoadMap(**bundle.arrays(MAP_SPECS, optional=schema.OPTIONAL_MAP_ARRAYS))


def decode_tables(bundle: Bundle) -> PackedTables | None:
    """Return the tables of a map's block as views; None if their version is not the current one."""
    return read_tables(bundle.array("tables", TABLES_SPEC, {}))


def decode_scenario(bundle: Bundle, road_map: RoadMap) -> Scenario:
    """Return the scenario of a block, with views as arrays."""
    values = {name: bundle.value(name, kind) for name, kind in SCENARIO_VALUES.items()}
    values["tags"] = decode_names(bundle)[1]
    return Scenario(**values, map=road_map, **bundle.arrays(SCENARIO_SPECS, optional=schema.OPTIONAL_SCENARIO_ARRAYS))


def decode_names(bundle: Bundle) -> tuple[str, tuple[str, ...]]:
    """Return the id and the tags of a scenario's block."""
    tags = bundle.value("tags", list)
    if not all(isinstance(tag, str) for tag in tags):
        raise PackError(f"value 'tags' is {tags!r}, expected words")
    return bundle.value("id", str), tuple(tags)


def check_bytes(scenario: Scenario) -> Iterator[str]:
    """Yield faults of the stored bytes, which Scenario.check cannot see."""
    for name in ("valid", "light_listed"):
        flags = getattr(scenario, name)
        if flags.size and flags.view(np.uint8).max() > 1:
            yield f"{name} holds bytes other than 0 and 1"
