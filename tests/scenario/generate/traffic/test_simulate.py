"""Random traffic on generated networks: continuous motion within human limits, without permanent standstill."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.road_users import draw_cyclist, draw_driver, draw_pedestrian, user_records
from roadworthy.scenario.generate.scenarios import build_place
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.setups.street import fill, populate_hard_stop
from roadworthy.scenario.generate.traffic.simulate import HARDEST_BRAKING
from roadworthy.scenario.generate.traffic.users import Kind
from tests.scenario.generate.courses import DT, Run, simulate_scene

PLACES = [("merge", 0), ("roundabout", 0), ("protected_left", 0), ("unprotected_right", 0), ("nudge_parked", 0)]


def busy(behavior: str, number: int, steps: int, seed: int = 11) -> Run:
    """Simulate background traffic only."""
    place = build_place(seed, behavior, number)
    scene = Scene(place.network, place.layout, np.random.default_rng([seed, number]), steps, DT)
    fill(scene)
    return simulate_scene(scene)


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
def run(request: pytest.FixtureRequest) -> Run:
    """Return half a minute on one of the networks."""
    behavior, number = request.param
    return busy(behavior, number, steps=300)


def kinds(run: Run) -> np.ndarray:
    return np.array([user.kind for user in run.scene.road_users])


def drives(run: Run) -> np.ndarray:
    """Return (users,) whether each is not a pedestrian."""
    return kinds(run) != Kind.PEDESTRIAN


def test_no_vehicle_drives_backward(run: Run) -> None:
    assert (run.v[run.present] >= 0.0).all()


def test_every_road_user_appears_once_and_leaves_once(run: Run) -> None:
    appearances = np.diff(run.present.astype(np.int8), axis=1, prepend=0) == 1
    assert appearances.sum(axis=1).max() == 1
    assert appearances.any(axis=1).mean() > 0.5


def test_positions_follow_from_speed_and_heading_without_a_jump(run: Run) -> None:
    """At transitions between lanes, in lane changes and in bends alike."""
    dx, dy = np.diff(run.x, axis=1), np.diff(run.y, axis=1)
    moved = np.hypot(dx, dy)
    expected = (run.v[:, 1:] + run.v[:, :-1]) / 2 * DT
    assert np.nanmax(np.abs(moved - expected)) < 0.02
    turned = (np.diff(run.heading, axis=1) + np.pi) % (2 * np.pi) - np.pi
    middle = run.heading[:, :-1] + turned / 2
    fast = moved > 0.1
    astray = (np.arctan2(dy, dx) - middle + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(astray[fast & drives(run)[:, None]]).max() < 0.06


def test_headings_turn_no_faster_than_a_driver_can_steer(run: Run) -> None:
    turned = np.abs((np.diff(run.heading, axis=1) + np.pi) % (2 * np.pi) - np.pi)[drives(run)]
    pace = ((run.v[:, 1:] + run.v[:, :-1]) / 2)[drives(run)]
    assert np.nanmax(turned) / DT < 1.2
    assert np.nanmax(turned / DT * pace) < 4.9
    # Wheels that do not roll do not turn the vehicle.
    assert np.nanmax(np.where(pace == 0.0, turned, 0.0)) == 0.0


def test_acceleration_and_jerk_stay_within_human_bounds(run: Run) -> None:
    acceleration = (np.diff(run.v, axis=1) / DT)[drives(run)]
    strongest = max(user.acceleration for user in run.scene.road_users)
    assert np.nanmax(acceleration) <= strongest + 1e-6
    assert np.nanmin(acceleration) >= -HARDEST_BRAKING - 1e-6
    jerk = (acceleration[:, 2:] - acceleration[:, :-2]) / (2 * DT)
    assert np.nanmax(np.abs(jerk)) < 10.0


def test_most_braking_is_comfortable(run: Run) -> None:
    acceleration = (np.diff(run.v, axis=1) / DT)[drives(run)]
    assert np.nanmean(acceleration < -3.0) < 0.01


def test_drivers_are_individuals() -> None:
    rng = np.random.default_rng(0)
    drivers = [draw_driver(rng) for _ in range(300)]
    names = "speed_factor headway acceleration braking standing_gap politeness gap jerk cornering length".split()
    spread = {name: np.array([getattr(driver, name) for driver in drivers]) for name in names}
    for name, values in spread.items():
        assert len(np.unique(values)) > 200, name
        assert values.std() > 0.04 * abs(values.mean()), name
    assert len({driver.delay for driver in drivers}) >= 3
    assert len({driver.seed for driver in drivers}) == len(drivers)
    assert 0.4 <= spread["headway"].min() < 1.0 < spread["headway"].mean() < 1.7
    assert 0.9 < spread["speed_factor"].mean() < 1.05


@pytest.mark.parametrize("draw", [draw_driver, draw_cyclist, draw_pedestrian])
def test_the_same_stream_draws_the_same_road_users(draw: object) -> None:
    def drawn(seed: int) -> bytes:
        rng = np.random.default_rng(seed)
        return user_records([draw(rng) for _ in range(10)]).tobytes()  # type: ignore[operator]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_traffic_is_the_same_every_time() -> None:
    first, second = busy("roundabout", 1, 120), busy("roundabout", 1, 120)
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.heading, second.heading)


def longest_standstill_s(run: Run) -> float:
    """Of all drivers."""
    stands = run.present & (np.nan_to_num(run.v, nan=1.0) < 0.1) & drives(run)[:, None]
    longest = np.zeros(len(stands), np.int64)
    now = np.zeros(len(stands), np.int64)
    for column in stands.T:
        now = np.where(column, now + 1, 0)
        longest = np.maximum(longest, now)
    return float(longest.max() * DT)


def runs_on(run: Run) -> None:
    """At the end of a recording road users still drive, arrive and leave."""
    late = slice(-200, None)
    moving = run.present[:, late] & (np.nan_to_num(run.v[:, late]) > 1.0) & drives(run)[:, None]
    assert moving.sum(axis=0).min() >= 1, "there is always somebody who drives"
    assert moving.sum(axis=0).mean() >= 4
    changes = np.diff(run.present[:, -400:].astype(np.int8), axis=1)
    assert (changes == 1).sum() >= 3, "people still arrive"
    assert (changes == -1).sum() >= 3, "and leave"


@pytest.mark.parametrize(("behavior", "number"), [("merge", 1), ("protected_left", 1), ("roundabout", 2)])
def test_traffic_continues_in_a_long_recording(behavior: str, number: int) -> None:
    runs_on(busy(behavior, number, steps=1000))


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("behavior", ["merge", "highway_straight", "stop_and_go"])
def test_no_vehicle_stops_for_long_on_a_freeway(behavior: str, number: int) -> None:
    """The added traffic flows freely, so drivers who wait for a gap soon get one."""
    run = busy(behavior, number, steps=1000, seed=23)
    assert longest_standstill_s(run) < 20.0


@pytest.mark.parametrize(("behavior", "number"), [("roundabout", 0), ("unprotected_right", 0), ("protected_left", 0)])
def test_no_vehicle_is_stuck_in_a_town(behavior: str, number: int) -> None:
    """Red lasts up to a minute; a driver who stands longer than a minute and a half is in a deadlock."""
    run = busy(behavior, number, steps=1500, seed=23)
    assert longest_standstill_s(run) < 90.0


@pytest.mark.long
@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize("number", range(4))
def test_traffic_continues_for_five_minutes_without_a_deadlock(behavior: str, number: int) -> None:
    run = busy(behavior, number, steps=3000, seed=23)
    runs_on(run)
    # A queue at a light may have to wait for a second green.
    assert longest_standstill_s(run) < 150.0


@pytest.mark.parametrize("seed", range(3))
def test_a_car_that_brakes_by_script_stands_still_and_drives_on(seed: int) -> None:
    run = simulate_scene(hard_stop(seed))
    speed = run.v[run.scene.sdc]
    stands = speed[: np.flatnonzero(run.present[run.scene.sdc])[-1] + 1] == 0.0
    assert stands.any()
    first = int(np.argmax(stands))
    assert stands[first : first + 30].all(), "it does not tremble"
    assert speed[first:].max() > 2.0, "it continues after a while"


def hard_stop(seed: int) -> Scene:
    """Only the two that brake."""
    place = build_place(23, "hard_stop", seed)
    scene = Scene(place.network, place.layout, np.random.default_rng(seed), 300, DT)
    populate_hard_stop(scene)
    scene.road_users = scene.road_users[:2]
    scene.walks.clear()
    return scene
