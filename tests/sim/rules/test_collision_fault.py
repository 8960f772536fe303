"""At-fault collisions in whole simulations, and the lanes that decide lateral ones, against shapely.

The scenes' road has two lanes to the east, 3.5 m wide, with centers at y = -1.75 and y = 1.75. A continuous action of
(-1, 0) brakes at 9 m/s2, one of (0, 0) keeps speed and direction.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import shapely

from roadworthy.kernels import entry
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Bools, FeatureKind, Floats, Ints, LaneType, RoadMap
from roadworthy.sim import state
from roadworthy.sim.config import (
    Actions,
    CollisionsScored,
    Control,
    ControlConfig,
    EpisodeConfig,
    GoalConfig,
    Others,
    ScoreConfig,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.collision_fault import is_within_lanes, record_contacts, start_contacts
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES
from roadworthy.sim.state import (
    AT_FAULT_COLLISIONS,
    COLLISIONS,
    EVENT_AT_FAULT,
    EVENT_COLLISION,
    EVENTS,
    SPEED,
    STATIC,
    Maps,
    X,
)
from tests.scenario.example import map_of, pairs, straight
from tests.sim.arena import agents_at, maps_of
from tests.sim.backends.test_cuda import played
from tests.sim.scenes import Actor, pack_of, scene

CONFIG = SimConfig(
    actions=Actions.CONTINUOUS,
    init_steps=0,
    episode=EpisodeConfig(1, 80),
    control=ControlConfig(who=Control.SDC, rows=1),
)
DT = 0.1
Policy = Callable[[DriveEnv], tuple[float, float]]


def cruise(env: DriveEnv) -> tuple[float, float]:
    return 0.0, 0.0


def brake_to(speed: float) -> Policy:
    """Brakes until it drives no faster."""
    return lambda env: (-1.0 if env.agents[0, SPEED, 0] > speed else 0.0, 0.0)


class Drive:
    """An episode of the first agent, step by step, and what came of it."""

    def __init__(
        self, path: Path, *actors: Actor, policy: Policy = cruise, config: SimConfig = CONFIG, steps: int = 60
    ):
        self.env = DriveEnv(pack_of(path / "scene.pack", scene(*actors)), 1, config, sampling=False)
        self.env.assign(0, 0, 0)
        self.env.assign(0, 0, 1)
        self.env.reset()
        self.events: list[int] = []
        self.tallies: list[tuple[int, int]] = []
        for _ in range(steps):
            self.env.step(np.array([policy(self.env)] * self.env.row_count, np.float32))
            flags = self.env.agent_flags[0, :, 0]
            self.events.append(int(flags[EVENTS]))
            self.tallies.append((int(flags[COLLISIONS]), int(flags[AT_FAULT_COLLISIONS])))

    @property
    def collisions(self) -> tuple[int, int]:
        """Collisions, and those that it is at fault for."""
        return self.tallies[-1]

    def steps_with(self, bit: int) -> list[int]:
        return [step for step, events in enumerate(self.events) if events & bit]


def car_behind(gap_m: float, speed: float = 10.0) -> Actor:
    return Actor(40 - 4.5 - gap_m, speed=speed)


@pytest.mark.row("CL-1")
def test_a_recorded_car_that_drives_into_a_standing_ego_never_counts_against_it(tmp_path: Path):
    drive = Drive(tmp_path, Actor(40), car_behind(15.0), policy=brake_to(0.0))
    assert drive.env.agents[0, SPEED, 0] == 0.0
    assert drive.collisions == (1, 0)
    assert drive.steps_with(EVENT_COLLISION)
    assert not drive.steps_with(EVENT_AT_FAULT)


@pytest.mark.row("CL-1")
def test_a_contact_that_is_not_its_fault_is_not_an_infraction(tmp_path: Path):
    config = replace(CONFIG, episode=EpisodeConfig(1, 60))
    drive = Drive(tmp_path, Actor(40), car_behind(15.0), policy=brake_to(0.0), config=config)
    (values,) = drive.env.ended_episodes().figures
    figures = dict(zip(drive.env.figure_names, values.tolist(), strict=True))
    assert (figures["collisions"], figures["at_fault_collisions"], figures["infractions"]) == (1.0, 0.0, 0.0)


@pytest.mark.row("CL-1")
def test_a_car_that_hits_a_moving_ego_from_behind_does_not_count_against_it(tmp_path: Path):
    drive = Drive(tmp_path, Actor(40), car_behind(5.0), policy=brake_to(6.0))
    assert drive.env.agents[0, SPEED, 0] > 4.0
    assert drive.collisions == (1, 0)


@pytest.mark.row("CL-1")
def test_an_ego_that_drives_into_a_standing_car_is_at_fault(tmp_path: Path):
    drive = Drive(tmp_path, Actor(40), Actor(60, speed=0.0))
    assert drive.collisions == (1, 1)
    # 15.5 m between the boxes at 10 m/s: they touch after 1.55 s, first seen after the 16th step.
    assert drive.steps_with(EVENT_AT_FAULT) == drive.steps_with(EVENT_COLLISION) == [15]


@pytest.mark.row("CL-1")
def test_an_ego_that_drives_into_a_slower_car_is_at_fault(tmp_path: Path):
    assert Drive(tmp_path, Actor(40), Actor(50, speed=5.0)).collisions == (1, 1)


@pytest.mark.row("CL-1")
@pytest.mark.parametrize(("y", "at_fault"), [(-1.75, 0), (-0.6, 1)])
def test_a_lateral_contact_counts_only_for_an_ego_that_is_not_within_one_lane(tmp_path: Path, y: float, at_fault: int):
    """A car that drifts from the left into the ego's side: the ego is in the middle of its lane, or across the line."""
    drive = Drive(tmp_path, Actor(40, y), Actor(38, y + 3.0, heading=-0.15))
    assert drive.collisions == (1, at_fault)


