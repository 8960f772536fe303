"""Packs and the tables that they store, for towns with a grid of streets."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner import Measurements, Sizes, resident_bytes
from roadworthy.scenario.pack import Pack, PackWriter, encode_map
from roadworthy.scenario.prepare import prepare
from roadworthy.scenario.schema import AgentType, EdgeType, FeatureKind, LaneType, RoadMap, Scenario

TOWN_M = 400.0
LANE_WIDTH_M = 3.5


def open_pack(found: Measurements, sizes: Sizes) -> None:
    """Time the opening of a pack, and measure the memory that it adds."""
    with tempfile.TemporaryDirectory() as folder:
        path = _written(Path(folder), sizes, streets=1)
        found.figures["file bytes"] = path.stat().st_size
        with Pack(path):
            pass
        before = resident_bytes()
        pack = Pack(path)
        after = resident_bytes()
        found.figures["memory added, bytes"] = after - before if before is not None and after is not None else None
        pack.close()
        for _ in range(sizes["repeats"]):
            with found.stage("open"):
                pack = Pack(path)
            pack.close()
        with Pack(path) as pack:
            with found.stage("look up the first id"):
                pack.number(f"town-{0:06d}")
            with found.stage("look up another id"):
                pack.number(f"town-{sizes['scenarios'] - 1:06d}")
            with found.stage("select by tag"):
                pack.select("merge")


def read_scenarios(found: Measurements, sizes: Sizes) -> None:
    """Time reading in random order, including checksums, with a cold cache of maps."""
    with tempfile.TemporaryDirectory() as folder:
        path = _written(Path(folder), sizes, streets=2)
        found.figures["bytes per scenario"] = (path.stat().st_size) // sizes["scenarios"]
        order = np.random.default_rng(0).permutation(sizes["scenarios"])
        with Pack(path) as pack:
            seen: set[int] = set()
            kept: list[RoadMap] = []
            for number in order:
                road_map = pack.map_number(number)
                with found.stage("first read" if road_map in seen else "first read, with map"):
                    scenario = pack[number]
                seen.add(road_map)
                kept.append(scenario.map)
            for number in np.random.default_rng(1).choice(order, sizes["repeats"]):
                with found.stage("read again"):
                    pack[number]
            for number in range(pack.map_count):
                with found.stage("tables"):
                    pack.tables(number)


def prepare_map(found: Measurements, sizes: Sizes) -> None:
    """Time the tables of one large map."""
    road_map = town(sizes["streets"])
    prepare(road_map)  # compiles
    for _ in range(sizes["repeats"]):
        with found.stage("prepare"):
            tables = prepare(road_map)
    for _ in range(sizes["repeats"]):
        with found.stage("encode, prepare included"):
            block = encode_map(road_map)
    found.figures["lane points"] = len(tables.lane_point_x)
    found.figures["edge points"] = len(tables.edge_point_x)
    found.figures["listed cells"] = len(tables.lane_lists)
    found.figures["block bytes"] = len(block)


def town(streets: int, shift_m: float = 0.0) -> RoadMap:
    """Return a grid of crossing streets with four lanes each."""
    lanes, edges = [], []
    for middle in (np.arange(streets) + 0.5) * TOWN_M / streets + shift_m:
        for lane in (-1.5, -0.5, 0.5, 1.5):
            lanes += _both_ways(middle + lane * LANE_WIDTH_M, spacing=3.0)
        for side in (-2.0, 2.0):
            edges += _both_ways(middle + side * LANE_WIDTH_M, spacing=4.0)
    lines = lanes + edges
    xy = np.concatenate(lines)
    no_pairs = np.zeros((0, 2), np.int32)
    return RoadMap(
        origin=np.zeros(3),
        points=np.column_stack([xy, np.zeros(len(xy))]).astype(np.float32),
        starts=np.cumsum([0, *map(len, lines)], dtype=np.int32),
        kinds=np.repeat([FeatureKind.LANE, FeatureKind.ROAD_EDGE], [len(lanes), len(edges)]).astype(np.uint8),
        types=np.repeat([LaneType.SURFACE_STREET, EdgeType.BOUNDARY], [len(lanes), len(edges)]).astype(np.uint8),
        ids=np.arange(len(lines), dtype=np.int64),
        speed_limits=np.full(len(lanes), 13.9, np.float32),
        lane_widths=np.full(len(lanes), LANE_WIDTH_M, np.float32),
        successors=no_pairs,
        left_neighbors=no_pairs,
        right_neighbors=no_pairs,
        yields=no_pairs,
        stop_signs=no_pairs,
        stop_lines=np.zeros((0, 2, 2), np.float32),
        stop_line_lanes=np.zeros(0, np.int32),
    )


def _both_ways(offset: float, spacing: float) -> list[NDArray[np.float64]]:
    """Return a line to the east and a line to the north."""
    along = np.linspace(0.0, TOWN_M, round(TOWN_M / spacing) + 1)
    across = np.full_like(along, offset)
    return [np.column_stack([along, across]), np.column_stack([across, along])]


def _traffic(number: int, sizes: Sizes, road_map: RoadMap) -> Scenario:
    agents, steps = sizes["agents"], sizes["steps"]
    random = np.random.default_rng(number)
    velocities = np.repeat(random.uniform(-9, 9, (agents, 1, 2)), steps, axis=1)
    positions = np.zeros((agents, steps, 3), np.float32)
    positions[:, :, :2] = random.uniform(0, TOWN_M, (agents, 1, 2)) + np.cumsum(velocities * 0.1, axis=1)
    return Scenario(
        id=f"town-{number:06d}",
        source="benchmark",
        tags=("merge",) if number % 2 else ("roundabout", "hard_stop"),
        dt=0.1,
        current_step=min(10, steps - 1),
        map=road_map,
        agent_ids=np.arange(agents, dtype=np.int64),
        agent_types=np.full(agents, AgentType.VEHICLE, np.uint8),
        sizes=np.tile(np.array([4.5, 1.8, 1.6], np.float32), (agents, 1)),
        positions=positions,
        headings=np.arctan2(velocities[..., 1], velocities[..., 0]).astype(np.float32),
        velocities=velocities.astype(np.float32),
        valid=np.ones((agents, steps), np.bool_),
        sdc=0,
        predict=np.zeros(1, np.int32),
        light_lanes=np.zeros(0, np.int32),
        light_stops=np.zeros((0, 3), np.float32),
        light_states=np.zeros((0, steps), np.uint8),
    )


def _written(folder: Path, sizes: Sizes, streets: int) -> Path:
    path = folder / "benchmark.pack"
    maps = [town(streets, shift_m=0.25 * number) for number in range(sizes["maps"])]
    with PackWriter(path) as writer:
        for number in range(sizes["scenarios"]):
            writer.add(_traffic(number, sizes, maps[number % len(maps)]))
    return path
