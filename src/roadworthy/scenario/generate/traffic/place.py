"""Where a road user is: on a lane, somewhat beside its middle, heading along its own track.

The offset from the lane's middle depends on the distance travelled alone, never on time: who stands, stands still,
and everybody's heading is the direction in which they move.
"""

from __future__ import annotations

import numpy as np

from roadworthy.compile import kernel
from roadworthy.scenario.generate.traffic.users import WAVES

NUDGE_RAMP_M = 16.0  # to swing out before an obstacle, and back in behind it


@kernel
def point(tables, lane, s):
    """x, y, heading and curvature of a lane at a metre; cubic between samples."""
    spacing = tables.lanes.spacing[lane]
    first, count = tables.lanes.sample[lane], tables.lanes.sample[lane + 1] - tables.lanes.sample[lane]
    i = min(max(int(s / spacing), 0), count - 2)
    t = s / spacing - i
    a, b = first + i, first + i + 1
    ha, hb, ka, kb = (
        tables.samples.heading[a],
        tables.samples.heading[b],
        tables.samples.curvature[a],
        tables.samples.curvature[b],
    )
    t2, t3 = t * t, t * t * t
    m0, m1 = t3 - 2.0 * t2 + t, t3 - t2
    p0, p1 = 2.0 * t3 - 3.0 * t2 + 1.0, -2.0 * t3 + 3.0 * t2
    x = p0 * tables.samples.x[a] + p1 * tables.samples.x[b] + spacing * (m0 * np.cos(ha) + m1 * np.cos(hb))
    y = p0 * tables.samples.y[a] + p1 * tables.samples.y[b] + spacing * (m0 * np.sin(ha) + m1 * np.sin(hb))
    heading = p0 * ha + p1 * hb + spacing * (m0 * ka + m1 * kb)
    return x, y, heading, ka + (kb - ka) * t


@kernel
def smooth(t):
    """A step from 0 to 1 with continuous curvature, and its slope."""
    if t <= 0.0:
        return 0.0, 0.0
    if t >= 1.0:
        return 1.0, 0.0
    return t * t * t * (10.0 + t * (6.0 * t - 15.0)), 30.0 * t * t * (1.0 - t) * (1.0 - t)


@kernel
def offset(tables, users, state, i):
    """Metres left of the lane's middle, and the slope of that along the lane."""
    far = state.travelled[i]
    d = slope = 0.0
    for w in range(WAVES):
        rate = 2.0 * np.pi / users.wander_length[i, w]
        angle = rate * far + users.wander_phase[i, w]
        d += users.wander[i, w] * np.sin(angle)
        slope += users.wander[i, w] * rate * np.cos(angle)
    if state.blend_from[i] != 0.0:
        part, rise = smooth((far - state.blend_start[i]) / state.blend_length[i])
        d += state.blend_from[i] * (1.0 - part)
        slope -= state.blend_from[i] * rise / state.blend_length[i]
    lane, s = state.lane[i], state.s[i]
    for n in range(tables.lanes.nudge[lane], tables.lanes.nudge[lane + 1]):
        out, out_rise = smooth((s - tables.nudges.span[n, 0]) / NUDGE_RAMP_M + 1.0)
        back, back_rise = smooth((s - tables.nudges.span[n, 1]) / NUDGE_RAMP_M)
        d += tables.nudges.shift[n] * (out - back)
        slope += tables.nudges.shift[n] * (out_rise - back_rise) / NUDGE_RAMP_M
    return d, slope


@kernel
def beside(tables, lane, s, other):
    """The metre on a neighbour lane that lies beside a metre on this one."""
    spacing, first = tables.lanes.spacing[lane], tables.lanes.sample[lane]
    count = tables.lanes.sample[lane + 1] - first
    i = min(max(int(s / spacing), 0), count - 2)
    t = s / spacing - i
    station = tables.samples.station[first + i] * (1.0 - t) + tables.samples.station[first + i + 1] * t
    low, high = tables.lanes.sample[other], tables.lanes.sample[other + 1] - 1
    begin, end = tables.samples.station[low], tables.samples.station[high]
    guess = (station - begin) / (end - begin) * tables.lanes.length[other]
    for _ in range(3):
        k = min(max(int(guess / tables.lanes.spacing[other]), 0), high - low - 1)
        t = guess / tables.lanes.spacing[other] - k
        here = tables.samples.station[low + k] * (1.0 - t) + tables.samples.station[low + k + 1] * t
        rate = (tables.samples.station[low + k + 1] - tables.samples.station[low + k]) / tables.lanes.spacing[other]
        guess += (station - here) / rate
    return guess
