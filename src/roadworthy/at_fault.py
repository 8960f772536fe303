"""At-fault collisions: the type of a collision, and whether the ego is at fault.

The definitions are those of nuPlan's closed-loop metrics (Karnchanachari et al. 2024; motional/nuplan-devkit e924167):

Collision. The boxes of the ego and of another agent (a track) share a point. Each track counts once per trial, at the
first step after which the two touch. A contact that exists at the start of the trial does not count.

Type, the first that applies:
  STOPPED_EGO    the ego moves at 0.05 m/s or less
  STOPPED_TRACK  the track moves at 0.05 m/s or less, or is a static object
  REAR           the track's center is more than 150 degrees from the ego's heading, seen from the ego's rear axle
  FRONT          the ego's front bumper (the front side of its box) touches the track's box
  LATERAL        every other collision

At fault. The ego is always at fault for STOPPED_TRACK and FRONT, and never for STOPPED_EGO and REAR. It is at fault for
LATERAL if its four corners are not within one common lane or connected lanes.

Within one common or connected lanes. A corner is in a lane if its distance to the lane's center polyline is at most
half the lane's width. The corners are within lanes if there is a lane A, and a lane B that is A itself or a successor
of A, such that each rear corner is in A or B, and each front corner is in B or a successor of B. So one lane that holds
all four corners is enough, a corner outside all lanes never is, and a car that drives against the lanes' direction
across the end of one is not within connected lanes.

Substitutes for what our maps and agents lack:
  - nuPlan has lane polygons; we have center lines and widths. An unknown width is
    scenario.lanes.network.DEFAULT_LANE_WIDTH_M. A lane so defined ends in a half circle. All lanes of the map count,
    and where several overlap none is remembered from frame to frame.
  - nuPlan measures where the rear axle is; we place it REAR_AXLE_SHARE of the length behind the center of the box,
    half of the simulator's wheelbase of 0.6 of the length (nuPlan's car: 0.28).
  - Static objects are the agents of role `static`.

The simulator compiles these functions for CPU and GPU (sim/rules/collision_fault.py), and metrics call them directly.
So each one is scalar arithmetic and calls no other function of this file. Pass numpy scalars: with Python floats
everything is rounded to float32.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class CollisionType(IntEnum):
    """How the ego and a track came to touch."""

    STOPPED_EGO = 0
    STOPPED_TRACK = 1
    REAR = 2
    FRONT = 3
    LATERAL = 4


STOPPED_MPS = np.float32(0.05)  # an agent at this speed or less is stopped
REAR_AXLE_SHARE = np.float32(0.3)  # of the length, from the center of the box back to the rear axle
BEHIND_COS = np.float32(np.cos(np.deg2rad(150.0)))  # a track at a larger angle than this is behind

# Compiled code returns these integers: members of an enum are slower.
_STOPPED_EGO, _STOPPED_TRACK, _REAR, _FRONT, _LATERAL = map(int, CollisionType)
_HALF = np.float32(0.5)


def collision_type(
    x: float,
    y: float,
    cos: float,
    sin: float,
    length: float,
    width: float,
    speed: float,
    track_x: float,
    track_y: float,
    track_cos: float,
    track_sin: float,
    track_length: float,
    track_width: float,
    track_speed: float,
    is_static: bool,
) -> int:
    """Classify the first contact of an ego with a track, whose boxes touch.

    Args:
        x, y: middle of the ego's box, m
        cos, sin: of the ego's heading
        length, width: of the ego's box, m
        speed: of the ego, m/s; its sign does not matter
        track_x, ..., track_speed: the same of the track
        is_static: whether the track is a static object

    Returns:
        A CollisionType, as an int.

    Example:
        >>> numbers = np.float64([0, 0, 1, 0, 5, 2, 8, 5, 0, 1, 0, 5, 2, 3])  # into a slower car ahead
        >>> CollisionType(collision_type(*numbers, is_static=False)).name
        'FRONT'
    """
    if abs(speed) <= STOPPED_MPS:
        return _STOPPED_EGO
    if is_static or abs(track_speed) <= STOPPED_MPS:
        return _STOPPED_TRACK
    # The track, seen from the rear axle along and across the ego's heading.
    dx, dy = track_x - x, track_y - y
    along, across = dx * cos + dy * sin, dy * cos - dx * sin
    behind = along + REAR_AXLE_SHARE * length
    if behind < BEHIND_COS * np.sqrt(behind * behind + across * across):
        return _REAR
    # No side of the track's box, nor the line of the bumper, separates the two.
    ahead, half_width = along - _HALF * length, _HALF * width
    half_long, half_wide = _HALF * track_length, _HALF * track_width
    turn_cos, turn_sin = cos * track_cos + sin * track_sin, cos * track_sin - sin * track_cos
    if (
        abs(ahead) <= half_long * abs(turn_cos) + half_wide * abs(turn_sin)
        and abs(across) <= half_width + half_long * abs(turn_sin) + half_wide * abs(turn_cos)
        and abs(ahead * turn_cos + across * turn_sin) <= half_long + half_width * abs(turn_sin)
        and abs(across * turn_cos - ahead * turn_sin) <= half_wide + half_width * abs(turn_cos)
    ):
        return _FRONT
    return _LATERAL


def is_at_fault(kind: int, is_within_lanes: bool) -> bool:
    """Decide whether the ego is at fault for a collision.

    Args:
        kind: CollisionType
        is_within_lanes: whether the ego's four corners are within one common or connected lanes; it decides lateral
            collisions only

    Example:
        >>> is_at_fault(CollisionType.LATERAL, is_within_lanes=False)
        True
    """
    return kind in (_STOPPED_TRACK, _FRONT) or (kind == _LATERAL and not is_within_lanes)
