"""Lane changes: from the center of one lane to the center of the other, with room, for a reason."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.scenario.generate.highways import build_highway
from roadworthy.scenario.generate.traffic.users import Script
from tests.scenario.generate.courses import DT, Course, Run, simulate_scene, straight_road

SEEDS = range(5)
WIDE = straight_road(lanes=2, length=900.0, limit=20.0)
INNER, OUTER = WIDE.roads["road"].forward
MIDDLE_M = {INNER: -1.75, OUTER: -5.25}
WANDER_M = 0.3


def scripted_change(seed: int, script: Script, others: bool = False) -> Run:
    """A car changes lanes a second after the start, if there is room; another may drive just beside it."""
    here, there = (OUTER, INNER) if script == Script.CHANGE_LEFT else (INNER, OUTER)
    scene = WIDE.scene(20.0, seed)
    scene.sdc = scene.put_car(here, 60.0, 15.0, script=script, script_step=10)
    if others:
        scene.put_car(there, 60.0, 15.0, script=Script.KEEP_LANE, top_speed=15.0)
    return simulate_scene(scene)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", [Script.CHANGE_LEFT, Script.CHANGE_RIGHT])
def test_a_lane_change_leads_from_center_to_center(seed: int, script: Script) -> None:
    run = scripted_change(seed, script)
    here, there = (OUTER, INNER) if script == Script.CHANGE_LEFT else (INNER, OUTER)
    assert run.y[0, :10] == pytest.approx(np.full(10, MIDDLE_M[here]), abs=WANDER_M)
    assert run.y[0, 100:130] == pytest.approx(np.full(30, MIDDLE_M[there]), abs=WANDER_M)
    # Straight over: never back by more than the lateral wandering, never beyond the center of the other lane.
    toward = (run.y[0] - MIDDLE_M[here]) * np.sign(MIDDLE_M[there] - MIDDLE_M[here])
    assert (toward - np.maximum.accumulate(toward)).min() > -2 * WANDER_M
    assert toward.max() < 3.5 + WANDER_M


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lane_change_takes_a_realistic_time(seed: int) -> None:
    run = scripted_change(seed, Script.CHANGE_LEFT)
    across = (run.y[0] > MIDDLE_M[OUTER] + 0.5) & (run.y[0] < MIDDLE_M[INNER] - 0.5)
    assert 1.2 < across.sum() * DT < 6.0
    assert np.abs(np.diff(run.heading[0])).max() / DT * run.v[0].max() < 2.5, "without a swerve"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", [Script.CHANGE_LEFT, Script.CHANGE_RIGHT])
def test_a_lane_change_waits_while_a_car_is_beside(seed: int, script: Script) -> None:
    run = scripted_change(seed, script, others=True)
    assert run.overlaps() == []
    changing = np.abs(run.y[0] - run.y[0, 0]) > 1.0
    if changing.any():
        first = int(changing.argmax())
        gap = abs(run.x[0, first] - run.x[1, first]) - run.lengths.mean()
        assert gap > 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_faster_driver_overtakes_a_slow_one(seed: int) -> None:
    scene = WIDE.scene(40.0, seed)
    scene.put_car(OUTER, 110.0, 8.0, top_speed=8.0, script=Script.KEEP_LANE)
    scene.sdc = scene.put_car(OUTER, 40.0, 17.0, speed_factor=0.9)
    run = simulate_scene(scene)
    both = run.present.all(axis=0)
    assert run.x[1, both][-1] > run.x[0, both][-1] + 20.0
    assert run.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_driver_changes_lanes_on_an_empty_road(seed: int) -> None:
    scene = WIDE.scene(30.0, seed)
    scene.sdc = scene.put_car(OUTER, 40.0, 15.0)
    run = simulate_scene(scene)
    assert run.y[0][run.present[0]] == pytest.approx(np.full(run.present[0].sum(), MIDDLE_M[OUTER]), abs=WANDER_M)


@pytest.mark.parametrize("seed", SEEDS)
def test_cars_from_a_ramp_merge_before_their_lane_closes(seed: int) -> None:
    course = Course(build_highway(np.random.default_rng(seed)), {})
    lanes = course.lanes
    ramp = next(n for n in course.network.entries if any(lanes[f].ends for f in lanes[n].successors))
    (closing,) = lanes[ramp].successors
    scene = course.scene(45.0, seed)
    for s in (20.0, 60.0, 110.0):
        scene.sdc = scene.put_car(ramp, s)
    beside = lanes[closing].left
    (before,) = (i for i, lane in enumerate(lanes) if beside in lane.successors)
    for back in (30.0, 70.0, 110.0, 160.0):
        scene.put_car(before, lanes[before].path.length - back)
    run = simulate_scene(scene)
    end = lanes[closing].end
    for user in range(3):
        beyond = np.flatnonzero(run.ahead_of(end, user) > 5.0)
        assert len(beyond), f"user {user} is stuck at the end of the ramp"
        assert run.left_of(end, user)[beyond[0]] > 0.5 * lanes[closing].width, "over the line already"
    assert run.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_car_stopped_at_the_end_of_a_closing_lane_still_merges(seed: int) -> None:
    course = Course(build_highway(np.random.default_rng(seed)), {})
    closing = next(i for i, lane in enumerate(course.lanes) if lane.ends)
    scene = course.scene(30.0, seed)
    scene.sdc = scene.put_car(closing, course.lanes[closing].path.length - 8.0, 0.0, length=4.6)
    run = simulate_scene(scene)
    assert run.ahead_of(course.lanes[closing].end, 0)[run.present[0]][-1] > 20.0, "nobody is in the way"