@pytest.mark.row("CL-1")
def test_a_lateral_contact_at_the_end_of_a_lane_does_not_count_within_it_and_its_successor(tmp_path: Path):
    """As before, where lane 0 ends and its successor begins: at x = 100."""
    drive = Drive(tmp_path, Actor(94), Actor(92, 1.25, heading=-0.15))
    when = drive.steps_with(EVENT_COLLISION)
    assert len(when) == 1
    front = 94 + 2.25 + 10 * DT * (when[0] + 1)
    assert 100.5 < front < 104, "it lies across the joint"
    assert drive.collisions == (1, 0)


@pytest.mark.row("CL-1")
def test_a_contact_that_is_there_at_the_start_does_not_count(tmp_path: Path):
    drive = Drive(tmp_path, Actor(40), Actor(43, speed=0.0), Actor(60, speed=0.0))
    assert drive.steps_with(EVENT_AT_FAULT) == [15], "the one behind it does"
    assert drive.tallies[10] == (0, 0)
    assert drive.collisions == (1, 1)


@pytest.mark.row("CL-1")
def test_each_track_counts_once_however_often_it_is_touched(tmp_path: Path):
    def again_and_again(env: DriveEnv) -> tuple[float, float]:
        gap = env.agents[0, X, 1] - env.agents[0, X, 0] - 4.5
        backs_off.append(gap < 0 or (bool(backs_off) and backs_off[-1] and gap < 0.5))
        return (-1.0 if backs_off[-1] else 1.0), 0.0

    backs_off: list[bool] = []
    drive = Drive(tmp_path, Actor(40), Actor(46, speed=5.0), policy=again_and_again, steps=79)
    assert drive.collisions[0] >= 2
    assert drive.collisions[1] == 1
    assert len(drive.steps_with(EVENT_AT_FAULT)) == 1


@pytest.mark.row("CL-1")
def test_two_tracks_count_twice_even_in_one_step(tmp_path: Path):
    drive = Drive(tmp_path, Actor(40, -0.5), Actor(60, 0.5, speed=0.0), Actor(60, -1.5, speed=0.0))
    assert drive.collisions == (1, 2)
    drive = Drive(tmp_path, Actor(40, -0.5), Actor(60, 0.5, speed=0.0), Actor(61.5, -1.5, speed=0.0))
    assert drive.collisions == (1, 2), "the second one is touched while the first one still is"


@pytest.mark.row("CL-1")
def test_agents_that_stand_by_their_role_are_static_objects(tmp_path: Path):
    config = replace(CONFIG, control=ControlConfig(who=Control.SDC, rows=1, others=Others.STATIC))
    drive = Drive(tmp_path, Actor(40), Actor(60, speed=10.0), config=config)
    assert drive.env.agent_flags[0, state.ROLE, 1] == STATIC
    assert drive.collisions == (1, 1)


@pytest.mark.row("CL-1")
def test_egos_that_touch_are_judged_each_from_its_own_side(tmp_path: Path):
    config = replace(CONFIG, control=ControlConfig(who=Control.VEHICLES, rows=2))
    drive = Drive(tmp_path, Actor(40, speed=5.0), Actor(30, speed=10.0), config=config)
    flags = drive.env.agent_flags[0]
    assert flags[COLLISIONS, :2].tolist() == [1, 1]
    assert flags[AT_FAULT_COLLISIONS, :2].tolist() == [0, 1]


