"""Freeways: separate roadways of several lanes, on-ramps with an acceleration lane, off-ramps."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.curves import Curve, Pose, bend, connect, line
from roadworthy.scenario.generate.network import Network, Points
from roadworthy.scenario.schema import LaneType, LineType

LANE_WIDTH_M = 3.66
MEDIAN_M = 7.0
LEFT_SHOULDER_M = 1.0
RIGHT_SHOULDER_M = 2.6
TAPER_M = 60.0
RAMP_SPEED_MPS = 20.0


@dataclass(frozen=True)
class Carriageway:
    """The properties of one direction: its lanes, and the stations of its ramps."""

    lanes: int
    speed_limit: float
    on_ramp: tuple[float, float] | None  # the acceleration lane's first and last station
    off_ramp: float | None  # where the ramp diverges, after the end of the acceleration lane


def build_highway(rng: np.random.Generator) -> Network:
    """Build a freeway about a kilometer long, with ramps on at least one side."""
    network = Network()
    middle = _alignment(rng)
    for number, curve in enumerate((middle, middle.reversed())):
        on_ramp = off_ramp = None
        if number == 0 or rng.random() < 0.5:
            start = rng.uniform(300.0, 380.0)
            on_ramp = (start, start + rng.uniform(190.0, 260.0))
        if rng.random() < 0.6:
            off_ramp = (on_ramp[1] if on_ramp else 350.0) + rng.uniform(100.0, 160.0)
        limit = float(rng.choice([24.6, 26.8, 29.1, 31.3]))  # 55 to 70 mph
        _carriageway(network, curve, Carriageway(int(rng.integers(2, 5)), limit, on_ramp, off_ramp), rng)
    return network


def _alignment(rng: np.random.Generator) -> Curve:
    """Return a gently winding line, centered at the origin."""
    curve = line(Pose(0.0, 0.0, rng.uniform(-np.pi, np.pi)), rng.uniform(60.0, 200.0))
    while curve.length < 950.0:
        turn = rng.choice([-1.0, 1.0]) * rng.uniform(0.1, 0.35)
        curve = curve.then(bend(curve.end, turn, rng.uniform(600.0, 1500.0)))
        curve = curve.then(line(curve.end, rng.uniform(40.0, 150.0)))
    middle = curve.at(curve.length / 2)
    start = Pose(-middle.x, -middle.y, curve.start.heading)
    return Curve(start, curve.lengths, curve.curvatures)


def _carriageway(network: Network, curve: Curve, plan: Carriageway, rng: np.random.Generator) -> None:
    """Split the direction into sections with a constant number of lanes, and build each."""
    left = -MEDIAN_M / 2
    cuts = sorted({0.0, curve.length, *(plan.on_ramp or ()), *([plan.off_ramp] if plan.off_ramp else [])})
    previous: list[int] = []
    for first, last in pairwise(cuts):
        extra = plan.on_ramp is not None and first == plan.on_ramp[0]
        lanes = _stretch(network, curve, plan, first, last, plan.lanes + extra)
        for a, b in zip(previous, lanes, strict=False):
            network.lanes[a].successors.append(b)
        if first == 0.0:
            network.entries += lanes
        if extra:
            network.lanes[lanes[-1]].ends = True
            _on_ramp(network, curve, first, lanes[-1], rng)
            _taper(network, curve, plan, last)
        if plan.off_ramp is not None and last == plan.off_ramp:
            _off_ramp(network, curve, last, lanes[plan.lanes - 1], rng)
        previous = lanes[: plan.lanes]
    network.add_line(LineType.SOLID_SINGLE_YELLOW, curve, left - LEFT_SHOULDER_M)


def _lane_offset(number: int) -> float:
    return -(MEDIAN_M / 2 + LEFT_SHOULDER_M + LANE_WIDTH_M * (number + 0.5))


def _stretch(network: Network, curve: Curve, plan: Carriageway, first: float, last: float, lanes: int) -> list[int]:
    group = network.new_group()
    numbers = [
        network.add_lane(
            curve,
            LANE_WIDTH_M,
            plan.speed_limit,
            offset=_lane_offset(number),
            first=first,
            last=last,
            type=LaneType.FREEWAY,
            group=group,
        )
        for number in range(lanes)
    ]
    for number in range(1, lanes):
        network.set_beside(numbers[number - 1], numbers[number])
        network.add_line(LineType.BROKEN_SINGLE_WHITE, curve, _lane_offset(number) + LANE_WIDTH_M / 2, first, last)
    right = _lane_offset(lanes) + LANE_WIDTH_M / 2
    network.add_line(LineType.SOLID_SINGLE_WHITE, curve, right, first, last)
    # The overlap with adjacent sections avoids seams in the pavement.
    network.add_band(
        curve, -MEDIAN_M / 2, right - RIGHT_SHOULDER_M, max(first - 1.0, 0.0), min(last + 1.0, curve.length)
    )
    return numbers


def _taper(network: Network, curve: Curve, plan: Carriageway, first: float) -> None:
    """Narrow the pavement beyond the end of an acceleration lane."""
    last = min(first + TAPER_M, curve.length)
    wide = _lane_offset(plan.lanes) - LANE_WIDTH_M / 2 - RIGHT_SHOULDER_M
    narrow = wide + LANE_WIDTH_M
    near = curve.parallel(narrow + 0.5, 2.0, first - 1.0, last)
    a, b = curve.at(first - 1.0).shifted(left=wide), curve.at(first + 1.0).shifted(left=wide)
    polygon: Points = np.concatenate([[[a.x, a.y], [b.x, b.y]], np.column_stack([near.x, near.y])[::-1]])
    network.surfaces.append(polygon)


def _on_ramp(network: Network, curve: Curve, station: float, lane: int, rng: np.random.Generator) -> None:
    """Add a ramp from the right to the start of an acceleration lane, at a station of the freeway's curve."""
    end = network.lanes[lane].start
    length, side, angle = rng.uniform(150.0, 210.0), rng.uniform(24.0, 40.0), rng.uniform(0.12, 0.3)
    far = curve.at(max(station - length, 0.0)).shifted(left=network.lanes[lane].offset - side)
    ramp = _pave_ramp(network, _ramp(Pose(far.x, far.y, far.heading + angle), end))
    network.lanes[ramp].successors.append(lane)
    network.entries.append(ramp)


def _off_ramp(network: Network, curve: Curve, station: float, lane: int, rng: np.random.Generator) -> None:
    """Add a ramp that leaves the end of a lane to the right."""
    start = network.lanes[lane].end
    length, side, angle = rng.uniform(150.0, 210.0), rng.uniform(22.0, 36.0), rng.uniform(0.1, 0.3)
    far = curve.at(min(station + length, curve.length)).shifted(left=network.lanes[lane].offset - side)
    ramp = _pave_ramp(network, _ramp(start, Pose(far.x, far.y, far.heading - angle)))
    network.lanes[lane].successors.append(ramp)


def _ramp(start: Pose, end: Pose) -> Curve:
    curve = connect(start, end)
    if curve is None or curve.sharpest > 1.0 / 90.0:
        raise GenerationError("a ramp can't be connected to the freeway")
    return curve


def _pave_ramp(network: Network, curve: Curve) -> int:
    half = LANE_WIDTH_M / 2
    network.add_band(curve, half + LEFT_SHOULDER_M, -half - 1.8)
    network.add_line(LineType.SOLID_SINGLE_WHITE, curve, -half)
    return network.add_lane(curve, LANE_WIDTH_M, RAMP_SPEED_MPS, type=LaneType.FREEWAY)
