"""Scenarios and maps in the simulator's arrays equal the pack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from shapely import LineString

from roadworthy.errors import PackError, ScenarioError, UsageError
from roadworthy.scenario.generate.scenarios import generate_scenario
from roadworthy.scenario.pack import Pack, PackWriter
from roadworthy.scenario.prepare import prepare
from roadworthy.scenario.schema import AgentType, FeatureKind, LaneType, Scenario
from roadworthy.sim.config import Control, ControlConfig, Mode, OpenConfig, Others, SimConfig
from roadworthy.sim.maps.map_store import SPARE_SLOTS, MapStore
from roadworthy.sim.maps.scenario_store import ScenarioStore
from roadworthy.sim.maps.slots import Slots
from roadworthy.sim.state import (
    COPLAYER,
    EGO,
    FRAME_COUNT,
    IDM,
    LANE_LEFT,
    LANE_POINT_START,
    LANE_RIGHT,
    LANE_SUCCESSOR_START,
    LANE_TYPE,
    LIGHT_COUNT,
    LINE_COS,
    LINE_HALF,
    LINE_SIN,
    REPLAYED,
    SELECTED_COUNT,
    SELECTED_DRIVEN,
    STATIC,
)
from tests.scenario.example import Feature, example_map, example_scenario, map_of, straight

INIT = 10


def written(path: Path, scenarios: Sequence[Scenario]) -> Pack:
    with PackWriter(path) as writer:
        for scenario in scenarios:
            writer.add(scenario)
    return Pack(path)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Three generated places, two with signals and one with stop signs."""
    scenarios = [generate_scenario(7, behavior, 0) for behavior in ("protected_left", "hard_stop", "unprotected_left")]
    return written(tmp_path_factory.mktemp("store") / "town.pack", scenarios)


def crowd(tmp_path: Path, changes: dict[str, Any] | None = None, agents: int = 6) -> Pack:
    """A pack of one scenario. Agent k drives k m/s to the east (0 is parked) and starts 10 k m to the east of agent 0.

    Of six agents, agent 3 is a pedestrian, 4 leaves before INIT, 5 comes later, and 2 is the self-driving car.
    """
    base = example_scenario()
    steps = base.steps
    numbers = np.arange(agents)
    positions = np.zeros((agents, steps, 3), np.float32)
    positions[:, :, 0] = 10.0 * numbers[:, None] + 0.1 * numbers[:, None] * np.arange(steps)
    velocities = np.zeros((agents, steps, 2), np.float32)
    velocities[:, :, 0] = numbers[:, None]
    valid = np.ones((agents, steps), np.bool_)
    types = np.full(agents, AgentType.VEHICLE, np.uint8)
    if agents == 6:
        types[3] = AgentType.PEDESTRIAN
        valid[4, INIT:] = False
        valid[5, : INIT + 5] = False
    fields: dict[str, Any] = {
        "agent_ids": numbers.astype(np.int64),
        "agent_types": types,
        "sizes": np.tile(np.array([4.0, 2.0, 1.5], np.float32), (agents, 1)) + numbers[:, None].astype(np.float32),
        "positions": positions,
        "headings": np.zeros((agents, steps), np.float32),
        "velocities": velocities,
        "valid": valid,
        "sdc": 2 if agents > 2 else -1,
        "predict": np.array([3, 1, 4], np.int32)[: max(agents - 2, 0)],
    }
    return written(tmp_path / "crowd.pack", [replace(base, **(fields | (changes or {})))])


def loaded(pack: Pack, config: SimConfig | None = None, number: int = 0) -> ScenarioStore:
    store = ScenarioStore(pack, config or SimConfig(init_steps=INIT), 2)
    assert store.load(1, number).scenario == 0
    return store


def sources(store: ScenarioStore, slot: int = 0) -> tuple[list[int], list[int]]:
    """Return which agents are driven and which others are present, by their number in the recording."""
    counts = store.scenarios.counts[slot]
    order = store.scenarios.agent_sources[slot, : counts[SELECTED_COUNT]].tolist()
    return order[: counts[SELECTED_DRIVEN]], order[counts[SELECTED_DRIVEN] :]


def controlled(who: Control, **others: object) -> SimConfig:
    return SimConfig(init_steps=INIT, control=ControlConfig(who=who, **others))  # type: ignore[arg-type]


