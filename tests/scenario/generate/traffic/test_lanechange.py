"""Changing lanes: from the middle of one to the middle of the other, with room, for a reason."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.scenario.generate.highways import build_highway
from roadworthy.scenario.generate.traffic.users import Script
from tests.scenario.generate.courses import DT, Course, Film, play, straight_road

SEEDS = range(5)
WIDE = straight_road(lanes=2, length=900.0, limit=20.0)
INNER, OUTER = WIDE.roads["road"].forward
MIDDLE_M = {INNER: -1.75, OUTER: -5.25}
WANDER_M = 0.3


def scripted_change(seed: int, script: Script, others: bool = False) -> Film:
    """A car changes lanes a second after the start, if there is room; another may drive just beside it."""
    here, there = (OUTER, INNER) if script == Script.CHANGE_LEFT else (INNER, OUTER)
    stage = WIDE.stage(20.0, seed)
    stage.sdc = stage.put_car(here, 60.0, 15.0, script=script, script_step=10)
    if others:
        stage.put_car(there, 60.0, 15.0, script=Script.KEEP_LANE, top_speed=15.0)
    return play(stage)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", [Script.CHANGE_LEFT, Script.CHANGE_RIGHT])
def test_a_change_leads_from_the_middle_of_one_lane_to_the_middle_of_the_other(seed: int, script: Script) -> None:
    film = scripted_change(seed, script)
    here, there = (OUTER, INNER) if script == Script.CHANGE_LEFT else (INNER, OUTER)
    assert film.y[0, :10] == pytest.approx(np.full(10, MIDDLE_M[here]), abs=WANDER_M)
    assert film.y[0, 100:130] == pytest.approx(np.full(30, MIDDLE_M[there]), abs=WANDER_M)
    # Straight over: never back by more than the wandering, never beyond the middle of the other lane.
    toward = (film.y[0] - MIDDLE_M[here]) * np.sign(MIDDLE_M[there] - MIDDLE_M[here])
    assert (toward - np.maximum.accumulate(toward)).min() > -2 * WANDER_M
    assert toward.max() < 3.5 + WANDER_M


@pytest.mark.parametrize("seed", SEEDS)
def test_a_change_takes_the_time_that_people_take(seed: int) -> None:
    film = scripted_change(seed, Script.CHANGE_LEFT)
    across = (film.y[0] > MIDDLE_M[OUTER] + 0.5) & (film.y[0] < MIDDLE_M[INNER] - 0.5)
    assert 1.2 < across.sum() * DT < 6.0
    assert np.abs(np.diff(film.heading[0])).max() / DT * film.v[0].max() < 2.5, "without a swerve"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("script", [Script.CHANGE_LEFT, Script.CHANGE_RIGHT])
def test_a_change_waits_while_somebody_is_beside(seed: int, script: Script) -> None:
    film = scripted_change(seed, script, others=True)
    assert film.overlaps() == []
    changing = np.abs(film.y[0] - film.y[0, 0]) > 1.0
    if changing.any():
        first = int(changing.argmax())
        gap = abs(film.x[0, first] - film.x[1, first]) - film.lengths.mean()
        assert gap > 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_faster_driver_overtakes_a_slow_one(seed: int) -> None:
    stage = WIDE.stage(40.0, seed)
    stage.put_car(OUTER, 110.0, 8.0, top_speed=8.0, script=Script.KEEP_LANE)
    stage.sdc = stage.put_car(OUTER, 40.0, 17.0, speed_factor=0.9)
    film = play(stage)
    both = film.present.all(axis=0)
    assert film.x[1, both][-1] > film.x[0, both][-1] + 20.0
    assert film.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_changes_lanes_on_an_empty_road(seed: int) -> None:
    stage = WIDE.stage(30.0, seed)
    stage.sdc = stage.put_car(OUTER, 40.0, 15.0)
    film = play(stage)
    assert film.y[0][film.present[0]] == pytest.approx(np.full(film.present[0].sum(), MIDDLE_M[OUTER]), abs=WANDER_M)


@pytest.mark.parametrize("seed", SEEDS)
def test_those_who_come_up_a_ramp_merge_before_their_lane_closes(seed: int) -> None:
    course = Course(build_highway(np.random.default_rng(seed)), {})
    lanes = course.lanes
    ramp = next(n for n in course.network.entries if any(lanes[f].ends for f in lanes[n].successors))
    (closing,) = lanes[ramp].successors
    stage = course.stage(45.0, seed)
    for s in (20.0, 60.0, 110.0):
        stage.sdc = stage.put_car(ramp, s)
    beside = lanes[closing].left
    (before,) = (i for i, lane in enumerate(lanes) if beside in lane.successors)
    for back in (30.0, 70.0, 110.0, 160.0):
        stage.put_car(before, lanes[before].path.length - back)
    film = play(stage)
    end = lanes[closing].end
    for user in range(3):
        beyond = np.flatnonzero(film.ahead_of(end, user) > 5.0)
        assert len(beyond), f"user {user} is stuck at the end of the ramp"
        assert film.left_of(end, user)[beyond[0]] > 0.5 * lanes[closing].width, "over the line already"
    assert film.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_one_who_had_to_stop_at_the_end_of_a_closing_lane_still_gets_onto_the_road(seed: int) -> None:
    course = Course(build_highway(np.random.default_rng(seed)), {})
    closing = next(i for i, lane in enumerate(course.lanes) if lane.ends)
    stage = course.stage(30.0, seed)
    stage.sdc = stage.put_car(closing, course.lanes[closing].path.length - 8.0, 0.0, length=4.6)
    film = play(stage)
    assert film.ahead_of(course.lanes[closing].end, 0)[film.present[0]][-1] > 20.0, "nobody is in the way"
