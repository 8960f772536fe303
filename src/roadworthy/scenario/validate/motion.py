"""Rules about the motion of one agent: speed, acceleration, jerk, turning, heading, velocity, gaps in its recording."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.schema import AgentType, Scenario
from roadworthy.scenario.validate.finding import Finding
from roadworthy.scenario.validate.limits import Limits

SPEED, ACCELERATION, JERK, LATERAL, YAW, HEADING, TURNING, VELOCITY, GAP = range(9)

# Rule and wording of each measure; `{:.2f}` is its worst value, `{limit:g}` the limit.
MEASURES = {
    SPEED: ("speed", "agent {agent} moves at {value:.2f} m/s (limit {limit:g})"),
    ACCELERATION: ("acceleration", "agent {agent} accelerates at {value:.2f} m/s2 (limit ±{limit:g})"),
    JERK: ("jerk", "agent {agent} has a jerk of {value:.2f} m/s3 (limit ±{limit:g})"),
    LATERAL: ("lateral_acceleration", "agent {agent} has a lateral acceleration of {value:.2f} m/s2 (limit {limit:g})"),
    YAW: ("yaw_rate", "agent {agent} turns at {value:.2f} rad/s (limit {limit:g})"),
    HEADING: ("heading", "agent {agent} has a heading {value:.2f} rad off its motion (limit {limit:g})"),
    TURNING: ("heading", "agent {agent} turns almost on the spot at {value:.2f} rad/s (limit {limit:g})"),
    VELOCITY: ("velocity", "agent {agent} has a velocity {value:.2f} m/s off its motion (limit {limit:g})"),
    GAP: ("gap", "agent {agent} disappears and returns"),
}


def motion_faults(scenario: Scenario, limits: Limits) -> Iterator[Finding]:
    """Yield at most one finding per rule and agent."""
    bounds = _bounds(scenario, limits)
    count, worst, step = _measure(
        scenario.positions, scenario.headings, scenario.velocities, scenario.valid, scenario.dt, bounds, limits.slow_mps
    )
    reported = set()
    for agent, measure in np.argwhere(count):
        rule, words = MEASURES[int(measure)]
        if (agent, rule) in reported:
            continue
        reported.add((agent, rule))
        what = words.format(agent=agent, value=worst[agent, measure], limit=bounds[agent, measure])
        yield Finding(rule, int(agent), int(step[agent, measure]), what, int(count[agent, measure]))


def _bounds(scenario: Scenario, limits: Limits) -> np.ndarray:
    """Return (A, measures) the limit for each agent; infinite where a rule does not apply to its type."""
    types = scenario.agent_types
    vehicle, cyclist = types == AgentType.VEHICLE, types == AgentType.CYCLIST
    steers = vehicle | cyclist
    is_emergency = "hard_stop" in scenario.tags
    bounds = np.full((len(types), len(MEASURES)), np.inf)
    bounds[:, SPEED] = np.select(
        [vehicle, cyclist, types == AgentType.PEDESTRIAN],
        [limits.vehicle_speed_mps, limits.cyclist_speed_mps, limits.pedestrian_speed_mps],
        limits.vehicle_speed_mps,
    )
    bounds[:, ACCELERATION] = limits.emergency_acceleration_mps2 if is_emergency else limits.acceleration_mps2
    bounds[steers, JERK] = limits.emergency_jerk_mps3 if is_emergency else limits.jerk_mps3
    bounds[steers, LATERAL] = limits.lateral_acceleration_mps2
    bounds[vehicle, YAW], bounds[cyclist, YAW] = limits.vehicle_yaw_rate_radps, limits.cyclist_yaw_rate_radps
    bounds[steers, HEADING] = limits.heading_error_rad
    bounds[steers, TURNING] = limits.slow_turning_radps
    bounds[:, VELOCITY] = limits.velocity_error_mps
    bounds[:, GAP] = 0.0
    return bounds


@kernel
def _measure(positions, headings, velocities, valid, dt, bounds, slow):
    """Return how often, by how much and where each agent (row) exceeds each limit (column)."""
    agents, steps = valid.shape
    count, step_of_worst = np.zeros(bounds.shape, np.int32), np.zeros(bounds.shape, np.int32)
    worst, speed = np.zeros(bounds.shape), np.zeros(steps)
    for agent in range(agents):
        was_there = False
        for k in range(steps):
            if not valid[agent, k]:
                continue
            vx, vy = float(velocities[agent, k, 0]), float(velocities[agent, k, 1])
            speed[k] = np.sqrt(vx * vx + vy * vy)
            _judge(bounds, count, worst, step_of_worst, agent, SPEED, k, speed[k])
            heading = float(headings[agent, k])
            if speed[k] > slow:
                cosine, sine = np.cos(heading), np.sin(heading)
                error = np.arctan2(cosine * vy - sine * vx, cosine * vx + sine * vy)
                _judge(bounds, count, worst, step_of_worst, agent, HEADING, k, abs(error))
            if k == 0 or not valid[agent, k - 1]:
                if was_there:
                    _judge(bounds, count, worst, step_of_worst, agent, GAP, k, 1.0)
                was_there = True
                continue
            acceleration = (speed[k] - speed[k - 1]) / dt
            _judge(bounds, count, worst, step_of_worst, agent, ACCELERATION, k, abs(acceleration))
            pace = 0.5 * (speed[k] + speed[k - 1])
            turning = abs((heading - headings[agent, k - 1] + np.pi) % (2.0 * np.pi) - np.pi) / dt
            if pace > slow:
                _judge(bounds, count, worst, step_of_worst, agent, YAW, k, turning)
                _judge(bounds, count, worst, step_of_worst, agent, LATERAL, k, pace * turning)
            else:
                _judge(bounds, count, worst, step_of_worst, agent, TURNING, k, turning)
            dx = float(positions[agent, k, 0]) - positions[agent, k - 1, 0]
            dy = float(positions[agent, k, 1]) - positions[agent, k - 1, 1]
            ex = dx / dt - 0.5 * (vx + velocities[agent, k - 1, 0])
            ey = dy / dt - 0.5 * (vy + velocities[agent, k - 1, 1])
            _judge(bounds, count, worst, step_of_worst, agent, VELOCITY, k, np.sqrt(ex * ex + ey * ey))
            if k >= 3 and valid[agent, k - 2] and valid[agent, k - 3]:
                jerk = (acceleration - (speed[k - 2] - speed[k - 3]) / dt) / (2.0 * dt)
                _judge(bounds, count, worst, step_of_worst, agent, JERK, k - 1, abs(jerk))
    return count, worst, step_of_worst


@kernel
def _judge(bounds, count, worst, step_of_worst, agent, measure, step, value):
    if not value <= bounds[agent, measure]:
        count[agent, measure] += 1
        if not value <= worst[agent, measure]:
            worst[agent, measure] = value
            step_of_worst[agent, measure] = step