@pytest.mark.row("SIM-1")
def test_a_slot_holds_the_map(town: Pack) -> None:
    store = MapStore(town, holders=3)
    for number in range(3):
        store.acquire(number)
    for array in store.maps:
        array[...] = np.frombuffer(b"\xa5" * array.itemsize, array.dtype)[0]
    store._slots = Slots(3)  # so that all are read again, over the garbage
    for number in range(3):
        slot, tables, road_map = store.acquire(number), prepare(town.map(number)), town.map(number)
        maps, lanes = store.maps, road_map.lane_count
        segments, pieces, edge_point_count = len(tables.edge_x0), len(tables.lane_point_x), len(tables.edge_point_x)
        signs = int(maps.sizes[slot, 6])
        assert maps.sizes[slot].tolist() == [
            tables.columns,
            tables.rows,
            lanes,
            segments,
            pieces,
            edge_point_count,
            signs,
        ]
        assert maps.origins[slot].tolist() == [tables.x0, tables.y0]
        edges = [tables.edge_x0, tables.edge_y0, tables.edge_x1, tables.edge_y1]
        assert np.array_equal(maps.edges[slot, :, :segments], edges)
        limits = np.nan_to_num(road_map.speed_limits)[tables.lane_point_lanes]
        is_bike = road_map.types[tables.lane_point_lanes] == LaneType.BIKE_LANE
        lane_points = [tables.lane_point_x, tables.lane_point_y, tables.lane_point_cos, tables.lane_point_sin]
        lane_points += [tables.lane_point_half_lengths, limits, is_bike, tables.lane_point_arcs]
        assert np.array_equal(maps.lane_points[slot, :, :pieces], lane_points)
        edge_points = [tables.edge_point_x, tables.edge_point_y, tables.edge_point_cos, tables.edge_point_sin]
        edge_points += [tables.edge_point_half_lengths, tables.edge_point_types == 2]
        assert np.array_equal(maps.edge_points[slot, :, :edge_point_count], edge_points)
        for name in "cell_edge_starts cell_edges lane_point_lanes cell_lists lane_lengths successors".split():
            expected = getattr(tables, name)
            assert np.array_equal(getattr(maps, name)[slot, : len(expected)], expected), name
        for name in ("lane_lists", "edge_lists"):
            expected = getattr(tables, name)
            assert np.array_equal(getattr(maps, name)[slot, : len(expected)], expected), name
        assert np.array_equal(maps.lanes[slot, LANE_POINT_START, : lanes + 1], tables.lane_point_starts)
        assert np.array_equal(maps.lanes[slot, LANE_SUCCESSOR_START, : lanes + 1], tables.successor_starts)
        assert np.array_equal(maps.lanes[slot, LANE_LEFT, :lanes], tables.left_neighbor)
        assert np.array_equal(maps.lanes[slot, LANE_RIGHT, :lanes], tables.right_neighbor)
        assert np.array_equal(maps.lanes[slot, LANE_TYPE, :lanes], road_map.types[:lanes])


@pytest.mark.row("SIM-6")
def test_a_stop_sign_has_a_line_at_the_end_of_each_lane_that_it_controls(town: Pack) -> None:
    store = MapStore(town, holders=3)
    found = 0
    for number in range(3):
        slot, road_map = store.acquire(number), town.map(number)
        stopped = set(road_map.stop_signs[:, 1].tolist())
        leads = {int(a) for a, b in road_map.successors if int(b) in stopped}
        expected = {
            int(lane): line.astype(np.float64)
            for lane, line in zip(road_map.stop_line_lanes, road_map.stop_lines, strict=True)
            if int(lane) in stopped | leads
        }
        signs = int(store.maps.sizes[slot, 6])
        lanes = store.maps.sign_lanes[slot, :signs].tolist()
        assert sorted(lanes) == sorted(expected)
        for lane, (x, y, cos, sin, half) in zip(lanes, store.maps.signs[slot, :, :signs].T.tolist(), strict=True):
            left, right = expected[lane]
            assert np.allclose([x - sin * half, y + cos * half], left, atol=1e-4)
            assert np.allclose([x + sin * half, y - cos * half], right, atol=1e-4)
            end = road_map.polyline(lane)[-2:, :2].astype(np.float64)
            along = (end[1] - end[0]) / np.linalg.norm(end[1] - end[0])
            assert along @ [cos, sin] > 0.99
            found += 1
    assert found > 3


