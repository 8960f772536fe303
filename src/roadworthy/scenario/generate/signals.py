"""Signals over time: the state of every light at every step, and when pedestrians may walk."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.generate.network import Network, SignalPlan, Turn
from roadworthy.scenario.generate.traffic.tables import RoadTables
from roadworthy.scenario.schema import LightState

ENTERING_M = 6.0  # a crosswalk this near to the start of a junction lane lies before the junction


def light_states(
    network: Network, tables: RoadTables, offsets: Mapping[int, float], steps: int, dt: float
) -> NDArray[np.uint8]:
    """Return (lights, T) LightState. `offsets`: the seconds of each junction's cycle that have passed at step 0."""
    states = np.zeros((int(tables.lanes["light"].max(initial=-1)) + 1, steps), np.uint8)
    times = np.arange(steps) * dt
    for plan in network.signals:
        lanes = [i for i, lane in enumerate(network.lanes) if lane.junction == plan.junction]
        phase, passed = _phases(plan, times + offsets[plan.junction])
        for lane in lanes:
            shown = np.array([item.shows.get(lane, 0) for item in plan.phases])[phase]
            go = np.array([p.green_s for p in plan.phases])[phase]
            red = LightState.ARROW_STOP if network.lanes[lane].turn == Turn.LEFT else LightState.STOP
            yellow = LightState.ARROW_CAUTION if network.lanes[lane].turn == Turn.LEFT else LightState.CAUTION
            row = np.full(steps, red, np.uint8)
            row[(shown > 0) & (passed < go)] = shown[(shown > 0) & (passed < go)]
            row[(shown > 0) & (passed >= go) & (passed < go + plan.yellow_s)] = yellow
            states[tables.lanes["light"][lane]] = row
    return states


def walk_seconds(
    network: Network, tables: RoadTables, offsets: Mapping[int, float], steps: int, dt: float
) -> NDArray[np.float64]:
    """Return (crosswalks, T) seconds of green left for pedestrians, 0 while they must wait, -1 without a light."""
    seconds = np.full((len(network.crosswalks), steps), -1.0)
    plans = {plan.junction: plan for plan in network.signals}
    times = np.arange(steps) * dt
    for number, crosswalk in enumerate(network.crosswalks):
        plan = plans.get(crosswalk.junction)
        if plan is None:
            continue
        phase, passed = _phases(plan, times + offsets[plan.junction])
        free = np.array([not _is_driven_over(network, tables, number, p.shows) for p in plan.phases])[phase]
        go = np.array([p.green_s for p in plan.phases])[phase] + plan.yellow_s
        seconds[number] = np.where(free, np.maximum(go - passed, 0.0), 0.0)
    return seconds


def phase_start(plan: SignalPlan, number: int) -> float:
    """Return seconds from the start of the cycle to a phase's green."""
    return sum(p.green_s + plan.yellow_s + plan.all_red_s for p in plan.phases[:number])


def _phases(plan: SignalPlan, times: NDArray[np.floating]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the phase at each time, and the seconds since it started."""
    starts = np.array([phase_start(plan, n) for n in range(len(plan.phases))])
    within = np.mod(times, plan.cycle_s)
    phase = np.searchsorted(starts, within, side="right") - 1
    return phase, within - starts[phase]


def _is_driven_over(network: Network, tables: RoadTables, crosswalk: int, shows: Mapping[int, LightState]) -> bool:
    """Return whether a phase lets traffic over a crosswalk that need not expect pedestrians there."""
    for lane, shown in shows.items():
        for z in range(tables.lanes["crosswalk"][lane], tables.lanes["crosswalk"][lane + 1]):
            if tables.lane_crosswalks["crosswalk"][z] == crosswalk:
                enters = tables.lane_crosswalks["span"][z, 0] < ENTERING_M
                if enters or shown == LightState.ARROW_GO or network.lanes[lane].turn == Turn.STRAIGHT:
                    return True
    return False
