"""Drivers behind others and at lights: they stand behind who stands, stop at red, and never roll backwards."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.scenario.generate.junctions import JunctionControl
from roadworthy.scenario.generate.network import Turn
from roadworthy.scenario.generate.traffic.users import Script
from roadworthy.scenario.schema import LightState
from tests.scenario.generate.courses import DT, Film, crossing, play, straight_road

SEEDS = range(5)
LIT = crossing(JunctionControl.PERMITTED_SIGNAL)
LINE_M = 0.2  # what a painted line is wide: a bumper above it has not passed it


def queue_at_red(seed: int, seconds: float) -> Film:
    """Three cars come from the east while the north has green, for about another 45 s."""
    stage = LIT.stage(seconds, seed)
    LIT.show_green_to(stage, LIT.movement("north", Turn.STRAIGHT))
    lane = LIT.approach("east")
    for before in (25.0, 55.0, 85.0):
        straight = LIT.movement("east", Turn.STRAIGHT)
        stage.sdc = stage.put_car(lane, LIT.lanes[lane].path.length - before, 8.0, plan=(straight,))
    return play(stage)


@pytest.mark.parametrize("seed", SEEDS)
def test_cars_queue_before_a_red_light_at_their_standing_gaps(seed: int) -> None:
    film = queue_at_red(seed, 30.0)
    line = LIT.lanes[LIT.approach("east")].end
    fronts = [float(film.ahead_of(line, user)[-1]) for user in range(3)]
    assert (film.v[:, -1] < 0.05).all(), "everybody stands"
    assert -4.0 < fronts[0] < LINE_M, "the first one stands at the line"
    for user, leader in ((1, 0), (2, 1)):
        gap = fronts[leader] - film.lengths[leader] - fronts[user]
        wanted = film.stage.roster.people[user].standing_gap
        assert 0.8 * wanted - 0.2 < gap < wanted + 2.0, f"user {user} stands {gap:.1f} m behind, wants {wanted:.1f}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_queue_moves_off_one_after_another_once_the_light_is_green(seed: int) -> None:
    film = queue_at_red(seed, 75.0)
    line = LIT.lanes[LIT.approach("east")].end
    green = int(np.flatnonzero(film.shown(LIT.movement("east", Turn.STRAIGHT)) == LightState.GO)[0])
    crossed = [int(np.flatnonzero(film.ahead_of(line, user) > 0.0)[0]) for user in range(3)]
    assert green < crossed[0] < crossed[1] < crossed[2]
    headways = np.diff(crossed) * DT
    assert (headways < 5.0).all(), f"a queue flows at {headways} s per car"


@pytest.mark.parametrize("seed", SEEDS)
def test_speed_is_never_negative_and_standing_cars_stand_still(seed: int) -> None:
    film = queue_at_red(seed, 40.0)
    assert (film.v >= 0.0).all()
    step = np.hypot(np.diff(film.x, axis=1), np.diff(film.y, axis=1))
    stands = (film.v[:, 1:] == 0.0) & (film.v[:, :-1] == 0.0)
    assert stands.any()
    assert step[stands].max() == 0.0
    assert np.abs(np.diff(film.heading, axis=1)[stands]).max() == 0.0


@pytest.mark.parametrize("before", range(5, 90, 6))
def test_nobody_enters_on_red_wherever_the_yellow_light_meets_them(before: int) -> None:
    stage = LIT.stage(14.0, before)
    straight = LIT.movement("east", Turn.STRAIGHT)
    LIT.show_green_to(stage, straight, since_s=39.0)  # a second before it turns yellow
    lane = LIT.approach("east")
    stage.sdc = stage.put_car(lane, LIT.lanes[lane].path.length - before - 11.0, 11.0, plan=(straight,))
    film = play(stage)
    front = film.ahead_of(LIT.lanes[lane].end, 0)
    crosses = np.flatnonzero((front[:-1] <= LINE_M) & (front[1:] > LINE_M))
    red = np.isin(film.shown(straight), [LightState.STOP])
    assert not red[crosses].any()
    assert np.diff(film.v[0]).min() / DT > -5.3


@pytest.mark.parametrize("seed", range(12))
def test_followers_of_one_who_brakes_hard_stop_in_time(seed: int) -> None:
    course = straight_road(length=700.0, limit=20.0)
    stage = course.stage(18.0, seed)
    lane = course.roads["road"].forward[0]
    for number in range(5):
        braking = {"script": Script.BRAKE, "script_step": 20, "script_value": 7.0} if number == 0 else {}
        stage.sdc = stage.put_car(lane, 260.0 - number * 38.0, 18.0, **braking)
    film = play(stage)
    assert film.v[0].min() == 0.0
    along = film.x
    gaps = along[:-1] - along[1:] - (film.lengths[:-1] + film.lengths[1:])[:, None] / 2
    assert gaps.min() > 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_alone_on_the_road_one_drives_at_ones_own_desired_speed(seed: int) -> None:
    course = straight_road(length=900.0, limit=14.0)
    stage = course.stage(40.0, seed)
    stage.sdc = stage.put_car(course.roads["road"].forward[0], 10.0, 2.0)
    person = stage.roster.people[0]
    film = play(stage)
    assert film.v[0, -1] == pytest.approx(person.speed_factor * 14.0, rel=0.03)
    assert np.nanmax(film.v[0]) <= person.speed_factor * 14.0 * 1.02
    assert np.diff(film.v[0]).max() / DT <= person.acceleration + 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_a_follower_keeps_about_its_own_headway(seed: int) -> None:
    course = straight_road(length=1200.0, limit=14.0)
    stage = course.stage(60.0, seed)
    lane = course.roads["road"].forward[0]
    stage.put_car(lane, 120.0, 10.0, top_speed=10.0)
    stage.sdc = stage.put_car(lane, 40.0, 12.0)
    film = play(stage)
    person = stage.roster.people[1]
    gap = film.x[0, -1] - film.x[1, -1] - film.lengths.mean()
    assert film.v[1, -1] == pytest.approx(10.0, abs=0.3)
    assert gap == pytest.approx(person.standing_gap + 10.0 * person.headway, rel=0.25)
