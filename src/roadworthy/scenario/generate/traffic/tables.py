"""The network as arrays of records for the traffic kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.curves import Parallel
from roadworthy.scenario.generate.network import Control, Network
from roadworthy.scenario.schema import LaneType

CROSSING, MERGING, DIVERGING = 0, 1, 2
CAR_RADIUS_M, BIKE_RADIUS_M = (1.45, 0.55)  # lanes conflict where their center lines are closer than the sum


# A lane or a pedestrian's path. The last record is a sentinel: the samples of path p are p.sample..(p + 1).sample - 1.
LANE = np.dtype(
    [
        ("sample", np.int64),  # its first sample
        ("follow", np.int64),  # its first successor
        ("conflict", np.int64),  # its first conflict
        ("crosswalk", np.int64),  # its first crosswalk
        ("nudge", np.int64),  # its first obstacle
        ("spacing", np.float64),  # m between samples
        ("length", np.float64),
        ("width", np.float64),
        ("limit", np.float64),  # m/s
        ("offset", np.float64),  # from the curve
        ("sharpest", np.float64),  # 1/m, its largest curvature
        ("left", np.int64),  # neighbor, -1 if there is none
        ("right", np.int64),
        ("ends", np.int64),  # 1 if the lane is closed at its end
        ("freeway", np.int64),
        ("control", np.int64),  # Control
        ("junction", np.int64),  # -1 if there is none
        ("light", np.int64),  # -1 if there is none
    ]
)
SAMPLE = np.dtype([(name, np.float64) for name in ("x", "y", "heading", "curvature", "station")])
# A part of a lane where another lane comes too close. rank -1: yields to the other, 1: has priority, 0: equal.
CONFLICT = np.dtype(
    [("lane", np.int64), ("kind", np.int64), ("rank", np.int64), ("own", np.float64, (2,)), ("other", np.float64, (2,))]
)
# A crosswalk over a lane: first and last meter on it, and m from the crosswalk's first curb to the lane's center.
LANE_CROSSWALK = np.dtype([("crosswalk", np.int64), ("span", np.float64, (2,)), ("across", np.float64)])
# An obstacle beside a lane: its range, and the offset to the left that passes it.
NUDGE = np.dtype([("span", np.float64, (2,)), ("shift", np.float64)])


class RoadTables(NamedTuple):
    """Records of the network's lanes, then of the pedestrians' paths."""

    lanes: NDArray[np.void]
    samples: NDArray[np.void]
    follow: NDArray[np.int64]
    conflicts: NDArray[np.void]
    lane_crosswalks: NDArray[np.void]
    nudges: NDArray[np.void]


class Nudge(NamedTuple):
    """An obstacle that protrudes into a lane: shift to the left between two distances."""

    lane: int
    first: float
    last: float
    shift: float


@dataclass(frozen=True, eq=False)
class Layout:
    """The part of the tables that depends only on the network, shared by all recordings on it."""

    lanes: NDArray[np.void]  # LANE, with a sentinel
    samples: NDArray[np.void]
    follow: NDArray[np.int64]
    conflicts: NDArray[np.void]
    lane_crosswalks: NDArray[np.void]


def lane_count(tables: RoadTables) -> int:
    return len(tables.lanes) - 1


def lay_out(network: Network) -> Layout:
    """Return the layout of a network."""
    n = len(network.lanes)
    lanes = np.zeros(n + 1, LANE)
    for i, lane in enumerate(network.lanes):
        record = lanes[i]
        for name in ("width", "offset", "left", "right", "ends", "control", "junction"):
            record[name] = getattr(lane, name)
        record["limit"], record["freeway"] = lane.speed_limit, lane.type == LaneType.FREEWAY
    lanes["light"][:n] = light_numbers(network)
    follow = [(i, j) for i, lane in enumerate(network.lanes) for j in lane.successors]
    conflicts, lane_crosswalks = _conflicts(network), _lane_crosswalks(network)
    lanes["follow"] = _starts(follow, n + 1)
    lanes["conflict"], lanes["crosswalk"] = _starts(conflicts, n + 1), _starts(lane_crosswalks, n + 1)
    _describe(lanes[:n], [lane.path for lane in network.lanes], 0)
    return Layout(
        lanes,
        _samples([lane.path for lane in network.lanes]),
        np.array([j for _, j in follow], np.int64),
        np.array([row[1:] for row in conflicts], CONFLICT),
        np.array([row[1:] for row in lane_crosswalks], LANE_CROSSWALK),
    )


def road_tables(layout: Layout, walks: Sequence[Parallel], nudges: Sequence[Nudge]) -> RoadTables:
    """Return a network's layout with the pedestrians' paths and the obstacles of a recording."""
    n, base = len(layout.lanes) - 1, len(layout.samples)
    lanes = np.zeros(n + len(walks) + 1, LANE)
    lanes[:n] = layout.lanes[:n]
    rest = lanes[n:]
    for name, value in (("left", -1), ("right", -1), ("junction", -1), ("light", -1), ("width", 1.0), ("limit", 3.0)):
        rest[name] = value
    rest["follow"], rest["conflict"] = len(layout.follow), len(layout.conflicts)
    rest["crosswalk"] = len(layout.lane_crosswalks)
    _describe(rest[:-1], walks, base)
    samples = np.concatenate([layout.samples, _samples(walks)])
    lanes[-1]["sample"] = len(samples)
    ordered = sorted(nudges)
    lanes["nudge"] = _starts([(nudge.lane,) for nudge in ordered], n + len(walks) + 1)
    records = np.array([((nudge.first, nudge.last), nudge.shift) for nudge in ordered], NUDGE)
    return RoadTables(lanes, samples, layout.follow, layout.conflicts, layout.lane_crosswalks, records)


def light_numbers(network: Network) -> NDArray[np.int64]:
    """Return the light of each lane, -1 if there is none: controlled lanes are numbered in ascending order."""
    lights = np.full(len(network.lanes), -1, np.int64)
    controlled = [i for i, lane in enumerate(network.lanes) if lane.control == Control.SIGNAL]
    lights[controlled] = np.arange(len(controlled))
    return lights


def _describe(lanes: NDArray[np.void], paths: Sequence[Parallel], base: int) -> None:
    """Set where each path's samples start, and what follows from them."""
    counts = np.array([len(path.x) for path in paths], np.int64)
    lanes["sample"] = base + np.cumsum(counts) - counts
    lanes["length"] = [path.length for path in paths]
    lanes["spacing"] = lanes["length"] / (counts - 1)
    lanes["sharpest"] = [np.abs(path.curvature).max() for path in paths]