def test_a_stop_sign_without_a_line_stops_beside_itself(tmp_path: Path) -> None:
    base = example_map()
    road_map = replace(base, stop_lines=base.stop_lines[:0], stop_line_lanes=base.stop_line_lanes[:0])
    store = loaded(written(tmp_path / "a.pack", [example_scenario(road_map=road_map)]))
    assert store.maps.sizes[0, 6] == 1
    assert store.maps.sign_lanes[0, 0] == 2
    assert np.allclose(store.maps.signs[0, :, 0], [50.0, 1.75, 1.0, 0.0, 1.75])


@pytest.mark.row("SIM-3")
@pytest.mark.row("SIM-4")
@pytest.mark.parametrize("number", range(3))
def test_a_slot_holds_the_recording(town: Pack, number: int) -> None:
    store = ScenarioStore(town, SimConfig(init_steps=INIT), 3)
    store.load(1, number)
    for array in store.scenarios:
        array.view(np.uint8)[:] = 0xA5
    store._slots = Slots(3)  # so that it is read again, over the garbage
    store._held = [None] * 3
    slot, m = store.load(1, number)
    data, scenario = store.scenarios, town[number]
    driven, others = sources(store, slot)
    order, count = driven + others, len(driven + others)
    frames = scenario.steps - INIT
    assert data.counts[slot].tolist() == [count, len(driven), frames, len(scenario.light_lanes)]
    assert data.dt[slot] == np.float32(scenario.dt)
    assert np.array_equal(data.bodies[slot, :2, :count], scenario.sizes[order, :2].T)
    assert np.array_equal(data.agent_types[slot, :count], scenario.agent_types[order])
    assert (data.agent_roles[slot, : len(driven)] == EGO).all()
    assert (data.agent_roles[slot, len(driven) : count] == REPLAYED).all()
    ends = [int(np.flatnonzero(scenario.valid[a])[-1]) for a in order]
    assert np.array_equal(data.bodies[slot, 2:, :count], scenario.positions[order, ends, :2].T)
    assert np.array_equal(data.valid[slot, :frames, :count], scenario.valid[order, INIT:].T)
    motion = data.motion[slot, :, :frames, :count].astype(np.float64)
    assert np.array_equal(motion[:2], scenario.positions[order, INIT:, :2].transpose(2, 1, 0))
    headings = scenario.headings[order, INIT:].T.astype(np.float64)
    assert np.abs(motion[2] - headings).max() < 1e-6
    velocities = scenario.velocities[order, INIT:].transpose(2, 1, 0).astype(np.float64)
    speeds = velocities[0] * np.cos(headings) + velocities[1] * np.sin(headings)
    assert np.abs(motion[3] - speeds).max() < 2e-5
    assert np.abs(speeds).max() > 5

    lights = len(scenario.light_lanes)
    assert np.array_equal(data.light_states[slot, :frames, :lights], scenario.light_states[:, INIT:].T)
    assert np.array_equal(data.light_lanes[slot, :lights], scenario.light_lanes)
    assert np.array_equal(data.lights[slot, :2, :lights], scenario.light_stops[:, :2].T)
    for light, lane in enumerate(scenario.light_lanes.tolist()):
        begin = scenario.map.polyline(lane)[:2, :2].astype(np.float64)
        along = (begin[1] - begin[0]) / np.linalg.norm(begin[1] - begin[0])
        assert np.allclose(data.lights[slot, [LINE_COS, LINE_SIN], light], along, atol=1e-4)
        assert data.lights[slot, LINE_HALF, light] == scenario.map.lane_widths[lane] / 2
    assert store.maps.sizes[m, 2] == scenario.map.lane_count


