"""Events of a step: contacts, departures, red lights, stop signs, lanes, comfort, goals.

Every function reads the state of all agents and writes only its own agent's, so the order of agents does not matter. An
infraction counts when it begins. An infraction that exists at the start of an attempt (recordings have parked cars
across a curb) does not count.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import rule
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim import state
from roadworthy.sim.rules.applicable_rules import follows_lane, keeps_to_road, uses_lanes
from roadworthy.sim.rules.collision_fault import record_contacts, start_contacts
from roadworthy.sim.rules.goals import distance_to_goal, goal_event, starts_at_goal
from roadworthy.sim.rules.lane_position import locate_on_lane
from roadworthy.sim.rules.off_road import edge_contact
from roadworthy.sim.rules.red_light import runs_red_light
from roadworthy.sim.rules.stop_sign import passes_stop_sign
from roadworthy.sim.state import Maps, Params, Scenarios

# Comfort limits of nuPlan (Karnchanachari et al. 2024, table of metrics), m/s2 and m/s3.
MOST_ACCELERATION = np.float32(2.40)
MOST_BRAKING = np.float32(4.05)
MOST_LATERAL = np.float32(4.89)
MOST_JERK = np.float32(8.37)
MOVING = np.float32(0.5)  # m/s; the direction of slower agents is not judged
CENTERED_WITHIN = np.float32(0.5)  # m
ALIGNED_COS = np.float32(np.cos(np.pi / 6))
WRONG_WAY_COS = np.float32(-0.5)


# Findings about an agent, as bits, which `classify_events` turns into events.
COLLIDES, TOUCHES, LEFT, CAME_BACK, RAN_RED, PASSED_SIGN, AT_FAULT = 1, 2, 4, 8, 16, 32, 64
FOLLOWS_LANE = 128  # the direction of its lane applies to it


@rule(inline=True)
def detect_collision(agents: Floats, flags: Ints, a: int, count: int, maps: Maps, m: int) -> int:
    """Return whether agent a's box touches another, and whether it is at fault for a first contact."""
    touches, at_fault = record_contacts(agents, flags, a, count, maps, m)
    if at_fault > 0:
        flags[state.AT_FAULT_COLLISIONS, a] += at_fault
    return (COLLIDES if touches else 0) | (AT_FAULT if at_fault > 0 else 0)


@rule(inline=True)
def detect_off_road(agents: Floats, flags: Ints, a: int, maps: Maps, m: int) -> int:
    """Return whether agent a's box touches a road edge, and whether its last move crossed one outward or inward.

    Return nothing for agents to which road edges do not apply.
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
    """Return whether agent a has just run a red light or passed a stop sign, if these apply to it."""
    if not uses_lanes(flags, a):
        return 0
    found = RAN_RED if runs_red_light(agents, a, scenarios, s, step, seed, p) else 0
    return found | (PASSED_SIGN if passes_stop_sign(agents, flags, a, maps, m) else 0)


@rule(inline=True)
def detect_lane(agents: Floats, flags: Ints, a: int, maps: Maps, m: int) -> int:
    """Find agent a's lane (`locate_on_lane`), and return whether the direction of the lane applies to it."""
    locate_on_lane(maps, m, agents, flags, a)
    return FOLLOWS_LANE if follows_lane(flags, a, maps, m) else 0


@rule(inline=True)
def classify_events(agents: Floats, flags: Ints, a: int, found: int, p: Params) -> None:
    """Write EVENTS of agent a, whose lane is up to date (`detect_lane`), from the findings about it."""
    # Read everything before writing anything: a GPU would wait for each number in turn.
    was_colliding, was_outside = flags[state.IS_COLLIDING, a], flags[state.IS_OUTSIDE, a]
    was_off_road = flags[state.IS_OFF_ROAD, a]
    offset, lane_cos, speed = agents[state.LANE_OFFSET, a], agents[state.LANE_COS, a], agents[state.SPEED, a]
    is_centered = abs(offset) <= CENTERED_WITHIN and keeps_to_road(flags, a)
    acceleration, lateral, jerk = agents[state.ACCELERATION, a], agents[state.LATERAL, a], agents[state.JERK, a]
    distance_before, distance = agents[state.GOAL_DISTANCE, a], distance_to_goal(agents, flags, a, p)

    events = 0
    is_colliding = found & COLLIDES != 0
    if is_colliding and was_colliding == 0:
        events |= state.EVENT_COLLISION
    if found & AT_FAULT:
        events |= state.EVENT_AT_FAULT
    is_outside = found & LEFT != 0 or (was_outside != 0 and found & CAME_BACK == 0)
    is_off_road = found & TOUCHES != 0 or is_outside
    if is_off_road and was_off_road == 0:
        events |= state.EVENT_OFF_ROAD
    if found & RAN_RED:
        events |= state.EVENT_RED_LIGHT
    if found & PASSED_SIGN:
        events |= state.EVENT_STOP_SIGN
    if found & FOLLOWS_LANE:
        if is_centered:
            events |= state.EVENT_CENTERED
        if speed >= MOVING:
            events |= state.EVENT_ON_LANE
            if lane_cos >= ALIGNED_COS:
                events |= state.EVENT_ALIGNED
            if lane_cos <= WRONG_WAY_COS:
                events |= state.EVENT_WRONG_WAY
    if (
        acceleration > MOST_ACCELERATION
        or acceleration < -MOST_BRAKING
        or abs(lateral) > MOST_LATERAL
        or abs(jerk) > MOST_JERK
    ):
        events |= state.EVENT_UNCOMFORTABLE

    flags[state.IS_COLLIDING, a], flags[state.IS_OUTSIDE, a] = is_colliding, is_outside
    flags[state.IS_OFF_ROAD, a] = is_off_road
    agents[state.PROGRESS, a] = distance_before - distance
    agents[state.GOAL_DISTANCE, a] = distance
    flags[state.EVENTS, a] = events | goal_event(agents, flags, a, p)


@rule(inline=True)
def judge_start(agents: Floats, flags: Ints, a: int, count: int, maps: Maps, m: int, dt: float, p: Params) -> None:
    """Write what is true of agent a at its start. None of it counts as an infraction or as a goal reached."""
    flags[state.IS_COLLIDING, a] = start_contacts(agents, flags, a, count)
    touches, _ = edge_contact(maps, m, agents, a)
    flags[state.IS_OFF_ROAD, a] = touches
    flags[state.IS_OUTSIDE, a] = 0
    passes_stop_sign(agents, flags, a, maps, m)  # an agent that starts standing at a line has stopped there
    locate_on_lane(maps, m, agents, flags, a)
    agents[state.GOAL_DISTANCE, a] = distance_to_goal(agents, flags, a, p)
    flags[state.STARTS_AT_GOAL, a] = starts_at_goal(agents, flags, a, dt, p)
