"""Setups on freeways: driving straight, stop-and-go, merging."""

from __future__ import annotations

import numpy as np

from roadworthy.scenario.generate.highways import build_highway
from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.traffic.users import Script
from roadworthy.scenario.schema import LaneType


def build(rng: np.random.Generator) -> Network:
    return build_highway(rng)


def first_lanes(network: Network) -> list[int]:
    """Return the lanes on which through traffic enters the map."""
    return [n for n in network.entries if network.lanes[n].left >= 0 or network.lanes[n].right >= 0]


def fill(scene: Scene) -> None:
    """Add free-flowing background traffic: about nine vehicles per kilometer and lane."""
    length = sum(lane.path.length for lane in scene.network.lanes)
    scene.fill(cars=int(length / 1000.0 * scene.rng.uniform(7.0, 12.0)), arrivals_every_s=scene.rng.uniform(3.5, 6.0))


def populate_straight(scene: Scene) -> None:
    """The self-driving car keeps its lane in free traffic."""
    lane = int(scene.rng.choice(first_lanes(scene.network)))
    scene.sdc = scene.put_car(lane, scene.rng.uniform(10.0, 60.0), script=Script.KEEP_LANE, length=4.7, width=1.85)
    fill(scene)


def populate_stop_and_go(scene: Scene) -> None:
    """A queue moves in waves behind a leader that repeatedly stops; the adjacent lane is slow too."""
    rng = scene.rng
    lanes = first_lanes(scene.network)
    lane = int(rng.choice(lanes))
    rows = [lane] + [n for n in (scene.network.lanes[lane].left, scene.network.lanes[lane].right) if n >= 0]
    place = int(rng.integers(1, 3))  # number of cars ahead of the self-driving car
    for row in rows:
        head = rng.uniform(150.0, 190.0)
        beat, start = rng.uniform(2.9, 3.5), int(rng.integers(0, 30))
        s, number = head, 0
        while s > 20.0:
            leads = number == 0
            car = scene.put_car(
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
                scene.sdc = car
            number += 1
            s -= rng.uniform(7.5, 9.0)
    fill(scene)


def populate_merge(scene: Scene) -> None:
    """The self-driving car enters from a ramp and must merge into the traffic."""
    network, rng = scene.network, scene.rng
    ramps = [n for n in network.entries if n not in first_lanes(network)]
    ramp = int(rng.choice(ramps))
    lane = network.lanes[ramp].successors[0]
    scene.sdc = scene.put_car(
        ramp, network.lanes[ramp].path.length - rng.uniform(20.0, 110.0), length=4.6, width=1.85, cornering=2.4
    )
    # Traffic in the adjacent lane, which arrives at the ramp at about the same time.
    beside = network.lanes[lane].left
    before = next((i for i, item in enumerate(network.lanes) if beside in item.successors), -1)
    s = network.lanes[before].path.length if before >= 0 else 0.0
    for _ in range(4):
        s -= rng.uniform(28.0, 60.0)
        if before >= 0 and s > 10.0:
            scene.put_car(before, s, script=Script.KEEP_LANE)
    fill(scene)


def is_freeway(network: Network) -> bool:
    return any(lane.type == LaneType.FREEWAY for lane in network.lanes)
