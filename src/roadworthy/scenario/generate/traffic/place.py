"""The position of a road user: on a lane, with a lateral offset, heading along its own track.

The offset from the lane's center depends only on the distance traveled, never on time. So standing road users do not
move sideways, and headings are the directions of motion.
"""

from __future__ import annotations

import numpy as np

from roadworthy.kernels import kernel
from roadworthy.scenario.generate.traffic.users import WAVES

NUDGE_RAMP_M = 16.0  # to swing out before an obstacle, and back beyond it


@kernel
def point(tables, lane, s):
    """Return x, y, heading and curvature of a lane at a distance; cubic between samples."""
    spacing = tables.lanes[lane].spacing
    first, count = tables.lanes[lane].sample, tables.lanes[lane + 1].sample - tables.lanes[lane].sample
    i = min(max(int(s / spacing), 0), count - 2)
    t = s / spacing - i
    a, b = first + i, first + i + 1
    ha, hb = tables.samples[a].heading, tables.samples[b].heading
    ka, kb = tables.samples[a].curvature, tables.samples[b].curvature
    t2, t3 = t * t, t * t * t
    m0, m1 = t3 - 2.0 * t2 + t, t3 - t2
    p0, p1 = 2.0 * t3 - 3.0 * t2 + 1.0, -2.0 * t3 + 3.0 * t2
    x = p0 * tables.samples[a].x + p1 * tables.samples[b].x + spacing * (m0 * np.cos(ha) + m1 * np.cos(hb))
    y = p0 * tables.samples[a].y + p1 * tables.samples[b].y + spacing * (m0 * np.sin(ha) + m1 * np.sin(hb))
    heading = p0 * ha + p1 * hb + spacing * (m0 * ka + m1 * kb)
    return x, y, heading, ka + (kb - ka) * t


@kernel
def smooth(t):
    """Return a step from 0 to 1 with continuous curvature, and its slope."""
    if t <= 0.0:
        return 0.0, 0.0
    if t >= 1.0:
        return 1.0, 0.0
    return t * t * t * (10.0 + t * (6.0 * t - 15.0)), 30.0 * t * t * (1.0 - t) * (1.0 - t)


@kernel
def offset(tables, users, state, i):
    """Return m left of the lane's center, and the slope of that along the lane."""
    far = state[i].traveled
    d = slope = 0.0
    for w in range(WAVES):
        rate = 2.0 * np.pi / users[i].wander_length[w]
        angle = rate * far + users[i].wander_phase[w]
        d += users[i].wander[w] * np.sin(angle)
        slope += users[i].wander[w] * rate * np.cos(angle)
    if state[i].blend_from != 0.0:
        part, rise = smooth((far - state[i].blend_start) / state[i].blend_length)
        d += state[i].blend_from * (1.0 - part)
        slope -= state[i].blend_from * rise / state[i].blend_length
    lane, s = state[i].lane, state[i].s
    for n in range(tables.lanes[lane].nudge, tables.lanes[lane + 1].nudge):
        out, out_rise = smooth((s - tables.nudges[n].span[0]) / NUDGE_RAMP_M + 1.0)
        back, back_rise = smooth((s - tables.nudges[n].span[1]) / NUDGE_RAMP_M)
        d += tables.nudges[n].shift * (out - back)
        slope += tables.nudges[n].shift * (out_rise - back_rise) / NUDGE_RAMP_M
    return d, slope


@kernel
def beside(tables, lane, s, other):
    """Return the distance along a neighbor lane that is beside a distance on this one."""
    spacing, first = tables.lanes[lane].spacing, tables.lanes[lane].sample
    count = tables.lanes[lane + 1].sample - first
    i = min(max(int(s / spacing), 0), count - 2)
    t = s / spacing - i
    station = tables.samples[first + i].station * (1.0 - t) + tables.samples[first + i + 1].station * t
    low, high = tables.lanes[other].sample, tables.lanes[other + 1].sample - 1
    begin, end = tables.samples[low].station, tables.samples[high].station
    guess = (station - begin) / (end - begin) * tables.lanes[other].length
    for _ in range(3):
        k = min(max(int(guess / tables.lanes[other].spacing), 0), high - low - 1)
        t = guess / tables.lanes[other].spacing - k
        here = tables.samples[low + k].station * (1.0 - t) + tables.samples[low + k + 1].station * t
        rate = (tables.samples[low + k + 1].station - tables.samples[low + k].station) / tables.lanes[other].spacing
        guess += (station - here) / rate
    return guess
