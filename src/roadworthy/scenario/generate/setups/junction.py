"""Setups at junctions: roundabouts, unprotected and protected turns."""

from __future__ import annotations

import numpy as np

from roadworthy.errors import GenerationError
from roadworthy.scenario.generate.junctions import JunctionControl
from roadworthy.scenario.generate.network import Control, Network, Turn
from roadworthy.scenario.generate.setups.street import fill
from roadworthy.scenario.generate.signals import phase_start
from roadworthy.scenario.generate.stage import Stage
from roadworthy.scenario.generate.towns import TownPlan, build_town
from roadworthy.scenario.schema import LaneType, LightState

EXAM_APPROACH_M = 20.0  # an exam starts while the car is still on its way to the junction


def build_roundabout(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(center=JunctionControl.ROUNDABOUT))


def build_unprotected(rng: np.random.Generator) -> Network:
    kinds = [JunctionControl.PERMITTED_SIGNAL, JunctionControl.PRIORITY, JunctionControl.PRIORITY]
    return build_town(rng, TownPlan(center=kinds[int(rng.integers(3))]))


def build_stopping(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(center=JunctionControl.PRIORITY))


def build_protected(rng: np.random.Generator) -> Network:
    return build_town(rng, TownPlan(center=JunctionControl.PROTECTED_SIGNAL))


def cast_roundabout(stage: Stage) -> None:
    """The self-driving car goes around to the second or third exit, with others on the ring."""
    network, rng = stage.network, stage.rng
    entries = [i for i, lane in enumerate(network.lanes) if lane.control == Control.YIELD]
    entry = int(rng.choice(entries))
    plan = [entry, network.lanes[entry].successors[0]]
    for _ in range(2 * int(rng.integers(1, 3))):
        plan.append(next(n for n in network.lanes[plan[-1]].successors if network.lanes[n].turn == Turn.RING))
    plan.append(next(n for n in network.lanes[plan[-1]].successors if network.lanes[n].turn != Turn.RING))
    _approach(stage, network.lanes[entry].approach, tuple(plan), rng.uniform(8.0, 30.0))
    rings = [
        i
        for i, lane in enumerate(network.lanes)
        if lane.turn == Turn.RING and lane.junction == network.lanes[entry].junction and lane.path.length > 12.0
    ]
    for ring in rng.permutation(rings)[: int(rng.integers(0, 3))]:
        stage.put_car(int(ring), network.lanes[ring].path.length / 2, 5.5, length=4.5, width=1.85)
    fill(stage)


def cast_unprotected_left(stage: Stage) -> None:
    """The self-driving car turns left and has to let others pass first."""
    _cast_unprotected(stage, Turn.LEFT)


def cast_unprotected_right(stage: Stage) -> None:
    """The self-driving car turns right from a stop and has to find a gap."""
    _cast_unprotected(stage, Turn.RIGHT)


def cast_protected_left(stage: Stage) -> None:
    """The self-driving car turns left on a green arrow."""
    network, rng = stage.network, stage.rng
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
    distance = rng.uniform(10.0, 45.0) + (EXAM_APPROACH_M if stage.is_exam else 0.0)
    _approach(stage, network.lanes[lane].approach, (lane,), distance)
    green = rng.uniform(1.0, 5.0) + distance / 12.0  # seconds into the recording
    stage.offsets[plan.junction] = (phase_start(plan, number) - green) % plan.cycle_s
    fill(stage)


def _cast_unprotected(stage: Stage, turn: Turn) -> None:
    network, rng = stage.network, stage.rng
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
        and any(network.lanes[n].type != LaneType.BIKE_LANE for n in stage.gives_way_to(i))
    ]
    turns = [i for i in turns if turn == Turn.LEFT or network.lanes[i].control == Control.STOP]
    if not turns:
        raise GenerationError("no junction has an unprotected turn of the kind")
    lane = int(rng.choice(turns))
    distance = rng.uniform(12.0, 40.0) + (EXAM_APPROACH_M if stage.is_exam else 0.0)
    _approach(stage, network.lanes[lane].approach, (lane,), distance)
    arrival = distance / 7.0 + (2.0 if network.lanes[lane].control == Control.STOP else 0.0)
    if lane in permitted:
        plan, number = permitted[lane]
        stage.offsets[plan.junction] = (phase_start(plan, number) + rng.uniform(0.0, 3.0)) % plan.cycle_s
    # Those who go first: on their way to the same place, at about the same time.
    others = [n for n in stage.gives_way_to(lane) if network.lanes[n].type != LaneType.BIKE_LANE]
    for other in [*rng.permutation(others), *rng.permutation(others)][: int(rng.integers(1, 4))]:
        item = network.lanes[network.lanes[other].approach]
        ahead = item.speed_limit * (arrival + rng.uniform(-1.0, 3.0))
        s = item.path.length - min(ahead, item.path.length - 6.0)
        if stage.room(network.lanes[other].approach, s, 4.7, 8.0):
            stage.put_car(network.lanes[other].approach, s, 0.9 * item.speed_limit, plan=(int(other),))
    fill(stage)


def _approach(stage: Stage, lane: int, plan: tuple[int, ...], distance: float) -> None:
    """Put the self-driving car before a junction, with its way through it."""
    s = max(stage.network.lanes[lane].path.length - distance, 4.0)
    stage.sdc = stage.put_car(lane, s, plan=plan, length=4.6, width=1.85)
