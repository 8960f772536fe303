"""Boxes that touch, compared with shapely, and the laws of contact."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from roadworthy.kernels import entry
from roadworthy.scenario.schema import Bools, Floats, Ints
from roadworthy.sim.rules.collision import boxes_touch, collides
from roadworthy.sim.state import COS, IS_PRESENT, LENGTH, RADIUS, SIN, WIDTH, X, Y
from tests.sim.arena import agents_at

DOUBTFUL_M = 1e-4
Doubles = NDArray[np.float64]


@entry
def pairs_touch(a, b, touches_out):
    for k in range(len(a)):
        ax, ay, acos, asin, alength, awidth = a[k, 0], a[k, 1], a[k, 2], a[k, 3], a[k, 4], a[k, 5]
        bx, by, bcos, bsin, blength, bwidth = b[k, 0], b[k, 1], b[k, 2], b[k, 3], b[k, 4], b[k, 5]
        touches_out[k] = boxes_touch((ax, ay, acos, asin, alength, awidth), (bx, by, bcos, bsin, blength, bwidth))


@entry
def who_collides(agents, flags, count, collides_out):
    for a in range(agents.shape[1]):
        collides_out[a] = collides(agents, flags, a, count)


def gaps(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """Return the largest separation of boxes (n, 6) along a side, negative if they overlap, and its direction."""
    axes = np.stack([a[:, 2:4], a[:, [3, 2]] * [-1, 1], b[:, 2:4], b[:, [3, 2]] * [-1, 1]], axis=1)

    def extent(box: Doubles) -> Doubles:
        along = np.abs(np.einsum("nkd,nd->nk", axes, box[:, 2:4]))
        across = np.abs(np.einsum("nkd,nd->nk", axes, box[:, [3, 2]] * [-1, 1]))
        return along * box[:, 4:5] / 2 + across * box[:, 5:6] / 2

    offset = np.einsum("nkd,nd->nk", axes, b[:, :2] - a[:, :2])
    separation = np.abs(offset) - extent(a) - extent(b)
    best = separation.argmax(axis=1)
    rows = np.arange(len(a))
    return separation[rows, best], axes[rows, best] * np.sign(offset[rows, best])[:, None]


def polygons(boxes: Doubles) -> NDArray[np.object_]:
    x, y, cos, sin, length, width = boxes.astype(np.float64).T
    corners = [
        np.stack([x + (u * length * cos - v * width * sin) / 2, y + (u * length * sin + v * width * cos) / 2], axis=1)
        for u, v in ((1, 1), (-1, 1), (-1, -1), (1, -1))
    ]
    return shapely.polygons(np.stack(corners, axis=1))


def random_boxes(rng: np.random.Generator, count: int, spread_m: float) -> Floats:
    heading = rng.uniform(-np.pi, np.pi, count)
    # Half of them in multiples of an eighth of a turn: parallel sides are the difficult case.
    heading[::2] = np.round(heading[::2] / (np.pi / 4)) * (np.pi / 4)
    place = rng.uniform(-spread_m, spread_m, (count, 2)) + rng.choice([0.0, 431.7, -2000.3], (count, 1))
    size = np.stack([rng.uniform(0.3, 18.0, count), rng.uniform(0.3, 3.0, count)], axis=1)
    return np.column_stack([place, np.cos(heading), np.sin(heading), size]).astype(np.float32)


@pytest.mark.row("SIM-6")
def test_boxes_touch_exactly_when_shapely_says_so():
    rng = np.random.default_rng(1)
    a, b = random_boxes(rng, 8000, 1.0), random_boxes(rng, 8000, 1.0)
    b[:, :2] = a[:, :2] + rng.uniform(-8, 8, (8000, 2)).astype(np.float32)
    # Move three quarters of them to within a centimeter of touching, on either side.
    gap, axis = gaps(a.astype(np.float64), b.astype(np.float64))
    wanted = rng.uniform(-0.01, 0.01, len(gap))
    b[2000:, :2] += ((wanted - gap)[:, None] * axis)[2000:].astype(np.float32)

    gap, _ = gaps(a.astype(np.float64), b.astype(np.float64))
    touches = np.full(len(a), 7, np.int8)
    pairs_touch(a, b, touches)
    is_clear = np.abs(gap) > DOUBTFUL_M
    expected = shapely.intersects(polygons(a), polygons(b))
    np.testing.assert_array_equal(touches[is_clear], expected[is_clear])
    assert np.count_nonzero(~is_clear) < 400
    assert np.count_nonzero(is_clear & (np.abs(gap) < 0.01)) > 2000
    assert 0.3 < expected.mean() < 0.7


def random_world(rng: np.random.Generator, count: int, spread_m: float) -> tuple[Floats, Ints]:
    agents, flags = agents_at(
        rng.uniform(-spread_m, spread_m, count),
        rng.uniform(-spread_m, spread_m, count),
        rng.uniform(-np.pi, np.pi, count),
        rng.uniform(0.4, 12.0, count),
        rng.uniform(0.4, 2.6, count),
    )
    flags[IS_PRESENT] = rng.random(count) < 0.8
    return agents, flags


def judged(agents: Floats, flags: Ints, count: int | None = None) -> Bools:
    """Return which agents collide."""
    count = agents.shape[1] if count is None else count
    result = np.full(agents.shape[1], 7, np.int8)
    who_collides(agents, flags, count, result)
    is_present = flags[IS_PRESENT] != 0
    assert np.isin(result, (0, 1)).all()
    assert not result[~is_present].any()
    return result.astype(np.bool_)


@pytest.mark.row("SIM-6")
def test_an_agent_collides_if_any_other_that_is_present_touches_it():
    rng = np.random.default_rng(2)
    seen = np.zeros(2)
    for count in (1, 2, 7, 8, 31, 33, 64, 130, 256):
        for spread in (10.0, 60.0):
            agents, flags = random_world(rng, count, spread)
            boxes = agents[[X, Y, COS, SIN, LENGTH, WIDTH]].T.astype(np.float64)
            first, second = np.repeat(np.arange(count), count), np.tile(np.arange(count), count)
            gap = gaps(boxes[first], boxes[second])[0].reshape(count, count)
            touching = shapely.intersects(*np.ix_(polygons(boxes), polygons(boxes)))
            touching &= (flags[IS_PRESENT] != 0)[None] & ~np.eye(count, dtype=bool)
            is_clear = (np.abs(gap) > DOUBTFUL_M).all(axis=1)
            collided = judged(agents, flags)
            expected = touching.any(axis=1) & (flags[IS_PRESENT] != 0)
            np.testing.assert_array_equal(collided[is_clear], expected[is_clear])
            seen += [expected.sum(), (~expected).sum()]
    assert seen.min() > 300


@pytest.mark.row("SIM-6")
def test_agents_beyond_the_count_are_not_hit():
    agents, flags = agents_at([0.0, 50.0, 1.0], [0.0, 0.0, 0.0])
    assert judged(agents, flags).tolist() == [True, False, True]
    assert judged(agents, flags, count=2).tolist()[:2] == [False, False]


@pytest.mark.row("SIM-12")
def test_an_agent_with_nan_position_touches_nothing():
    for bad in (np.nan, np.inf, -np.inf, 3e38):
        for line in (X, Y):
            agents, flags = agents_at([0.0, 1.0, 100.0, 101.0], 0.0)
            agents[line, 1] = bad
            assert judged(agents, flags).tolist() == [False, False, True, True]
    agents, flags = agents_at([np.nan, np.nan], [np.nan, np.nan])
    assert judged(agents, flags).tolist() == [False, False]


def test_boxes_keep_their_true_size():
    assert judged(*agents_at([0.0, 4.5], 0.0)).all()
    assert not judged(*agents_at([0.0, 4.501], 0.0)).any()
    assert judged(*agents_at(0.0, [0.0, 2.0])).all()
    assert not judged(*agents_at(0.0, [0.0, 2.001])).any()


# Positions in multiples of 1/1024 m, so that shifts and turns of the world are exact in float32.
places = st.integers(-6 * 1024, 6 * 1024).map(lambda k: k / 1024)
sizes = st.integers(200, 12 * 1024).map(lambda k: k / 1024)
headings = st.one_of(st.floats(-3.14, 3.14), st.sampled_from(np.arange(-4, 5) * np.pi / 4))
boxes = st.tuples(places, places, headings, sizes, sizes)


def pair(*given_boxes: tuple[float, ...]) -> tuple[Floats, Ints]:
    return agents_at(*np.array(given_boxes, np.float64).T)


def is_doubtful(agents: Floats) -> bool:
    box = agents[[X, Y, COS, SIN, LENGTH, WIDTH]].T.astype(np.float64)
    return abs(gaps(box[:1], box[1:])[0][0]) < DOUBTFUL_M


@given(boxes, boxes)
def test_contact_is_mutual(a, b):
    collided = judged(*pair(a, b))
    assert collided[0] == collided[1]


@given(boxes, boxes, st.integers(-200, 200), st.integers(-200, 200))
def test_a_shift_by_whole_cells_changes_nothing(a, b, columns, rows):
    agents, flags = pair(a, b)
    before = judged(agents, flags).copy()
    agents[X] += np.float32(5 * columns)
    agents[Y] += np.float32(5 * rows)
    np.testing.assert_array_equal(judged(agents, flags), before)


@given(boxes, boxes, st.sampled_from(["quarter turn", "mirror"]))
def test_turning_or_mirroring_the_world_changes_nothing(a, b, how):
    agents, flags = pair(a, b)
    assume(not is_doubtful(agents))
    before = judged(agents, flags).copy()
    if how == "quarter turn":
        agents[[X, Y, COS, SIN]] = np.stack([-agents[Y], agents[X], -agents[SIN], agents[COS]])
    else:
        agents[[Y, SIN]] *= -1
    np.testing.assert_array_equal(judged(agents, flags), before)


@given(st.permutations(range(20)))
def test_the_order_of_agents_does_not_matter(order):
    agents, flags = random_world(np.random.default_rng(3), 20, 12.0)
    before = judged(agents, flags).copy()
    assert 0 < before.sum() < 20
    order = np.array(order)
    shuffled = judged(np.ascontiguousarray(agents[:, order]), np.ascontiguousarray(flags[:, order]))
    np.testing.assert_array_equal(shuffled, before[order])


def test_a_radius_of_half_the_diagonal_hides_no_contact():
    agents, flags = agents_at([0.0, np.hypot(4.5, 2.0) * np.cos(0.3) - 1e-3], [0.0, np.hypot(4.5, 2.0) * np.sin(0.3)])
    heading = 0.3 - np.arctan2(2.0, 4.5)
    agents[COS], agents[SIN] = np.cos(heading), np.sin(heading)
    assert agents[RADIUS, 0] == np.float32(np.hypot(4.5, 2.0) / 2)
    assert judged(agents, flags).all()
