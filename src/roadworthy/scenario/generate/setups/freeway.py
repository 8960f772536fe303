"""Setups on freeways: going straight, stop-and-go, merging."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.generate.highways import build_highway
from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.stage import Stage
from roadworthy.scenario.generate.traffic.users import Script
from roadworthy.scenario.schema import LaneType


def build(rng: np.random.Generator) -> Network:
    return build_highway(rng)


def first_lanes(network: Network) -> list[int]:
    """The lanes on which through traffic comes onto the map."""
    return [n for n in network.entries if network.lanes[n].left >= 0 or network.lanes[n].right >= 0]


def fill(stage: Stage) -> None:
    """Free-flowing background traffic: about nine vehicles per kilometer and lane."""
    length = sum(lane.path.length for lane in stage.network.lanes)
    stage.fill(cars=int(length / 1000.0 * stage.rng.uniform(7.0, 12.0)), arrivals_every_s=stage.rng.uniform(3.5, 6.0))


def cast_straight(stage: Stage) -> None:
    """The self-driving car keeps its lane in free traffic."""
    lane = int(stage.rng.choice(first_lanes(stage.network)))
    stage.sdc = stage.put_car(lane, stage.rng.uniform(10.0, 60.0), script=Script.KEEP_LANE, length=4.7, width=1.85)
    fill(stage)


def cast_stop_and_go(stage: Stage) -> None:
    """A queue moves in waves behind a leader who goes and stops; the lane beside it is slow too."""
    rng = stage.rng
    lanes = first_lanes(stage.network)
    lane = int(rng.choice(lanes))
    rows = [lane] + [n for n in (stage.network.lanes[lane].left, stage.network.lanes[lane].right) if n >= 0]
    place = int(rng.integers(1, 3))  # how many cars the self-driving car has before it
    for row in rows:
        head = rng.uniform(150.0, 190.0)
        beat, start = rng.uniform(2.9, 3.5), int(rng.integers(0, 30))
        s, number = head, 0
        while s > 20.0:
            leads = number == 0
            car = stage.put_car(
                row,
                s,
                rng.uniform(1.0, 2.5),
                script=Script.WAVE if leads else Script.KEEP_LANE,
                script_step=start,
                script_value=beat,
                headway=rng.uniform(0.5, 0.8),
                standing_gap=rng.uniform(1.8, 2.6),
                acceleration=rng.uniform(1.6, 2.2),
                delay=1,
                length=rng.uniform(4.2, 5.0),
                width=1.85,
            )
            if row == lane and number == place:
                stage.sdc = car
            number += 1
            s -= rng.uniform(7.5, 9.0)
    fill(stage)


def cast_merge(stage: Stage) -> None:
    """The self-driving car comes up a ramp and has to find its place in the traffic."""
    network, rng = stage.network, stage.rng
    ramps = [n for n in network.entries if n not in first_lanes(network)]
    ramp = int(rng.choice(ramps))
    lane = network.lanes[ramp].successors[0]
    stage.sdc = stage.put_car(
        ramp, network.lanes[ramp].path.length - rng.uniform(20.0, 110.0), length=4.6, width=1.85, cornering=2.4
    )
    # Somebody to merge with: traffic in the lane beside, which arrives at the ramp at about the same time.
    beside = network.lanes[lane].left
    before = next((i for i, item in enumerate(network.lanes) if beside in item.successors), -1)
    s = network.lanes[before].path.length if before >= 0 else 0.0
    for _ in range(4):
        s -= rng.uniform(28.0, 60.0)
        if before >= 0 and s > 10.0:
            stage.put_car(before, s, script=Script.KEEP_LANE)
    fill(stage)


def is_freeway(network: Network) -> bool:
    return any(lane.type == LaneType.FREEWAY for lane in network.lanes)