def _samples(paths: Sequence[Parallel]) -> NDArray[np.void]:
    samples = np.zeros(sum(len(path.x) for path in paths), SAMPLE)
    first = 0
    for path in paths:
        part = samples[first : first + len(path.x)]
        part["x"], part["y"], part["heading"], part["curvature"] = path.x, path.y, path.heading, path.curvature
        part["station"] = path.stations
        first += len(path.x)
    return samples


def _starts(rows: Sequence[tuple[Any, ...]], n: int) -> NDArray[np.int64]:
    """Return where each lane's rows start; rows are sorted by lane, their first item."""
    return np.searchsorted(np.array([row[0] for row in rows], np.int64), np.arange(n))


def _conflicts(network: Network) -> list[tuple[int, int, int, int, tuple[float, float], tuple[float, float]]]:
    """Return rows of lane and CONFLICT, for every two lanes of a junction, or of a fork, that come too close."""
    lanes = network.lanes
    before: list[set[int]] = [set() for _ in lanes]
    for i, lane in enumerate(lanes):
        for j in lane.successors:
            before[j].add(i)
    spans = {}
    for a, b in _neighborhood(network, before):
        lane, other = lanes[a], lanes[b]
        reach = sum(BIKE_RADIUS_M if item.type == LaneType.BIKE_LANE else CAR_RADIUS_M for item in (lane, other))
        near = _near(lane.path.x, lane.path.y, other.path.x, other.path.y, reach)
        if near[0] <= near[1]:
            scale = lane.path.length / (len(lane.path.x) - 1)
            spans[a, b] = (near[0] * scale, near[1] * scale)
    rows = []
    for (a, b), own in sorted(spans.items()):
        kind = CROSSING
        if before[a] & before[b]:
            kind = DIVERGING
        elif set(lanes[a].successors) & set(lanes[b].successors):
            kind = MERGING
        rank = -1 if (a, b) in network.yields else 1 if (b, a) in network.yields else 0
        rows.append((a, b, kind, rank, own, spans[b, a]))
    return rows


