"""The arrays of all worlds: what each holds, its shape and its unit.

Two blocks per world hold everything that changes within a trial: `agents` (float32) and `agent_flags` (int32), with one
line per quantity and one column per agent. A trial starts by copying both from `Starts`, so a reset cannot forget a
field. Agents that policies drive come first: slot s of world w is row w * rows_per_world + s of observations, actions,
rewards and signals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import Bytes, Floats, Ints

# Lines of `agents`, float32.
(
    X,  # m, the middle of the box
    Y,  # m
    HEADING,  # rad, counter-clockwise from east, in (-pi, pi]
    COS,  # of the heading
    SIN,
    SPEED,  # m/s along the heading, negative in reverse
    ACCELERATION,  # m/s2 along the heading, over the last step
    LATERAL,  # m/s2 across, positive to the left, over the last step (speed times yaw rate)
    JERK,  # m/s3 along, over the last step
    STEERING,  # rad, the angle of the front wheels
    LENGTH,  # m
    WIDTH,  # m
    RADIUS,  # m, half the diagonal of the box
    PREVIOUS_X,  # m, where it was a step ago
    PREVIOUS_Y,
    ALONG,  # what this step's action asks for: m/s2 (bicycle) or m/s3 (jerk)
    ACROSS,  # rad (bicycle) or m/s3 (jerk)
    LANE_OFFSET,  # m to the left of the nearest lane's centre line; 0 where there is none
    LANE_COS,  # of the heading against the lane's direction; 1 where there is none
    LANE_SIN,
    LANE_LIMIT,  # m/s, the lane's speed limit; 0 where there is none or it is unknown
    PATH_ARC,  # m from the start of route lane ROUTE_PLACE, for agents that follow their route on rails (idm)
    PATH_OFFSET,  # m to the left of the route
    PROGRESS,  # m by which the last step brought it nearer to its goal
    GOAL_DISTANCE,  # m to the next goal after the last step; before the first step: from the start
    SLOWEST,  # m/s, the lowest speed on the approach to stop sign LINE
    RETURN,  # sum of rewards in this trial
    DISTANCE,  # m driven in this trial
    ALIGNED,  # steps in this trial, while moving on a lane, within 30 degrees of its direction
    CENTERED,  # steps in this trial within 0.5 m of a lane's centre line
    WRONG_WAY,  # steps in this trial moving against the lane
    UNCOMFORTABLE,  # steps in this trial beyond the limits of comfort
    DRIVEN,  # steps in this trial in which it acted
    ON_LANE,  # of these, steps on which ALIGNED and WRONG_WAY could be judged
    WEIGHTS,  # the agent's weights of the reward's terms, from here on: len(REWARD_TERMS) lines
) = range(35)
REWARD_TERMS = (
    "goal collision off_road red_light stop_sign comfort lane_centre lane_align wrong_way progress time"
).split()
GOALS = WEIGHTS + len(REWARD_TERMS)  # x and y of each goal in turn, from here to the end: 2 * Params.goal_count lines

# Lines of `agent_flags`, int32.
(
    TYPE,  # AgentType
    ROLE,  # Role
    IS_PRESENT,  # 1: in the world, seen and hit
    IS_DRIVING,  # 1: driven by a policy and not done: its row is active
    SOURCE,  # its number in the scenario's recording, -1 where it was drawn
    LANE,  # the lane that it is on, -1 for none
    IS_COLLIDING,  # 1: its box touches another's after this step
    IS_OFF_ROAD,  # 1: its box touches a road edge after this step, or is outside
    IS_OUTSIDE,  # 1: its middle has left the road through an edge and not come back
    COLLISIONS,  # contacts that began in this trial
    AT_FAULT_COLLISIONS,  # other agents that it touched in this trial, at fault for the first contact
    DEPARTURES,  # departures from the road that began in this trial
    RED_LIGHTS,  # red lights run in this trial
    STOP_SIGNS,  # stop signs passed in this trial without stopping
    SIGN_AHEAD,  # the stop sign that it is approaching, -1 for none
    GOAL,  # number of the next goal
    GOAL_COUNT,  # how many it has
    GOALS_REACHED,  # in this trial
    GOALS_REQUIRED,  # how many it started with; with `new_goal` more follow
    STARTS_AT_GOAL,  # 1: it reaches its goals without driving
    SPAWNS,  # how often it was spawned in this trial, for the draws of the next one
    EVENTS,  # what happened to it in this step: sum of EVENT_... below
    TERMINATION,  # what becomes of it after this step: NOT_TERMINATED, STOPPED or REMOVED below
    IS_DONE,  # 1: it reached its last goal, or was stopped or removed, in this trial
    IS_WAITING,  # 1: it is done and starts anew as soon as its place is free (respawn)
    FIRST_STEP,  # the world's step at which its attempt began: 0, or when it was spawned again
    ROUTE_LENGTH,  # lanes in its route, 0 for none
    ROUTE_PLACE,  # which of them it is on
    ROUTE,  # lanes, from here on: ROUTE_LANES lines
) = range(29)
ROUTE_LANES = 24
# Which agents it has touched in this trial or touched where it started, a bit for each: bit b % 32 of line b // 32.
TOUCHED = ROUTE + ROUTE_LANES
TOUCHED_LINES = 8
FLAG_LINES = TOUCHED + TOUCHED_LINES

# Bits of EVENTS.
EVENT_GOAL, EVENT_COLLISION, EVENT_OFF_ROAD, EVENT_RED_LIGHT, EVENT_STOP_SIGN = 1, 2, 4, 8, 16
EVENT_UNCOMFORTABLE, EVENT_ON_LANE, EVENT_ALIGNED, EVENT_CENTERED, EVENT_WRONG_WAY = 32, 64, 128, 256, 512
EVENT_AT_FAULT = 1024  # it is at fault for its first contact with another agent, see at_fault.py
# Values of TERMINATION.
NOT_TERMINATED, STOPPED, REMOVED = range(3)

# Roles: who moves an agent.
EGO, COPLAYER, REPLAYED, IDM, STATIC = range(5)
ROLES = ("ego", "coplayer", "replay", "idm", "static")

# Columns of `clocks`, int32: one line per world.
(
    SCENARIO,  # slot of its scenario in Scenarios, -1: the world is idle
    MAP,  # slot of its map in Maps
    AGENT_COUNT,
    DRIVEN_COUNT,  # agents driven by policies: slots 0 up to this
    STEP,  # steps made in this trial
    TRIAL,
    COPLAYER_POLICY,  # which partner policy drives the co-players
    EPISODE_STEP,  # steps made in this episode
    TRIAL_ENDED,  # 1: its trial ended with this step
    EPISODE_ENDED,  # 1: its episode ended with this step; it needs another
    FAILED_SPAWNS,  # agents that found no free place at the start of the episode
    IS_STARTING,  # 1: its episode is being set up
) = range(12)
CLOCK_COLUMNS = 12

# Columns of `hidden`, float32: factors of the episode.
STEERING_GAIN, BRAKE_GAIN, GRIP, HASTE = range(4)
HIDDEN_FACTORS = ("steering_gain", "brake_gain", "grip", "traffic_haste")


class Worlds(NamedTuple):
    """What moves. W worlds, room for A agents in each."""

    agents: Floats  # (W, GOALS + 2 * goals, A)
    agent_flags: Ints  # (W, FLAG_LINES, A)
    clocks: Ints  # (W, CLOCK_COLUMNS)
    seeds: NDArray[np.uint64]  # (W,) seed of the episode
    hidden: Floats  # (W, len(HIDDEN_FACTORS))
    order: Ints  # (W, A rounded up to a multiple of 32) working space of a rule, no state
    appearance: Floats  # (W, A rounded up, 8) what others see of each agent, no state: written before observations are


class Starts(NamedTuple):
    """What each world was at the start of its episode."""

    agents: Floats  # as Worlds.agents
    agent_flags: Ints  # as Worlds.agent_flags


class Logs(NamedTuple):
    """What became of episodes: R rows per world (the driven agents), K trials, F figures."""

    trials: Floats  # (W, R, K, len(TRIAL_FIGURES)) of this episode's ended trials; see logs.py
    episodes: Floats  # (W, R, F) figures of the row's last ended episode
    averages: Floats  # (W, R, F) moving average over the row's episodes as an ego, NaN before the first
    episode_counts: Ints  # (W, R) episodes that the row has ended as an ego


class Rows(NamedTuple):
    """What goes out to policies and comes in from them. N = W * R rows, in the order of worlds and slots."""

    observations: Floats  # (N, size)
    final_observations: Floats  # (N, size), or (0, size) where not asked for
    actions: Floats  # (N, 2): choices as whole numbers, or -1 to 1
    rewards: Floats  # (N,)
    active: NDArray[np.bool_]  # (N,) the observation just returned means something
    trial_ended: NDArray[np.bool_]  # (N,) the step just made was the last of a trial
    episode_ended: NDArray[np.bool_]  # (N,) ... of an episode
    timed_out: NDArray[np.bool_]  # (N,) ... because the time was up, and the agent had a goal left


# Lines of Maps.edges: a segment from (0, 1) to (2, 3), the road on its left.
EDGE_X0, EDGE_Y0, EDGE_X1, EDGE_Y1 = range(4)
# Lines of Maps.lane_points and Maps.edge_points: straight pieces.
POINT_X, POINT_Y, POINT_COS, POINT_SIN, POINT_HALF = range(5)  # m; the middle, the direction, half the length
POINT_LIMIT, POINT_IS_BIKE, POINT_ARC = 5, 6, 7  # lanes: m/s (0 unknown), 1 for a bicycle lane, m along the lane
POINT_IS_MEDIAN = 5  # edges: 1 for a median
# Lines of Maps.lanes, int32. Entry l + 1 of the two starts says where lane l ends.
LANE_POINT_START, LANE_SUCCESSOR_START, LANE_LEFT, LANE_RIGHT, LANE_TYPE = range(5)
# Lines of Maps.lane_boxes, float32: bounds of all that is within half the lane's width of its center line, in m.
BOX_WEST, BOX_SOUTH, BOX_EAST, BOX_NORTH, BOX_HALF_WIDTH = range(5)
# Columns of Maps.sizes, int32.
COLUMNS, ROWS, LANE_COUNT, EDGE_COUNT, LANE_POINT_COUNT, EDGE_POINT_COUNT, SIGN_COUNT = range(7)
# Lines of stop lines (Maps.signs, Scenarios.lights), float32.
LINE_X, LINE_Y, LINE_COS, LINE_SIN, LINE_HALF = range(5)  # middle, direction of travel across it, half its width in m


class Maps(NamedTuple):
    """Maps in M slots, padded to the largest. See scenario/prepare.py for the grid and the lists."""

    sizes: Ints  # (M, 7)
    origins: Floats  # (M, 2) south-west corner of the grid
    edges: Floats  # (M, 4, segments)
    cell_edge_starts: Ints  # (M, cells + 1)
    cell_edges: Ints  # (M, k)
    lane_points: Floats  # (M, 8, pieces)
    lane_point_lanes: Ints  # (M, pieces)
    edge_points: Floats  # (M, 6, pieces)
    cell_lists: Ints  # (M, cells)
    lane_lists: NDArray[np.uint16]  # (M, lists, 64) nearest lane pieces
    edge_lists: NDArray[np.uint16]  # (M, lists, 64)
    lanes: Ints  # (M, 5, lanes + 1)
    lane_lengths: Floats  # (M, lanes)
    lane_boxes: Floats  # (M, 5, lanes) where each lane is, and half its width
    successors: Ints  # (M, k)
    signs: Floats  # (M, 5, signs) stop lines of stop signs
    sign_lanes: Ints  # (M, signs) the lane that ends at the line


# Lines of Scenarios.cast, float32: agents as recorded, in world order.
BODY_LENGTH, BODY_WIDTH, BODY_GOAL_X, BODY_GOAL_Y = range(4)
# Lines of Scenarios.motion, float32.
MOTION_X, MOTION_Y, MOTION_HEADING, MOTION_SPEED = range(4)
# Columns of Scenarios.counts, int32.
SELECTED_COUNT, SELECTED_DRIVEN, FRAME_COUNT, LIGHT_COUNT = range(4)


class Scenarios(NamedTuple):
    """What worlds are about, in slots. Agents stand in world order (the driven first), frames start at init_steps."""

    counts: Ints  # (S, 4)
    dt: Floats  # (S,) s
    bodies: Floats  # (S, 4, A)
    agent_types: Ints  # (S, A) AgentType
    agent_roles: Ints  # (S, A) Role
    agent_sources: Ints  # (S, A) number in the recording
    motion: Floats  # (S, 4, frames, A)
    valid: Bytes  # (S, frames, A)
    lights: Floats  # (S, 5, lights) stop lines
    light_lanes: Ints  # (S, lights) the lane that the light controls
    light_phases: Ints  # (S, lights) 0 or 1: which phase of an open world's program lets it go
    light_junctions: Ints  # (S, lights) lights of one junction share a program
    light_states: Bytes  # (S, frames, lights) LightState as recorded


class Params(NamedTuple):
    """Settings as numbers. Each is the config's value of the same name, unless told otherwise."""

    is_open: np.int32  # mode
    is_jerk: np.int32  # model
    is_continuous: np.int32  # actions
    choices_along: np.int32  # of a discrete action
    choices_across: np.int32
    trials: np.int32
    trial_steps: np.int32
    at_goal: np.int32  # LEAVE, STOP, NEW_GOAL, RESPAWN, CONTINUE below
    goal_radius: np.float32
    goal_speed: np.float32
    goal_count: np.int32  # lines of goals per agent
    on_collision: np.int32  # IGNORE, HALT, REMOVE below
    on_off_road: np.int32
    on_red_light: np.int32
    scores_all_collisions: np.int32  # score.collisions: 1 for all, 0 for at_fault
    open_agents: np.int32
    open_traffic: np.int32
    goal_spacing: np.float32
    spawn_gap: np.float32
    ego_share: np.float32
    partners: np.int32  # ObserveConfig
    partner_range: np.float32
    lanes: np.int32
    edges: np.int32
    lights: np.int32
    keeps_final: np.int32
    blind_rate: np.float32  # DisturbConfig; all 0 when clean
    blind_s: np.float32
    phantom_rate: np.float32
    phantom_s: np.float32
    phantom_mps2: np.float32
    dropout: np.float32
    action_noise: np.float32
    partner_count: np.int32  # hidden.partners
    ema_alpha: np.float32
    goal_shares: Floats  # (17,) what share of n goals a success needs; the last entry is for more
    weight_low: Floats  # (len(REWARD_TERMS),) ranges of the reward's weights
    weight_high: Floats
    hidden_low: Floats  # (len(HIDDEN_FACTORS),) ranges of the hidden factors
    hidden_high: Floats

    def packed(self) -> NDArray[np.void]:
        """(1,) the same as a record, which rules get as one pointer: tuples of many parts are slow to pass."""
        kinds = [
            (name, value.dtype, value.shape) if isinstance(value, np.ndarray) else (name, value.dtype)
            for name, value in self._asdict().items()
        ]
        return np.array([tuple(self)], np.dtype(kinds, align=True))


LEAVE, STOP, NEW_GOAL, RESPAWN, CONTINUE = range(5)
IGNORE, HALT, REMOVE = range(3)
