"""Gaps that yielding drivers accept and reject, and the times between crossings of paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadworthy.scenario.detect import Tracks
from roadworthy.scenario.schema import AgentType, Bools, LightState
from roadworthy.scenario.statistics.sample import Doubles, stretches

SAME_PLACE_M = 1.5  # lanes whose center lines come this near cross or join there
JOINS_M = 3.0  # lanes that meet this near to both their ends join

# A driver is offered a gap from when it waits near the line, or else when it drives over the line.
WAITS_WITHIN_M = 5.0  # the second vehicle in the queue is farther away
WAITS_BELOW_MPS = 3.0
STANDS_BELOW_MPS = 1.0
# The length of a gap is known only if it ends before the recording does. So only gaps that start this long before the
# end of the recording count, accepted or not, and longer ones count as this long. A driver that does not accept a gap
# of this length waits for something else: a pedestrian, or space in the exit.
HORIZON_S = 6.0

MEETING_S = 8.0  # road users with a larger time between them do not meet


@dataclass(frozen=True)
class Entry:
    """A vehicle that enters a lane on which it must yield."""

    agent: int
    lane: int
    first: int  # step, the first on the lane
    ready_s: float  # when it waits at the line, or drives over it
    was_ready: bool  # from the first step on, so the beginning is unknown
    line_s: float  # when its front is over the line


def gaps_and_encroachments(tracks: Tracks) -> dict[str, Doubles]:
    """Return accepted and rejected gaps at entries without green lights, and post-encroachment times."""
    accepted: dict[str, list[float]] = {"roundabout": [], "junction": []}
    rejected: dict[str, list[float]] = {"roundabout": [], "junction": []}
    encroachments: list[float] = []
    end_s = (tracks.steps - 1) * tracks.dt
    for entry in _entries(tracks):
        passages: list[float] = []
        decided_s = entry.line_s
        for other_lane in tracks.map.yields[tracks.map.yields[:, 0] == entry.lane, 1]:
            place = _meeting_place(tracks, entry.lane, int(other_lane))
            if place is None:
                continue
            own_s = _passage(tracks, entry.agent, entry.lane, place[0])
            decided_s = max(decided_s, _last_stand(tracks, entry, own_s))
            for other in np.unique(np.nonzero(tracks.lane == other_lane)[0]):
                if other == entry.agent or tracks.types[other] != AgentType.VEHICLE:
                    continue
                other_s = _passage(tracks, int(other), int(other_lane), place[1])
                if other_s is None:
                    continue
                passages.append(other_s)
                if own_s is not None and not place[2]:
                    encroachments += _encroachment(tracks, entry.agent, own_s, int(other), other_s)
        kind = "roundabout" if tracks.network.touches_ring[entry.lane] else "junction"
        for seconds, is_accepted in _offers(entry, decided_s, sorted(passages), end_s):
            (accepted if is_accepted else rejected)[kind].append(seconds)
    found = {f"accepted_{kind}": np.array(values) for kind, values in accepted.items()}
    found |= {f"rejected_{kind}": np.array(values) for kind, values in rejected.items()}
    return found | {"encroachment": np.array(encroachments)}


def critical_gap(accepted: Doubles, rejected: Doubles) -> float | None:
    """Return Raff's critical gap, None with fewer than 20 gaps of each kind.

    As many gaps that are shorter are accepted as longer ones are rejected.
    """
    if min(len(accepted), len(rejected)) < 20:
        return None
    gaps = np.unique(np.concatenate([accepted, rejected]))
    shorter_accepted = np.searchsorted(np.sort(accepted), gaps, side="left")
    longer_rejected = len(rejected) - np.searchsorted(np.sort(rejected), gaps, side="right")
    return float(gaps[np.argmax(shorter_accepted >= longer_rejected)])


def _entries(tracks: Tracks) -> list[Entry]:
    """Return every entry of a vehicle into a lane on which it must yield, while no light gives it right of way."""
    giving_way = np.zeros(len(tracks.network.length) + 1, np.bool_)
    giving_way[tracks.map.yields[:, 0]] = True
    on_lane = giving_way[tracks.lane] & (tracks.types == AgentType.VEHICLE)[:, None]
    found = []
    for agent, first, _ in zip(*stretches(on_lane), strict=True):
        lane = int(tracks.lane[agent, first])
        if first == 0 or tracks.lane[agent, first - 1] < 0:
            continue
        before = int(tracks.lane[agent, first - 1])
        own_way = _same(tracks.lane[agent, :first], before) & tracks.valid[agent, :first]
        to_line = tracks.network.length[before] - tracks.arc[agent, :first] - 0.5 * tracks.sizes[agent, 0]
        over = np.flatnonzero(own_way & (to_line <= 0.0))
        line_step = int(over[0]) if len(over) else int(first)
        if line_step == 0 or not own_way[line_step - 1]:
            continue
        if tracks.light_of(lane, line_step) not in (None, LightState.FLASHING_CAUTION):
            continue
        waits = own_way & (to_line <= WAITS_WITHIN_M) & (tracks.speed[agent, :first] < WAITS_BELOW_MPS)
        for light in np.flatnonzero(tracks.light_lanes == lane):  # a driver that waits for green is offered no gaps
            waits &= tracks.light_states[light, :first] == LightState.FLASHING_CAUTION
        ready = min(int(np.argmax(waits)), line_step) if waits.any() else line_step
        was_ready = bool(waits.any()) and ready == int(np.argmax(own_way))
        found.append(Entry(int(agent), lane, int(first), ready * tracks.dt, was_ready, line_step * tracks.dt))
    return found


def _same(lanes: np.ndarray, lane: int) -> Bools:
    """Return the steps of the last unbroken run on a lane."""
    same = lanes == lane
    others = np.flatnonzero(~same)
    if len(others):
        same[: others[-1] + 1] = False
    return same


def _offers(entry: Entry, decided_s: float, passages: list[float], end_s: float) -> list[tuple[float, bool]]:
    """Return the seconds of every gap that was offered to a driver, and whether it accepted it."""
    offers = []
    begin, is_known = entry.ready_s, not entry.was_ready
    for passage in [*(p for p in passages if p > entry.ready_s), np.inf]:
        is_taken = passage > decided_s
        if is_known and begin <= end_s - HORIZON_S and (is_taken or passage - begin < HORIZON_S):
            offers.append((min(passage - begin, HORIZON_S), is_taken))
        if is_taken:
            break
        begin, is_known = passage, True
    return offers


def _meeting_place(tracks: Tracks, lane: int, other: int) -> tuple[float, float, bool] | None:
    """Return where two lanes first meet, in m along each, and whether they join; None if they do not meet."""
    x, y, arc = tracks.network.center(lane)
    other_x, other_y, other_arc = tracks.network.center(other)
    apart = np.hypot(x[:, None] - other_x, y[:, None] - other_y)
    near = apart <= SAME_PLACE_M
    if not near.any():
        return None
    nearest = np.argmin(apart)
    if near[-1, -1]:  # joining lanes: the place where they start to share the road counts
        i, j = np.argwhere(near)[0]
    else:
        i, j = np.unravel_index(nearest, apart.shape)
    joins = arc[-1] - arc[i] < JOINS_M or near[-1, -1]
    return float(arc[i]), float(other_arc[j]), bool(joins)


def _passage(tracks: Tracks, agent: int, lane: int, meters: float) -> float | None:
    """Return when the center of a vehicle passes a place on a lane, None if the recording does not show it."""
    on_lane = np.flatnonzero(tracks.lane[agent] == lane)
    if not len(on_lane):
        return None
    arc = tracks.arc[agent, on_lane]
    beyond = np.flatnonzero(arc >= meters)
    step = int(on_lane[beyond[0]]) if len(beyond) else int(on_lane[-1]) + 1
    if step == 0 or step >= tracks.steps or not (tracks.valid[agent, step] and tracks.valid[agent, step - 1]):
        return None
    if len(beyond) and tracks.lane[agent, step - 1] == lane:
        before = float(tracks.arc[agent, step - 1])
        part = (meters - before) / max(float(arc[beyond[0]]) - before, 1e-6)
        return (step - 1 + part) * tracks.dt
    return step * tracks.dt


def _last_stand(tracks: Tracks, entry: Entry, own_s: float | None) -> float:
    """Return when a driver that waits beyond the line starts again; negative infinity if it does not wait there."""
    end = tracks.steps if own_s is None else int(own_s / tracks.dt)
    stands = np.flatnonzero(tracks.speed[entry.agent, entry.first : end] < STANDS_BELOW_MPS)
    return (entry.first + int(stands[-1])) * tracks.dt if len(stands) else -np.inf


def _encroachment(tracks: Tracks, agent: int, own_s: float, other: int, other_s: float) -> list[float]:
    """Return seconds from when the first vehicle's rear leaves the place to when the second one's front arrives."""
    (first, first_s), (second, second_s) = sorted([(agent, own_s), (other, other_s)], key=lambda who: who[1])
    if second_s - first_s > MEETING_S:
        return []
    way = 0.5 * float(tracks.sizes[first, 0] + tracks.sizes[second, 1])
    leaves = first_s + way / _speed(tracks, first, first_s)
    way = 0.5 * float(tracks.sizes[second, 0] + tracks.sizes[first, 1])
    arrives = second_s - way / _speed(tracks, second, second_s)
    return [arrives - leaves]


def _speed(tracks: Tracks, agent: int, seconds: float) -> float:
    """Return an agent's speed at a time, at least walking speed: a vehicle that stands on the place leaves it later."""
    return max(float(tracks.speed[agent, min(round(seconds / tracks.dt), tracks.steps - 1)]), 1.0)
