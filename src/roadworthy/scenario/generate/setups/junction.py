"""Setups at junctions: roundabouts, unprotected and protected turns."""

from __future__ import annotations

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.junctions import JunctionControl
from roadworthy.scenario.generate.network import Control, Network, Turn
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.generate.setups.street import fill
from roadworthy.scenario.generate.signals import phase_start
from roadworthy.scenario.generate.towns import TownPlan, build_town
from roadworthy.scenario.schema import LaneType, LightState

EXAM_APPROACH_M = 20.0  # an exam starts while the car approaches the junction


def build_roundabout(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(center=JunctionControl.ROUNDABOUT))


def build_unprotected(rng: np.random.Generator) -> Network:
    kinds = [JunctionControl.PERMITTED_SIGNAL, JunctionControl.PRIORITY, JunctionControl.PRIORITY]
    return build_town(rng, TownPlan(center=kinds[int(rng.integers(3))]))


def build_stopping(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(center=JunctionControl.PRIORITY))


def build_protected(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(center=JunctionControl.PROTECTED_SIGNAL))


def populate_roundabout(scene: Scene) -> None:
    """The self-driving car goes around to the second or third exit, with others on the ring."""
    network, rng = scene.network, scene.rng
    entries = [i for i, lane in enumerate(network.lanes) if lane.control == Control.YIELD]
    entry = int(rng.choice(entries))
    plan = [entry, network.lanes[entry].successors[0]]
    for _ in range(2 * int(rng.integers(1, 3))):
        plan.append(next(n for n in network.lanes[plan[-1]].successors if network.lanes[n].turn == Turn.RING))
    plan.append(next(n for n in network.lanes[plan[-1]].successors if network.lanes[n].turn != Turn.RING))
    _approach(scene, network.lanes[entry].approach, tuple(plan), rng.uniform(8.0, 30.0))
    rings = [
        i
        for i, lane in enumerate(network.lanes)
        if lane.turn == Turn.RING and lane.junction == network.lanes[entry].junction and lane.path.length > 12.0
    ]
    for ring in rng.permutation(rings)[: int(rng.integers(0, 3))]:
        scene.put_car(int(ring), network.lanes[ring].path.length / 2, 5.5, length=4.5, width=1.85)
    fill(scene)


def populate_unprotected_left(scene: Scene) -> None:
    """The self-driving car turns left and must yield."""
    _cast_unprotected(scene, Turn.LEFT)


def populate_unprotected_right(scene: Scene) -> None:
    """The self-driving car turns right from a stop and must find a gap."""
    _cast_unprotected(scene, Turn.RIGHT)


def populate_protected_left(scene: Scene) -> None:
    """The self-driving car turns left on a green arrow."""
    network, rng = scene.network, scene.rng
    lefts = [
        (plan, number, lane)
        for plan in network.signals
        for number, phase in enumerate(plan.phases)
        for lane, shown in phase.shows.items()
        if shown == LightState.ARROW_GO
    ]
    if not lefts:
        raise GenerationError("no junction has a protected left turn")
    plan, number, lane = lefts[int(rng.integers(len(lefts)))]
    distance = rng.uniform(10.0, 45.0) + (EXAM_APPROACH_M if scene.is_exam else 0.0)
    _approach(scene, network.lanes[lane].approach, (lane,), distance)
    green = rng.uniform(1.0, 5.0) + distance / 12.0  # seconds into the recording
    scene.offsets[plan.junction] = (phase_start(plan, number) - green) % plan.cycle_s
    fill(scene)


def _cast_unprotected(scene: Scene, turn: Turn) -> None:
    network, rng = scene.network, scene.rng
    permitted = {
        lane: (plan, number)
        for plan in network.signals
        for number, phase in enumerate(plan.phases)
        for lane, shown in phase.shows.items()
        if shown == LightState.FLASHING_CAUTION
    }
    turns = [
        i
        for i, lane in enumerate(network.lanes)
        if lane.turn == turn
        and lane.type != LaneType.BIKE_LANE
        and lane.control != Control.YIELD
        and network.lanes[lane.approach].turn == Turn.NONE
        and (i in permitted or lane.control in (Control.STOP, Control.FREE))
        and any(network.lanes[n].type != LaneType.BIKE_LANE for n in scene.gives_way_to(i))
    ]
    turns = [i for i in turns if turn == Turn.LEFT or network.lanes[i].control == Control.STOP]
    if not turns:
        raise GenerationError("no junction has an unprotected turn of the kind")
    lane = int(rng.choice(turns))
    distance = rng.uniform(12.0, 40.0) + (EXAM_APPROACH_M if scene.is_exam else 0.0)
    _approach(scene, network.lanes[lane].approach, (lane,), distance)
    arrival = distance / 7.0 + (2.0 if network.lanes[lane].control == Control.STOP else 0.0)
    if lane in permitted:
        plan, number = permitted[lane]
        scene.offsets[plan.junction] = (phase_start(plan, number) + rng.uniform(0.0, 3.0)) % plan.cycle_s
    # Traffic with priority, on its way to the same place at about the same time.
    others = [n for n in scene.gives_way_to(lane) if network.lanes[n].type != LaneType.BIKE_LANE]
    for other in [*rng.permutation(others), *rng.permutation(others)][: int(rng.integers(1, 4))]:
        item = network.lanes[network.lanes[other].approach]
        ahead = item.speed_limit * (arrival + rng.uniform(-1.0, 3.0))
        s = item.path.length - min(ahead, item.path.length - 6.0)
        if scene.room(network.lanes[other].approach, s, 4.7, 8.0):
            scene.put_car(network.lanes[other].approach, s, 0.9 * item.speed_limit, plan=(int(other),))
    fill(scene)


def _approach(scene: Scene, lane: int, plan: tuple[int, ...], distance: float) -> None:
    """Put the self-driving car before a junction, with its route."""
    s = max(scene.network.lanes[lane].path.length - distance, 4.0)
    scene.sdc = scene.put_car(lane, s, plan=plan, length=4.6, width=1.85)
