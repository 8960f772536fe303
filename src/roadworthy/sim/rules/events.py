"""What happened to an agent in a step: contacts, departures, lights, lanes, comfort, goals.

Everything here reads where all agents are and writes only what concerns the agent itself, so that the order of agents
does not matter. An infraction is counted when it begins. One that is there at the start of an attempt (recordings hold
parked cars across a kerb) begins no later, so it is not counted.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.rules.applicable_rules import follows_lane, keeps_to_road, uses_lanes
from roadworthy.sim.rules.collision_fault import record_contacts, start_contacts
from roadworthy.sim.rules.goals import distance_to_goal, goal_event, starts_at_goal
from roadworthy.sim.rules.lights import passes_stop_sign, runs_red_light
from roadworthy.sim.rules.roads import edge_contact, locate_on_lane
from roadworthy.sim.state import (
    ACCELERATION,
    AT_FAULT_COLLISIONS,
    EVENT_ALIGNED,
    EVENT_AT_FAULT,
    EVENT_CENTERED,
    EVENT_COLLISION,
    EVENT_OFF_ROAD,
    EVENT_ON_LANE,
    EVENT_RED_LIGHT,
    EVENT_STOP_SIGN,
    EVENT_UNCOMFORTABLE,
    EVENT_WRONG_WAY,
    EVENTS,
    GOAL_DISTANCE,
    IS_COLLIDING,
    IS_OFF_ROAD,
    IS_OUTSIDE,
    JERK,
    LANE_COS,
    LANE_OFFSET,
    LATERAL,
    PROGRESS,
    SPEED,
    STARTS_AT_GOAL,
    Maps,
    Params,
    Scenarios,
)

# Comfort as nuPlan bounds it (Karnchanachari et al. 2024, table of metrics): m/s2 and m/s3.
MOST_ACCELERATION = np.float32(2.40)
MOST_BRAKING = np.float32(4.05)
MOST_LATERAL = np.float32(4.89)
MOST_JERK = np.float32(8.37)
MOVING = np.float32(0.5)  # m/s; slower agents are not judged by their direction
CENTERED_WITHIN = np.float32(0.5)  # m
ALIGNED_COS = np.float32(np.cos(np.pi / 6))
WRONG_WAY_COS = np.float32(-0.5)


# What was found about an agent, as bits; `classify_events` makes events of it.
COLLIDES, TOUCHES, LEFT, CAME_BACK, RAN_RED, PASSED_SIGN, AT_FAULT = 1, 2, 4, 8, 16, 32, 64
FOLLOWS_LANE = 128  # the direction of its lane is for such as it


@rule(inline=True)
def detect_collision(agents: Floats, flags: Ints, a: int, count: int, maps: Maps, m: int) -> int:
    """Whether agent a's box touches another's, and whether it is at fault for a first contact, which is tallied."""
    touches, at_fault = record_contacts(agents, flags, a, count, maps, m)
    if at_fault > 0:
        flags[AT_FAULT_COLLISIONS, a] += at_fault
    return (COLLIDES if touches else 0) | (AT_FAULT if at_fault > 0 else 0)


@rule(inline=True)
def detect_off_road(agents: Floats, flags: Ints, a: int, maps: Maps, m: int) -> int:
    """Whether agent a's box touches an edge of the road, and whether its last move led across one, out or back in.

    Nothing is found about agents that need not keep to the road.
    """
    if not keeps_to_road(flags, a):
        return 0
    touches, crossing = edge_contact(maps, m, agents, a)
    found = TOUCHES if touches != 0 else 0
    return found | (LEFT if crossing > 0 else 0) | (CAME_BACK if crossing < 0 else 0)


@rule(inline=True)
def detect_line_crossings(
    agents: Floats,
    flags: Ints,
    a: int,
    maps: Maps,
    m: int,
    scenarios: Scenarios,
    s: int,
    step: int,
    seed: int,
    p: Params,
) -> int:
    """Whether agent a has just run a red light or passed a stop sign, if those are for it."""
    if not uses_lanes(flags, a):
        return 0
    found = RAN_RED if runs_red_light(agents, a, scenarios, s, step, seed, p) else 0
    return found | (PASSED_SIGN if passes_stop_sign(agents, flags, a, maps, m) else 0)


@rule(inline=True)
def detect_lane(agents: Floats, flags: Ints, a: int, maps: Maps, m: int) -> int:
    """Find the lane that agent a is on (`locate_on_lane`), and whether its direction is for such as it."""
    locate_on_lane(maps, m, agents, flags, a)
    return FOLLOWS_LANE if follows_lane(flags, a, maps, m) else 0


@rule(inline=True)
def classify_events(agents: Floats, flags: Ints, a: int, found: int, p: Params) -> None:
    """Write EVENTS of agent a, whose lane is known (`detect_lane`), from what was found about it."""
    # All is read before anything is written: a GPU would wait for each number in turn.
    was_colliding, was_outside, was_off_road = flags[IS_COLLIDING, a], flags[IS_OUTSIDE, a], flags[IS_OFF_ROAD, a]
    offset, lane_cos, speed = agents[LANE_OFFSET, a], agents[LANE_COS, a], agents[SPEED, a]
    is_centered = abs(offset) <= CENTERED_WITHIN and keeps_to_road(flags, a)
    acceleration, lateral, jerk = agents[ACCELERATION, a], agents[LATERAL, a], agents[JERK, a]
    distance_before, distance = agents[GOAL_DISTANCE, a], distance_to_goal(agents, flags, a, p)

    events = 0
    is_colliding = found & COLLIDES != 0
    if is_colliding and was_colliding == 0:
        events |= EVENT_COLLISION
    if found & AT_FAULT:
        events |= EVENT_AT_FAULT
    is_outside = found & LEFT != 0 or (was_outside != 0 and found & CAME_BACK == 0)
    is_off_road = found & TOUCHES != 0 or is_outside
    if is_off_road and was_off_road == 0:
        events |= EVENT_OFF_ROAD
    if found & RAN_RED:
        events |= EVENT_RED_LIGHT
    if found & PASSED_SIGN:
        events |= EVENT_STOP_SIGN
    if found & FOLLOWS_LANE:
        if is_centered:
            events |= EVENT_CENTERED
        if speed >= MOVING:
            events |= EVENT_ON_LANE
            if lane_cos >= ALIGNED_COS:
                events |= EVENT_ALIGNED
            if lane_cos <= WRONG_WAY_COS:
                events |= EVENT_WRONG_WAY
    if (
        acceleration > MOST_ACCELERATION
        or acceleration < -MOST_BRAKING
        or abs(lateral) > MOST_LATERAL
        or abs(jerk) > MOST_JERK
    ):
        events |= EVENT_UNCOMFORTABLE

    flags[IS_COLLIDING, a], flags[IS_OUTSIDE, a], flags[IS_OFF_ROAD, a] = is_colliding, is_outside, is_off_road
    agents[PROGRESS, a] = distance_before - distance
    agents[GOAL_DISTANCE, a] = distance
    flags[EVENTS, a] = events | goal_event(agents, flags, a, p)


@rule(inline=True)
def judge_start(agents: Floats, flags: Ints, a: int, count: int, maps: Maps, m: int, dt: float, p: Params) -> None:
    """Write what is true of agent a where it starts; none of it counts as an infraction or as a goal reached."""
    flags[IS_COLLIDING, a] = start_contacts(agents, flags, a, count)
    touches, _ = edge_contact(maps, m, agents, a)
    flags[IS_OFF_ROAD, a] = touches
    flags[IS_OUTSIDE, a] = 0
    passes_stop_sign(agents, flags, a, maps, m)  # who starts standing at a line has stopped there
    locate_on_lane(maps, m, agents, flags, a)
    agents[GOAL_DISTANCE, a] = distance_to_goal(agents, flags, a, p)
    flags[STARTS_AT_GOAL, a] = starts_at_goal(agents, flags, a, dt, p)
