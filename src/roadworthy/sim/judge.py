"""What happened to an agent in a step: contacts, departures, lights, lanes, comfort, goals.

Everything here reads where all agents are and writes only what concerns the agent itself, so that the order of agents
does not matter. An infraction is counted when it begins. One that is there at the start of an attempt (recordings hold
parked cars across a kerb) begins no later, so it is not counted.
"""

from __future__ import annotations

import numpy as np

from roadworthy.compile import inlined
from roadworthy.scenario.schema import Floats, Ints
from roadworthy.sim.collision import collides
from roadworthy.sim.goals import distance_to_goal, goal_event
from roadworthy.sim.lights import passes_stop_sign, runs_red_light
from roadworthy.sim.roads import edge_contact, locate
from roadworthy.sim.state import (
    ACCELERATION,
    EVENT_ALIGNED,
    EVENT_CENTRED,
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
    LANE,
    LANE_COS,
    LANE_OFFSET,
    LATERAL,
    PROGRESS,
    SPEED,
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
CENTRED_WITHIN = np.float32(0.5)  # m
ALIGNED_COS = np.float32(np.cos(np.pi / 6))
WRONG_WAY_COS = np.float32(-0.5)


@inlined
def judge(
    agents: Floats,
    marks: Ints,
    a: int,
    count: int,
    maps: Maps,
    m: int,
    scenarios: Scenarios,
    s: int,
    step: int,
    seed: int,
    p: Params,
) -> None:
    """Find what the step just made has brought to agent a, and write EVENTS."""
    events = 0
    is_colliding = collides(agents, marks, a, count)
    if is_colliding and marks[IS_COLLIDING, a] == 0:
        events |= EVENT_COLLISION
    marks[IS_COLLIDING, a] = is_colliding

    touches, crossing = edge_contact(maps, m, agents, a)
    if crossing != 0:
        marks[IS_OUTSIDE, a] = crossing > 0
    is_off_road = touches != 0 or marks[IS_OUTSIDE, a] != 0
    if is_off_road and marks[IS_OFF_ROAD, a] == 0:
        events |= EVENT_OFF_ROAD
    marks[IS_OFF_ROAD, a] = is_off_road

    if runs_red_light(agents, a, scenarios, s, step, seed, p):
        events |= EVENT_RED_LIGHT
    if passes_stop_sign(agents, marks, a, maps, m):
        events |= EVENT_STOP_SIGN

    locate(maps, m, agents, marks, a)
    if marks[LANE, a] >= 0:
        if abs(agents[LANE_OFFSET, a]) <= CENTRED_WITHIN:
            events |= EVENT_CENTRED
        if agents[SPEED, a] >= MOVING:
            events |= EVENT_ON_LANE
            if agents[LANE_COS, a] >= ALIGNED_COS:
                events |= EVENT_ALIGNED
            if agents[LANE_COS, a] <= WRONG_WAY_COS:
                events |= EVENT_WRONG_WAY
    if (
        agents[ACCELERATION, a] > MOST_ACCELERATION
        or agents[ACCELERATION, a] < -MOST_BRAKING
        or abs(agents[LATERAL, a]) > MOST_LATERAL
        or abs(agents[JERK, a]) > MOST_JERK
    ):
        events |= EVENT_UNCOMFORTABLE

    distance = distance_to_goal(agents, marks, a, p)
    agents[PROGRESS, a] = agents[GOAL_DISTANCE, a] - distance
    agents[GOAL_DISTANCE, a] = distance
    events |= goal_event(agents, marks, a, p)
    marks[EVENTS, a] = events


@inlined
def judge_start(agents: Floats, marks: Ints, a: int, count: int, maps: Maps, m: int, p: Params) -> None:
    """What is true of agent a where it starts; nothing of it counts."""
    marks[IS_COLLIDING, a] = collides(agents, marks, a, count)
    touches, _ = edge_contact(maps, m, agents, a)
    marks[IS_OFF_ROAD, a] = touches
    marks[IS_OUTSIDE, a] = 0
    passes_stop_sign(agents, marks, a, maps, m)  # who starts standing at a line has stopped there
    locate(maps, m, agents, marks, a)
    agents[GOAL_DISTANCE, a] = distance_to_goal(agents, marks, a, p)