def test_headings_outside_of_one_turn_are_wrapped(tmp_path: Path) -> None:
    angles = np.array([0.0, np.pi, -np.pi, 3.5, -9.0, 100.0], np.float32)
    headings = np.repeat(angles[:, None], 91, axis=1)
    velocities = np.repeat(np.array([[[3.0, -4.0]]], np.float32), 91, axis=1).repeat(6, axis=0)
    changes: dict[str, Any] = {"headings": headings, "velocities": velocities, "valid": np.ones((6, 91), np.bool_)}
    store = loaded(crowd(tmp_path, changes), controlled(Control.AGENTS, min_distance_m=0.0))
    got = store.scenarios.motion[0, :, 0, :6].astype(np.float64)
    assert (got[2] > -np.float32(np.pi)).all()
    assert (got[2] <= np.float32(np.pi)).all()
    assert np.allclose(np.exp(1j * got[2]), np.exp(1j * angles.astype(np.float64)), atol=1e-5)
    assert np.allclose(got[3], 3 * np.cos(angles.astype(float)) - 4 * np.sin(angles.astype(float)), atol=5e-5)


@pytest.mark.row("SIM-3")
@pytest.mark.parametrize(
    ("who", "driven", "others"),
    [
        (Control.VEHICLES, [1, 2], [0, 3, 5]),
        (Control.AGENTS, [1, 2, 3], [0, 5]),
        (Control.SDC, [2], [0, 1, 3, 5]),
        (Control.PREDICT, [1, 2, 3], [0, 5]),
    ],
)
def test_a_control_mode_selects_the_driven_agents(
    tmp_path: Path, who: Control, driven: list[int], others: list[int]
) -> None:
    assert sources(loaded(crowd(tmp_path), controlled(who))) == (driven, others)


@pytest.mark.row("SIM-3")
def test_a_parked_self_driving_car_is_driven_and_other_parked_cars_are_not(tmp_path: Path) -> None:
    assert sources(loaded(crowd(tmp_path, {"sdc": 0})))[0] == [0, 1, 2]
    # 1 m/s for 8 s.
    assert sources(loaded(crowd(tmp_path), controlled(Control.VEHICLES, min_distance_m=7.9)))[0] == [1, 2]
    assert sources(loaded(crowd(tmp_path), controlled(Control.VEHICLES, min_distance_m=8.1)))[0] == [2]


@pytest.mark.row("SIM-3")
def test_the_self_driving_car_and_its_nearest_candidates_are_driven(tmp_path: Path) -> None:
    many = crowd(tmp_path, {"sdc": 20}, agents=40)
    assert sources(loaded(many, controlled(Control.VEHICLES, rows=1)))[0] == [20]
    # Agent k stands at 10 k + k m at INIT: agents on both sides are equally far, and the first of equals comes first.
    assert sources(loaded(many, controlled(Control.VEHICLES, rows=4)))[0] == [18, 19, 20, 21]
    driven, others = sources(loaded(many, controlled(Control.VEHICLES, rows=39)))
    assert (driven, others) == (list(range(1, 40)), [0])


@pytest.mark.row("SIM-3")
def test_without_a_self_driving_car_the_first_candidates_are_driven(tmp_path: Path) -> None:
    many = crowd(tmp_path, {"sdc": -1}, agents=40)
    assert sources(loaded(many, controlled(Control.VEHICLES, rows=3)))[0] == [1, 2, 3]


@pytest.mark.row("SIM-3")
@pytest.mark.parametrize(("others", "role"), [(Others.REPLAY, REPLAYED), (Others.IDM, IDM), (Others.STATIC, STATIC)])
def test_undriven_agents_have_the_configured_role(tmp_path: Path, others: Others, role: int) -> None:
    store = loaded(crowd(tmp_path), controlled(Control.VEHICLES, others=others))
    assert store.scenarios.agent_roles[0, :5].tolist() == [EGO, EGO, role, role, role]
    assert COPLAYER not in store.scenarios.agent_roles


@pytest.mark.row("SIM-12")
def test_a_scenario_without_drivable_agents_lists_who_is_present(tmp_path: Path) -> None:
    pack = crowd(tmp_path, {"agent_types": np.full(6, AgentType.PEDESTRIAN, np.uint8), "sdc": -1})
    store = ScenarioStore(pack, SimConfig(init_steps=INIT), 1)
    with pytest.raises(
        ScenarioError, match=r"crowd\.pack: scenario 'example': control\.who is 'vehicles'.* 4 pedestrian"
    ):
        store.load(0, 0)
    with pytest.raises(ScenarioError, match=r"control\.who is 'sdc'.*self-driving car: none"):
        loaded(pack, controlled(Control.SDC))


@pytest.mark.row("SIM-12")
def test_an_empty_pack_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.pack: the pack is empty"):
        ScenarioStore(written(tmp_path / "none.pack", []), SimConfig(), 1)


