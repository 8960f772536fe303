"""Signals over whole cycles: never two greens that conflict, yellow in between, all red between phases."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import shapely
from numpy.typing import NDArray

from roadworthy.scenario.generate.network import SignalPlan
from roadworthy.scenario.generate.recording import record
from roadworthy.scenario.generate.stage import Stage
from roadworthy.scenario.schema import GREEN_STATES, RED_STATES, LightState
from tests.scenario.generate.grounds import Ground

DT = 0.1
YELLOW_STATES = (LightState.CAUTION, LightState.ARROW_CAUTION)
# Only after giving way: others may be green meanwhile.
PERMITTED = LightState.FLASHING_CAUTION


@dataclass(frozen=True, eq=False)
class Cycle:
    """What every light of a junction shows over more than a whole cycle."""

    name: str
    plan: SignalPlan
    lanes: list[int]
    states: NDArray[np.uint8]  # (lanes, T)

    def shows(self, states: tuple[LightState, ...]) -> NDArray[np.bool_]:
        return np.isin(self.states, states)


def cycles(ground: Ground) -> list[Cycle]:
    """All signalised junctions of a network."""
    longest = max((plan.cycle_s for plan in ground.network.signals), default=0.0)
    if not longest:
        return []
    place = ground.place
    stage = Stage(place.network, place.layout, np.random.default_rng(0), int(longest / DT) + 20, DT)
    recording = record(stage)
    light = recording.tables.lanes["light"]
    found = []
    for plan in ground.network.signals:
        lanes = [i for i, lane in enumerate(ground.lanes) if lane.junction == plan.junction]
        states = recording.lights[[light[i] for i in lanes]][:, : int(plan.cycle_s / DT) + 20]
        found.append(Cycle(f"{ground.name}: junction {plan.junction}", plan, lanes, states))
    return found


def meet(ground: Ground, a: int, b: int) -> bool:
    """Whether the ways of two lanes from different roads cross or join, told from the map's geometry."""
    if ground.lanes[a].approach == ground.lanes[b].approach:
        return False
    if set(ground.lanes[a].successors) & set(ground.lanes[b].successors):
        return True
    return bool(shapely.intersects(ground.center_lines[a], ground.center_lines[b]))


def test_no_two_lanes_that_meet_are_green_at_once(grounds: list[Ground]) -> None:
    for ground in grounds:
        for cycle in cycles(ground):
            green = cycle.shows(GREEN_STATES)
            for (a, lane), (b, other) in combinations(enumerate(cycle.lanes), 2):
                if meet(ground, lane, other):
                    assert not (green[a] & green[b]).any(), f"{cycle.name}: lanes {lane} and {other}"


def test_lanes_that_meet_follow_each_other_with_everybody_at_red_in_between(grounds: list[Ground]) -> None:
    for ground in grounds:
        for cycle in cycles(ground):
            go = cycle.shows((*GREEN_STATES, PERMITTED))
            red = cycle.shows(RED_STATES)
            starts = np.argwhere(go[:, 1:] & ~go[:, :-1])
            pause = round(cycle.plan.all_red_s / DT) - 1
            for lane, step in starts:
                before = slice(max(step + 1 - pause, 0), step + 1)
                assert red[:, before].all(), f"{cycle.name}: lane {cycle.lanes[lane]} at step {step}"


def test_green_turns_yellow_before_it_turns_red(grounds: list[Ground]) -> None:
    for ground in grounds:
        for cycle in cycles(ground):
            go, red = cycle.shows((*GREEN_STATES, PERMITTED)), cycle.shows(RED_STATES)
            yellow = cycle.shows(YELLOW_STATES)
            assert (go | red | yellow).all(), cycle.name
            assert not (go[:, :-1] & red[:, 1:]).any(), f"{cycle.name}: straight from green to red"
            assert not (yellow[:, :-1] & go[:, 1:]).any(), f"{cycle.name}: back from yellow to green"
            for lane, row in zip(cycle.lanes, yellow.astype(np.int8), strict=True):
                begins, ends = np.flatnonzero(np.diff(row) == 1), np.flatnonzero(np.diff(row) == -1)
                for begin in begins[begins < ends.max(initial=-1)]:
                    assert (ends[ends > begin][0] - begin) * DT >= 3.0, f"{cycle.name}: lane {lane}"


def test_everybody_gets_green_once_in_a_cycle(grounds: list[Ground]) -> None:
    for ground in grounds:
        for cycle in cycles(ground):
            waits = ~cycle.shows((*GREEN_STATES, PERMITTED)).any(axis=1)
            assert not waits.any(), f"{cycle.name}: lanes {np.array(cycle.lanes)[waits]} never go"


def test_a_permitted_movement_gives_way_to_the_greens_that_it_meets(grounds: list[Ground]) -> None:
    for ground in grounds:
        for cycle in cycles(ground):
            permitted, green = cycle.states == PERMITTED, cycle.shows(GREEN_STATES)
            for a, lane in enumerate(cycle.lanes):
                for b, other in enumerate(cycle.lanes):
                    if (permitted[a] & green[b]).any() and meet(ground, lane, other):
                        assert (lane, other) in ground.network.yields, f"{cycle.name}: {lane} meets {other}"


def test_turns_to_the_left_have_arrows_and_everything_else_has_not(grounds: list[Ground]) -> None:
    arrows = (LightState.ARROW_GO, LightState.ARROW_CAUTION, LightState.ARROW_STOP)
    for ground in grounds:
        for cycle in cycles(ground):
            for lane, states in zip(cycle.lanes, cycle.states, strict=True):
                is_left = ground.lanes[lane].turn.name == "LEFT"
                shown = states[states != PERMITTED]
                assert (np.isin(shown, arrows) == is_left).all(), f"{cycle.name}: lane {lane}"


def test_a_cycle_repeats_itself(grounds: list[Ground]) -> None:
    for ground in grounds:
        for plan in ground.network.signals:
            place, lanes = ground.place, [i for i, lane in enumerate(ground.lanes) if lane.junction == plan.junction]
            shown = []
            for offset in (3.0, 3.0 + plan.cycle_s):
                stage = Stage(place.network, place.layout, np.random.default_rng(0), 40, DT)
                stage.offsets[plan.junction] = offset
                recording = record(stage)
                shown.append(recording.lights[[recording.tables.lanes["light"][i] for i in lanes]])
            np.testing.assert_array_equal(shown[0], shown[1])
