"""Random traffic on generated networks: continuous motion within human bounds, and it never comes to a standstill."""

from __future__ import annotations

import numpy as np
import pytest

from roadworthy.scenario.detect import BEHAVIORS
from roadworthy.scenario.generate.roster import Roster, draw_cyclist, draw_driver, draw_pedestrian
from roadworthy.scenario.generate.scenarios import build_place
from roadworthy.scenario.generate.setups.street import cast_hard_stop, fill
from roadworthy.scenario.generate.stage import Stage
from roadworthy.scenario.generate.traffic.simulate import HARDEST_BRAKING
from roadworthy.scenario.generate.traffic.users import Kind
from tests.scenario.generate.courses import DT, Film, play

PLACES = [("merge", 0), ("roundabout", 0), ("protected_left", 0), ("unprotected_right", 0), ("nudge_parked", 0)]


def busy(behavior: str, number: int, steps: int, seed: int = 11) -> Film:
    """Background traffic alone."""
    place = build_place(seed, behavior, number)
    stage = Stage(place.network, place.layout, np.random.default_rng([seed, number]), steps, DT)
    fill(stage)
    return play(stage)


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
def film(request: pytest.FixtureRequest) -> Film:
    """Half a minute on one of the networks."""
    behavior, number = request.param
    return busy(behavior, number, steps=300)


def kinds(film: Film) -> np.ndarray:
    return np.array([person.kind for person in film.stage.roster.people])


def drives(film: Film) -> np.ndarray:
    """(users,) who is no pedestrian."""
    return kinds(film) != Kind.PEDESTRIAN


def test_nobody_drives_backwards(film: Film) -> None:
    assert (film.v[film.present] >= 0.0).all()


def test_everybody_comes_once_and_leaves_once(film: Film) -> None:
    appearances = np.diff(film.present.astype(np.int8), axis=1, prepend=0) == 1
    assert appearances.sum(axis=1).max() == 1
    assert appearances.any(axis=1).mean() > 0.5


def test_positions_follow_from_speed_and_heading_without_a_jump(film: Film) -> None:
    """At transitions between lanes, in lane changes and in bends alike."""
    dx, dy = np.diff(film.x, axis=1), np.diff(film.y, axis=1)
    moved = np.hypot(dx, dy)
    expected = (film.v[:, 1:] + film.v[:, :-1]) / 2 * DT
    assert np.nanmax(np.abs(moved - expected)) < 0.02
    turned = (np.diff(film.heading, axis=1) + np.pi) % (2 * np.pi) - np.pi
    middle = film.heading[:, :-1] + turned / 2
    fast = moved > 0.1
    astray = (np.arctan2(dy, dx) - middle + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(astray[fast & drives(film)[:, None]]).max() < 0.06


def test_headings_turn_no_faster_than_a_driver_can_steer(film: Film) -> None:
    turned = np.abs((np.diff(film.heading, axis=1) + np.pi) % (2 * np.pi) - np.pi)[drives(film)]
    pace = ((film.v[:, 1:] + film.v[:, :-1]) / 2)[drives(film)]
    assert np.nanmax(turned) / DT < 1.2
    assert np.nanmax(turned / DT * pace) < 4.9
    # Wheels that don't roll don't turn the vehicle.
    assert np.nanmax(np.where(pace == 0.0, turned, 0.0)) == 0.0


def test_acceleration_and_jerk_stay_within_human_bounds(film: Film) -> None:
    acceleration = (np.diff(film.v, axis=1) / DT)[drives(film)]
    strongest = max(person.acceleration for person in film.stage.roster.people)
    assert np.nanmax(acceleration) <= strongest + 1e-6
    assert np.nanmin(acceleration) >= -HARDEST_BRAKING - 1e-6
    jerk = (acceleration[:, 2:] - acceleration[:, :-2]) / (2 * DT)
    assert np.nanmax(np.abs(jerk)) < 10.0


def test_most_braking_is_comfortable(film: Film) -> None:
    acceleration = (np.diff(film.v, axis=1) / DT)[drives(film)]
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
def test_the_same_stream_draws_the_same_people(draw: object) -> None:
    def crowd(seed: int) -> np.ndarray:
        rng, roster = np.random.default_rng(seed), Roster()
        for _ in range(10):
            roster.add(draw(rng))  # type: ignore[operator]
        return roster.users()

    assert crowd(1).tobytes() == crowd(1).tobytes()
    assert crowd(1).tobytes() != crowd(2).tobytes()


def test_traffic_is_the_same_every_time() -> None:
    first, second = busy("roundabout", 1, 120), busy("roundabout", 1, 120)
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.heading, second.heading)


