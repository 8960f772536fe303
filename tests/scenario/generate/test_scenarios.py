"""Scenarios as pure functions of (seed, class, index): valid, of exactly their class, with equal bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely

from roadworthy.scenario.detect import BEHAVIORS, DETECTORS, Tracks, detect
from roadworthy.scenario.generate.scenarios import ScenarioGenerator, generate_scenario
from roadworthy.scenario.pack import encode_map, encode_scenario
from roadworthy.scenario.schema import AgentType, FeatureKind, LightState, Scenario
from roadworthy.scenario.validate import faults
from tests.scenario.generate.sites import surface_between

STEPS, CURRENT_STEP, DT = 91, 10, 0.1

# Eight scenarios of every class twice in the ordinary tests, and two hundred of each in the long ones.
CHUNKS = [
    *(pytest.param(seed, range(first, first + 4), id=f"{seed}:{first}") for seed in (1, 7) for first in (0, 4)),
    *(pytest.param(seed, range(20), id=f"{seed}:long", marks=pytest.mark.long) for seed in range(1000, 1010)),
]


def corners(scenario: Scenario, agent: int) -> np.ndarray:
    """Return (T, 4, 2) the corners of an agent's box where it is present."""
    there = scenario.valid[agent]
    x, y = scenario.positions[agent, there, :2].astype(np.float64).T
    cos, sin = np.cos(scenario.headings[agent, there]), np.sin(scenario.headings[agent, there])
    length, width = scenario.sizes[agent, :2] / 2
    along = np.array([length, -length, -length, length])
    across = np.array([width, width, -width, -width])
    dx = cos[:, None] * along - sin[:, None] * across
    dy = sin[:, None] * along + cos[:, None] * across
    return np.stack([x[:, None] + dx, y[:, None] + dy], axis=2)


@pytest.mark.row("SCEN-3")
@pytest.mark.row("SCEN-4")
@pytest.mark.parametrize(("seed", "indices"), CHUNKS)
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_every_scenario_is_valid_and_of_exactly_its_class(behavior: str, seed: int, indices: range) -> None:
    generator = ScenarioGenerator(seed, behavior)
    seen = set()
    for index in indices:
        scenario = generator.scenario(index)
        where = f"generate_scenario({seed}, {behavior!r}, {index})"
        assert detect(scenario) == (behavior,), where
        assert faults(scenario) == [], where
        assert scenario.tags == (behavior,), where
        assert (scenario.dt, scenario.steps, scenario.current_step) == (DT, STEPS, CURRENT_STEP), where
        seen.add(scenario.id)
    assert len(seen) == len(indices)


