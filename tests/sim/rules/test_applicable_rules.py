"""Rules that do not apply to pedestrians and cyclists leave no data and have no influence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import AgentType, EdgeType, FeatureKind, LaneType, LightState, RoadMap
from roadworthy.sim.config import (
    Actions,
    AtGoal,
    Control,
    ControlConfig,
    GoalConfig,
    InfractionConfig,
    OnInfraction,
    RewardConfig,
    SimConfig,
)
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.episode_figures import TRIAL_FIGURES
from roadworthy.sim.state import IS_PRESENT, SOURCE
from tests.scenario.example import map_of, straight
from tests.sim.scenes import Actor, pack_of, scene

WEST, SOUTH, NORTH = np.pi, -np.pi / 2, np.pi / 2
VEHICLE, CYCLIST, PEDESTRIAN = AgentType.VEHICLE, AgentType.CYCLIST, AgentType.PEDESTRIAN
DEPARTURE_FIGURES = ("off_road_rate", "departures", "lane_centred")
LANE_FIGURES = ("lane_aligned", "wrong_way")
LINE_FIGURES = ("red_light_rate", "red_lights", "stop_signs")


def street() -> RoadMap:
    """A lane to the east at y = -1.75, a bicycle lane to the east at y = -5, road edges at y = -6.5 and 6.5."""
    lane, edge = FeatureKind.LANE, FeatureKind.ROAD_EDGE
    return map_of(
        [
            (lane, LaneType.SURFACE_STREET, straight(0, -1.75, 400, -1.75)),
            (lane, LaneType.BIKE_LANE, straight(0, -5.0, 400, -5.0)),
            (edge, EdgeType.BOUNDARY, straight(0, -6.5, 400, -6.5)),
            (edge, EdgeType.BOUNDARY, straight(400, 6.5, 0, 6.5)),
        ]
    )


def person(x: float, y: float, heading: float, speed: float, kind: AgentType = PEDESTRIAN) -> Actor:
    return Actor(x, y, speed, heading, kind, length=0.8 if kind == PEDESTRIAN else 1.8, width=0.6)


ACTORS = {
    "a car along the lane": Actor(10, -1.75, 2.0),
    "a car that leaves the road": Actor(360, 0.0, 2.0, SOUTH),
    "somebody who crosses the street": person(60, -9.0, NORTH, 1.4),
    "somebody who walks on the lane against its direction": person(150, -1.75, WEST, 1.4),
    "somebody on the sidewalk": person(170, -8.0, 0.0, 1.4),
    "a cyclist against a lane for cars": person(250, -1.75, WEST, 3.0, CYCLIST),
    "a cyclist against a bicycle lane": person(200, -5.0, WEST, 3.0, CYCLIST),
    "a cyclist along a bicycle lane": person(270, -5.0, 0.0, 3.0, CYCLIST),
    "a cyclist who leaves the road": person(330, -4.0, SOUTH, 1.0, CYCLIST),
}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float | None]]:
    """Return the figures of all agents after driving as recorded; where the rule applies, leaving the road removes."""
    pack = pack_of(tmp_path_factory.mktemp("kinds") / "p.pack", scene(*ACTORS.values(), road_map=street()))
    return drive(pack, RewardConfig(off_road=-1.0, comfort=0.0, progress=0.0))


def drive(pack: Pack, reward: RewardConfig) -> dict[str, dict[str, float | None]]:
    """Return the figures of all ACTORS by name, with 'is present' after 78 of 80 steps."""
    config = SimConfig(
        actions=Actions.CONTINUOUS,
        control=ControlConfig(who=Control.AGENTS),
        goal=GoalConfig(AtGoal.CONTINUE, 0.5),
        infraction=InfractionConfig(off_road=OnInfraction.REMOVE),
        reward=reward,
    )
    env = DriveEnv(pack, 1, config, sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    sources = env.agent_flags[0, SOURCE, : len(ACTORS)].copy()
    is_present = np.zeros(len(ACTORS), np.int32)
    while not len(env.resting_worlds):
        env.step(np.zeros((env.row_count, 2), np.float32))
        if env.step_count == 78:
            is_present[:] = env.agent_flags[0, IS_PRESENT, : len(ACTORS)]
    ended = env.ended_episodes()
    names, found = list(ACTORS), {}
    for row, values in zip(ended.rows.tolist(), ended.figures.tolist(), strict=True):
        known = {n: None if np.isnan(v) else v for n, v in zip(env.figure_names, values, strict=True)}
        found[names[sources[row]]] = {**known, "is present": float(is_present[row])}
    assert set(found) == set(ACTORS)
    return found


@pytest.mark.row("SIM-6")
@pytest.mark.parametrize("name", [name for name, actor in ACTORS.items() if actor.kind == PEDESTRIAN])
def test_lanes_edges_and_lines_do_not_apply_to_pedestrians(
    name: str, figures: dict[str, dict[str, float | None]]
) -> None:
    found = figures[name]
    assert [found[figure] for figure in (*DEPARTURE_FIGURES, *LANE_FIGURES, *LINE_FIGURES)] == [None] * 8
    assert found["score"] == found["completion_rate"] == 1.0, "leaving the road is not a fault of a pedestrian"
    assert found["infractions"] == 0.0
    assert found["collision_rate"] == 0.0
    assert found["is present"] == 1.0
    assert found["return"] == 1.0, "the goal alone"


@pytest.mark.row("SIM-6")
def test_only_bicycle_lanes_apply_to_cyclists(figures: dict[str, dict[str, float | None]]) -> None:
    on_car_lane = figures["a cyclist against a lane for cars"]
    against, along = figures["a cyclist against a bicycle lane"], figures["a cyclist along a bicycle lane"]
    assert [on_car_lane[figure] for figure in LANE_FIGURES] == [None, None]
    assert [against[figure] for figure in LANE_FIGURES] == [0.0, 1.0]
    assert [along[figure] for figure in LANE_FIGURES] == [1.0, 0.0]


@pytest.mark.row("SIM-6")
def test_cyclists_may_leave_the_carriageway(figures: dict[str, dict[str, float | None]]) -> None:
    for name in (name for name, actor in ACTORS.items() if actor.kind == CYCLIST):
        assert [figures[name][figure] for figure in DEPARTURE_FIGURES] == [None] * 3, name
        assert figures[name]["score"] == 1.0, name
        assert figures[name]["is present"] == 1.0, name
        assert figures[name]["return"] == 1.0, name


@pytest.mark.row("SIM-6")
def test_every_rule_applies_to_cars(figures: dict[str, dict[str, float | None]]) -> None:
    keeps, leaves = figures["a car along the lane"], figures["a car that leaves the road"]
    assert [keeps[figure] for figure in (*DEPARTURE_FIGURES, *LANE_FIGURES)] == [0.0, 0.0, 1.0, 1.0, 0.0]
    assert [keeps[figure] for figure in LINE_FIGURES] == [0.0, 0.0, 0.0]
    assert (leaves["off_road_rate"], leaves["departures"], leaves["infractions"]) == (1.0, 1.0, 1.0)
    assert (leaves["score"], leaves["is present"]) == (0.0, 0.0)


@pytest.mark.row("SIM-7")
def test_lane_rewards_go_only_to_agents_that_lanes_apply_to(
    figures: dict[str, dict[str, float | None]], tmp_path: Path
) -> None:
    pack = pack_of(tmp_path / "p.pack", scene(*ACTORS.values(), road_map=street()))
    weights = RewardConfig(goal=0.0, off_road=0.0, comfort=0.0, progress=0.0, lane_center=1.0, wrong_way=-1.0)
    found = {name: part["return"] for name, part in drive(pack, weights).items()}
    for name, actor in ACTORS.items():
        if actor.kind == PEDESTRIAN:
            assert found[name] == 0.0, name
    assert found["a car along the lane"] == pytest.approx(80.0)
    assert found["a cyclist along a bicycle lane"] == 0.0
    assert found["a cyclist against a bicycle lane"] == -80.0
    assert found["a cyclist against a lane for cars"] == 0.0


@pytest.mark.row("SIM-6")
@pytest.mark.parametrize(("kind", "expected"), [(VEHICLE, 1.0), (CYCLIST, 1.0), (PEDESTRIAN, None)])
def test_lights_apply_to_vehicles_and_cyclists(kind: AgentType, expected: float | None, tmp_path: Path) -> None:
    # The stop line is at x = 100; all agents cross it while the light is red.
    actor = Actor(90, speed=2.5, kind=kind, length=1.0, width=0.6)
    pack = pack_of(tmp_path / "p.pack", scene(actor, light=LightState.STOP))
    config = SimConfig(
        actions=Actions.CONTINUOUS,
        control=ControlConfig(who=Control.SDC),
        goal=GoalConfig(AtGoal.CONTINUE),
    )
    env = DriveEnv(pack, 1, config, sampling=False)
    env.assign(0, 0, 1)
    env.reset()
    while not len(env.resting_worlds):
        env.step(np.zeros((env.row_count, 2), np.float32))
    ended = env.ended_episodes()
    values = dict(zip(env.figure_names, ended.figures[0].tolist(), strict=True))
    trial = dict(zip(TRIAL_FIGURES, ended.trials[0, 0].tolist(), strict=True))
    for found in (values["red_lights"], values["red_light_rate"], trial["red_lights"]):
        assert found == expected or (expected is None and np.isnan(found))
    assert values["infractions"] == (expected or 0.0)