@pytest.mark.row("CL-1")
def test_every_trial_counts_for_itself(tmp_path: Path):
    config = replace(CONFIG, episode=EpisodeConfig(3, 20))
    drive = Drive(tmp_path, Actor(40), Actor(43, speed=0.0), Actor(60, speed=0.0), config=config, steps=60)
    ended = drive.env.ended_episodes()
    assert ended.trials[0, :, TRIAL_FIGURES.index("at_fault_collisions")].tolist() == [1.0, 1.0, 1.0]
    figures = dict(zip(drive.env.figure_names, ended.figures[0].tolist(), strict=True))
    assert figures["at_fault_collisions"] == 3.0
    assert figures["at_fault_collision_rate"] == 1.0


@pytest.mark.row("CL-1")
@pytest.mark.parametrize(("scored", "score"), [(CollisionsScored.AT_FAULT, 1.0), (CollisionsScored.ALL, 0.0)])
def test_the_score_counts_the_collisions_that_the_config_says(tmp_path: Path, scored: CollisionsScored, score: float):
    """Touched from behind while it drives to its goal."""
    config = replace(CONFIG, score=ScoreConfig(collisions=scored), goal=GoalConfig(radius_m=3.0))
    drive = Drive(tmp_path, Actor(40, speed=8.0, last=40), Actor(34, speed=10.0), config=config)
    ended = drive.env.ended_episodes()
    told = dict(zip(TRIAL_FIGURES, ended.trials[0, 0].tolist(), strict=True))
    assert told["goal_reached"] == 1.0
    assert (told["collisions"], told["at_fault_collisions"]) == (1.0, 0.0)
    assert told["score"] == score
    hit = Drive(tmp_path, Actor(40, speed=8.0, last=40), Actor(52, speed=5.0), config=config).env.ended_episodes()
    told = dict(zip(TRIAL_FIGURES, hit.trials[0, 0].tolist(), strict=True))
    assert (told["goal_reached"], told["at_fault_collisions"], told["score"]) == (1.0, 1.0, 0.0)


@entry
def contacts_of_all(agents, flags, count, maps, touches_out, faults_out, is_start):
    for a in range(count):
        if is_start:
            touches_out[a] = start_contacts(agents, flags, a, count)
        else:
            touches_out[a], faults_out[a] = record_contacts(agents, flags, a, count, maps, 0)


@pytest.mark.row("CL-1")
def test_each_of_many_agents_is_told_apart():
    """256 boxes in one place: each touches all others, which stand, and counts each of them once."""
    maps = maps_of(map_of([(FeatureKind.LANE, LaneType.SURFACE_STREET, straight(0, 0, 100, 0))]))
    agents, flags = agents_at(np.linspace(0, 1, 256), 0.0, speed=0.0)
    agents[SPEED, [7, 200]] = 5.0  # they drive, the others stand
    flags[state.ROLE] = 0
    touches, faults = np.zeros(256, np.int32), np.zeros(256, np.int32)
    contacts_of_all(agents, flags, 255, maps, touches, faults, 1)
    contacts_of_all(agents, flags, 255, maps, touches, faults, 0)
    assert touches[:255].all()
    assert not faults.any(), "all of it was there at the start"
    contacts_of_all(agents, flags, 256, maps, touches, faults, 0)
    assert faults[[7, 200]].tolist() == [1, 1], "the last agent is new to them"
    flags[state.TOUCHED : state.TOUCHED + 8] = 0
    contacts_of_all(agents, flags, 256, maps, touches, faults, 0)
    assert (faults >= 254).tolist() == [a in (7, 200) for a in range(256)]
    contacts_of_all(agents, flags, 256, maps, touches, faults, 0)
    assert not faults.any()


@entry
def within_lanes(agents, maps, slot, within_out):
    for a in range(agents.shape[1]):
        within_out[a] = is_within_lanes(agents, a, maps, slot)


