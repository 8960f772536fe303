"""The at-fault rule in cases worked out on paper, and compared with shapely.

In the cases the ego is 5 m by 2 m, at the origin and heads east: its front bumper is the line x = 2.5, y = -1 to 1, and
its rear axle is at x = -1.5.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from roadworthy import at_fault
from roadworthy.at_fault import REAR_AXLE_SHARE, CollisionType, collision_type, is_at_fault
from roadworthy.sim.rules.dynamics import WHEELBASE_SHARE

STOPPED_EGO, STOPPED_TRACK, REAR, FRONT, LATERAL = CollisionType
EAST, NORTH, WEST = 0.0, np.pi / 2, np.pi
Doubles = NDArray[np.float64]


def kind_of(x: float, y: float, heading: float = EAST, speed: float = 3.0, ego_speed: float = 5.0, **more: Any) -> int:
    """Return the type of the contact with a track at a place."""
    length, width, is_static = (more.get(name, usual) for name, usual in (("length", 5), ("width", 2), ("static", 0)))
    track = [x, y, np.cos(heading), np.sin(heading), length, width, speed]
    return collision_type(*np.float64([0, 0, 1, 0, 5, 2, ego_speed, *track]), is_static=bool(is_static))


def around_rear_axle(degrees: float, away: float) -> tuple[float, float]:
    angle = np.deg2rad(degrees)
    return -1.5 + away * float(np.cos(angle)), away * float(np.sin(angle))


@pytest.mark.row("CL-1")
def test_an_ego_that_stands_is_a_stopped_ego_whatever_else_is_true():
    for place in ((4.9, 0.0), (-4.9, 0.0), (-0.5, 1.9)):
        for speed in (0.0, 0.05, 20.0):
            assert kind_of(*place, speed=speed, ego_speed=0.05) == STOPPED_EGO
            assert kind_of(*place, speed=speed, ego_speed=-0.05) == STOPPED_EGO
            assert kind_of(*place, speed=speed, ego_speed=0.051) != STOPPED_EGO


@pytest.mark.row("CL-1")
def test_a_track_that_stands_or_is_a_static_object_is_a_stopped_track_wherever_it_is():
    for place, moving in (((4.9, 0.0), FRONT), ((-4.9, 0.0), REAR), ((-0.5, 1.9), LATERAL)):
        assert kind_of(*place, speed=0.05) == STOPPED_TRACK
        assert kind_of(*place, speed=-0.05) == STOPPED_TRACK
        assert kind_of(*place, speed=0.051) == moving
        assert kind_of(*place, speed=-3.0) == moving
        assert kind_of(*place, speed=3.0, static=True) == STOPPED_TRACK


@pytest.mark.row("CL-1")
def test_a_track_behind_the_rear_axle_is_a_rear_collision():
    assert kind_of(-4.9, 0.0) == REAR
    assert kind_of(-4.9, 1.5) == REAR, "1.5 m across and 3.4 m behind the axle: 156 degrees"
    assert kind_of(-3.0, 1.9) == LATERAL, "1.9 m across and 1.5 m behind the axle: 128 degrees"
    for degrees, expected in ((151, REAR), (149, LATERAL), (-151, REAR), (-149, LATERAL)):
        assert kind_of(*around_rear_axle(degrees, 1.0), length=0.5, width=0.5) == expected
    assert kind_of(-6.0, 0.0, length=20.0, width=4.0) == REAR, "the bumper touches it too, but rear comes first"


@pytest.mark.row("CL-1")
def test_a_track_that_the_front_bumper_touches_is_a_front_collision():
    assert kind_of(4.9, 0.0) == FRONT, "into a slower car"
    assert kind_of(4.9, 0.0, WEST) == FRONT, "head on"
    assert kind_of(3.4, 0.0, NORTH) == FRONT, "into the side of one that crosses"
    assert kind_of(2.6, 1.95) == FRONT, "beside, but over the corner of the bumper"
    assert kind_of(2.4, 0.0, length=0.6, width=0.4) == FRONT, "a pedestrian across the bumper's line"
    assert kind_of(2.1, 0.0, length=0.6, width=0.4) == LATERAL, "a pedestrian within the box, behind the bumper"


@pytest.mark.row("CL-1")
def test_everything_else_is_a_lateral_collision():
    assert kind_of(-0.5, 1.9) == LATERAL, "side by side"
    assert kind_of(0.0, -3.4, NORTH) == LATERAL, "one that crosses drives into the ego's side"
    assert kind_of(-3.0, 1.9) == LATERAL, "beside, further back"
    # A long truck behind at 45 degrees, whose side touches the rear left corner: its center is ahead of the axle.
    assert kind_of(-0.5, 4.0, np.pi / 4, length=14.0, width=2.6) == LATERAL


@pytest.mark.row("CL-1")
def test_who_is_at_fault_is_what_the_definition_says():
    told = {(kind, within): is_at_fault(kind, within) for kind in CollisionType for within in (True, False)}
    assert {key for key, is_fault in told.items() if is_fault} == {
        (STOPPED_TRACK, True),
        (STOPPED_TRACK, False),
        (FRONT, True),
        (FRONT, False),
        (LATERAL, False),
    }


def touching_pairs(seed: int, count: int) -> Doubles:
    """Return pairs of boxes that touch, with speeds, (n, 14); some stand."""
    rng = np.random.default_rng(seed)
    ego, track = rng.uniform(-1, 1, (2, count, 7))
    for boxes in (ego, track):
        heading = rng.uniform(-np.pi, np.pi, count)
        boxes[:, 2], boxes[:, 3] = np.cos(heading), np.sin(heading)
        boxes[:, 4], boxes[:, 5] = rng.uniform(0.5, 12, count), rng.uniform(0.4, 3, count)
        boxes[:, 6] = rng.uniform(-1, 15, count) * (rng.random(count) < 0.9)
    track[:, :2] = ego[:, :2] + rng.uniform(-7, 7, (count, 2))
    return np.column_stack([ego, track])[shapely.intersects(polygons(ego), polygons(track))]


def corners(boxes: Doubles) -> Doubles:
    """(n, 4, 2) front left, front right, rear right, rear left."""
    x, y, cos, sin, length, width = boxes[:, :6].T
    ends = [(1, 1), (1, -1), (-1, -1), (-1, 1)]
    return np.stack(
        [
            np.stack([x + (u * length * cos - v * width * sin) / 2, y + (u * length * sin + v * width * cos) / 2], 1)
            for u, v in ends
        ],
        axis=1,
    )


def polygons(boxes: Doubles) -> NDArray[np.object_]:
    return shapely.polygons(corners(boxes))


def by_definition(pairs: Doubles) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the type of each contact, and whether it is clear: not within rounding of another type."""
    ego, track = pairs[:, :7], pairs[:, 7:]
    bumper = shapely.linestrings(corners(ego)[:, :2])
    axle = ego[:, :2] - 0.3 * ego[:, 4:5] * ego[:, 2:4]
    off = track[:, :2] - axle
    angle = np.arctan2(off[:, 1], off[:, 0]) - np.arctan2(ego[:, 3], ego[:, 2])
    degrees = np.rad2deg(np.abs((angle + np.pi) % (2 * np.pi) - np.pi))
    is_front = shapely.intersects(bumper, polygons(track))
    inside = shapely.intersects(bumper, shapely.buffer(polygons(track), -1e-4))
    outside = shapely.intersects(bumper, shapely.buffer(polygons(track), 1e-4))
    conditions = [np.abs(ego[:, 6]) <= 0.05, np.abs(track[:, 6]) <= 0.05, degrees > 150, is_front]
    kinds = np.select(conditions, [STOPPED_EGO, STOPPED_TRACK, REAR, FRONT], LATERAL)
    return kinds, (inside == outside) & (np.abs(degrees - 150) > 1e-3)


