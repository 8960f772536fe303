"""Speed: the improved intelligent driver model with coolness (Treiber and Kesting, 2013), stops and bends ahead."""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel

FAR_M = 1.0e6
REACTION_S = 0.4  # from the decision to brake to the full effect of the brakes
COOLNESS = 0.95  # coolness: how much a driver relies on others to continue as they do


@kernel
def free_acceleration(v, wanted, acceleration, braking):
    """Return the acceleration on an empty road."""
    if wanted < 0.05:
        return -braking
    if v <= wanted:
        ratio = v / wanted
        return acceleration * (1.0 - ratio**4)
    return -braking * (1.0 - (wanted / v) ** (4.0 * acceleration / braking))


@kernel
def following_acceleration(users, state, i, wanted, gap, leader, share):
    """Return the acceleration behind a leader (-1 for none) `gap` ahead, keeping a `share` of the usual headway."""
    if leader < 0:
        return free_acceleration(state[i].v, wanted, users[i].acceleration, users[i].braking)
    return following(
        state[i].v,
        wanted,
        gap,
        state[leader].v,
        state[leader].a,
        share * users[i].headway,
        users[i].standing_gap,
        users[i].acceleration,
        users[i].braking,
    )


@kernel
def following(v, wanted, gap, leader_v, leader_a, headway, standing_gap, acceleration, braking):
    """Return the model's acceleration, with less braking where the leader's motion allows it."""
    free = free_acceleration(v, wanted, acceleration, braking)
    gap = max(gap, 0.1)
    needed = standing_gap + max(0.0, v * headway + v * (v - leader_v) / (2.0 * np.sqrt(acceleration * braking)))
    z = needed / gap
    if z >= 1.0:
        strict = acceleration * (1.0 - z * z) + min(free, 0.0)
    elif free > 1e-6:
        strict = free * (1.0 - z ** (2.0 * acceleration / free))
    else:
        strict = free
    strict = max(strict, -9.0)
    # Constant-acceleration heuristic: enough if the leader continues as it does (Kesting et al., 2010).
    theirs = min(leader_a, acceleration)
    if leader_v * (v - leader_v) <= -2.0 * gap * theirs:
        calm = v * v * theirs / max(leader_v * leader_v - 2.0 * gap * theirs, 0.1)
    else:
        closing = max(v - leader_v, 0.0)
        calm = theirs - closing * closing / (2.0 * gap)
    if strict >= calm or gap < standing_gap:
        return strict
    return (1.0 - COOLNESS) * strict + COOLNESS * (calm + braking * np.tanh((strict - calm) / braking))


@kernel
def stopping_acceleration(v, gap, braking):
    """Return the acceleration to stop within a gap: constant braking once that needs about the comfortable rate."""
    gap -= REACTION_S * v
    if gap <= 0.05:
        return -max(braking, min(4.0 * v, 6.0))
    needed = v * v / (2.0 * gap)
    if needed < 0.6 * braking:
        return FAR_M
    return -needed


@kernel
def bend_acceleration(tables, users, state, i):
    """Return the acceleration that slows down comfortably for all bends and lower speed limits ahead."""
    v = state[i].v
    braking, cornering = 0.7 * users[i].braking, users[i].cornering
    reach = v * v / (2.0 * braking) + 8.0
    allowed, slowing = FAR_M, 0.0
    start = -state[i].s
    for k in range(state[i].route_length):
        if start > reach:
            break
        lane = state[i].route[k]
        length, spacing, first = tables.lanes[lane].length, tables.lanes[lane].spacing, tables.lanes[lane].sample
        top = min(users[i].speed_factor * tables.lanes[lane].limit, users[i].top_speed)
        ahead = max(start, 0.0)
        if tables.lanes[lane].sharpest * top * top < cornering:  # no bend of this lane matters
            entry = np.sqrt(top * top + 2.0 * braking * ahead)
            if entry < allowed:
                allowed, slowing = entry, braking if ahead > 0.0 else 0.0
        else:
            while ahead - start <= length and ahead <= reach:
                curvature = abs(tables.samples[first + int((ahead - start) / spacing)].curvature)
                here = min(top, np.sqrt(cornering / max(curvature, 1e-4)))
                entry = np.sqrt(here * here + 2.0 * braking * ahead)
                if entry < allowed:
                    allowed, slowing = entry, braking if ahead > 0.0 else 0.0
                ahead += 2.0
        start += length
    return (allowed - v) / 0.8 - slowing


@kernel
def travel_time(distance, v, acceleration, top):
    """Return seconds to cover a distance while accelerating to a top speed."""
    if distance <= 0.0:
        return 0.0
    top = max(top, v)
    ramp = (top * top - v * v) / (2.0 * acceleration)
    if distance <= ramp:
        return (np.sqrt(v * v + 2.0 * acceleration * distance) - v) / acceleration
    return (top - v) / acceleration + (distance - ramp) / max(top, 0.1)
