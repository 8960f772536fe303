"""Road users: their constant properties and their current state, as arrays with a record for each user."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

ROUTE_LANES = 8  # number of lanes of its route that a road user knows, with the current one
MEMORY_STEPS = 12  # longest reaction time, in steps
WAVES = 3  # sine waves of a driver's lateral wandering in the lane


class Kind(IntEnum):
    """The kind of a road user."""

    CAR = 0
    CYCLIST = 1
    PEDESTRIAN = 2


class Script(IntEnum):
    """A maneuver that a road user has to make, besides following the rules."""

    NONE = 0
    BRAKE = 1  # from `script_step` on, brake at `script_value` m/s2 to a stop, and stand for a while
    WAVE = 2  # stop and go in turns, each for about `script_value` seconds
    CHANGE_LEFT = 3  # from `script_step` on, change lanes as soon as there is room
    CHANGE_RIGHT = 4
    KEEP_LANE = 5  # never change lanes; BRAKE and WAVE imply this


# Constant properties of a road user. Drivers and cyclists follow lanes; a pedestrian follows its own path.
USER = np.dtype(
    [
        ("kind", np.int64),
        ("length", np.float64),
        ("width", np.float64),
        ("speed_factor", np.float64),  # of the speed limit
        ("top_speed", np.float64),  # m/s, regardless of the limit
        ("headway", np.float64),  # s behind a leader
        ("acceleration", np.float64),  # m/s2 from a standstill
        ("braking", np.float64),  # m/s2, comfortable
        ("standing_gap", np.float64),  # m between bumpers in a queue
        ("politeness", np.float64),  # weight of others' loss in a lane change
        ("gap", np.float64),  # s to spare when crossing or joining traffic with priority
        ("delay", np.int64),  # steps from perception to action
        ("jerk", np.float64),  # m/s3, comfortable
        ("cornering", np.float64),  # m/s2, preferred lateral acceleration in bends
        ("wander", np.float64, (WAVES,)),  # m, amplitude of each wave of lateral wandering
        ("wander_length", np.float64, (WAVES,)),  # m
        ("wander_phase", np.float64, (WAVES,)),  # rad
        ("seed", np.uint64),  # for choices at forks
        ("first_step", np.int64),  # when it appears
        ("lane", np.int64),  # where it appears
        ("s", np.float64),
        ("speed", np.float64),
        ("plan", np.int64, (ROUTE_LANES,)),  # lanes to take first, -1 where the choice is free
        ("script", np.int64),
        ("script_step", np.int64),
        ("script_value", np.float64),
        ("crosswalk", np.int64),  # pedestrians: the crosswalk, -1 if there is none
        ("curb_s", np.float64, (2,)),  # m along the path where the road starts and ends
        ("backwards", np.int64),  # 1 if it walks from the crosswalk's second curb to the first
    ]
)

# The current state of a road user.
STATE = np.dtype(
    [
        ("alive", np.bool_),
        ("gone", np.bool_),
        ("lane", np.int64),
        ("s", np.float64),  # m along the lane
        ("v", np.float64),
        ("a", np.float64),
        ("traveled", np.float64),  # m along lanes; wandering and lane changes are functions of it
        ("route", np.int64, (ROUTE_LANES,)),  # from the current lane on
        ("route_length", np.int64),
        ("plan_position", np.int64),
        ("choices", np.int64),  # number of forks that were decided
        ("blend_from", np.float64),  # m beside the lane at the start of the current lane change, 0 if there is none
        ("blend_start", np.float64),  # `traveled` there
        ("blend_length", np.float64),
        ("old_lane", np.int64),  # the lane that the user is leaving, -1 if there is none
        ("changed_step", np.int64),
        ("halted_lane", np.int64),  # the junction lane before whose stop sign it has halted
        ("halted_step", np.int64),
        ("committed", np.int64),  # the junction lane for which it will not stop
        ("held", np.bool_),  # whether it stands or brakes for a line, a conflict or a pedestrian
        ("waited", np.int64),  # steps for which it has stood for that reason
        ("stood", np.int64),  # steps for which it has stood after a scripted stop
        ("commands", np.float64, (MEMORY_STEPS,)),  # latest accelerations decided, the newest first
        ("crossing", np.bool_),  # a pedestrian on the road
    ]
)


def new_state(n: int) -> NDArray[np.void]:
    """Return the state before any road user appears."""
    state = np.zeros(n, STATE)
    for name in ("lane", "old_lane", "halted_lane", "committed", "route"):
        state[name] = -1
    state["blend_length"] = 1.0
    state["changed_step"] = -1000
    return state
