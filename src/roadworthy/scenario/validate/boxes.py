"""The rule that no two agents overlap: exact boxes, with the separating axis test."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.schema import Scenario
from roadworthy.scenario.validate.finding import Finding
from roadworthy.scenario.validate.limits import Limits


def overlap_faults(scenario: Scenario, limits: Limits) -> Iterator[Finding]:
    """Yield at most one finding per pair of agents."""
    first, second, count, depth, step = _overlaps(
        scenario.positions, scenario.headings, scenario.sizes, scenario.valid, limits.overlap_m
    )
    for i in range(len(first)):
        what = f"agents {first[i]} and {second[i]} overlap by {depth[i]:.2f} m"
        yield Finding("overlap", int(first[i]), int(step[i]), what, int(count[i]), int(second[i]))


@kernel
def _overlaps(positions, headings, sizes, valid, allowed):
    """Return pairs of agents that overlap: both numbers, the number of steps, the greatest depth and its step."""
    agents, steps = valid.shape
    count = np.zeros((agents, agents), np.int32)
    deepest, step_of_deepest = np.zeros((agents, agents)), np.zeros((agents, agents), np.int32)
    radius = 0.5 * np.sqrt(sizes[:, 0] ** 2 + sizes[:, 1] ** 2)
    present, cosine, sine = np.zeros(agents, np.int32), np.zeros(agents), np.zeros(agents)
    for k in range(steps):
        n = 0
        for agent in range(agents):
            if valid[agent, k]:
                present[n] = agent
                n += 1
                cosine[agent], sine[agent] = np.cos(float(headings[agent, k])), np.sin(float(headings[agent, k]))
        for i in range(n):
            a = present[i]
            for j in range(i + 1, n):
                b = present[j]
                dx = positions[b, k, 0] - positions[a, k, 0]
                reach = radius[a] + radius[b]
                if abs(dx) > reach:
                    continue
                dy = positions[b, k, 1] - positions[a, k, 1]
                if dx * dx + dy * dy > reach * reach:
                    continue
                depth = overlap_depth(
                    dx, dy, cosine[a], sine[a], sizes[a, 0], sizes[a, 1], cosine[b], sine[b], sizes[b, 0], sizes[b, 1]
                )
                if depth > allowed:
                    count[a, b] += 1
                    if depth > deepest[a, b]:
                        deepest[a, b], step_of_deepest[a, b] = depth, k
    total = np.count_nonzero(count)
    first, second, counts = np.zeros(total, np.int32), np.zeros(total, np.int32), np.zeros(total, np.int32)
    depths, at = np.zeros(total), np.zeros(total, np.int32)
    n = 0
    for a in range(agents):
        for b in range(a + 1, agents):
            if count[a, b]:
                first[n], second[n], counts[n] = a, b, count[a, b]
                depths[n], at[n] = deepest[a, b], step_of_deepest[a, b]
                n += 1
    return first, second, counts, depths, at


@kernel
def overlap_depth(dx, dy, cosine_a, sine_a, length_a, width_a, cosine_b, sine_b, length_b, width_b):
    """Return how deep two boxes overlap, along the axis where that is least; negative if they are apart."""
    along, across = abs(cosine_a * cosine_b + sine_a * sine_b), abs(cosine_a * sine_b - sine_a * cosine_b)
    half_length_a, half_width_a = 0.5 * length_a, 0.5 * width_a
    half_length_b, half_width_b = 0.5 * length_b, 0.5 * width_b
    depth = half_length_a + half_length_b * along + half_width_b * across - abs(dx * cosine_a + dy * sine_a)
    depth = min(depth, half_width_a + half_length_b * across + half_width_b * along - abs(dy * cosine_a - dx * sine_a))
    depth = min(depth, half_length_b + half_length_a * along + half_width_a * across - abs(dx * cosine_b + dy * sine_b))
    return min(depth, half_width_b + half_length_a * across + half_width_a * along - abs(dy * cosine_b - dx * sine_b))