def longest_standstill_s(film: Film) -> float:
    """Of anybody who drives."""
    stands = film.present & (np.nan_to_num(film.v, nan=1.0) < 0.1) & drives(film)[:, None]
    longest = np.zeros(len(stands), np.int64)
    now = np.zeros(len(stands), np.int64)
    for column in stands.T:
        now = np.where(column, now + 1, 0)
        longest = np.maximum(longest, now)
    return float(longest.max() * DT)


def runs_on(film: Film) -> None:
    """At the end of a recording people still drive, arrive and leave."""
    late = slice(-200, None)
    moving = film.present[:, late] & (np.nan_to_num(film.v[:, late]) > 1.0) & drives(film)[:, None]
    assert moving.sum(axis=0).min() >= 1, "there is always somebody who drives"
    assert moving.sum(axis=0).mean() >= 4
    changes = np.diff(film.present[:, -400:].astype(np.int8), axis=1)
    assert (changes == 1).sum() >= 3, "people still arrive"
    assert (changes == -1).sum() >= 3, "and leave"


@pytest.mark.parametrize(("behavior", "number"), [("merge", 1), ("protected_left", 1), ("roundabout", 2)])
def test_a_long_recording_runs_on(behavior: str, number: int) -> None:
    runs_on(busy(behavior, number, steps=1000))


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("behavior", ["merge", "highway_straight", "stop_and_go"])
def test_nobody_comes_to_a_lasting_stop_on_a_freeway(behavior: str, number: int) -> None:
    """Traffic that is put there flows freely, so who has to wait for a gap gets one before long."""
    film = busy(behavior, number, steps=1000, seed=23)
    assert longest_standstill_s(film) < 20.0


@pytest.mark.parametrize(("behavior", "number"), [("roundabout", 0), ("unprotected_right", 0), ("protected_left", 0)])
def test_nobody_is_stuck_in_a_town(behavior: str, number: int) -> None:
    """Red lasts up to a minute; who stands longer than a minute and a half is held up by a deadlock."""
    film = busy(behavior, number, steps=1500, seed=23)
    assert longest_standstill_s(film) < 90.0


@pytest.mark.long
@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize("number", range(4))
def test_traffic_runs_on_for_five_minutes_and_nobody_is_stuck(behavior: str, number: int) -> None:
    film = busy(behavior, number, steps=3000, seed=23)
    runs_on(film)
    # A queue at a light may have to wait for a second green.
    assert longest_standstill_s(film) < 150.0


@pytest.mark.parametrize("seed", range(3))
def test_one_who_brakes_by_script_stands_still_and_drives_on(seed: int) -> None:
    film = play(hard_stop(seed))
    speed = film.v[film.stage.sdc]
    stands = speed[: np.flatnonzero(film.present[film.stage.sdc])[-1] + 1] == 0.0
    assert stands.any()
    first = int(np.argmax(stands))
    assert stands[first : first + 30].all(), "it does not tremble"
    assert speed[first:].max() > 2.0, "it goes on after a while"


def hard_stop(seed: int) -> Stage:
    """Nobody but the two who brake."""
    place = build_place(23, "hard_stop", seed)
    stage = Stage(place.network, place.layout, np.random.default_rng(seed), 300, DT)
    cast_hard_stop(stage)
    stage.roster.people = stage.roster.people[:2]
    stage.walks.clear()
    return stage