def _neighborhood(network: Network, before: Sequence[set[int]]) -> Iterator[tuple[int, int]]:
    """Return pairs of lanes that share a junction or a predecessor, and do not follow each other."""
    meeting: dict[tuple[str, int], list[int]] = {}
    for i, lane in enumerate(network.lanes):
        if lane.junction >= 0:
            meeting.setdefault(("junction", lane.junction), []).append(i)
        for j in before[i]:
            meeting.setdefault(("fork", j), []).append(i)
    pairs = {(a, b) for group in meeting.values() for a in group for b in group if a != b}
    for a, b in sorted(pairs):
        if b not in network.lanes[a].successors and a not in network.lanes[b].successors:
            yield a, b


def _lane_crosswalks(network: Network) -> list[tuple[int, int, tuple[float, float], float]]:
    """Return rows of lane and LANE_CROSSWALK."""
    rows = []
    boxes = np.array([[p.x.min(), p.x.max(), p.y.min(), p.y.max()] for p in (lane.path for lane in network.lanes)])
    for number, crosswalk in enumerate(network.crosswalks):
        first, across = crosswalk.curbs[0], crosswalk.curbs[1] - crosswalk.curbs[0]
        span = float(np.hypot(*across))
        half_depth = float(np.hypot(*(crosswalk.polygon[2] - crosswalk.polygon[1]))) / 2
        low, high = crosswalk.polygon.min(axis=0), crosswalk.polygon.max(axis=0)
        close = (boxes[:, 0] <= high[0]) & (boxes[:, 1] >= low[0]) & (boxes[:, 2] <= high[1]) & (boxes[:, 3] >= low[1])
        for i in np.flatnonzero(close):
            path = network.lanes[i].path
            begin, end, over = _over(path.x, path.y, path.length, first, across / span, span, half_depth)
            if begin <= end:
                rows.append((int(i), number, (begin, end), over))
    return sorted(rows)


@kernel
def _over(x, y, length, curb, across, span, half_depth):
    """Return first and last meter of a path on a crosswalk, and its distance across; (1, 0, 0) if it is not on it."""
    fine = 4
    n = (len(x) - 1) * fine
    begin, end, total, hits = 1.0, 0.0, 0.0, 0
    for k in range(n + 1):
        i = min(k // fine, len(x) - 2)
        t = k / fine - i
        dx, dy = x[i] + t * (x[i + 1] - x[i]) - curb[0], y[i] + t * (y[i + 1] - y[i]) - curb[1]
        over, along = dx * across[0] + dy * across[1], dy * across[0] - dx * across[1]
        if abs(along) <= half_depth and 0.0 < over < span:
            if hits == 0:
                begin = length * k / n
            end = length * k / n
            total += over
            hits += 1
    return begin, end, total / max(hits, 1)


@kernel
def _near(ax, ay, bx, by, reach):
    """Return first and last sample of a that comes within reach of b; (1, 0) if none does."""
    first, last = 1, 0
    for i in range(len(ax)):
        for j in range(len(bx)):
            dx, dy = ax[i] - bx[j], ay[i] - by[j]
            if dx * dx + dy * dy < reach * reach:
                if first > last:
                    first = i
                last = i
                break
    return first, last