def within_by_definition(road_map: RoadMap, agents: Floats) -> tuple[Bools, Bools, Ints]:
    """Who is within lanes, where no corner is within a millimeter of a lane's border, and by how many lanes at least.

    Returns: (n,) each; 0 lanes: not within any.
    """
    lanes = road_map.lane_count
    half = np.where(np.isfinite(road_map.lane_widths), road_map.lane_widths, 3.5) / 2
    lines = [shapely.LineString(road_map.points[a:b, :2]) for a, b in pairwise(road_map.starts[: lanes + 1])]
    x, y, cos, sin, length, width = agents[[X, state.Y, state.COS, state.SIN, state.LENGTH, state.WIDTH]].astype(float)
    held, is_clear = np.zeros((4, lanes, len(x)), bool), np.ones(len(x), bool)
    for corner, (u, v) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        places = shapely.points(
            x + (u * length * cos - v * width * sin) / 2, y + (u * length * sin + v * width * cos) / 2
        )
        away = shapely.distance(np.array(lines)[:, None], places[None])
        held[corner] = away <= half[:, None]
        is_clear &= (np.abs(away - half[:, None]) > 1e-3).all(axis=0)
    leads = np.eye(lanes, dtype=bool)
    leads[road_map.successors[:, 0], road_map.successors[:, 1]] = True
    needed = np.zeros(len(x), np.int32)
    for agent in range(len(x)):
        front_left, front_right, rear_left, rear_right = held[:, :, agent]
        if (front_left & front_right & rear_left & rear_right).any():
            needed[agent] = 1
            continue
        for a, b in np.argwhere(leads):
            if (rear_left[a] | rear_left[b]) & (rear_right[a] | rear_right[b]):
                if (front_left & leads[b]).any() and (front_right & leads[b]).any():
                    needed[agent] = 2
                    break
    return needed > 0, is_clear, needed


def compare_lanes(road_map: RoadMap, agents: Floats) -> Ints:
    """Checks who is within lanes; returns how many lanes each needs for that."""
    expected, is_clear, needed = within_by_definition(road_map, agents)
    within = np.full(agents.shape[1], 7, np.int8)
    other = map_of([(FeatureKind.LANE, LaneType.SURFACE_STREET, straight(-5, -5, 5, 5))])
    within_lanes(agents, maps_of(other, road_map), 1, within)
    np.testing.assert_array_equal(within[is_clear], expected[is_clear])
    assert is_clear.mean() > 0.97
    return needed


@pytest.mark.row("CL-1")
def test_who_is_within_lanes_of_generated_towns_is_what_shapely_says(towns: Pack):
    rng = np.random.default_rng(5)
    counts = np.zeros(3, np.int64)
    for number in range(len(towns)):
        road_map = towns[number].map
        points = road_map.points[: road_map.starts[road_map.lane_count], :2].astype(float)
        starts = road_map.starts[: road_map.lane_count + 1]
        usable = np.setdiff1d(np.arange(len(points)), starts[1:] - 1)
        # Half of them near where a lane ends and others begin.
        some = np.concatenate([rng.choice(usable, 150), rng.choice(starts[1:] - 2, 150)])
        step = points[some + 1] - points[some]
        place = points[some] + rng.uniform(-0.5, 1.5, (300, 1)) * step + rng.normal(0, 0.35, (300, 2))
        heading = np.arctan2(step[:, 1], step[:, 0]) + rng.normal(0, 0.08, 300) + np.pi * (rng.random(300) < 0.2)
        agents, _ = agents_at(*place.T, heading, rng.uniform(3, 8, 300), rng.uniform(1.6, 2.2, 300))
        counts += np.bincount(compare_lanes(road_map, agents), minlength=3)
    assert counts.min() > 100


@pytest.mark.row("CL-1")
def test_connected_lanes_are_those_that_lead_on_in_the_direction_of_the_car():
    """A lane that forks: 0 leads into 1 (straight on) and 2 (to the left); 3 lies beside 0, and 4 behind 3."""
    lane, street = FeatureKind.LANE, LaneType.SURFACE_STREET
    road_map = map_of(
        [
            (lane, street, straight(0, 0, 50, 0)),
            (lane, street, straight(50, 0, 100, 0)),
            (lane, street, straight(50, 0, 90, 30)),
            (lane, street, straight(0, 3.5, 50, 3.5)),
            (lane, street, straight(50, 3.5, 100, 3.5)),
        ],
        successors=pairs((0, 1), (0, 2)),
        lane_widths=np.array([3.5, np.nan, 3.0, 3.5, 3.5], np.float32),
    )
    cases = [
        (25.0, 0.0, 0.0, True),  # in lane 0
        (25.0, 1.0, 0.0, False),  # across the line to lane 3
        (50.0, 0.0, 0.0, True),  # from lane 0 into lane 1
        (50.0, 0.5, 0.1, True),  # from lane 0 into lanes 1 and 2
        (50.0, 3.5, 0.0, False),  # from lane 3 into lane 4, which it does not lead into
        (60.0, 0.0, np.pi, True),  # against lane 1, within it
        (50.0, 0.0, np.pi, False),  # against the direction across the joint of lanes 0 and 1
        (80.0, 0.7, 0.0, True),  # 0.7 + 0.9 = 1.6 m: within lane 1, of unknown width, so 3.5 m
        (80.0, 0.9, 0.0, False),  # 1.8 m
        (25.0, -30.0, 0.0, False),  # off all lanes
        (1.0, 0.0, 0.0, True),  # 1.25 m beyond the start of lane 0 with its rear, within 1.75 m of its line
        (0.5, 0.0, 0.0, False),  # 1.75 m beyond it
    ]
    x, y, heading, expected = np.array(cases).T
    agents, _ = agents_at(x, y, heading, 4.5, 1.8)
    within = np.full(len(cases), 7, np.int8)
    within_lanes(agents, maps_of(road_map), 0, within)
    assert within.tolist() == expected.tolist()
    compare_lanes(road_map, agents)


