"""The motion of an ego and of all others in one trial, as plain arrays in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from roadworthy.at_fault import REAR_AXLE_SHARE
from roadworthy.boxes import Boxes
from roadworthy.record.traces import ROLES, Trace
from roadworthy.scenario.schema import AgentType, Scenario

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

_STATIC = ROLES.index("static")
_MOTION = ("x", "y", "heading", "speed")
CORNERS = ("front left", "rear left", "rear right", "front right")


@dataclass(frozen=True, eq=False)
class Body:
    """One agent over F frames: the middle of its box, its heading, its speed, and the size of the box."""

    x: Array  # (F,) m
    y: Array  # (F,) m
    heading: Array  # (F,) rad
    speed: Array  # (F,) m/s
    length: float  # m
    width: float  # m

    @cached_property
    def cos(self) -> Array:
        """Return the cosine of the heading, (F,)."""
        return np.cos(self.heading)

    @cached_property
    def sin(self) -> Array:
        """Return the sine of the heading, (F,)."""
        return np.sin(self.heading)

    @cached_property
    def boxes(self) -> Boxes:
        """Return the boxes, (F,); their sizes are scalars."""
        sizes = np.asarray(self.length), np.asarray(self.width)
        return Boxes(self.x, self.y, self.cos, self.sin, *sizes, self.speed)

    @cached_property
    def center(self) -> Array:
        """Return the middle of the box, (F, 2) in m."""
        return np.column_stack([self.x, self.y])

    @cached_property
    def rear_axle(self) -> Array:
        """Return the middle of the rear axle, (F, 2) in m."""
        back = float(REAR_AXLE_SHARE) * self.length
        return np.column_stack([self.x - back * self.cos, self.y - back * self.sin])

    @cached_property
    def corners(self) -> Array:
        """Return the corners of the box in the order of CORNERS, (F, 4, 2) in m."""
        along = 0.5 * self.length * np.array([1.0, -1.0, -1.0, 1.0])
        across = 0.5 * self.width * np.array([1.0, 1.0, -1.0, -1.0])
        cos, sin = self.cos[:, None], self.sin[:, None]
        return np.stack(
            [self.x[:, None] + along * cos - across * sin, self.y[:, None] + along * sin + across * cos], axis=-1
        )


@dataclass(frozen=True, eq=False)
class Others:
    """The A tracks around the ego over F frames. The values of absent tracks are meaningless."""

    x: Array  # (F, A) m
    y: Array
    heading: Array  # rad
    speed: Array  # m/s
    present: Flags  # (F, A)
    length: Array  # (A,) m
    width: Array  # (A,) m
    types: NDArray[np.int8]  # (A,) AgentType
    is_static: Flags  # (A,) role static

    @cached_property
    def cos(self) -> Array:
        """Return the cosine of the headings, (F, A)."""
        return np.cos(self.heading)

    @cached_property
    def sin(self) -> Array:
        """Return the sine of the headings, (F, A)."""
        return np.sin(self.heading)

    @cached_property
    def boxes(self) -> Boxes:
        """Return the boxes, (F, A); their sizes are (A,)."""
        return Boxes(self.x, self.y, self.cos, self.sin, self.length, self.width, self.speed)


@dataclass(frozen=True, eq=False)
class EgoTrial:
    """One ego in one trial of a recorded scenario: the F frames in which it is in the world, from the trial's start."""

    dt: float  # s
    ego: Body
    others: Others
    expert: Body  # the recorded car over the trial's frames in which its recording is valid; at least one

    @property
    def frames(self) -> int:
        """Return the number of frames."""
        return len(self.ego.x)


def ego_trial(trace: Trace, scenario: Scenario, agent: int, trial: int) -> EgoTrial | None:
    """Return what the score is computed from; None where it does not apply.

    It applies to vehicles that started from a recording and are present for two frames or more. A trial that is longer
    than its recording is judged up to the end of the recording.
    """
    source = int(trace.sources[agent])
    if source < 0 or trace.kinds[agent] != AgentType.VEHICLE or source >= scenario.agent_count:
        return None
    frames = trace.trial(trial)
    here = trace.present[frames, agent]
    stop = frames.start + (len(here) if here.all() else int(np.argmin(here)))
    first = start_step(trace, scenario, frames.start)
    stop = min(stop, frames.start + scenario.steps - first)
    if stop - frames.start < 2:
        return None
    steps = np.arange(first, min(first + frames.stop - frames.start, scenario.steps))
    steps = steps[scenario.valid[source, steps]]
    if not len(steps):
        return None
    span = slice(frames.start, stop)
    return EgoTrial(trace.dt, _body(trace, agent, span), _others(trace, agent, span), _expert(scenario, source, steps))


def start_step(trace: Trace, scenario: Scenario, frame: int) -> int:
    """Return the step of the recording that a trial starts from, given the trial's first frame.

    Agents with a recording start exactly at its positions. If several steps fit, because nothing moves, the last step
    of history counts if it is one of them, else the first that fits.
    """
    known = np.flatnonzero((trace.sources >= 0) & (trace.sources < scenario.agent_count) & trace.present[frame])
    sources = trace.sources[known]
    fits = scenario.valid[sources]
    fits &= scenario.positions[sources, :, 0] == trace.x[frame, known, None]
    fits &= scenario.positions[sources, :, 1] == trace.y[frame, known, None]
    count = fits.sum(axis=0)
    best = np.flatnonzero(count == count.max(initial=0))
    return scenario.current_step if scenario.current_step in best else int(best[0])


def _body(trace: Trace, agent: int, span: slice) -> Body:
    x, y, heading, speed = (getattr(trace, name)[span, agent].astype(np.float64) for name in _MOTION)
    return Body(x, y, heading, speed, float(trace.length[agent]), float(trace.width[agent]))


def _others(trace: Trace, agent: int, span: slice) -> Others:
    seen = np.flatnonzero(trace.present[span].any(axis=0))
    tracks = seen[seen != agent]
    x, y, heading, speed = (getattr(trace, name)[span][:, tracks].astype(np.float64) for name in _MOTION)
    return Others(
        x,
        y,
        heading,
        speed,
        present=trace.present[span][:, tracks],
        length=trace.length[tracks].astype(np.float64),
        width=trace.width[tracks].astype(np.float64),
        types=trace.kinds[tracks],
        is_static=trace.roles[tracks] == _STATIC,
    )


def _expert(scenario: Scenario, source: int, steps: NDArray[np.int64]) -> Body:
    x, y = (scenario.positions[source, steps, k].astype(np.float64) for k in (0, 1))
    velocity = scenario.velocities[source, steps].astype(np.float64)
    heading = scenario.headings[source, steps].astype(np.float64)
    length, width = float(scenario.sizes[source, 0]), float(scenario.sizes[source, 1])
    return Body(x, y, heading, np.hypot(velocity[:, 0], velocity[:, 1]), length, width)
