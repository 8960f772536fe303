"""Scenes at a crossing whose closed-loop scores were computed by motional/nuplan-devkit e924167.

The reference was given the same motion, the lanes of the crossing as polygons (center lines widened by half the lane's
width, with flat ends), those across the junction as lane connectors and as the intersection, lanes side by side as
roadblocks, the outline of the road as the drivable area, the rear axle at 0.3 of the length behind the middle, and the
accelerations that comfort.accelerations derives from the motion. REFERENCE holds its scores of all metrics and its
aggregate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import AgentType
from tests.metrics.closed_loop.roads import DT, Drive, Recorded, crossing, recorded

FRAMES = 151
Array = NDArray[np.float64]


def along(way: Array, start: tuple[float, float] = (10.0, 0.0), offset: Array | float = 0.0) -> Drive:
    """Return a drive straight along x with a way of (F,) m, and an offset to the left of (F,) m."""
    speed = np.gradient(way, DT)
    sideways = np.gradient(np.broadcast_to(np.asarray(offset, np.float64), way.shape), DT)
    heading = np.arctan2(sideways, np.maximum(speed, 1.0))
    return Drive(start[0] + way, start[1] + offset, heading, np.hypot(speed, sideways))


def left_turn(way: Array, start_x: float = 40.0) -> Drive:
    """Return a drive along the left lane and around the corner of the crossing, with a way of (F,) m."""
    approach, radius = 100.0 - start_x, 30.0
    angle = np.clip((way - approach) / radius, 0.0, 0.5 * np.pi)
    beyond = np.maximum(way - approach - radius * 0.5 * np.pi, 0.0)
    x = start_x + np.minimum(way, approach) + radius * np.sin(angle)
    y = 3.5 + radius * (1.0 - np.cos(angle)) + beyond
    return Drive(x, y, angle, np.gradient(way, DT))


TIME = DT * np.arange(FRAMES)
STEADY = 9.0 * TIME
SLOWER = 4.0 * TIME
FASTER = 12.0 * TIME + 0.25 * TIME**2
BRAKING = np.where(TIME < 4.0, 9.0 * TIME - 0.5 * 1.5 * TIME**2, 36.0 - 12.0 + 3.0 * (TIME - 4.0))
CLOSING = np.where(TIME < 3.0, 11.0 * TIME, 33.0 + 9.0 * (TIME - 3.0))
LANE_CHANGE = 1.75 * (np.tanh(TIME - 5.0) + np.tanh(5.0))

# Of each scene: what the recorded car does, what the ego does, and the tracks around.
SCENES: dict[str, tuple[Drive, Drive, tuple[Drive, ...]]] = {
    "alone": (along(STEADY), along(STEADY), ()),
    "half the way": (along(STEADY), along(SLOWER), ()),
    "hardly any way": (along(STEADY), along(0.1 * STEADY), ()),
    "too fast": (along(STEADY), along(FASTER), ()),
    "behind a slower car": (along(SLOWER), along(STEADY), (along(SLOWER, (30.0, 0.0)),)),
    "behind a car of its speed": (along(STEADY), along(STEADY), (along(STEADY, (18.0, 0.0)),)),
    "close behind": (along(STEADY), along(CLOSING), (along(STEADY, (22.0, 0.0)),)),
    "into a car of its speed": (along(STEADY), along(9.5 * TIME), (along(STEADY, (22.0, 0.0)),)),
    "braking for a car": (along(BRAKING), along(BRAKING), (along(2.8 * TIME, (36.0, 0.0)),)),
    "over an object": (along(STEADY), along(STEADY), (Drive(80.0, 0.3, type=AgentType.OTHER, length=0.6, width=0.6),)),
    "into a pedestrian": (
        along(STEADY),
        along(STEADY),
        (Drive(90.0, -6.0 + 0.7 * TIME, 0.5 * np.pi, 0.7, AgentType.PEDESTRIAN, 0.6, 0.6),),
    ),
    "hit from behind": (along(STEADY), along(SLOWER), (along(STEADY, (-8.0, 0.0)),)),
    "swerving": (along(STEADY), along(STEADY, offset=1.2 * np.sin(1.7 * TIME)), ()),
    "swerving hard": (along(STEADY), along(STEADY, offset=0.5 * np.sin(4.0 * TIME)), ()),
    "changing lanes": (along(STEADY), along(STEADY, offset=LANE_CHANGE), ()),
    "changing lanes into a car": (
        along(STEADY),
        along(STEADY, offset=LANE_CHANGE),
        (along(STEADY, (9.0, 3.5)),),
    ),
    "off the road": (along(STEADY), along(STEADY, offset=-0.4 * TIME), ()),
    "left turn": (left_turn(6.0 * TIME), left_turn(6.0 * TIME), ()),
    "left turn, too fast": (left_turn(6.0 * TIME), left_turn(13.0 * TIME), ()),
    "straight on instead of left": (left_turn(8.0 * TIME), along(8.0 * TIME, (40.0, 3.5)), ()),
    "left turn among traffic": (
        left_turn(6.0 * TIME),
        left_turn(6.0 * TIME),
        (Drive(150.0 - 6.0 * TIME, 7.5, np.pi, 6.0), along(6.0 * TIME, (30.0, 3.5))),
    ),
    "against the lane": (along(STEADY), Drive(10.0 - 0.5 * TIME, 0.0, np.pi, 0.5), ()),
    "against the lane, further on": (
        along(STEADY, (90.0, 0.0)),
        Drive(90.0 - 5.0 * TIME, 0.0, np.pi, 5.0),
        (),
    ),
}


def scene(name: str) -> Recorded:
    """Return the scenario and the trace of a scene."""
    expert, ego, tracks = SCENES[name]
    return recorded(crossing(), expert, ego, tracks, FRAMES)


# Score; no at-fault collision, drivable area, making progress, driving direction; progress, time to collision, speed
# limit, comfort.
REFERENCE: dict[str, tuple[float, ...]] = {
    "alone": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "half the way": (0.826389, 1.0, 1.0, 1.0, 1.0, 0.444444, 1.0, 1.0, 1.0),
    "hardly any way": (0.0, 1.0, 1.0, 0.0, 1.0, 0.1, 1.0, 1.0, 1.0),
    "too fast": (0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0),
    "behind a slower car": (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "behind a car of its speed": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "close behind": (0.5625, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0),
    "into a car of its speed": (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "braking for a car": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "over an object": (0.34375, 0.5, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "into a pedestrian": (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "hit from behind": (0.826389, 1.0, 1.0, 1.0, 1.0, 0.444444, 1.0, 1.0, 1.0),
    "swerving": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "swerving hard": (0.875, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0),
    "changing lanes": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "changing lanes into a car": (0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "off the road": (0.0, 1.0, 0.0, 1.0, 1.0, 0.286667, 1.0, 1.0, 1.0),
    "left turn": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "left turn, too fast": (0.671712, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.186846, 0.0),
    "straight on instead of left": (0.868036, 1.0, 1.0, 1.0, 1.0, 0.577714, 1.0, 1.0, 1.0),
    "left turn among traffic": (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0),
    "against the lane": (0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0),
    "against the lane, further on": (0.0, 1.0, 1.0, 0.0, 0.5, 0.0, 1.0, 1.0, 1.0),
}
