"""Rules about traffic lights: no vehicle runs a red light, and conflicting movements are not green together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.lanes.network import LaneNetwork
from roadworthy.scenario.schema import GREEN_STATES, RED_STATES, AgentType, Scenario
from roadworthy.scenario.validate.finding import Finding

SAME_START_M = 1.0  # the starts of lanes that fork at one place are this near to each other
SAME_START_RAD = 0.3
SAME_END_M = 0.5
FOLLOWED_M = 20.0  # a vehicle is followed this far beyond the line to find its way
SAME_WAY_M = 0.1  # lanes whose average distances differ by less cannot be distinguished


def red_light_faults(scenario: Scenario) -> Iterator[Finding]:
    """Yield at most one finding per vehicle: its front passes a stop while the light of its lane is red."""
    is_red = np.isin(scenario.light_states, RED_STATES)
    if not is_red.any():
        return
    network = LaneNetwork.of(scenario.map)
    starts = network.first[:-1]
    start_x, start_y = network.x[starts], network.y[starts]
    reported = set()
    for light in np.flatnonzero(is_red.any(axis=1)):
        lane = int(scenario.light_lanes[light])
        heading = float(network.start_heading[lane])
        stop = scenario.light_stops[light]
        crossed = _line_crossings(
            scenario.positions,
            scenario.headings,
            scenario.sizes,
            scenario.valid & (scenario.agent_types == AgentType.VEHICLE)[:, None],
            is_red[light],
            float(stop[0]),
            float(stop[1]),
            np.cos(heading),
            np.sin(heading),
            float(network.half_width[lane]),
        )
        for agent, step in crossed:
            ways = np.flatnonzero(
                (np.hypot(start_x - start_x[lane], start_y - start_y[lane]) < SAME_START_M)
                & (np.abs(np.angle(np.exp(1j * (network.start_heading - heading)))) < SAME_START_RAD)
            )
            errors = np.array([_way_error(scenario, network, int(agent), int(step), int(way)) for way in ways])
            possible = ways[errors <= errors.min() + SAME_WAY_M]
            red_lanes = scenario.light_lanes[is_red[:, step]]
            if lane in possible and np.isin(possible, red_lanes).all() and agent not in reported:
                reported.add(agent)
                yield Finding("red_light", int(agent), int(step), f"agent {agent} passes the red light of lane {lane}")


@kernel
def _line_crossings(positions, headings, sizes, valid, is_red, stop_x, stop_y, cosine, sine, half_width):
    """Return (n, 2) agents and steps: the light is red and the front before the line; at the next step it is beyond."""
    agents, steps = valid.shape
    found = np.zeros((agents, 2), np.int32)
    n = 0
    for agent in range(agents):
        half_length = 0.5 * sizes[agent, 0]
        before = np.nan
        for k in range(steps):
            dx, dy = positions[agent, k, 0] - stop_x, positions[agent, k, 1] - stop_y
            # Comparisons with NaN are false: a front that is absent or elsewhere crosses no line.
            ahead = np.nan
            if valid[agent, k] and dx * dx + dy * dy < 400.0:
                heading = float(headings[agent, k])
                if np.cos(heading) * cosine + np.sin(heading) * sine > 0.5:
                    dx += half_length * np.cos(heading)
                    dy += half_length * np.sin(heading)
                    if abs(dy * cosine - dx * sine) < half_width:
                        ahead = dx * cosine + dy * sine
            if before <= 0.0 and ahead > 0.0 and is_red[k - 1]:
                found[n, 0], found[n, 1] = agent, k - 1
                n += 1
                break
            before = ahead
    return found[:n]


def _way_error(scenario: Scenario, network: LaneNetwork, agent: int, step: int, lane: int) -> float:
    """Return the mean distance of a vehicle from a lane's center line after it passed the lane's start."""
    steps = np.flatnonzero(scenario.valid[agent, step:]) + step
    places = scenario.positions[agent, steps, :2].astype(np.float64)
    x, y, _ = network.center(lane)
    cosine, sine = np.cos(network.start_heading[lane]), np.sin(network.start_heading[lane])
    traveled = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(places, axis=0).T))])
    behind_start = (places[:, 0] - x[0]) * cosine + (places[:, 1] - y[0]) * sine < 0
    behind_start[np.argmin(behind_start) :] = False
    half_length = 0.5 * float(scenario.sizes[agent, 0])
    places = places[~behind_start & (traveled < FOLLOWED_M + half_length)]
    if not len(places):
        return 0.0
    ax, ay = places[:, :1] - x[:-1], places[:, 1:] - y[:-1]
    dx, dy = np.diff(x), np.diff(y)
    t = np.clip((ax * dx + ay * dy) / np.maximum(dx * dx + dy * dy, 1e-12), 0.0, 1.0)
    return float(np.hypot(ax - t * dx, ay - t * dy).min(axis=1).mean())


def conflicting_green_faults(scenario: Scenario) -> Iterator[Finding]:
    """Yield at most one finding per pair of lights that are green together although their lanes cross or join."""
    green = np.isin(scenario.light_states, GREEN_STATES)
    together = green.astype(np.int32) @ green.T.astype(np.int32)
    pairs = np.argwhere(np.triu(together, 1))
    if not len(pairs):
        return
    network = LaneNetwork.of(scenario.map)
    predecessors = scenario.map.predecessors
    for one, other in pairs:
        a, b = int(scenario.light_lanes[one]), int(scenario.light_lanes[other])
        from_a, from_b = (predecessors[predecessors[:, 0] == lane, 1] for lane in (a, b))
        if a == b or np.isin(from_a, from_b).any() or not _cross_or_join(network.first, network.x, network.y, a, b):
            continue
        step = int(np.argmax(green[one] & green[other]))
        what = f"the lights of lanes {a} and {b}, which cross, are green together"
        yield Finding("conflicting_greens", -1, step, what, int(together[one, other]))


@kernel
def _cross_or_join(first, x, y, a, b):
    a0, a1, b0, b1 = first[a], first[a + 1] - 1, first[b], first[b + 1] - 1
    if np.hypot(x[a1] - x[b1], y[a1] - y[b1]) < SAME_END_M:
        return True
    # Lanes that start at one place, as from a shared approach, fork without crossing.
    if np.hypot(x[a0] - x[b0], y[a0] - y[b0]) < SAME_END_M:
        return False
    for p in range(a0, a1):
        ux, uy = x[p + 1] - x[p], y[p + 1] - y[p]
        for q in range(b0, b1):
            wx, wy = x[q + 1] - x[q], y[q + 1] - y[q]
            determinant = ux * wy - uy * wx
            if determinant == 0.0:
                continue
            dx, dy = x[q] - x[p], y[q] - y[p]
            t, u = (dx * wy - dy * wx) / determinant, (dx * uy - dy * ux) / determinant
            if 0.0 <= t <= 1.0 and 0.0 <= u <= 1.0:
                return True
    return False