def test_lanes_of_a_pack_have_bounds_and_widths_in_the_simulator(towns: Pack):
    """The map store's own tables equal those that NumPy makes of the map; packs need no other version for them."""
    config = replace(CONFIG, control=ControlConfig(who=Control.SDC, rows=1))
    env = DriveEnv(towns, len(towns), config, sampling=False)
    for world in range(len(towns)):
        env.assign(world, world, 0)
    env.reset()
    widths = set()
    for world in range(len(towns)):
        slot, road_map = int(env.clocks[world, state.MAP]), towns[world].map
        mine: Maps = env.batch.store.maps
        expected = maps_of(road_map).lane_boxes[0]
        np.testing.assert_allclose(mine.lane_boxes[slot][:, : road_map.lane_count], expected, atol=1e-3)
        widths |= set(expected[state.BOX_HALF_WIDTH].tolist())
    assert len(widths) > 1


PARITY = """
import json, sys
from pathlib import Path
import numpy as np
from roadworthy.scenario.pack import Pack
from roadworthy.sim.config import *
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES
pack = Pack(sys.argv[1])
config = SimConfig(
    actions="continuous", init_steps=0, episode=EpisodeConfig(1, 6), control=ControlConfig(who="agents", rows=2),
    observe=ObserveConfig(partners=2, lanes=2, edges=2, lights=1),
)
answer = {}
for device in ("cpu", "cuda"):
    env = DriveEnv(pack, len(pack), config, device=device, sampling=False, scenarios=list(range(len(pack))))
    for world in range(len(pack)):
        env.assign(world, world, 0)
        env.assign(world, world, 1)
    env.reset()
    events = []
    for _ in range(6):
        env.step(np.zeros((env.row_count, 2), np.float32))
        events.append(np.array(env.agent_flags)[:, EVENT_LINE, :2].tolist())
    ended = env.ended_episodes()
    order = np.argsort(ended.rows)
    answer[device] = {
        "rows": ended.rows[order].tolist(),
        "trials": [[str(v) for v in trial] for trial in np.round(ended.trials[order, 0], 3).tolist()],
        "faults": ended.trials[order, 0, TRIAL_FIGURES.index("at_fault_collisions")].tolist(),
        "collisions": ended.trials[order, 0, TRIAL_FIGURES.index("collisions")].tolist(),
        "at fault": [[[(e & BIT) != 0 for e in row] for row in step] for step in events],
    }
print(json.dumps(answer))
""".replace("EVENT_LINE", str(EVENTS)).replace("BIT", str(EVENT_AT_FAULT))


@pytest.mark.row("CL-1")
@pytest.mark.row("SIM-10")
def test_at_fault_collisions_are_the_same_on_both_devices(tmp_path: Path):
    scenes = [
        scene(Actor(40), Actor(46.5, speed=4.0), id="front"),
        scene(Actor(40), Actor(43, speed=0.0), Actor(48, speed=0.0), id="start"),
        scene(Actor(40), Actor(38, 0.65, heading=-0.15), id="within"),
        scene(Actor(40, -0.6), Actor(38, 1.8, heading=-0.15), id="straddling"),
        scene(Actor(40, speed=5.0), Actor(34, speed=10.0), id="rear"),
    ]
    found = played(PARITY, str(pack_of(tmp_path / "p.pack", *scenes).path))
    assert found["cuda"] == found["cpu"]
    cpu = found["cpu"]
    assert isinstance(cpu, dict)
    assert json.dumps(cpu["at fault"]).count("true") >= 4
    assert 0.0 in cpu["faults"]
    assert sum(cpu["faults"]) >= 4
    assert sum(cpu["collisions"]) > sum(cpu["faults"])
