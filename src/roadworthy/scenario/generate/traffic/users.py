"""Road users: what each of them is like, and what they do at the moment. Both are arrays of records, one a user."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

ROUTE_LANES = 8  # how many lanes of its way a road user knows, the current one included
MEMORY_STEPS = 12  # longest reaction time, in steps
WAVES = 3  # sine waves that a driver's wandering in the lane is made of


class Kind(IntEnum):
    """Who moves on a path."""

    CAR = 0
    CYCLIST = 1
    PEDESTRIAN = 2


class Script(IntEnum):
    """What a road user is made to do, besides driving by the rules."""

    NONE = 0
    BRAKE = 1  # from `script_step` on, brake at `script_value` m/s2 to a stop, and stand for a while
    WAVE = 2  # stop and go in turns, each for about `script_value` seconds
    CHANGE_LEFT = 3  # from `script_step` on, change lanes as soon as there is room
    CHANGE_RIGHT = 4
    KEEP_LANE = 5  # never change lanes; nor does one who brakes or goes in waves by script


# Constant traits of a road user. Drivers and cyclists follow lanes; a pedestrian follows a path of its own.
USER = np.dtype(
    [
        ("kind", np.int64),
        ("length", np.float64),
        ("width", np.float64),
        ("speed_factor", np.float64),  # of the speed limit
        ("top_speed", np.float64),  # m/s, whatever the limit
        ("headway", np.float64),  # s behind a leader
        ("acceleration", np.float64),  # m/s2 from a standstill
        ("braking", np.float64),  # m/s2, comfortable
        ("standing_gap", np.float64),  # m between bumpers in a queue
        ("politeness", np.float64),  # weight of others' loss in a lane change
        ("gap", np.float64),  # s to spare when crossing or merging with traffic that goes first
        ("delay", np.int64),  # steps from seeing to acting
        ("jerk", np.float64),  # m/s3, comfortable
        ("cornering", np.float64),  # m/s2 of lateral acceleration that is chosen in bends
        ("wander", np.float64, (WAVES,)),  # m, of each sine wave that wandering in the lane is made of
        ("wander_length", np.float64, (WAVES,)),  # m
        ("wander_phase", np.float64, (WAVES,)),  # rad
        ("seed", np.uint64),  # for the choice of the way at forks
        ("first_step", np.int64),  # when it appears
        ("lane", np.int64),  # where it appears
        ("s", np.float64),
        ("speed", np.float64),
        ("plan", np.int64, (ROUTE_LANES,)),  # lanes to take first, -1 where it may choose
        ("script", np.int64),
        ("script_step", np.int64),
        ("script_value", np.float64),
        ("zebra", np.int64),  # pedestrians: the crosswalk, -1 for none
        ("curb_s", np.float64, (2,)),  # meters on the path where the road begins and ends
        ("backwards", np.int64),  # 1 if it walks from the crosswalk's second curb to the first
    ]
)

# What a road user does at the moment.
STATE = np.dtype(
    [
        ("alive", np.bool_),
        ("gone", np.bool_),
        ("lane", np.int64),
        ("s", np.float64),  # meter on the lane
        ("v", np.float64),
        ("a", np.float64),
        ("traveled", np.float64),  # meters along lanes; wandering and lane changes are functions of it
        ("route", np.int64, (ROUTE_LANES,)),  # from the current lane on
        ("route_length", np.int64),
        ("plan_position", np.int64),
        ("choices", np.int64),  # how many forks were decided
        ("blend_from", np.float64),  # m beside the lane at the start of the lane change under way, 0 if none
        ("blend_start", np.float64),  # `traveled` there
        ("blend_length", np.float64),
        ("old_lane", np.int64),  # the lane that is being left, -1 if none
        ("changed_step", np.int64),
        ("halted_lane", np.int64),  # the junction lane before whose stop sign it has stopped
        ("halted_step", np.int64),
        ("committed", np.int64),  # the junction lane that it will not stop for any more
        ("held", np.bool_),  # it stands or brakes for a line, a conflict or a pedestrian
        ("waited", np.int64),  # steps for which it has stood so
        ("stood", np.int64),  # steps for which it has stood after a scripted stop
        ("commands", np.float64, (MEMORY_STEPS,)),  # accelerations decided lately, the newest first
        ("crossing", np.bool_),  # a pedestrian on the road
    ]
)


def new_state(n: int) -> NDArray[np.void]:
    """Nobody is there yet."""
    state = np.zeros(n, STATE)
    for name in ("lane", "old_lane", "halted_lane", "committed", "route"):
        state[name] = -1
    state["blend_length"] = 1.0
    state["changed_step"] = -1000
    return state
