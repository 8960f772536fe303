"""Who goes first: stop signs, rings, oncoming traffic, pedestrians."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from roadworthy.scenario.generate.junctions import JunctionControl
from roadworthy.scenario.generate.network import Turn
from roadworthy.scenario.generate.stage import Stage
from tests.scenario.generate.courses import SIDES, Course, Film, crossing, play, roundabout, straight_road

SEEDS = range(5)
PRIORITY = crossing(JunctionControl.PRIORITY)
ALL_STOP = crossing(JunctionControl.ALL_WAY_STOP)
PERMITTED = crossing(JunctionControl.PERMITTED_SIGNAL)
RING = roundabout()
LINE_M = 0.2  # what a painted line is wide: a bumper above it has not passed it


def send(course: Course, stage: Stage, side: str, turn: Turn, before: float, speed: float | None = None) -> int:
    """Put a car so many meters before the junction."""
    lane = course.approach(side)
    return stage.put_car(lane, course.lanes[lane].path.length - before, speed, plan=(course.movement(side, turn),))


def crosses_line(course: Course, film: Film, side: str, user: int) -> int:
    """The step at which a front bumper passes the stop line."""
    beyond = np.flatnonzero(film.ahead_of(course.lanes[course.approach(side)].end, user) > LINE_M)
    assert len(beyond), f"the car from the {side} never enters"
    return int(beyond[0])


def crossing_point(course: Course, a: int, b: int) -> shapely.Point:
    """Where the middles of two lanes meet."""
    lines = [shapely.LineString(np.column_stack([p.x, p.y])) for p in (course.lanes[n].path for n in (a, b))]
    return shapely.intersection(*lines).representative_point()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("turn", [Turn.LEFT, Turn.STRAIGHT, Turn.RIGHT])
def test_at_a_stop_sign_one_stops_fully_even_on_an_empty_road(seed: int, turn: Turn) -> None:
    stage = PRIORITY.stage(25.0, seed)
    stage.sdc = send(PRIORITY, stage, "north", turn, 50.0)
    film = play(stage)
    front = film.ahead_of(PRIORITY.lanes[PRIORITY.approach("north")].end, 0)
    at_line = (front > -4.0) & (front < LINE_M)
    assert film.v[0, at_line].min() < 0.3
    assert crosses_line(PRIORITY, film, "north", 0) * 0.1 < 20.0, "and then goes on"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_main_street_is_not_slowed_by_the_side_street(seed: int) -> None:
    speeds = []
    for with_side in (False, True):
        stage = PRIORITY.stage(14.0, seed)
        stage.sdc = send(PRIORITY, stage, "east", Turn.STRAIGHT, 70.0, 11.0)
        if with_side:
            send(PRIORITY, stage, "north", Turn.STRAIGHT, 15.0, 5.0)
        film = play(stage)
        speeds.append(film.v[0])
    np.testing.assert_allclose(speeds[1], speeds[0], atol=0.5)
    place = crossing_point(
        PRIORITY, PRIORITY.movement("east", Turn.STRAIGHT), PRIORITY.movement("north", Turn.STRAIGHT)
    )
    assert crosses_line(PRIORITY, film, "north", 1) < stage.steps
    assert film.step_at(place, 0) < film.step_at(place, 1)


@pytest.mark.parametrize("first", ["east", "north"])
@pytest.mark.parametrize("seed", SEEDS)
def test_at_an_all_way_stop_who_comes_first_goes_first(seed: int, first: str) -> None:
    second = "north" if first == "east" else "east"
    stage = ALL_STOP.stage(30.0, seed)
    stage.sdc = send(ALL_STOP, stage, first, Turn.STRAIGHT, 15.0, 5.0)
    send(ALL_STOP, stage, second, Turn.STRAIGHT, 50.0, 8.0)
    film = play(stage)
    assert crosses_line(ALL_STOP, film, first, 0) < crosses_line(ALL_STOP, film, second, 1)
    assert film.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_four_who_come_at_once_to_an_all_way_stop_all_get_through(seed: int) -> None:
    stage = ALL_STOP.stage(50.0, seed)
    turns = np.random.default_rng(seed).choice([Turn.LEFT, Turn.STRAIGHT, Turn.RIGHT], 4)
    for side, turn in zip(SIDES, turns, strict=True):
        stage.sdc = send(ALL_STOP, stage, side, Turn(turn), 30.0, 6.0)
    film = play(stage)
    for user, side in enumerate(SIDES):
        crosses_line(ALL_STOP, film, side, user)
    assert film.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_permitted_left_turn_waits_for_oncoming_traffic(seed: int) -> None:
    left, ahead = PERMITTED.movement("east", Turn.LEFT), PERMITTED.movement("west", Turn.STRAIGHT)
    stage = PERMITTED.stage(25.0, seed)
    PERMITTED.show_green_to(stage, left)
    stage.sdc = send(PERMITTED, stage, "east", Turn.LEFT, 20.0, 6.0)
    send(PERMITTED, stage, "west", Turn.STRAIGHT, 40.0, 10.0)
    film = play(stage)
    place = crossing_point(PERMITTED, left, ahead)
    assert film.step_at(place, 1) < film.step_at(place, 0)
    assert np.diff(film.v[1][film.present[1]]).min() / 0.1 > -1.0, "who goes first need not brake"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_left_turn_with_nobody_oncoming_goes_without_waiting(seed: int) -> None:
    stage = PERMITTED.stage(15.0, seed)
    PERMITTED.show_green_to(stage, PERMITTED.movement("east", Turn.LEFT))
    stage.sdc = send(PERMITTED, stage, "east", Turn.LEFT, 40.0, 8.0)
    film = play(stage)
    crosses_line(PERMITTED, film, "east", 0)
    assert np.nanmin(film.v[0]) > 2.5


def ring_scene(seed: int, with_ring_car: bool) -> Film:
    """A car comes up to the ring, another may be on it, about to pass that entry."""
    (entry,) = RING.lanes[RING.approach("east")].successors
    (before,) = (b for a, b in RING.network.yields if a == entry)
    stage = RING.stage(16.0, seed)
    around = [RING.lanes[entry].successors[0]]
    for _ in range(3):
        around.append(next(n for n in RING.lanes[around[-1]].successors if RING.lanes[n].turn == Turn.RING))
    lane = RING.approach("east")
    stage.sdc = stage.put_car(lane, RING.lanes[lane].path.length - 14.0, 7.0, plan=(entry, *around))
    if with_ring_car:
        stage.put_car(before, 3.0, 6.0, plan=tuple(around))
    return play(stage)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_driver_on_a_ring_goes_first(seed: int) -> None:
    film = ring_scene(seed, with_ring_car=True)
    (entry,) = RING.lanes[RING.approach("east")].successors
    joint = RING.lanes[entry].end
    place = shapely.Point(joint.x, joint.y)
    assert film.step_at(place, 1) < film.step_at(place, 0)
    on_way = slice(0, film.step_at(place, 1))
    assert film.v[1, on_way].min() > 4.5, "the one on the ring is not held up"
    assert film.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_ring_is_entered_without_a_stop(seed: int) -> None:
    film = ring_scene(seed, with_ring_car=False)
    assert np.nanmin(film.v[0]) > 2.5
    assert crosses_line(RING, film, "east", 0) < film.step_at(shapely.Point(0.0, 18.0), 0)


ZEBRA_AT_M = 200.0


def zebra_scene(seed: int, before: float, arrives_s: float, speed: float = 11.0) -> Film:
    """A car comes to a crosswalk that somebody wants to use, from the car's side of the road."""
    course = straight_road(crosswalk_at=ZEBRA_AT_M)
    stage = course.stage(25.0, seed)
    stage.sdc = stage.put_car(course.roads["road"].forward[0], ZEBRA_AT_M - before, speed)
    near = int(np.argmin(course.network.crosswalks[0].curbs[:, 1]))  # the right side, seen by the car
    stage.put_walker(0, arrives_s=arrives_s, curb_number=near)
    return play(stage)