@pytest.mark.row("CL-1")
@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_types_of_random_contacts_are_those_of_the_definition_worked_out_with_shapely(precision: type):
    pairs = touching_pairs(1, 9000)
    expected, is_clear = by_definition(pairs)
    found = np.array([collision_type(*precision(pair), is_static=False) for pair in pairs])
    np.testing.assert_array_equal(found[is_clear], expected[is_clear])
    assert is_clear.mean() > 0.99
    assert np.bincount(expected, minlength=5).min() > 150


@pytest.mark.row("CL-1")
def test_a_world_that_is_moved_turned_or_mirrored_has_the_same_collisions():
    pairs = touching_pairs(2, 3000)
    _, is_clear = by_definition(pairs)
    before = np.array([collision_type(*pair, is_static=False) for pair in pairs])
    rng = np.random.default_rng(3)
    for turn, mirror in ((0.0, 1.0), (1.0, 1.0), (-2.5, -1.0), (np.pi / 2, -1.0)):
        moved = pairs.copy()
        shift = rng.uniform(-500, 500, 2)
        for x, y in ((0, 1), (2, 3), (7, 8), (9, 10)):
            u, v = moved[:, x].copy(), mirror * moved[:, y]
            moved[:, x], moved[:, y] = u * np.cos(turn) - v * np.sin(turn), u * np.sin(turn) + v * np.cos(turn)
        moved[:, [0, 7]] += shift[0]
        moved[:, [1, 8]] += shift[1]
        after = np.array([collision_type(*pair, is_static=False) for pair in moved])
        np.testing.assert_array_equal(after[is_clear], before[is_clear])


@pytest.mark.row("CL-1")
def test_the_rear_axle_is_where_the_simulators_wheelbase_puts_it():
    assert REAR_AXLE_SHARE == WHEELBASE_SHARE / 2


def test_the_docs_say_what_the_rule_says():
    """Each paragraph of the definitions, but for its heading, and each type with its meaning."""
    told = " ".join((Path(__file__).parents[1] / "docs/simulator.md").read_text().replace("|", " ").split())
    definitions = at_fault.__doc__.partition("Collision. ")[2].partition("Substitutes")[0]
    paragraphs = [" ".join(paragraph.split()) for paragraph in definitions.split("\n\n")]
    contact, _, fault, lanes, *_ = paragraphs
    assert contact.removeprefix("The boxes") in told
    assert fault.removeprefix("At fault. ") in told
    assert lanes.removeprefix("Within one common or connected lanes. ") in told
    for line in definitions.splitlines():
        if line.startswith("  "):
            assert " ".join(line.split()) in told


def test_metrics_can_use_the_rule_without_numba():
    code = "import sys, roadworthy.at_fault; print('numba' in sys.modules, 'roadworthy.sim' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
