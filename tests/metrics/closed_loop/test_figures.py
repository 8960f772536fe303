"""The closed-loop score as a whole: its formula, the reference's numbers, where it applies, and its properties."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roadworthy.metrics.closed_loop import FIGURES, closed_loop_figures
from roadworthy.metrics.closed_loop.figures import MULTIPLIERS, SCORE, SUBSTITUTES, WEIGHTS, closed_loop_score
from roadworthy.metrics.closed_loop.motion import start_step
from roadworthy.record.traces import ROLES, Trace
from roadworthy.scenario.schema import AgentType, RoadMap, Scenario
from tests.metrics.closed_loop.roads import DT, Drive, Lane, Recorded, crossing, recorded, road_map
from tests.metrics.closed_loop.scenes import FRAMES, REFERENCE, SCENES, STEADY, along, scene

PARTS = (SCORE, *MULTIPLIERS, *WEIGHTS)


def figures(one: Recorded) -> dict[str, float]:
    return dict(closed_loop_figures(one.trace, one.scenario, 0, 0))


@pytest.mark.row("CL-2")
@pytest.mark.parametrize("name", SCENES)
def test_every_part_is_what_the_published_code_computes(name: str) -> None:
    found = figures(scene(name))
    assert tuple(found[part] for part in PARTS) == pytest.approx(REFERENCE[name], abs=2e-6)


def test_the_scenes_tell_parts_apart() -> None:
    """Each part is below 1 in a scene of its own, or the comparison would show nothing."""
    table = np.array(list(REFERENCE.values()))
    assert (table.min(axis=0) < 1.0).all()
    assert (table.max(axis=0) == 1.0).all()


@pytest.mark.row("CL-2")
@pytest.mark.parametrize(
    ("changes", "score"),
    [
        ({}, 1.0),
        ({"progress": 0.6}, 1.0 - 5 * 0.4 / 16),
        ({"time_to_collision": 0.0}, 11 / 16),
        ({"speed_limit": 0.5}, 14 / 16),
        ({"comfort_in_bounds": 0.0}, 14 / 16),
        ({"no_at_fault_collision": 0.5, "progress": 0.2}, 0.5 * 12 / 16),
        ({"drivable_area": 0.0}, 0.0),
        ({"making_progress": 0.0}, 0.0),
        ({"driving_direction": 0.5}, 0.5),
        ({"comfort_in_bounds": math.nan, "progress": 0.3}, (5 * 0.3 + 5 + 4) / 14),
        ({"drivable_area": math.nan, "speed_limit": 0.0}, 12 / 16),
    ],
)
def test_multipliers_multiply_the_weighted_mean_of_the_graded_parts(changes: dict[str, float], score: float) -> None:
    assert closed_loop_score(dict.fromkeys((*MULTIPLIERS, *WEIGHTS), 1.0) | changes) == pytest.approx(score)


def test_without_any_graded_part_there_is_no_score() -> None:
    assert math.isnan(closed_loop_score(dict.fromkeys(MULTIPLIERS, 1.0) | dict.fromkeys(WEIGHTS, math.nan)))


def moved(one: Recorded, angle: float, shift: tuple[float, float]) -> Recorded:
    """The same scene in another frame of reference."""
    cos, sin = math.cos(angle), math.sin(angle)

    def turned(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y = x.astype(np.float64), y.astype(np.float64)
        return (
            (cos * x - sin * y + shift[0]).astype(np.float32),
            (sin * x + cos * y + shift[1]).astype(np.float32),
        )

    def map_of(road: RoadMap) -> RoadMap:
        points = road.points.copy()
        points[:, 0], points[:, 1] = turned(points[:, 0], points[:, 1])
        return replace(road, points=points)

    def scenario_of(scenario: Scenario) -> Scenario:
        positions, velocities = scenario.positions.copy(), scenario.velocities.astype(np.float64)
        positions[..., 0], positions[..., 1] = turned(positions[..., 0], positions[..., 1])
        east, north = velocities[..., 0], velocities[..., 1]
        velocities = np.stack([cos * east - sin * north, sin * east + cos * north], -1)
        return replace(
            scenario,
            map=map_of(scenario.map),
            positions=positions,
            headings=scenario.headings + np.float32(angle),
            velocities=velocities.astype(np.float32),
        )

    def trace_of(trace: Trace) -> Trace:
        x, y = turned(trace.x, trace.y)
        heading = trace.heading.astype(np.float64) + angle
        return replace(trace, x=x, y=y, heading=np.arctan2(np.sin(heading), np.cos(heading)).astype(np.float32))

    return Recorded(scenario_of(one.scenario), trace_of(one.trace))


@pytest.mark.row("CL-2")
@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(sorted(SCENES)),
    angle=st.floats(-math.pi, math.pi),
    shift=st.tuples(st.floats(-500.0, 500.0), st.floats(-500.0, 500.0)),
)
def test_the_score_does_not_depend_on_where_and_which_way_the_map_lies(
    name: str, angle: float, shift: tuple[float, float]
) -> None:
    """Positions are float32, so graded parts move by rounding; no scene lies at a bound of a part."""
    usual, elsewhere = figures(scene(name)), figures(moved(scene(name), angle, shift))
    assert elsewhere == pytest.approx(usual, abs=2e-3)


def test_the_order_of_the_tracks_does_not_matter() -> None:
    one = scene("left turn among traffic")
    order = np.array([0, 2, 1])
    names = ("x", "y", "heading", "speed", "present", "active", "events", "actions")
    swapped = {name: getattr(one.trace, name)[:, order] for name in names}
    bodies = {name: getattr(one.trace, name)[order] for name in ("length", "width", "kinds", "roles", "sources")}
    assert figures(Recorded(one.scenario, replace(one.trace, **swapped, **bodies))) == figures(one)


def test_only_recorded_vehicles_have_a_score() -> None:
    one = scene("alone")
    for changes in ({"kinds": np.array([AgentType.CYCLIST], np.int8)}, {"sources": np.array([-1], np.int32)}):
        found = figures(Recorded(one.scenario, replace(one.trace, **changes)))
        assert tuple(found) == FIGURES
        assert all(math.isnan(value) for value in found.values())


def test_each_trial_is_scored_by_its_own_frames() -> None:
    """The first trial crashes, the second does not."""
    bad, good = scene("behind a slower car"), scene("alone")
    names = ("x", "y", "heading", "speed", "present", "active", "events", "actions")
    both = {name: np.concatenate([getattr(bad.trace, name), getattr(bad.trace, name)]) for name in names}
    both["x"][FRAMES:, 0] = good.trace.x[:, 0] * 0.4 + 6.0
    both["speed"][FRAMES:, 0] *= 0.4
    trace = replace(bad.trace, **both, trial_starts=np.array([0, FRAMES, 2 * FRAMES], np.int32))
    scores = [closed_loop_figures(trace, bad.scenario, 0, trial)[SCORE] for trial in (0, 1)]
    assert scores[0] == 0.0
    assert scores[1] > 0.8


def test_frames_after_the_ego_has_left_do_not_count() -> None:
    one = scene("off the road")
    present = one.trace.present.copy()
    present[20:, 0] = False  # the road is left later than that
    found = figures(Recorded(one.scenario, replace(one.trace, present=present)))
    assert (found["drivable_area"], figures(one)["drivable_area"]) == (1.0, 0.0)


def test_the_start_of_a_trial_is_found_in_the_recording() -> None:
    one = recorded(crossing(), along(STEADY), along(0.5 * STEADY), frames=FRAMES, history=25)
    assert start_step(one.trace, one.scenario, 0) == 25
    later = replace(one.trace, x=one.trace.x + np.float32(45.0), trial_starts=one.trace.trial_starts)
    exact = replace(one.scenario, positions=one.scenario.positions.copy())
    exact.positions[0, 75, :2] = later.x[0, 0], later.y[0, 0]
    assert start_step(later, exact, 0) == 75


def test_where_nothing_moves_the_trial_starts_at_the_last_step_of_history() -> None:
    one = recorded(crossing(), Drive(20.0), Drive(20.0), frames=21)
    still = replace(
        one.scenario, positions=np.broadcast_to(one.scenario.positions[:, -1:], one.scenario.positions.shape)
    )
    assert start_step(one.trace, still, 0) == still.current_step == 10


def test_roles_are_those_of_the_simulator() -> None:
    from roadworthy.sim.state import ROLES as SIM_ROLES

    assert ROLES == SIM_ROLES


def _with_widths(road: RoadMap, width: float) -> RoadMap:
    return replace(road, lane_widths=np.full(road.lane_count, width, np.float32))


@pytest.mark.parametrize(
    ("name", "decides"),
    [
        ("alone", 0.0),
        ("behind a slower car", 0.0),
        ("changing lanes into a car", 1.0),
        ("too fast", 1.0),
        ("straight on instead of left", 1.0),
    ],
)
def test_a_default_width_decides_only_where_something_was_lost_on_it(name: str, decides: float) -> None:
    """A front collision asks for no lane, a lateral one does; so do the limit of a lane and the recorded route."""
    one = scene(name)
    assert figures(one)["default_width_decided"] == 0.0
    unsure = replace(one.scenario, map=_with_widths(one.scenario.map, math.nan))
    assert figures(Recorded(unsure, one.trace))["default_width_decided"] == decides


def test_what_a_map_lacks_is_counted() -> None:
    bare = road_map([Lane([(0.0, 40.0), (300.0, 40.0)])])
    one = recorded(bare, along(STEADY), along(STEADY), frames=FRAMES)
    found = figures(one)
    assert {name: found[name] for name in SUBSTITUTES} == {
        "default_width_decided": 0.0,
        "left_all_lanes": 1.0,
        "no_recorded_route": 1.0,
        "no_speed_limit": 1.0,
        "no_road_edges": 1.0,
    }
    assert (found["progress"], found["speed_limit"], found["drivable_area"]) == (1.0, 1.0, 0.0)


@pytest.mark.row("CL-2")
def test_a_trial_that_outlasts_its_recording_is_graded_up_to_the_recordings_end() -> None:
    """At half the recorded speed the progress is a half, however long the ego keeps driving after the recording."""
    way = np.arange(151) * DT
    one = recorded(
        road_map([Lane([(0, 0), (400, 0)])]),
        Drive(10.0 + 8.0 * way, speed=8.0),
        Drive(10.0 + 4.0 * way, speed=4.0),
    )
    steps = one.scenario.current_step + 81
    cut = replace(
        one.scenario,
        **{
            name: getattr(one.scenario, name)[:, :steps]
            for name in ("positions", "headings", "velocities", "valid", "light_states")
        },
    )
    assert figures(one)["progress"] == pytest.approx(0.5, abs=1e-3)
    assert figures(replace(one, scenario=cut))["progress"] == pytest.approx(0.5, abs=1e-3)
