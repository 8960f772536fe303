"""Right of way: stop signs, rings, oncoming traffic, pedestrians."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from roadworthy.scenario.generate.junctions import JunctionControl
from roadworthy.scenario.generate.network import Turn
from roadworthy.scenario.generate.scene import Scene
from tests.scenario.generate.courses import SIDES, Course, Run, crossing, roundabout, simulate_scene, straight_road

SEEDS = range(5)
PRIORITY = crossing(JunctionControl.PRIORITY)
ALL_STOP = crossing(JunctionControl.ALL_WAY_STOP)
PERMITTED = crossing(JunctionControl.PERMITTED_SIGNAL)
RING = roundabout()
LINE_M = 0.2  # width of a painted line: a bumper above it has not passed it


def send(course: Course, scene: Scene, side: str, turn: Turn, before: float, speed: float | None = None) -> int:
    """Put a car this many meters before the junction."""
    lane = course.approach(side)
    return scene.put_car(lane, course.lanes[lane].path.length - before, speed, plan=(course.movement(side, turn),))


def crosses_line(course: Course, run: Run, side: str, user: int) -> int:
    """Return the step at which a front bumper passes the stop line."""
    beyond = np.flatnonzero(run.ahead_of(course.lanes[course.approach(side)].end, user) > LINE_M)
    assert len(beyond), f"the car from the {side} never enters"
    return int(beyond[0])


def crossing_point(course: Course, a: int, b: int) -> shapely.Point:
    """Return where the center lines of two lanes meet."""
    lines = [shapely.LineString(np.column_stack([p.x, p.y])) for p in (course.lanes[n].path for n in (a, b))]
    return shapely.intersection(*lines).representative_point()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("turn", [Turn.LEFT, Turn.STRAIGHT, Turn.RIGHT])
def test_a_driver_stops_fully_at_a_stop_sign_even_on_an_empty_road(seed: int, turn: Turn) -> None:
    scene = PRIORITY.scene(25.0, seed)
    scene.sdc = send(PRIORITY, scene, "north", turn, 50.0)
    run = simulate_scene(scene)
    front = run.ahead_of(PRIORITY.lanes[PRIORITY.approach("north")].end, 0)
    at_line = (front > -4.0) & (front < LINE_M)
    assert run.v[0, at_line].min() < 0.3
    assert crosses_line(PRIORITY, run, "north", 0) * 0.1 < 20.0, "and then continues"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_main_street_is_not_slowed_by_the_side_street(seed: int) -> None:
    speeds = []
    for with_side in (False, True):
        scene = PRIORITY.scene(14.0, seed)
        scene.sdc = send(PRIORITY, scene, "east", Turn.STRAIGHT, 70.0, 11.0)
        if with_side:
            send(PRIORITY, scene, "north", Turn.STRAIGHT, 15.0, 5.0)
        run = simulate_scene(scene)
        speeds.append(run.v[0])
    np.testing.assert_allclose(speeds[1], speeds[0], atol=0.5)
    place = crossing_point(
        PRIORITY, PRIORITY.movement("east", Turn.STRAIGHT), PRIORITY.movement("north", Turn.STRAIGHT)
    )
    assert crosses_line(PRIORITY, run, "north", 1) < scene.steps
    assert run.step_at(place, 0) < run.step_at(place, 1)


@pytest.mark.parametrize("first", ["east", "north"])
@pytest.mark.parametrize("seed", SEEDS)
def test_at_an_all_way_stop_the_first_to_arrive_goes_first(seed: int, first: str) -> None:
    second = "north" if first == "east" else "east"
    scene = ALL_STOP.scene(30.0, seed)
    scene.sdc = send(ALL_STOP, scene, first, Turn.STRAIGHT, 15.0, 5.0)
    send(ALL_STOP, scene, second, Turn.STRAIGHT, 50.0, 8.0)
    run = simulate_scene(scene)
    assert crosses_line(ALL_STOP, run, first, 0) < crosses_line(ALL_STOP, run, second, 1)
    assert run.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_four_cars_that_arrive_together_at_an_all_way_stop_get_through(seed: int) -> None:
    scene = ALL_STOP.scene(50.0, seed)
    turns = np.random.default_rng(seed).choice([Turn.LEFT, Turn.STRAIGHT, Turn.RIGHT], 4)
    for side, turn in zip(SIDES, turns, strict=True):
        scene.sdc = send(ALL_STOP, scene, side, Turn(turn), 30.0, 6.0)
    run = simulate_scene(scene)
    for user, side in enumerate(SIDES):
        crosses_line(ALL_STOP, run, side, user)
    assert run.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_permitted_left_turn_waits_for_oncoming_traffic(seed: int) -> None:
    left, ahead = PERMITTED.movement("east", Turn.LEFT), PERMITTED.movement("west", Turn.STRAIGHT)
    scene = PERMITTED.scene(25.0, seed)
    PERMITTED.show_green_to(scene, left)
    scene.sdc = send(PERMITTED, scene, "east", Turn.LEFT, 20.0, 6.0)
    send(PERMITTED, scene, "west", Turn.STRAIGHT, 40.0, 10.0)
    run = simulate_scene(scene)
    place = crossing_point(PERMITTED, left, ahead)
    assert run.step_at(place, 1) < run.step_at(place, 0)
    assert np.diff(run.v[1][run.present[1]]).min() / 0.1 > -1.0, "who goes first need not brake"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_left_turn_without_oncoming_traffic_does_not_wait(seed: int) -> None:
    scene = PERMITTED.scene(15.0, seed)
    PERMITTED.show_green_to(scene, PERMITTED.movement("east", Turn.LEFT))
    scene.sdc = send(PERMITTED, scene, "east", Turn.LEFT, 40.0, 8.0)
    run = simulate_scene(scene)
    crosses_line(PERMITTED, run, "east", 0)
    assert np.nanmin(run.v[0]) > 2.5


def ring_scene(seed: int, with_ring_car: bool) -> Run:
    """A car approaches the ring, and another one may be on it, about to pass that entry."""
    (entry,) = RING.lanes[RING.approach("east")].successors
    (before,) = (b for a, b in RING.network.yields if a == entry)
    scene = RING.scene(16.0, seed)
    around = [RING.lanes[entry].successors[0]]
    for _ in range(3):
        around.append(next(n for n in RING.lanes[around[-1]].successors if RING.lanes[n].turn == Turn.RING))
    lane = RING.approach("east")
    scene.sdc = scene.put_car(lane, RING.lanes[lane].path.length - 14.0, 7.0, plan=(entry, *around))
    if with_ring_car:
        scene.put_car(before, 3.0, 6.0, plan=tuple(around))
    return simulate_scene(scene)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_driver_on_a_ring_has_priority(seed: int) -> None:
    run = ring_scene(seed, with_ring_car=True)
    (entry,) = RING.lanes[RING.approach("east")].successors
    joint = RING.lanes[entry].end
    place = shapely.Point(joint.x, joint.y)
    assert run.step_at(place, 1) < run.step_at(place, 0)
    on_way = slice(0, run.step_at(place, 1))
    assert run.v[1, on_way].min() > 4.5, "the one on the ring is not held up"
    assert run.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_an_empty_ring_is_entered_without_a_stop(seed: int) -> None:
    run = ring_scene(seed, with_ring_car=False)
    assert np.nanmin(run.v[0]) > 2.5
    assert crosses_line(RING, run, "east", 0) < run.step_at(shapely.Point(0.0, 18.0), 0)


CROSSWALK_AT_M = 200.0


def crosswalk_scene(seed: int, before: float, arrives_s: float, speed: float = 11.0) -> Run:
    """A car approaches a crosswalk that a pedestrian wants to use, from the car's side of the road."""
    course = straight_road(crosswalk_at=CROSSWALK_AT_M)
    scene = course.scene(25.0, seed)
    scene.sdc = scene.put_car(course.roads["road"].forward[0], CROSSWALK_AT_M - before, speed)
    near = int(np.argmin(course.network.crosswalks[0].curbs[:, 1]))  # the right side, seen by the car
    scene.put_pedestrian(0, arrives_s=arrives_s, curb_number=near)
    return simulate_scene(scene)


