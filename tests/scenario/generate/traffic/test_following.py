"""Drivers behind others and at lights: they stop behind standing cars and at red lights, and never roll backward."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.scenario.generate.junctions import JunctionControl
from roadworthy.scenario.generate.network import Turn
from roadworthy.scenario.generate.traffic.users import Script
from roadworthy.scenario.schema import LightState
from tests.scenario.generate.courses import DT, Run, crossing, simulate_scene, straight_road

SEEDS = range(5)
LIT = crossing(JunctionControl.PERMITTED_SIGNAL)
LINE_M = 0.2  # width of a painted line: a bumper above it has not passed it


def queue_at_red(seed: int, seconds: float) -> Run:
    """Three cars come from the east while the north has green, for about another 45 s."""
    scene = LIT.scene(seconds, seed)
    LIT.show_green_to(scene, LIT.movement("north", Turn.STRAIGHT))
    lane = LIT.approach("east")
    for before in (25.0, 55.0, 85.0):
        straight = LIT.movement("east", Turn.STRAIGHT)
        scene.sdc = scene.put_car(lane, LIT.lanes[lane].path.length - before, 8.0, plan=(straight,))
    return simulate_scene(scene)


@pytest.mark.parametrize("seed", SEEDS)
def test_cars_queue_before_a_red_light_at_their_standing_gaps(seed: int) -> None:
    run = queue_at_red(seed, 30.0)
    line = LIT.lanes[LIT.approach("east")].end
    fronts = [float(run.ahead_of(line, user)[-1]) for user in range(3)]
    assert (run.v[:, -1] < 0.05).all(), "everybody stands"
    assert -4.0 < fronts[0] < LINE_M, "the first one stands at the line"
    for user, leader in ((1, 0), (2, 1)):
        gap = fronts[leader] - run.lengths[leader] - fronts[user]
        wanted = run.scene.road_users[user].standing_gap
        assert 0.8 * wanted - 0.2 < gap < wanted + 2.0, f"user {user} stands {gap:.1f} m behind, wants {wanted:.1f}"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_queue_moves_off_one_after_another_once_the_light_is_green(seed: int) -> None:
    run = queue_at_red(seed, 75.0)
    line = LIT.lanes[LIT.approach("east")].end
    green = int(np.flatnonzero(run.shown(LIT.movement("east", Turn.STRAIGHT)) == LightState.GO)[0])
    crossed = [int(np.flatnonzero(run.ahead_of(line, user) > 0.0)[0]) for user in range(3)]
    assert green < crossed[0] < crossed[1] < crossed[2]
    headways = np.diff(crossed) * DT
    assert (headways < 5.0).all(), f"a queue flows at {headways} s per car"


@pytest.mark.parametrize("seed", SEEDS)
def test_speed_is_never_negative_and_standing_cars_stand_still(seed: int) -> None:
    run = queue_at_red(seed, 40.0)
    assert (run.v >= 0.0).all()
    step = np.hypot(np.diff(run.x, axis=1), np.diff(run.y, axis=1))
    stands = (run.v[:, 1:] == 0.0) & (run.v[:, :-1] == 0.0)
    assert stands.any()
    assert step[stands].max() == 0.0
    assert np.abs(np.diff(run.heading, axis=1)[stands]).max() == 0.0


@pytest.mark.parametrize("before", range(5, 90, 6))
def test_no_driver_enters_on_red_wherever_the_light_turns_yellow(before: int) -> None:
    scene = LIT.scene(14.0, before)
    straight = LIT.movement("east", Turn.STRAIGHT)
    LIT.show_green_to(scene, straight, since_s=39.0)  # a second before it turns yellow
    lane = LIT.approach("east")
    scene.sdc = scene.put_car(lane, LIT.lanes[lane].path.length - before - 11.0, 11.0, plan=(straight,))
    run = simulate_scene(scene)
    front = run.ahead_of(LIT.lanes[lane].end, 0)
    crosses = np.flatnonzero((front[:-1] <= LINE_M) & (front[1:] > LINE_M))
    red = np.isin(run.shown(straight), [LightState.STOP])
    assert not red[crosses].any()
    assert np.diff(run.v[0]).min() / DT > -5.3


@pytest.mark.parametrize("seed", range(12))
def test_followers_of_a_car_that_brakes_hard_stop_in_time(seed: int) -> None:
    course = straight_road(length=700.0, limit=20.0)
    scene = course.scene(18.0, seed)
    lane = course.roads["road"].forward[0]
    for number in range(5):
        braking = {"script": Script.BRAKE, "script_step": 20, "script_value": 7.0} if number == 0 else {}
        scene.sdc = scene.put_car(lane, 260.0 - number * 38.0, 18.0, **braking)
    run = simulate_scene(scene)
    assert run.v[0].min() == 0.0
    along = run.x
    gaps = along[:-1] - along[1:] - (run.lengths[:-1] + run.lengths[1:])[:, None] / 2
    assert gaps.min() > 0.2


@pytest.mark.parametrize("seed", SEEDS)
def test_a_driver_alone_on_the_road_drives_at_its_desired_speed(seed: int) -> None:
    course = straight_road(length=900.0, limit=14.0)
    scene = course.scene(40.0, seed)
    scene.sdc = scene.put_car(course.roads["road"].forward[0], 10.0, 2.0)
    user = scene.road_users[0]
    run = simulate_scene(scene)
    assert run.v[0, -1] == pytest.approx(user.speed_factor * 14.0, rel=0.03)
    assert np.nanmax(run.v[0]) <= user.speed_factor * 14.0 * 1.02
    assert np.diff(run.v[0]).max() / DT <= user.acceleration + 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_a_follower_keeps_about_its_own_headway(seed: int) -> None:
    course = straight_road(length=1200.0, limit=14.0)
    scene = course.scene(60.0, seed)
    lane = course.roads["road"].forward[0]
    scene.put_car(lane, 120.0, 10.0, top_speed=10.0)
    scene.sdc = scene.put_car(lane, 40.0, 12.0)
    run = simulate_scene(scene)
    user = scene.road_users[1]
    gap = run.x[0, -1] - run.x[1, -1] - run.lengths.mean()
    assert run.v[1, -1] == pytest.approx(10.0, abs=0.3)
    assert gap == pytest.approx(user.standing_gap + 10.0 * user.headway, rel=0.25)