@pytest.mark.row("TRIAL-4")
def test_a_start_beyond_the_recording_is_an_error(tmp_path: Path) -> None:
    pack = written(tmp_path / "short.pack", [example_scenario(steps=20)])
    assert loaded(pack, SimConfig(init_steps=19)).scenarios.counts[0, FRAME_COUNT] == 1
    with pytest.raises(ScenarioError, match=r"scenario 'example': init_steps is 20.* frames 0 to 19"):
        loaded(pack, SimConfig(init_steps=20))


@pytest.mark.row("SIM-1")
def test_256_agents_fit_and_more_are_an_error(tmp_path: Path) -> None:
    store = loaded(crowd(tmp_path, agents=256))
    assert store.scenarios.counts[0, SELECTED_COUNT] == store.agent_room == 256
    with pytest.raises(ScenarioError, match=r"scenario 'example': 257 agents .* at most 256"):
        loaded(crowd(tmp_path, agents=257))


@pytest.fixture
def map_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the numbers of the maps that are read from packs."""
    numbers: list[int] = []
    read = Pack.packed_tables

    def counted(pack: Pack, number: int) -> Any:
        numbers.append(number)
        return read(pack, number)

    monkeypatch.setattr(Pack, "packed_tables", counted)
    return numbers


def test_an_undrivable_scenario_leaves_the_world_as_it_was(tmp_path: Path, town: Pack, map_reads: list[int]) -> None:
    pack = written(tmp_path / "two.pack", [town[0], replace(town[1], predict=town[1].predict[:0], sdc=-1)])
    store = ScenarioStore(pack, controlled(Control.PREDICT), 1)
    place = store.load(0, 0)
    before = [array[0].copy() for array in store.scenarios]
    with pytest.raises(ScenarioError, match=r"control\.who is 'predict'"):
        store.load(0, 1)
    assert all(np.array_equal(a, b[0]) for a, b in zip(before, store.scenarios, strict=True))
    assert store.load(0, 0) == place
    assert len(map_reads) == 1


@pytest.mark.row("SIM-1")
def test_larger_scenarios_and_maps_get_room_and_what_is_there_stays(
    tmp_path: Path, town: Pack, map_reads: list[int]
) -> None:
    pack = written(tmp_path / "grow.pack", [example_scenario(steps=30), *town])
    store = ScenarioStore(pack, SimConfig(init_steps=INIT), 4)
    slots = [store.load(0, 0).map]
    arrays, before = store.scenarios, [[array[0].copy() for array in store.scenarios]]
    before.append([array[slots[0]].copy() for array in store.maps])
    for world in (1, 2, 3):
        slots.append(store.load(world, world).map)
    assert store.scenarios is not arrays
    for kept, larger, slot in ((before[0], store.scenarios, 0), (before[1], store.maps, slots[0])):
        for small, large in zip(kept, larger, strict=True):
            assert np.array_equal(large[slot][tuple(slice(n) for n in small.shape)], small)
    arrays = store.scenarios
    assert [store.load(world, world).map for world in range(4)] == slots
    assert store.scenarios is arrays
    assert len(map_reads) == 4


def test_a_map_is_copied_once_however_many_worlds_use_it(tmp_path: Path, map_reads: list[int]) -> None:
    shared, other = example_map(), example_map(shift_m=7)
    scenarios = [example_scenario(f"s{n}", road_map=other if n == 3 else shared) for n in range(4)]
    store = ScenarioStore(written(tmp_path / "shared.pack", scenarios), SimConfig(init_steps=INIT), 4)
    slots = [store.load(world, world).map for world in range(4)]
    assert slots[0] == slots[1] == slots[2] != slots[3]
    assert len(map_reads) == 2


@pytest.mark.row("SIM-1")
def test_a_scenario_is_copied_once_however_many_worlds_run_it(town: Pack) -> None:
    store = ScenarioStore(town, SimConfig(init_steps=INIT), 8)
    places = [store.load(world, world % 2) for world in range(8)]
    assert places[::2] == places[:1] * 4
    assert places[1::2] == places[1:2] * 4
    assert places[0] != places[1]
    assert len(store.scenarios.counts) == len(town) == 3
    one = [array[places[0].scenario].copy() for array in store.scenarios]
    for world in range(1, 8):
        store.load(world, 2)
    assert store.load(0, 0) == places[0]
    assert all(np.array_equal(a, b[places[0].scenario]) for a, b in zip(one, store.scenarios, strict=True))


@pytest.mark.parametrize("keeps", [False, True])
def test_an_unused_scenario_makes_room_and_is_read_again(tmp_path: Path, keeps: bool) -> None:
    scenarios = [example_scenario(f"s{n}", steps=30 + n) for n in range(5)]
    store = ScenarioStore(written(tmp_path / "five.pack", scenarios), SimConfig(init_steps=INIT), 2, keeps)
    held = store.load(0, 0).scenario
    assert len(store.scenarios.counts) == (5 if keeps else 3)
    for _ in range(2):
        for number in range(1, 5):
            slot = store.load(1, number).scenario
            assert store.scenarios.counts[slot, FRAME_COUNT] == 30 + number - INIT
            assert slot != held
            assert store.scenarios.counts[held, FRAME_COUNT] == 30 - INIT


def test_only_the_slot_of_an_unused_map_is_reused(tmp_path: Path, map_reads: list[int]) -> None:
    count = 3 + SPARE_SLOTS + 2
    pack = written(
        tmp_path / "many.pack",
        [example_scenario(f"s{n}", road_map=example_map(shift_m=5.0 * n)) for n in range(count)],
    )
    store = ScenarioStore(pack, SimConfig(init_steps=INIT), 3, keeps=False)
    held = store.load(0, 0).map
    for number in range(1, count):
        store.load(1, number)
        assert len(store.maps.sizes) <= 3 + SPARE_SLOTS
        assert store.maps.edges[held, 0, 0] == 0.0
    loads = len(map_reads)
    assert loads == count
    store.load(2, count - 2)  # among the last ones used: still there
    assert len(map_reads) == loads
    m = store.load(2, 1).map  # the first one that nobody needed: gone
    assert len(map_reads) == loads + 1
    assert store.maps.edges[m, 0, 0] == 5.0
    store.unload(0)
    for number in range(2, count):
        store.load(1, number)
    store.load(0, 0)
    assert len(map_reads) > loads + 1


def test_unused_maps_stay_while_there_is_room_and_take_no_memory_before(tmp_path: Path, map_reads: list[int]) -> None:
    scenarios = [example_scenario(f"s{n}", road_map=example_map(shift_m=5.0 * n)) for n in range(40)]
    store = ScenarioStore(written(tmp_path / "kept.pack", scenarios), SimConfig(init_steps=INIT), 2)
    places = [store.load(0, number) for number in range(10)]
    assert len(store.maps.sizes) == len(store.scenarios.counts) == 40
    used = {"scenarios": sum(map(bytes_of_slot, store.scenarios)), "maps": sum(map(bytes_of_slot, store.maps))}
    assert store.memory() == {name: 10 * size for name, size in used.items()}
    assert [store.load(1, number) for number in range(10)] == places
    assert len(map_reads) == 10


def bytes_of_slot(array: NDArray[np.generic]) -> int:
    return array[:1].size * array.itemsize


def test_a_damaged_map_leaves_nothing_held(tmp_path: Path) -> None:
    scenarios = [example_scenario(f"s{n}", road_map=example_map(shift_m=5.0 * n)) for n in range(9)]
    path = tmp_path / "damaged.pack"
    pack = written(path, scenarios)
    store = ScenarioStore(pack, SimConfig(init_steps=INIT), 2, keeps=False)
    kept = store.load(0, 0)
    pack._verified.clear()
    offset = int(pack._index.map_offsets[3])
    data = bytearray(path.read_bytes())
    data[offset + 100] ^= 1
    path.write_bytes(data)
    for _ in range(20):
        with pytest.raises(PackError, match="damaged"):
            store.load(1, 3)
    for number in (1, 2, 4, 5, 6, 7, 8):  # every other still finds a slot
        store.load(1, number)
    assert store.load(0, 0) == kept


def crosses(one: NDArray[np.float32], two: NDArray[np.float32]) -> bool:
    return bool(LineString(one[:, :2].astype(float)).crosses(LineString(two[:, :2].astype(float))))


@pytest.mark.row("SIM-4")
def test_lights_whose_lanes_cross_are_never_green_together_in_an_open_world(town: Pack) -> None:
    store = ScenarioStore(town, SimConfig(mode=Mode.OPEN, open=OpenConfig(agents=5, traffic=7)), 3)
    crossing = together = 0
    for number in range(3):
        slot = store.load(number, number).scenario
        data, scenario = store.scenarios, town[number]
        assert data.counts[slot, SELECTED_COUNT] == 0
        lights = int(data.counts[slot, LIGHT_COUNT])
        assert lights == len(scenario.light_lanes)
        paths = [scenario.map.polyline(lane) for lane in scenario.light_lanes.tolist()]
        directions = data.lights[slot, [LINE_COS, LINE_SIN], :lights].T.astype(np.float64)
        junctions, phases = data.light_junctions[slot], data.light_phases[slot]
        for a in range(lights):
            for b in range(a):
                is_one_street = abs(directions[a] @ directions[b]) > np.cos(np.deg2rad(40))
                if crosses(paths[a], paths[b]):
                    assert junctions[a] == junctions[b]
                    if not is_one_street:
                        assert phases[a] != phases[b]
                        crossing += 1
                if junctions[a] == junctions[b]:
                    assert np.linalg.norm(scenario.light_stops[a] - scenario.light_stops[b]) < 80
                    if is_one_street:
                        assert phases[a] == phases[b]
                        together += 1
    assert crossing > 10
    assert together > 10
    assert (store.rows_per_world, store.agent_room) == (5, 12)


@pytest.mark.row("SIM-4")
@pytest.mark.parametrize("angle", [35.0, 60.0, 90.0, 130.0])
def test_crossing_streets_have_separate_phases_at_any_angle(tmp_path: Path, angle: float) -> None:
    lanes: list[Feature] = []
    for degrees in (4.0, 184.0, angle, angle + 180.0):
        along = np.array([np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))])
        aside = np.array([along[1], -along[0]]) * 1.75
        lanes.append(
            (FeatureKind.LANE, LaneType.SURFACE_STREET, straight(*(aside - 15 * along), *(aside + 15 * along)))
        )
    base = example_scenario(road_map=map_of(lanes))
    stops = np.column_stack([[points[0] for _, _, points in lanes], np.zeros(4)]).astype(np.float32)
    states = np.repeat(base.light_states, 4, axis=0)
    crossing = replace(base, light_lanes=np.arange(4, dtype=np.int32), light_stops=stops, light_states=states)
    data = loaded(written(tmp_path / "x.pack", [crossing]), SimConfig(mode=Mode.OPEN)).scenarios
    phases = data.light_phases[0, :4].tolist()
    assert data.light_junctions[0, :4].tolist() == [0, 0, 0, 0]
    assert phases[0] == phases[1] != phases[2] == phases[3]


def test_indices_outside_the_tables_are_refused(town: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wrong in (
        ("cell_edges", 10**6),
        ("cell_edge_starts", -1),
        ("cell_lists", -1),
        ("lane_point_lanes", 10**6),
        ("lane_point_starts", 10**6),
        ("successors", -1),
        ("successor_starts", 10**6),
        ("left_neighbor", 10**6),
        ("right_neighbor", -2),
        ("sign_lanes", 10**6),
        ("lane_lists", 65535),
        ("edge_lists", 65535),
    ):
        number = 1  # the one with stop signs
        packed = town.packed_tables(number)
        forged = packed._replace(words=packed.words.copy())
        section = forged.section(name)
        section[len(section) // 2] = wrong
        forged.words.flags.writeable = False
        monkeypatch.setattr(Pack, "packed_tables", lambda self, number, forged=forged: forged)
        store = MapStore(town, holders=1)
        with pytest.raises(PackError, match=rf"town\.pack: map 1: its table '{name}'"):
            store.acquire(number)
        monkeypatch.undo()
        assert store.acquire(number) == store.acquire(number)


def test_arrays_without_a_map_have_the_numba_types_of_filled_ones(tmp_path: Path) -> None:
    """Kernels run before the first map is read; with other types, they would all be compiled a second time."""
    store = ScenarioStore(crowd(tmp_path), controlled(Control.VEHICLES), 1)
    before = [numba.typeof(array) for array in store.maps]
    store.load(0, 0)
    assert [numba.typeof(array) for array in store.maps] == before