def on_zebra(film: Film) -> np.ndarray:
    """(T,) whether any part of the car is over the crosswalk."""
    return np.abs(film.x[0] - ZEBRA_AT_M) < film.lengths[0] / 2 + 1.5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pedestrian_on_a_crosswalk_is_let_pass(seed: int) -> None:
    film = zebra_scene(seed, before=70.0, arrives_s=1.5)
    in_lane = film.present[1] & (film.y[1] > -3.5) & (film.y[1] < 0.0)
    assert in_lane.any(), "the pedestrian crosses"
    assert not (in_lane & on_zebra(film)).any()
    assert np.flatnonzero(in_lane)[0] < np.flatnonzero(on_zebra(film))[0], "and goes first"
    assert np.nanmin(film.v[0]) < 8.5, "the driver slows down"
    assert film.x[0][film.present[0]][-1] > ZEBRA_AT_M + 10.0, "then the car goes on"
    assert film.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_steps_before_a_car_that_can_not_stop_any_more(seed: int) -> None:
    film = zebra_scene(seed, before=16.0, arrives_s=1.0, speed=13.0)
    passed = int(np.flatnonzero(film.x[0] - film.lengths[0] / 2 > ZEBRA_AT_M + 1.5)[0])
    assert (film.y[1, :passed][film.present[1, :passed]] < -3.5).all(), "waits at the curb"
    assert np.diff(film.v[0, :passed]).min() / 0.1 > -2.0, "the driver need not brake hard"
    assert (film.y[1][film.present[1]] > 0.0).any(), "and crosses behind it"


def test_an_empty_crosswalk_stops_nobody() -> None:
    course = straight_road(crosswalk_at=ZEBRA_AT_M)
    stage = course.stage(20.0)
    stage.sdc = stage.put_car(course.roads["road"].forward[0], 140.0, 11.0)
    assert np.nanmin(play(stage).v[0]) > 10.0
