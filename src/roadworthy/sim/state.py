"""The arrays of all worlds: what each holds, its shape and its unit.

Two blocks per world hold everything that changes within a trial: `agents` (float32) and `agent_flags` (int32), with one
line per quantity and one column per agent. A trial starts by copying both from `Starts`, so a reset cannot forget a
field. Agents that policies drive come first: slot s of world w is row w * rows_per_world + s of observations, actions,
rewards and signals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import Bytes, Floats, Ints

# A float32, and an integer of any width, of Python or of NumPy: no type of either accepts both.
Real = Any
Whole = Any
Pose = tuple[Real, Real, Real, Real]  # x and y (m), and the cosine and sine of the heading

# Lines of `agents`, float32.
(
    X,  #                  m      center of the box
    Y,  #                  m
    HEADING,  #            rad    counter-clockwise from east, in (-pi, pi]
    COS,  #                -      of the heading
    SIN,  #                -
    SPEED,  #              m/s    along the heading, negative in reverse
    ACCELERATION,  #       m/s2   along the heading, over the last step
    LATERAL,  #            m/s2   lateral acceleration over the last step, positive to the left
    JERK,  #               m/s3   along the heading, over the last step
    STEERING,  #           rad    angle of the front wheels
    LENGTH,  #             m      of the box
    WIDTH,  #              m
    RADIUS,  #             m      half the diagonal of the box
    PREVIOUS_X,  #         m      center one step ago
    PREVIOUS_Y,  #         m
    ALONG,  #              m/s2   requested by the action: acceleration (bicycle) or jerk in m/s3 (jerk)
    ACROSS,  #             rad    requested by the action: steering angle (bicycle) or jerk in m/s3 (jerk)
    LANE_OFFSET,  #        m      to the left of the lane's center line; 0 without a lane
    LANE_COS,  #           -      of the heading relative to the lane's direction; 1 without a lane
    LANE_SIN,  #           -
    LANE_LIMIT,  #         m/s    speed limit of the lane; 0 without a lane or where unknown
    PATH_ARC,  #           m      position along route lane ROUTE_PLACE
    PATH_OFFSET,  #        m      to the left of the route
    PROGRESS,  #           m      by which the last step reduced the distance to the goal
    GOAL_DISTANCE,  #      m      to the next goal after the last step
    SLOWEST,  #            m/s    lowest speed on the approach to stop sign SIGN_AHEAD
    RETURN,  #             -      sum of rewards in this trial
    DISTANCE,  #           m      driven in this trial
    ALIGNED,  #            steps  of this trial on a lane and moving, within 30 degrees of its direction
    CENTERED,  #           steps  of this trial within 0.5 m of a lane's center line
    WRONG_WAY,  #          steps  of this trial moving against the lane
    UNCOMFORTABLE,  #      steps  of this trial beyond the comfort limits
    DRIVEN,  #             steps  of this trial in which it acted
    ON_LANE,  #            steps  of DRIVEN for which ALIGNED and WRONG_WAY are defined
    WEIGHTS,  #            -      first of len(REWARD_TERMS) lines: the agent's own reward weights
) = range(35)
REWARD_TERMS = (
    "goal collision off_road red_light stop_sign comfort lane_center lane_align wrong_way progress time"
).split()
GOALS = WEIGHTS + len(REWARD_TERMS)  # first of 2 * Params.goal_count lines: x and y of each goal, in m

# Lines of `agent_flags`, int32. Those named IS_... and STARTS_... are 0 or 1.
(
    TYPE,  #                 AgentType
    ROLE,  #                 EGO, COPLAYER, REPLAYED, IDM or STATIC
    IS_PRESENT,  #           it is in the world: others observe it and can hit it
    IS_DRIVING,  #           a policy drives it and it is not done: its row is active
    SOURCE,  #               its number in the scenario's recording, -1 for an agent of an open world
    LANE,  #                 the lane that it is on, -1 for none
    IS_COLLIDING,  #         its box touches another box after this step
    IS_OFF_ROAD,  #          its box touches a road edge after this step, or it is outside
    IS_OUTSIDE,  #           its center left the road across an edge and has not returned
    COLLISIONS,  #           contacts that began in this trial
    AT_FAULT_COLLISIONS,  #  other agents that it touched in this trial, at fault for the first contact
    DEPARTURES,  #           departures from the road that began in this trial
    RED_LIGHTS,  #           red lights run in this trial
    STOP_SIGNS,  #           stop signs passed in this trial without stopping
    SIGN_AHEAD,  #           the stop sign that it is approaching, -1 for none
    GOAL,  #                 number of the next goal
    GOAL_COUNT,  #           goals that it has been given
    GOALS_REACHED,  #        in this trial
    GOALS_REQUIRED,  #       goals that it started with; `new_goal` adds goals that are not required
    STARTS_AT_GOAL,  #       it reaches its goals without driving
    SPAWNS,  #               times that it was spawned in this trial, a key of the draws for the next time
    EVENTS,  #               what happened to it in this step: a sum of EVENT_... below
    TERMINATION,  #          how this step ends its attempt: NOT_TERMINATED, STOPPED or REMOVED below
    IS_DONE,  #              it reached its last goal, or was stopped or removed, in this trial
    IS_WAITING,  #           it is done and starts again when its place is free (respawn)
    FIRST_STEP,  #           the world's step at which its attempt began: 0, or when it was spawned again
    ROUTE_LENGTH,  #         lanes in its route, 0 for none
    ROUTE_PLACE,  #          which of these lanes it is on
    ROUTE,  #                first of ROUTE_LANES lines: lane numbers
) = range(29)
ROUTE_LANES = 24
# One bit for each agent that it touched in this trial or touches at its start: bit b % 32 of line b // 32.
TOUCHED = ROUTE + ROUTE_LANES
TOUCHED_LINES = 8
FLAG_LINES = TOUCHED + TOUCHED_LINES

# Bits of EVENTS.
EVENT_GOAL, EVENT_COLLISION, EVENT_OFF_ROAD, EVENT_RED_LIGHT, EVENT_STOP_SIGN = 1, 2, 4, 8, 16
EVENT_UNCOMFORTABLE, EVENT_ON_LANE, EVENT_ALIGNED, EVENT_CENTERED, EVENT_WRONG_WAY = 32, 64, 128, 256, 512
EVENT_AT_FAULT = 1024  # it is at fault for its first contact with another agent, see at_fault.py
# Values of TERMINATION, numbered as IGNORE, HALT and REMOVE below.
NOT_TERMINATED, STOPPED, REMOVED = range(3)

# Values of ROLE: what controls an agent.
EGO, COPLAYER, REPLAYED, IDM, STATIC = range(5)
ROLES = ("ego", "coplayer", "replay", "idm", "static")

# Columns of `clocks`, int32.
(
    SCENARIO,  #         slot of its scenario in Scenarios, -1: the world is idle
    MAP,  #              slot of its map in Maps
    AGENT_COUNT,  #      agents in the world
    DRIVEN_COUNT,  #     agents that policies drive: slots 0 to DRIVEN_COUNT - 1
    STEP,  #             steps made in this trial
    TRIAL,  #            number of this trial
    COPLAYER_POLICY,  #  which policy drives the co-players
    EPISODE_STEP,  #     steps made in this episode
    TRIAL_ENDED,  #      1: the trial ended with this step
    EPISODE_ENDED,  #    1: the episode ended with this step; the world needs another one
    FAILED_SPAWNS,  #    agents that found no free place at the start of the episode
    IS_STARTING,  #      1: the episode is being set up
    CLOCK_COLUMNS,
) = range(13)

# Columns of `hidden`, float32: factors of the episode.
STEERING_GAIN, BRAKE_GAIN, GRIP, HASTE = range(4)
HIDDEN_FACTORS = ("steering_gain", "brake_gain", "grip", "traffic_haste")

# Columns of `appearance`, float32: the features of layout.PARTNER, in their units.
SEEN_X, SEEN_Y, SEEN_COS, SEEN_SIN, SEEN_SPEED, SEEN_LENGTH, SEEN_WIDTH, SEEN_TYPE, SEEN_COLUMNS = range(9)


class Worlds(NamedTuple):
    """What moves. W worlds with room for A agents each; A32 is A rounded up to a multiple of 32."""

    agents: Floats  #            (W, GOALS + 2 * goals, A)
    agent_flags: Ints  #         (W, FLAG_LINES, A)
    clocks: Ints  #              (W, CLOCK_COLUMNS)
    seeds: NDArray[np.uint64]  # (W,)                       seed of the episode
    hidden: Floats  #            (W, len(HIDDEN_FACTORS))
    order: Ints  #               (W, A32)                   scratch space of a rule, not state
    appearance: Floats  #        (W, A32, SEEN_COLUMNS)     what others observe of each agent; written before use


class Starts(NamedTuple):
    """The state of each world at the start of its episode."""

    agents: Floats  #    as Worlds.agents
    agent_flags: Ints  # as Worlds.agent_flags


class Logs(NamedTuple):
    """Results of episodes: R rows per world (the driven agents), K trials, F figures."""

    trials: Floats  #       (W, R, K, len(TRIAL_FIGURES))  ended trials of this episode; see episode_figures.py
    episodes: Floats  #     (W, R, F)                      the row's last ended episode
    averages: Floats  #     (W, R, F)                      moving average over its episodes as an ego, NaN before
    episode_counts: Ints  # (W, R)                         episodes that the row has ended as an ego


class Rows(NamedTuple):
    """What policies receive and send. N = W * R rows, in the order of worlds and slots."""

    observations: Floats  #              (N, size)
    final_observations: Floats  #        (N, size)  (0, size) unless observe.final is set
    actions: Floats  #                   (N, 2)     numbers of choices, or -1 to 1
    rewards: Floats  #                   (N,)
    active: NDArray[np.bool_]  #         (N,)       the observation just returned is valid
    trial_ended: NDArray[np.bool_]  #    (N,)       the last step ended a trial
    episode_ended: NDArray[np.bool_]  #  (N,)       the last step ended an episode
    timed_out: NDArray[np.bool_]  #      (N,)       the trial ended by time while the agent had a goal left


# A road point is a short straight segment of a lane's center line or of a road edge: its middle, direction and half
# its length.
# Lines of Maps.edges: a segment from (0, 1) to (2, 3) with the road on its left, in m.
EDGE_X0, EDGE_Y0, EDGE_X1, EDGE_Y1, EDGE_LINES = range(5)
# Lines of Maps.lane_points and Maps.edge_points.
POINT_X, POINT_Y, POINT_COS, POINT_SIN, POINT_HALF = range(5)  # m, m, -, -, m
POINT_LIMIT, POINT_IS_BIKE, POINT_ARC, LANE_POINT_LINES = range(5, 9)  # m/s (0 unknown), 0 or 1, m along the lane
POINT_IS_MEDIAN, EDGE_POINT_LINES = range(5, 7)  # 0 or 1
# Lines of Maps.lanes. Lane l owns entries from its start up to the start of lane l + 1.
LANE_POINT_START, LANE_SUCCESSOR_START, LANE_LEFT, LANE_RIGHT, LANE_TYPE, LANE_LINES = range(6)
# Lines of Maps.lane_boxes: bounds of the area within half the lane's width of its center line, and that half, in m.
BOX_WEST, BOX_SOUTH, BOX_EAST, BOX_NORTH, BOX_HALF_WIDTH, BOX_LINES = range(6)
# Columns of Maps.sizes.
COLUMNS, ROWS, LANE_COUNT, EDGE_COUNT, LANE_POINT_COUNT, EDGE_POINT_COUNT, SIGN_COUNT, SIZE_COLUMNS = range(8)
# Lines of stop lines (Maps.signs, Scenarios.lights): middle (m), direction of travel across it, half its width (m).
LINE_X, LINE_Y, LINE_COS, LINE_SIN, LINE_HALF, STOP_LINE_LINES = range(6)


class Maps(NamedTuple):
    """Maps in M slots, padded to the largest. See scenario/prepare.py for the grid and the lists."""

    sizes: Ints  #                      (M, SIZE_COLUMNS)
    origins: Floats  #                  (M, 2)                         m, south-west corner of the grid
    edges: Floats  #                    (M, EDGE_LINES, segments)
    cell_edge_starts: Ints  #           (M, cells + 1)
    cell_edges: Ints  #                 (M, k)
    lane_points: Floats  #              (M, LANE_POINT_LINES, points)
    lane_point_lanes: Ints  #           (M, points)                    the lane of each point
    edge_points: Floats  #              (M, EDGE_POINT_LINES, points)
    cell_lists: Ints  #                 (M, cells)                     which list belongs to each cell
    lane_lists: NDArray[np.uint16]  #   (M, lists, 64)                 nearest lane points
    edge_lists: NDArray[np.uint16]  #   (M, lists, 64)                 nearest edge points
    lanes: Ints  #                      (M, LANE_LINES, lanes + 1)
    lane_lengths: Floats  #             (M, lanes)                     m
    lane_boxes: Floats  #               (M, BOX_LINES, lanes)
    successors: Ints  #                 (M, k)                         lanes
    signs: Floats  #                    (M, STOP_LINE_LINES, signs)    stop lines of stop signs
    sign_lanes: Ints  #                 (M, signs)                     the lane that ends at the line


# Lines of Scenarios.bodies: m.
BODY_LENGTH, BODY_WIDTH, BODY_GOAL_X, BODY_GOAL_Y, BODY_LINES = range(5)
# Lines of Scenarios.motion: m, m, rad, m/s.
MOTION_X, MOTION_Y, MOTION_HEADING, MOTION_SPEED, MOTION_LINES = range(5)
# Columns of Scenarios.counts.
SELECTED_COUNT, SELECTED_DRIVEN, FRAME_COUNT, LIGHT_COUNT, COUNT_COLUMNS = range(5)


class Scenarios(NamedTuple):
    """Recorded scenarios in S slots. Agents are in world order (the driven first), frames start at init_steps."""

    counts: Ints  #           (S, COUNT_COLUMNS)
    dt: Floats  #             (S,)                         s
    bodies: Floats  #         (S, BODY_LINES, A)
    agent_types: Ints  #      (S, A)                       AgentType
    agent_roles: Ints  #      (S, A)                       EGO, REPLAYED, IDM or STATIC
    agent_sources: Ints  #    (S, A)                       number in the recording
    motion: Floats  #         (S, MOTION_LINES, frames, A)
    valid: Bytes  #           (S, frames, A)               1: the agent is there
    lights: Floats  #         (S, STOP_LINE_LINES, lights) stop lines
    light_lanes: Ints  #      (S, lights)                  the lane that the light controls
    light_phases: Ints  #     (S, lights)                  0 or 1: its green is in this phase of an open world's program
    light_junctions: Ints  #  (S, lights)                  lights of one junction share a program
    light_states: Bytes  #    (S, frames, lights)          LightState as recorded


class Params(NamedTuple):
    """Settings as numbers: the config's value of the same name unless a comment says otherwise."""

    is_open: np.int32  #                mode
    is_jerk: np.int32  #                model
    is_continuous: np.int32  #          actions
    choices_along: np.int32  #          of a discrete action
    choices_across: np.int32
    trials: np.int32
    trial_steps: np.int32
    at_goal: np.int32  #                LEAVE, STOP, NEW_GOAL, RESPAWN or CONTINUE below
    goal_radius: np.float32  #          m
    goal_speed: np.float32  #           m/s
    goal_count: np.int32  #             goals that an agent has room for
    on_collision: np.int32  #           IGNORE, HALT or REMOVE below
    on_off_road: np.int32
    on_red_light: np.int32
    scores_all_collisions: np.int32  #  score.collisions: 1 for all, 0 for at_fault
    open_agents: np.int32
    open_traffic: np.int32
    goal_spacing: np.float32  #         m
    spawn_gap: np.float32  #            m
    ego_share: np.float32
    partners: np.int32  #               ObserveConfig
    partner_range: np.float32  #        m
    lanes: np.int32
    edges: np.int32
    lights: np.int32
    # (len(BLOCKS),) where each block of layout.BLOCKS starts in a row. Unsigned, so that no index is checked for being
    # negative, which would double the time of writing partners.
    block_starts: NDArray[np.uint32]
    keeps_final: np.int32
    blind_rate: np.float32  #           DisturbConfig; all 0 when clean
    blind_s: np.float32
    phantom_rate: np.float32
    phantom_s: np.float32
    phantom_mps2: np.float32
    dropout: np.float32
    action_noise: np.float32
    partner_count: np.int32  #          hidden.partners
    ema_alpha: np.float32
    goal_shares: Floats  #              (17,) the share of n goals that a success needs; the last entry is for more
    weight_low: Floats  #               (len(REWARD_TERMS),) ranges of the reward weights
    weight_high: Floats
    hidden_low: Floats  #               (len(HIDDEN_FACTORS),) ranges of the hidden factors
    hidden_high: Floats

    def packed(self) -> NDArray[np.void]:
        """Return the values as a (1,) record, which rules receive as one pointer: large tuples are slow to pass."""
        fields = [
            (name, value.dtype, value.shape) if isinstance(value, np.ndarray) else (name, value.dtype)
            for name, value in self._asdict().items()
        ]
        return np.array([tuple(self)], np.dtype(fields, align=True))


LEAVE, STOP, NEW_GOAL, RESPAWN, CONTINUE = range(5)
IGNORE, HALT, REMOVE = range(3)