def on_crosswalk(run: Run) -> np.ndarray:
    """Return (T,) whether any part of the car is over the crosswalk."""
    return np.abs(run.x[0] - CROSSWALK_AT_M) < run.lengths[0] / 2 + 1.5


@pytest.mark.parametrize("seed", SEEDS)
def test_drivers_yield_to_a_pedestrian_on_a_crosswalk(seed: int) -> None:
    run = crosswalk_scene(seed, before=70.0, arrives_s=1.5)
    in_lane = run.present[1] & (run.y[1] > -3.5) & (run.y[1] < 0.0)
    assert in_lane.any(), "the pedestrian crosses"
    assert not (in_lane & on_crosswalk(run)).any()
    assert np.flatnonzero(in_lane)[0] < np.flatnonzero(on_crosswalk(run))[0], "and goes first"
    assert np.nanmin(run.v[0]) < 8.5, "the driver slows down"
    assert run.x[0][run.present[0]][-1] > CROSSWALK_AT_M + 10.0, "then the car continues"
    assert run.overlaps() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_pedestrians_do_not_step_before_a_car_that_cannot_stop(seed: int) -> None:
    run = crosswalk_scene(seed, before=16.0, arrives_s=1.0, speed=13.0)
    passed = int(np.flatnonzero(run.x[0] - run.lengths[0] / 2 > CROSSWALK_AT_M + 1.5)[0])
    assert (run.y[1, :passed][run.present[1, :passed]] < -3.5).all(), "waits at the curb"
    assert np.diff(run.v[0, :passed]).min() / 0.1 > -2.0, "the driver need not brake hard"
    assert (run.y[1][run.present[1]] > 0.0).any(), "and crosses behind it"


def test_an_empty_crosswalk_stops_nobody() -> None:
    course = straight_road(crosswalk_at=CROSSWALK_AT_M)
    scene = course.scene(20.0)
    scene.sdc = scene.put_car(course.roads["road"].forward[0], 140.0, 11.0)
    assert np.nanmin(simulate_scene(scene).v[0]) > 10.0
