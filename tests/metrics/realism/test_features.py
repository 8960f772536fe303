"""Every feature against plain NumPy, on crowded random scenes and on special cases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from roadworthy.errors import ScenarioError
from roadworthy.metrics.realism import CHALLENGE_2025, Rollouts, compute_features, score_rollouts
from roadworthy.metrics.realism.features import Features, MotionFeatures
from roadworthy.metrics.realism.scene import Motion
from roadworthy.scenario.schema import AgentType, FeatureKind, LightState, Scenario
from tests.metrics.realism import plain
from tests.metrics.realism.scenes import (
    CURRENT,
    SQUARE,
    STEPS,
    edge,
    lane,
    random_rollouts,
    random_scenario,
    recorded_future,
    scenario_of,
)
from tests.scenario.example import map_of, straight

SCORED = slice(CURRENT + 1, None)
DT = 0.1


def plainly(scenario: Scenario, features: Features, motion: Motion) -> dict[str, NDArray[Any]]:
    """All features of a motion (R, E, S) by plain NumPy; the scenario's frame must be its source's."""
    scene, count = features.scene, features.scene.evaluated
    lines = [scenario.map.polyline(number) for number in scenario.map.features(FeatureKind.ROAD_EDGE)]
    lines = [line for line in lines if len(line) > 1]
    sizes = np.stack([scene.length, scene.width, scene.height], axis=-1)
    found: dict[str, list[NDArray[Any]]] = {}
    for x, y, z, heading in zip(motion.x, motion.y, motion.z, motion.heading, strict=True):
        own = slice(count)
        names = ("linear_speed", "linear_acceleration", "angular_speed", "angular_acceleration")
        kinematics = plain.kinematics(x[own], y[own], z[own], heading[own], DT)
        nearest = plain.nearest_object(x, y, heading, scene.length, scene.width, motion.valid, count)
        road_edge = plain.road_edge(x[own], y[own], z[own], heading[own], sizes[own], motion.valid[own], lines)
        values = dict(zip(names, kinematics, strict=True)) | {
            "distance_to_nearest_object": nearest,
            "collision_indication": nearest < 0,
            "time_to_collision": plain.time_to_collision(
                x, y, heading, scene.length, scene.width, motion.valid, count, DT
            ),
            "distance_to_road_edge": road_edge,
            "offroad_indication": road_edge > 0,
            "traffic_light_violation": plain.red_light(scenario, x[own], y[own], motion.valid[own]),
        }
        for name, value in values.items():
            found.setdefault(name, []).append(value[:, SCORED])
    return {name: np.stack(values) for name, values in found.items()}


def check(scenario: Scenario, rollouts: Rollouts) -> Features:
    """Compare all features, bit for bit."""
    features = compute_features(scenario, rollouts)
    for found, motion in ((features.log, features.scene.log), (features.simulated, features.scene.simulated)):
        for name, expected in plainly(scenario, features, motion).items():
            assert_array_equal(getattr(found, name), expected, err_msg=name)
    return features


@pytest.mark.parametrize("seed", range(12))
def test_features_of_crowded_scenes_are_those_of_plain_numpy(seed: int) -> None:
    scenario = random_scenario(seed)
    check(scenario, random_rollouts(scenario, 4, seed))


def test_the_crowded_scenes_hold_every_event() -> None:
    happened: dict[str, int] = dict.fromkeys(
        ("collision_indication", "offroad_indication", "traffic_light_violation"), 0
    )
    followed = 0
    for seed in range(12):
        scenario = random_scenario(seed)
        simulated = compute_features(scenario, random_rollouts(scenario, 4, seed)).simulated
        followed += (simulated.time_to_collision < 5).sum()
        for name in happened:
            happened[name] += getattr(simulated, name).sum()
    assert min(happened.values()) > 0
    assert followed > 0


def driving(y: float = 0.0, speed_mps: float = 10.0, x: float = -15.0) -> NDArray[np.float64]:
    """(T, 3) eastwards."""
    return np.stack([x + speed_mps * 0.1 * np.arange(STEPS), np.full(STEPS, y), np.full(STEPS, 0.8)], axis=-1)


def test_a_gap_in_the_recording_costs_the_steps_around_it() -> None:
    valid = np.ones((1, STEPS), np.bool_)
    valid[0, 20] = False
    features = check(*_with_its_future(scenario_of([driving()], 0.0, valid=valid)))
    speed, acceleration = features.counted("linear_speed")[0], features.counted("linear_acceleration")[0]
    first, last = CURRENT + 1, STEPS - 1
    assert set(np.flatnonzero(~speed) + first) == {first, 19, 21, last}
    assert set(np.flatnonzero(~acceleration) + first) == {first, first + 1, 18, 20, 22, last - 1, last}
    assert set(np.flatnonzero(~features.counted("distance_to_road_edge")[0]) + first) == {20}


def test_an_agent_first_there_at_the_current_step_comes_from_the_origin() -> None:
    valid = np.ones((1, STEPS), np.bool_)
    valid[0, :CURRENT] = False
    features = check(*_with_its_future(scenario_of([driving(x=100.0)], 0.0, valid=valid)))
    jump_mps = np.hypot(100.0 + 11.0, 0.8) / 0.2  # from step 9, where there is none, to step 11
    after = features.log.linear_speed[0, 0, 1]
    assert features.simulated.linear_acceleration[0, 0, 0] == pytest.approx((after - jump_mps) / 0.2, rel=1e-5)


def test_headings_differ_by_the_short_way_round() -> None:
    headings = np.pi - 0.1 + 0.02 * np.arange(STEPS)
    wrapped = (headings + np.pi) % (2 * np.pi) - np.pi
    features = check(*_with_its_future(scenario_of([driving()], wrapped)))
    inner = features.log.angular_speed[0, 0, :-1]
    assert inner == pytest.approx(np.full(len(inner), 0.2), abs=1e-4)


def test_agents_on_both_sides_of_pi_do_not_follow_each_other() -> None:
    fast, slow = driving(speed_mps=-10.0, x=20.0), driving(speed_mps=-2.0, x=0.0)
    follows = check(*_with_its_future(scenario_of([fast, slow], [[3.1], [3.12]])))
    crosses = check(*_with_its_future(scenario_of([fast, slow], [[3.1], [-3.12]])))
    agent = int(np.argmax(follows.scene.agent_ids[:2] == follows.scene.agent_ids.max()))
    assert follows.log.time_to_collision[0, agent].min() < 5
    assert crosses.log.time_to_collision[0, agent].min() == 5


@pytest.mark.parametrize("longest", [4, 5, 6, 9])
def test_a_closed_edge_is_closed_only_if_none_is_longer(longest: int) -> None:
    """An island, whose closing vertex is its sharp tip, and a car before that. Elsewhere an edge of some points."""
    island = [[0, 0], [10, -2], [10, 2], [0, 0]]
    other = straight(-200, 90, -100, 90, spacing=100 / (longest - 1))
    road_map = map_of([edge(island), edge(other)])
    assert len(road_map.polyline(1)) == longest
    places = np.stack([driving(y, 0.0, x) for x in (-3.0, -2.6) for y in (-0.4, 0.0, 0.4)])
    check(*_with_its_future(scenario_of(places, 0.0, road_map, sizes=(0.8, 0.6, 1.6))))


def test_edges_of_one_point_are_left_out() -> None:
    with_point = map_of([edge(SQUARE), edge([[0.0, 0.0]])])
    scenario = scenario_of([driving()], 0.0)
    expected = compute_features(*_with_its_future(scenario)).log.distance_to_road_edge
    found = compute_features(*_with_its_future(replace(scenario, map=with_point))).log.distance_to_road_edge
    assert_array_equal(found, expected)


@pytest.mark.parametrize("features", [[], [edge([[0.0, 0.0]])], [lane(straight(0, 0, 9, 0))]])
def test_a_map_without_edges_is_refused(features: list[Any]) -> None:
    scenario = replace(scenario_of([driving()], 0.0), map=map_of(features))
    with pytest.raises(ScenarioError, match="'made': its map has no road edge of at least two points"):
        score_rollouts(*_with_its_future(scenario))


@pytest.mark.row("REAL-1")
def test_agents_so_far_away_that_corners_round_to_one_point_do_not_collide() -> None:
    """100 m apart. At 3e7 m float32 knows even numbers only, so edges of their boxes have no length."""
    scenario = scenario_of([driving(), driving(y=9.0)], 0.3)
    x = np.repeat([[[3e7], [3e7 + 100.0]]], STEPS - CURRENT - 1, axis=2)
    motion = (x, np.full_like(x, -2e7), np.full_like(x, 0.8), np.full_like(x, 0.3))
    features = check(scenario, Rollouts.of(scenario.agent_ids, *motion))
    assert not features.simulated.collision_indication.any()
    assert features.simulated.distance_to_nearest_object[0, 0, 5] == pytest.approx(100.0, abs=6.0)


@pytest.mark.row("REAL-1")
def test_past_the_end_of_an_edge_its_own_side_decides() -> None:
    """A car beyond the end of an edge that runs east: off the road south of its line, on the road north of it."""
    for count in (2, 5):
        road_map = map_of([edge(straight(-40, 0, -20, 0, spacing=20 / (count - 1))), edge(straight(0, 90, 30, 90))])
        places = np.stack([driving(y, 0.0, 0.0) for y in (-3.0, 3.0)])
        found = check(*_with_its_future(scenario_of(places, 0.0, road_map, sizes=(1.0, 1.0, 1.6))))
        by_id = found.log.distance_to_road_edge[0, :, 0]
        to_corner = np.hypot(20.5, 3.5)  # the corner that is farthest out
        assert by_id[1] == pytest.approx(to_corner, rel=1e-6)  # ids fall with the number
        assert by_id[0] == pytest.approx(-np.hypot(19.5, 2.5), rel=1e-6)


@pytest.mark.row("REAL-1")
def test_a_corner_beside_the_end_of_a_segment_has_its_side_alone() -> None:
    """An edge that turns back on itself: the projection of two corners falls on the turn exactly (share 1).

    South of the first segment is off the road. Beyond the turn both segments count, and the second has it on its port.
    """
    road_map = map_of([edge([[-20, 0], [0, 0], [-20, 0]])])
    places = np.stack([np.tile([x, -1.0, 0.8], (STEPS, 1)) for x in (0.5, 0.75)])
    found = check(*_with_its_future(scenario_of(places, 0.0, road_map, sizes=(1.0, 1.0, 1.6))))
    at_the_turn, beyond = found.log.distance_to_road_edge[0, ::-1, 0]  # ids fall with the number
    assert at_the_turn == 1.5
    assert beyond == pytest.approx(-np.hypot(0.25, 0.5))


@pytest.mark.row("REAL-1")
def test_invalid_states_of_the_history_count_with_what_the_source_holds() -> None:
    valid = np.ones((1, STEPS), np.bool_)
    valid[0, :CURRENT] = False
    scenario = scenario_of([driving()], 0.0, valid=valid)
    source = scenario.positions.copy()
    source[0, :CURRENT] = driving()[:CURRENT]
    kept = replace(scenario, source_positions=source, source_headings=scenario.headings)
    jump = check(*_with_its_future(scenario)).simulated.linear_acceleration[0, 0, 0]
    smooth = check(*_with_its_future(kept)).simulated.linear_acceleration[0, 0, 0]
    assert abs(jump) > 40
    assert smooth == pytest.approx(0.0, abs=1e-4)


@pytest.mark.row("REAL-1")
def test_a_step_is_a_tenth_of_a_second_for_every_scenario() -> None:
    scenario = scenario_of([driving()], 0.0)
    slow = compute_features(*_with_its_future(replace(scenario, dt=0.2)))
    assert slow.log.linear_speed[0, 0, 5] == pytest.approx(10.0, rel=1e-5)


def _stop_and_go(states: Any) -> Features:
    """One lane to the east with a light at x = 0, and a car that passes it from step 15 to step 16."""
    road_map = map_of([edge(SQUARE), lane(straight(-20.3, 0, 20, 0)), lane(straight(-20, 8, 20, 8))])
    scenario = scenario_of([driving(x=-15.5)], 0.0, road_map, lights=[(0, [0.0, 0.0, 0.0], states)])
    return check(*_with_its_future(scenario))


@pytest.mark.parametrize(
    ("state", "is_run"),
    [
        (LightState.STOP, True),
        (LightState.ARROW_STOP, True),
        (LightState.FLASHING_STOP, False),
        (LightState.CAUTION, False),
        (LightState.GO, False),
    ],
)
def test_only_steady_red_lights_are_run(state: LightState, is_run: bool) -> None:
    found = _stop_and_go(np.full(STEPS, state)).log.traffic_light_violation[0, 0]
    assert list(np.flatnonzero(found) + CURRENT + 1) == ([16] if is_run else [])


def test_the_light_counts_when_its_stop_point_is_behind() -> None:
    turns_red, turns_green = np.full(STEPS, LightState.GO), np.full(STEPS, LightState.STOP)
    turns_red[16:], turns_green[16:] = LightState.STOP, LightState.GO
    assert _stop_and_go(turns_red).log.traffic_light_violation.any()
    assert not _stop_and_go(turns_green).log.traffic_light_violation.any()


@pytest.mark.row("REAL-1")
def test_a_light_listed_as_unknown_keeps_its_stop_point_and_one_not_listed_has_none() -> None:
    """The car passes the stop point from step 15 to step 16; the origin, in this frame, lies 10 m before it."""
    states = np.full(STEPS, LightState.STOP)
    states[:16] = LightState.UNKNOWN
    road_map = map_of([edge(SQUARE), lane(straight(-20.3, 0, 20, 0))])
    scenario = scenario_of([driving(x=-5.5)], 0.0, road_map, lights=[(0, [10.0, 0.0, 0.0], states)])
    stops = np.broadcast_to(np.array([10.0, 0.0, 0.0], np.float32), (1, STEPS, 3)).copy()
    known = replace(scenario, light_listed=np.ones((1, STEPS), np.bool_), source_light_stops=stops)
    found = check(*_with_its_future(known)).log.traffic_light_violation[0, 0]
    assert np.flatnonzero(found).tolist() == [16 - CURRENT - 1]
    listed = (states != LightState.UNKNOWN)[None]
    missing = replace(known, light_listed=listed, source_light_stops=stops * listed[..., None])
    assert not check(*_with_its_future(missing)).log.traffic_light_violation.any(), "at step 15 it was past the origin"


@pytest.mark.row("REAL-1")
def test_stop_points_that_move_count_each_at_its_own_step() -> None:
    """A car stands between two places of the stop point; when that jumps back over it while red, it is a violation."""
    road_map = map_of([edge(SQUARE), lane(straight(-20.3, 0, 20, 0))])
    stand = scenario_of([driving(x=0.7, speed_mps=0.0)], 0.0, road_map, lights=[(0, [5.0, 0, 0], np.full(STEPS, 4))])
    stops = np.zeros((1, STEPS, 3), np.float32)
    stops[0, :20, 0], stops[0, 20:, 0] = 5.0, -5.0
    moving = replace(stand, light_listed=np.ones((1, STEPS), np.bool_), source_light_stops=stops)
    found = check(*_with_its_future(moving)).log.traffic_light_violation[0, 0]
    assert np.flatnonzero(found).tolist() == [20 - CURRENT - 1]


@pytest.mark.row("REAL-1")
@pytest.mark.parametrize("kind", [AgentType.PEDESTRIAN, AgentType.CYCLIST, AgentType.OTHER])
def test_the_violation_rate_counts_all_types_and_the_likelihood_vehicles(kind: AgentType) -> None:
    road_map = map_of([edge(SQUARE), lane(straight(-20.3, 0, 20, 0)), lane(straight(-20.3, 9, 20, 9))])
    lights = [(number, [0.0, y, 0.0], np.full(STEPS, LightState.STOP)) for number, y in ((0, 0.0), (1, 9.0))]
    places, types = [driving(x=-15.5), driving(y=9.0, speed_mps=0.5)], [kind, AgentType.VEHICLE]
    figures = score_rollouts(*_with_its_future(scenario_of(places, 0.0, road_map, types=types, lights=lights)))
    assert figures.simulated_traffic_light_violation_rate == 0.5
    assert figures.traffic_light_violation_likelihood == pytest.approx(2.001 / 2.002)


def test_pedestrians_may_pass_red_lights_and_have_no_time_to_collision() -> None:
    types = [AgentType.VEHICLE, AgentType.PEDESTRIAN, AgentType.CYCLIST]
    features = compute_features(*_with_its_future(scenario_of([driving(y) for y in (-9, 0, 9)], 0.0, types=types)))
    for name in ("time_to_collision", "traffic_light_violation"):
        assert list(features.counted(name).any(axis=1)) == [False, False, True]  # by id, which fall
    assert features.counted("collision_indication").all()


def _with_its_future(scenario: Scenario) -> tuple[Scenario, Rollouts]:
    return scenario, recorded_future(scenario, 2)


def test_features_have_a_name_and_a_part_each() -> None:
    assert set(MotionFeatures.__dataclass_fields__) == set(CHALLENGE_2025.parts)
