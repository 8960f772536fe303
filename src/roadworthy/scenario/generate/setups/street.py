"""Setups along a road: hard stops, lane changes, cut-ins, pedestrians, badly parked cars."""

from __future__ import annotations

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.network import Network
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.setups import freeway
from roadworthy.scenario.generate.towns import TownPlan, build_town
from roadworthy.scenario.generate.traffic.users import Script
from roadworthy.scenario.schema import LaneType

CAR_WIDTH_M = 1.85


def build_any(rng: np.random.Generator) -> Network:
    return freeway.build(rng) if rng.random() < 0.4 else build_town(rng, TownPlan())


def build_wide(rng: np.random.Generator) -> Network:
    """Build a network with several lanes per direction."""
    return freeway.build(rng) if rng.random() < 0.6 else build_town(rng, TownPlan(lanes=2))


def build_crosswalk(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(midblock_crosswalk=True, parking=False))


def build_parking(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(parking=True))


def fill(scene: Scene) -> None:
    """Add background traffic that suits the network."""
    if freeway.is_freeway(scene.network):
        freeway.fill(scene)
    else:
        scene.fill(cars=int(scene.rng.integers(12, 24)), arrivals_every_s=scene.rng.uniform(14.0, 28.0))


def populate_hard_stop(scene: Scene) -> None:
    """The car ahead brakes hard without a visible reason, and so must the self-driving car."""
    rng = scene.rng
    lane = _long_lane(scene, 75.0)
    item = scene.network.lanes[lane]
    s = rng.uniform(8.0, 20.0)
    speed = min(item.speed_limit, 24.0) * rng.uniform(0.85, 1.0)
    step = 40 + int(rng.integers(0, 8)) if item.type == LaneType.FREEWAY else int(rng.integers(26, 32))
    step += 4 if scene.is_exam else 0
    strength = rng.uniform(5.6, 7.4)
    leader_values = {"length": 4.7, "width": 1.85, "script": Script.BRAKE, "speed_factor": speed / item.speed_limit}
    lead = s + 4.7 + speed * rng.uniform(0.9, 1.4) + 3.0
    scene.sdc = scene.put_car(
        lane, s, speed, script_step=step + int(rng.integers(3, 7)), script_value=strength, headway=0.9, **leader_values
    )
    scene.put_car(lane, lead, speed, script_step=step, script_value=strength, **leader_values)
    fill(scene)


def populate_lane_change(scene: Scene) -> None:
    """The self-driving car changes lanes, to either side."""
    lane, _, script = _two_lanes(scene)
    item = scene.network.lanes[lane]
    is_freeway = item.type == LaneType.FREEWAY
    s, speed = scene.rng.uniform(6.0, 12.0), item.speed_limit * (0.85 if is_freeway else 0.65)
    start = int(scene.rng.integers(30, 45)) if is_freeway else 10
    pace = {"length": 4.7, "width": 1.85, "speed_factor": speed / item.speed_limit}
    scene.sdc = scene.put_car(lane, s, speed, script=script, script_step=start, **pace)
    fill(scene)


def populate_cut_in(scene: Scene) -> None:
    """A slower car in the adjacent lane moves closely ahead of the self-driving car."""
    rng = scene.rng
    lane, other, script = _two_lanes(scene)
    item = scene.network.lanes[lane]
    is_freeway = item.type == LaneType.FREEWAY
    speed = item.speed_limit * (0.85 if is_freeway else 0.65)
    s = rng.uniform(6.0, 12.0)
    start = int(rng.integers(32, 45)) if is_freeway else 12
    slower = rng.uniform(0.72, 0.92)
    # The gap at the start of its lane change, and what it loses until then.
    gap = 4.0 + 0.4 * speed + rng.uniform(0.0, 3.0) + (1.0 - slower) * speed * (0.1 * start + 2.0)
    pace = {"speed_factor": speed / item.speed_limit, "length": 4.7, "width": 1.85}
    scene.sdc = scene.put_car(other, s, speed, script=Script.KEEP_LANE, headway=rng.uniform(1.1, 1.6), **pace)
    pace["speed_factor"] *= slower
    scene.put_car(lane, s + gap + 4.7, slower * speed, script=script, script_step=start, **pace)
    fill(scene)