@pytest.fixture(scope="module", params=BEHAVIORS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    """Return one scenario of every class."""
    return generate_scenario(3, request.param, 1)


@pytest.mark.row("SCEN-3")
def test_the_same_seed_class_and_index_give_the_same_bytes(scenario: Scenario) -> None:
    again = generate_scenario(3, scenario.tags[0], 1)
    assert again is not scenario
    assert encode_scenario(again) == encode_scenario(scenario)
    assert encode_map(again.map) == encode_map(scenario.map)


@pytest.mark.parametrize("behavior", ["hard_stop", "roundabout", "merge"])
def test_a_scenario_does_not_depend_on_what_was_made_before_it(behavior: str) -> None:
    generator = ScenarioGenerator(5, behavior)
    backwards = {index: encode_scenario(generator.scenario(index)) for index in (6, 2, 0)}
    repeated = encode_scenario(generator.scenario(2))
    assert backwards[2] == repeated
    for index, expected in backwards.items():
        assert encode_scenario(generate_scenario(5, behavior, index)) == expected


def test_other_seeds_indices_and_classes_give_other_scenarios() -> None:
    scenarios = [
        generate_scenario(5, "cut_in", 0),
        generate_scenario(6, "cut_in", 0),
        generate_scenario(5, "cut_in", 1),
        generate_scenario(5, "lane_change", 0),
    ]
    assert len({encode_scenario(scenario) for scenario in scenarios}) == 4
    assert len({scenario.id for scenario in scenarios}) == 4


@pytest.mark.row("SCEN-4")
def test_detectors_see_motion_and_map_only(scenario: Scenario) -> None:
    """The motion of one class is detected under the tag and id of another."""
    (behavior,) = scenario.tags
    other = BEHAVIORS[(BEHAVIORS.index(behavior) + 1) % len(BEHAVIORS)]
    disguised = replace(scenario, id=f"9-{other}-0000", source="womd", tags=(other,))
    assert detect(disguised) == (behavior,)
    tracks = Tracks.of(disguised)
    assert [name for name, detects in DETECTORS.items() if detects(tracks)] == [behavior]


def test_boxes_stay_on_the_surface_and_apart(scenario: Scenario) -> None:
    """As validation checks, but with another geometry library."""
    edges = [scenario.map.polyline(f)[:, :2].astype(np.float64) for f in scenario.map.features(FeatureKind.ROAD_EDGE)]
    surface = surface_between(edges).buffer(0.02)
    shapely.prepare(surface)
    for agent in np.flatnonzero(scenario.agent_types != AgentType.PEDESTRIAN):
        inside = shapely.contains_xy(surface, corners(scenario, int(agent)).reshape(-1, 2))
        assert inside.all(), f"agent {agent} is off the road"
    for step in range(0, scenario.steps, 10):
        agents = np.flatnonzero(scenario.valid[:, step])
        boxes = shapely.polygons(
            [corners(scenario, int(a))[np.count_nonzero(scenario.valid[a, :step])].tolist() for a in agents]
        )
        tree = shapely.STRtree(shapely.buffer(boxes, -0.002))
        pairs = tree.query(boxes, predicate="intersects")
        assert (pairs[0] == pairs[1]).all(), f"agents overlap at step {step}"


@pytest.mark.row("SCEN-3")
def test_traffic_has_everything_that_moves_or_stands_on_roads() -> None:
    scenarios = [generate_scenario(2, behavior, index) for behavior in BEHAVIORS for index in range(2)]
    types = np.concatenate([scenario.agent_types for scenario in scenarios])
    assert {AgentType.VEHICLE, AgentType.PEDESTRIAN, AgentType.CYCLIST} <= {AgentType(kind) for kind in types}
    parked = changed = red = 0
    for scenario in scenarios:
        moved = np.linalg.norm(scenario.velocities, axis=2).max(axis=1)
        parked += int(np.count_nonzero((moved == 0.0) & scenario.valid.all(axis=1)))
        red += int(np.isin(scenario.light_states, [LightState.STOP, LightState.ARROW_STOP]).any())
        changed += (np.diff(scenario.light_states.astype(int), axis=1) != 0).any() if scenario.light_states.size else 0
        assert scenario.agent_count >= 5
        assert scenario.valid[scenario.sdc].all()
        assert scenario.agent_types[scenario.sdc] == AgentType.VEHICLE
        assert scenario.sdc not in scenario.predict
    assert parked > 0
    assert red > 0
    assert changed > 0


@pytest.mark.parametrize("behavior", ["lane_change", "protected_left"])
def test_the_order_of_agents_does_not_reveal_the_self_driving_car(behavior: str) -> None:
    places = [
        scenario.sdc / scenario.agent_count
        for scenario in (generate_scenario(4, behavior, index) for index in range(8))
    ]
    assert max(places) - min(places) > 0.3


@pytest.mark.row("SCEN-3")
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_scenarios_can_have_any_length_and_traffic_continues(behavior: str) -> None:
    scenario = generate_scenario(7, behavior, 0, steps=300)
    assert scenario.steps == 300
    assert faults(scenario) == []
    assert behavior in detect(scenario)
    speed = np.linalg.norm(scenario.velocities, axis=2)
    moving = (speed > 1.0) & scenario.valid
    assert moving[:, -50:].sum(axis=0).min() >= 2, "people drive until the last step"
    appear = scenario.valid[:, 1:] & ~scenario.valid[:, :-1]
    assert appear[:, 150:].any(), "and arrive in the second half"


@pytest.mark.row("CL-2")
def test_the_self_driving_car_is_present_for_15_s() -> None:
    """A car that shows its behavior in the first 8 s, and might leave the map after 14.8 s."""
    scenario = generate_scenario(900001, "lane_change", 2, steps=161)
    assert scenario.valid[scenario.sdc].all()


@pytest.mark.long
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_scenarios_of_a_thousand_steps_are_sound(behavior: str) -> None:
    scenario = generate_scenario(8, behavior, 0, steps=1000)
    assert scenario.steps == 1000
    assert faults(scenario) == []
