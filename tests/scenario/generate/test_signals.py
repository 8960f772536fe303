"""Signals over whole cycles: no conflicting greens, yellow in between, all red between phases."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import shapely
from numpy.typing import NDArray

from roadworthy.scenario.generate.network import SignalPlan
from roadworthy.scenario.generate.recording import record
from roadworthy.scenario.generate.scene import Scene
from roadworthy.scenario.schema import GREEN_STATES, RED_STATES, LightState
from tests.scenario.generate.sites import Site

DT = 0.1
YELLOW_STATES = (LightState.CAUTION, LightState.ARROW_CAUTION)
# After yielding: others may be green at the same time.
PERMITTED = LightState.FLASHING_CAUTION


@dataclass(frozen=True, eq=False)
class Cycle:
    """The states of every light of a junction over more than a whole cycle."""

    name: str
    plan: SignalPlan
    lanes: list[int]
    states: NDArray[np.uint8]  # (lanes, T)

    def shows(self, states: tuple[LightState, ...]) -> NDArray[np.bool_]:
        return np.isin(self.states, states)


def cycles(site: Site) -> list[Cycle]:
    """Return all signalized junctions of a network."""
    longest = max((plan.cycle_s for plan in site.network.signals), default=0.0)
    if not longest:
        return []
    place = site.place
    scene = Scene(place.network, place.layout, np.random.default_rng(0), int(longest / DT) + 20, DT)
    recording = record(scene)
    light = recording.tables.lanes["light"]
    found = []
    for plan in site.network.signals:
        lanes = [i for i, lane in enumerate(site.lanes) if lane.junction == plan.junction]
        states = recording.lights[[light[i] for i in lanes]][:, : int(plan.cycle_s / DT) + 20]
        found.append(Cycle(f"{site.name}: junction {plan.junction}", plan, lanes, states))
    return found


def meet(site: Site, a: int, b: int) -> bool:
    """Return whether two lanes from different roads cross or join, from the map's geometry."""
    if site.lanes[a].approach == site.lanes[b].approach:
        return False
    if set(site.lanes[a].successors) & set(site.lanes[b].successors):
        return True
    return bool(shapely.intersects(site.center_lines[a], site.center_lines[b]))


def test_no_two_lanes_that_meet_are_green_at_once(sites: list[Site]) -> None:
    for site in sites:
        for cycle in cycles(site):
            green = cycle.shows(GREEN_STATES)
            for (a, lane), (b, other) in combinations(enumerate(cycle.lanes), 2):
                if meet(site, lane, other):
                    assert not (green[a] & green[b]).any(), f"{cycle.name}: lanes {lane} and {other}"


def test_greens_of_conflicting_lanes_are_separated_by_all_red(sites: list[Site]) -> None:
    for site in sites:
        for cycle in cycles(site):
            go = cycle.shows((*GREEN_STATES, PERMITTED))
            red = cycle.shows(RED_STATES)
            starts = np.argwhere(go[:, 1:] & ~go[:, :-1])
            pause = round(cycle.plan.all_red_s / DT) - 1
            for lane, step in starts:
                before = slice(max(step + 1 - pause, 0), step + 1)
                assert red[:, before].all(), f"{cycle.name}: lane {cycle.lanes[lane]} at step {step}"


def test_green_turns_yellow_before_it_turns_red(sites: list[Site]) -> None:
    for site in sites:
        for cycle in cycles(site):
            go, red = cycle.shows((*GREEN_STATES, PERMITTED)), cycle.shows(RED_STATES)
            yellow = cycle.shows(YELLOW_STATES)
            assert (go | red | yellow).all(), cycle.name
            assert not (go[:, :-1] & red[:, 1:]).any(), f"{cycle.name}: straight from green to red"
            assert not (yellow[:, :-1] & go[:, 1:]).any(), f"{cycle.name}: back from yellow to green"
            for lane, row in zip(cycle.lanes, yellow.astype(np.int8), strict=True):
                begins, ends = np.flatnonzero(np.diff(row) == 1), np.flatnonzero(np.diff(row) == -1)
                for begin in begins[begins < ends.max(initial=-1)]:
                    assert (ends[ends > begin][0] - begin) * DT >= 3.0, f"{cycle.name}: lane {lane}"


def test_every_lane_gets_green_once_in_a_cycle(sites: list[Site]) -> None:
    for site in sites:
        for cycle in cycles(site):
            waits = ~cycle.shows((*GREEN_STATES, PERMITTED)).any(axis=1)
            assert not waits.any(), f"{cycle.name}: lanes {np.array(cycle.lanes)[waits]} never go"


def test_a_permitted_movement_yields_to_the_greens_that_it_meets(sites: list[Site]) -> None:
    for site in sites:
        for cycle in cycles(site):
            permitted, green = cycle.states == PERMITTED, cycle.shows(GREEN_STATES)
            for a, lane in enumerate(cycle.lanes):
                for b, other in enumerate(cycle.lanes):
                    if (permitted[a] & green[b]).any() and meet(site, lane, other):
                        assert (lane, other) in site.network.yields, f"{cycle.name}: {lane} meets {other}"


def test_only_left_turns_have_arrows(sites: list[Site]) -> None:
    arrows = (LightState.ARROW_GO, LightState.ARROW_CAUTION, LightState.ARROW_STOP)
    for site in sites:
        for cycle in cycles(site):
            for lane, states in zip(cycle.lanes, cycle.states, strict=True):
                is_left = site.lanes[lane].turn.name == "LEFT"
                shown = states[states != PERMITTED]
                assert (np.isin(shown, arrows) == is_left).all(), f"{cycle.name}: lane {lane}"


def test_a_cycle_repeats_itself(sites: list[Site]) -> None:
    for site in sites:
        for plan in site.network.signals:
            place, lanes = site.place, [i for i, lane in enumerate(site.lanes) if lane.junction == plan.junction]
            shown = []
            for offset in (3.0, 3.0 + plan.cycle_s):
                scene = Scene(place.network, place.layout, np.random.default_rng(0), 40, DT)
                scene.offsets[plan.junction] = offset
                recording = record(scene)
                shown.append(recording.lights[[recording.tables.lanes["light"][i] for i in lanes]])
            np.testing.assert_array_equal(shown[0], shown[1])