def populate_pedestrian(scene: Scene) -> None:
    """A pedestrian wants to cross ahead of the self-driving car."""
    network, rng = scene.network, scene.rng
    spots = [
        (crosswalk, lane, span)
        for crosswalk, lane, span in scene.crossings()
        if network.lanes[lane].type != LaneType.BIKE_LANE
        and network.lanes[lane].junction < 0
        and span > 32.0
        and scene.way_ahead(lane, span) > scene.stay_s * 8.0
    ]
    if not spots:
        raise GenerationError("no crosswalk lies far enough from a junction")
    crosswalk, lane, span = spots[int(rng.integers(len(spots)))]
    distance = min(rng.uniform(30.0, 55.0), span - 5.0)
    # Slow enough for a driver to yield, and pedestrians at the curb in time.
    speed = min(network.lanes[lane].speed_limit, np.sqrt(4.0 * (distance - 10.0)))
    scene.sdc = scene.put_car(lane, span - distance, length=4.6, width=1.85, top_speed=float(speed))
    middle = network.crosswalks[crosswalk].curbs - scene.lane_point(lane, span)
    near = int(np.argmin(np.hypot(*middle.T)))
    for number in range(int(rng.integers(1, 3))):
        curb = near if number == 0 and rng.random() < 0.8 else None
        scene.put_pedestrian(
            crosswalk, arrives_s=max(distance - 35.0, 0.0) / speed + rng.uniform(0.6, 1.8), curb_number=curb
        )
    fill(scene)


def populate_nudge(scene: Scene) -> None:
    """A badly parked car protrudes into the self-driving car's lane."""
    network, rng = scene.network, scene.rng
    strips = [
        strip
        for strip in network.parking
        if strip.last - strip.first > 30.0 and scene.way_ahead(strip.lane, strip.first) > scene.stay_s * 8.0
    ]
    if not strips:
        raise GenerationError("no street has room for a badly parked car")
    strip = strips[int(rng.integers(len(strips)))]
    station = rng.uniform(max(strip.first + 12.0, strip.last - 30.0), strip.last - 8.0)
    # Far enough into the lane that no car can pass at the lane's center.
    reach = network.lanes[strip.lane].width / 2 - CAR_WIDTH_M / 2 + rng.uniform(0.15, 0.5)
    nudge = scene.park_badly(strip, station, reach)
    s = max(nudge.first - rng.uniform(30.0, 60.0), 4.0)
    scene.sdc = scene.put_car(strip.lane, s, length=4.6, width=CAR_WIDTH_M)
    fill(scene)


def _long_lane(scene: Scene, shortest: float) -> int:
    """Return a lane that is long enough and continues."""
    lanes = scene.network.lanes
    fitting = [
        i
        for i, lane in enumerate(lanes)
        if lane.path.length >= shortest
        and lane.junction < 0
        and lane.type != LaneType.BIKE_LANE
        and not lane.ends
        and scene.way_ahead(i) > scene.stay_s * 0.7 * lane.speed_limit
    ]
    if not fitting:
        raise GenerationError("no road is long enough")
    return fitting[int(scene.rng.integers(len(fitting)))]


def _two_lanes(scene: Scene) -> tuple[int, int, Script]:
    """Return a lane, an adjacent one that continues, and the script that changes to it."""
    lanes = scene.network.lanes
    options = []
    for i, lane in enumerate(lanes):
        if lane.path.length > 75.0 and not lane.ends and scene.way_ahead(i) > scene.stay_s * lane.speed_limit:
            options += [(i, lane.left, Script.CHANGE_LEFT)] * (lane.left >= 0)
            options += [(i, lane.right, Script.CHANGE_RIGHT)] * (lane.right >= 0 and not lanes[lane.right].ends)
    if not options:
        raise GenerationError("no road has two lanes side by side that are long enough")
    return options[int(scene.rng.integers(len(options)))]
