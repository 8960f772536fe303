"""Detect movements across a junction: roundabout, unprotected_left, unprotected_right, protected_left."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.detect.tracks import Tracks
from roadworthy.scenario.schema import AgentType, LightState

RING_DRIVE_M = 12.0
RING_DRIVE_RAD = 0.6

SMALLEST_TURN_RAD = np.radians(45.0)
LARGEST_TURN_RAD = np.radians(135.0)
TURN_SHARE = 0.6  # of the movement's length must be driven

SAME_PLACE_M = 1.5  # two center lines that come this near to each other cross or join there
BEFORE_S = 6.0  # how long before the car a conflicting road user may have passed
AFTER_S = 5.0  # how long after the car
CONFLICT_LEAST_SPEED_MPS = 1.0
OTHER_APPROACH_RAD = np.radians(30.0)  # the headings of two approaches differ by more
APPROACH_M = 15.0  # a road user's approach is its place this far earlier
EXIT_M = 5.0  # joining paths meet at most this far beyond the junction


@dataclass(frozen=True)
class Turn:
    """A movement of the car across a junction."""

    lane: int
    first: int  # step, the first on the movement's lane
    end: int  # the first step beyond it, or the end of the window
    line_step: int  # the first step with the front bumper over the stop line
    turn: float  # rad, left positive


def roundabout(tracks: Tracks) -> bool:
    """The car drives RING_DRIVE_M or more, and RING_DRIVE_RAD or more around, on a roundabout's ring."""
    if not drives_on_ring(tracks):
        return False
    steps = np.flatnonzero(tracks.network.is_ring[tracks.lane[tracks.sdc]] & (tracks.lane[tracks.sdc] >= 0))
    heading = np.unwrap(tracks.heading[tracks.sdc])[steps]
    meters = float(tracks.speed[tracks.sdc, steps].sum()) * tracks.dt
    return meters >= RING_DRIVE_M and abs(float(heading[-1] - heading[0])) >= RING_DRIVE_RAD


def unprotected_left(tracks: Tracks) -> bool:
    """The car turns left across a junction, and no signal protects it from conflicting traffic.

    It turns by SMALLEST_TURN_RAD to LARGEST_TURN_RAD, crosses the stop line within the recording and drives TURN_SHARE
    of the movement or more. As it crosses the line, no light gives it right of way: there is none, or it shows
    FLASHING_CAUTION. There is conflicting traffic: a moving vehicle or cyclist from another approach passes a point of
    the car's turn at most BEFORE_S before the car, or AFTER_S after it.
    """
    return any(t.turn > 0 and _is_unprotected(tracks, t) for t in turns(tracks))


def unprotected_right(tracks: Tracks) -> bool:
    """The car turns right across a junction, and no signal protects it from conflicting traffic.

    Like `unprotected_left`, to the other side.
    """
    return any(t.turn < 0 and _is_unprotected(tracks, t) for t in turns(tracks))


def protected_left(tracks: Tracks) -> bool:
    """The car turns left (as in `unprotected_left`) and crosses the stop line while its light shows ARROW_GO."""
    return any(
        t.turn > 0 and _is_driven(tracks, t) and tracks.light_of(t.lane, t.line_step) == LightState.ARROW_GO
        for t in turns(tracks)
    )


def drives_on_ring(tracks: Tracks) -> bool:
    """Return whether the car is on a roundabout's ring at any step."""
    lanes = tracks.lane[tracks.sdc]
    return bool(tracks.network.is_ring[lanes[lanes >= 0]].any())


def turns(tracks: Tracks) -> list[Turn]:
    """Return the car's left and right turns across junctions, without those into and out of roundabouts."""
    network, lanes = tracks.network, tracks.lane[tracks.sdc]
    starts = np.append(np.flatnonzero(np.diff(lanes, prepend=-2)), len(lanes))
    found = []
    for first, end in pairwise(starts):
        lane = int(lanes[first])
        if lane < 0 or not network.is_junction[lane] or network.is_ring[lane] or network.touches_ring[lane]:
            continue
        turn = float(network.turn[lane])
        if SMALLEST_TURN_RAD <= abs(turn) <= LARGEST_TURN_RAD:
            line_step = int(np.argmax(tracks.front >= tracks.path.base[lane]))
            found.append(Turn(lane, int(first), int(end), line_step, turn))
    return found


def _is_driven(tracks: Tracks, turn: Turn) -> bool:
    driven = tracks.arc[tracks.sdc, turn.end - 1] - tracks.arc[tracks.sdc, turn.first]
    return turn.line_step > 0 and bool(driven >= TURN_SHARE * tracks.network.length[turn.lane])


def _is_unprotected(tracks: Tracks, turn: Turn) -> bool:
    light = tracks.light_of(turn.lane, turn.line_step)
    if light not in (None, LightState.FLASHING_CAUTION) or not _is_driven(tracks, turn):
        return False
    sdc, exit_steps = tracks.sdc, tracks.station[tracks.sdc, turn.end :]
    with np.errstate(invalid="ignore"):
        beyond = exit_steps - tracks.path.base[turn.lane] - tracks.network.length[turn.lane] > EXIT_M
    end = turn.end + (int(np.argmax(beyond)) if beyond.any() else len(beyond))
    is_other = ((tracks.types == AgentType.VEHICLE) | (tracks.types == AgentType.CYCLIST)) & ~tracks.never_moves
    is_other[sdc] = False
    # A road user with the same movement is a leader or a follower.
    is_other &= ~(tracks.lane == turn.lane).any(axis=1)
    return bool(
        _meets_traffic(
            tracks.x,
            tracks.y,
            tracks.heading,
            tracks.speed,
            tracks.valid,
            np.flatnonzero(is_other),
            sdc,
            turn.first,
            end,
            float(tracks.network.start_heading[turn.lane]),
            tracks.steps_of(BEFORE_S),
            tracks.steps_of(AFTER_S),
        )
    )


@kernel
def _meets_traffic(x, y, heading, speed, valid, others, sdc, first, end, approach_heading, before_steps, after_steps):
    """Return whether one of the others, from another approach, passes a point of the car's steps first..end in time."""
    steps = valid.shape[1]
    for agent in others:
        for i in range(first, end):
            for k in range(max(i - before_steps, 0), min(i + after_steps, steps - 1) + 1):
                if not valid[agent, k] or speed[agent, k] < CONFLICT_LEAST_SPEED_MPS:
                    continue
                dx, dy = x[agent, k] - x[sdc, i], y[agent, k] - y[sdc, i]
                if dx * dx + dy * dy > SAME_PLACE_M * SAME_PLACE_M:
                    continue
                come_from, meters = k, 0.0
                while come_from > 0 and valid[agent, come_from - 1] and meters < APPROACH_M:
                    come_from -= 1
                    meters += np.hypot(
                        x[agent, come_from + 1] - x[agent, come_from], y[agent, come_from + 1] - y[agent, come_from]
                    )
                difference = (heading[agent, come_from] - approach_heading + np.pi) % (2.0 * np.pi) - np.pi
                if abs(difference) > OTHER_APPROACH_RAD:
                    return True
    return False
