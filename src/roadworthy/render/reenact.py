"""Episodes run once more from their traces, for what traces don't hold: what the policies saw, and what lights showed.

The simulator takes the recorded actions and makes its own steps. Where its motion differs from the trace in the last
bits, as on another processor, the trace's is put in its place before anything is judged or seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import RoadworthyError
from roadworthy.record.traces import Trace
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import LightState, Scenario
from roadworthy.sim.config import Mode, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.layout import ObservationLayout
from roadworthy.sim.state import (
    ACCELERATION,
    AGENT_COUNT,
    COS,
    HEADING,
    JERK,
    LATERAL,
    SIN,
    SPEED,
    STEERING,
    X,
    Y,
)

APART_M = 0.5  # further from the trace after one step than rounding explains: this is not the world of the trace
_EXTRA = {"acceleration": ACCELERATION, "lateral": LATERAL, "jerk": JERK, "steering": STEERING}


@dataclass(frozen=True, eq=False)
class Seen:
    """What the driven agents of a world saw in a frame of its trace."""

    observations: NDArray[np.float32]  # (rows, size)
    has_seen: NDArray[np.bool_]  # (rows,) whether it saw anything; where its trial ends, what nobody acted on counts


class Reenactment:
    """One world of a run's pack and config, in which any of the run's episodes can be run again."""

    def __init__(self, pack: Pack, config: SimConfig) -> None:
        config = replace(config, observe=replace(config.observe, final=True))
        self._env = DriveEnv(pack, 1, config, sampling=False, threads=1)
        self._env.reset()

    @property
    def layout(self) -> ObservationLayout:
        """What each number of an observation means."""
        return self._env.observation_layout

    def light_states(self, scenario: int, seed: int, frames: int) -> NDArray[np.uint8]:
        """(lights, frames) what the lights of an open world show in a trial: see `DriveEnv.light_states`."""
        self._env.assign(0, scenario, seed, now=True)
        return self._env.light_states(0, frames)

    def observations(self, trace: Trace, scenario: int, seed: int) -> Iterator[Seen]:
        """What was seen in each frame of the trace, in order."""
        env = self._env
        env.assign(0, scenario, seed, now=True)
        agents = int(env.clocks[0, AGENT_COUNT])
        if agents != trace.agent_count:
            raise RoadworthyError(
                f"episode {trace.episode_id!r} can't be run again: its trace has {trace.agent_count} agents, its "
                f"scenario has {agents} under the run's config; was the pack or the config replaced?"
            )
        rows = min(env.rows_per_world, agents)
        starts = set(trace.trial_starts[:-1].tolist())
        for frame in range(trace.frame_count):
            if frame in starts:
                yield Seen(env.observations[:rows].copy(), env.signals.active[:rows].copy())
            else:
                yield self._step(trace, frame, rows)

    def _step(self, trace: Trace, frame: int, rows: int) -> Seen:
        env = self._env
        actions = np.zeros((env.row_count, 2), np.float32)
        actions[:rows] = trace.actions[frame, :rows]
        env.step_with_motion(actions, lambda: self._hold_to(trace, frame))
        has_ended = env.signals.trial_ended[:rows]
        seen = np.where(has_ended[:, None], env.final_observation[:rows], env.observations[:rows])
        return Seen(seen, np.where(has_ended, trace.active[frame, :rows], env.signals.active[:rows]))

    def _hold_to(self, trace: Trace, frame: int) -> None:
        """Put the trace's motion in place of the simulator's own, where they differ."""
        world = self._env.agents[0][:, : trace.agent_count]
        there, driven = trace.present[frame], trace.active[frame]
        apart = np.hypot(world[X] - trace.x[frame], world[Y] - trace.y[frame])
        lost = np.flatnonzero(driven & ~(apart < APART_M))
        if len(lost):
            raise RoadworthyError(
                f"episode {trace.episode_id!r} can't be run again: in frame {frame} agent {lost[0]} comes out "
                f"{apart[lost[0]]:.2f} m from its trace; were the pack, the config or the simulator changed?"
            )
        turned = there & (world[HEADING] != trace.heading[frame])
        for line, values in ((X, trace.x), (Y, trace.y), (HEADING, trace.heading), (SPEED, trace.speed)):
            world[line] = np.where(there, values[frame], world[line])
        world[COS] = np.where(turned, np.cos(world[HEADING]), world[COS])
        world[SIN] = np.where(turned, np.sin(world[HEADING]), world[SIN])
        for name, line in _EXTRA.items():
            if name in trace.extra:
                world[line] = np.where(driven, trace.extra[name][frame], world[line])


def light_states(
    scenario: Scenario, number: int, seed: int, trace: Trace, config: SimConfig, reenactment: Reenactment | None
) -> NDArray[np.uint8]:
    """(lights, frames) what the lights showed in a trial of an episode, which is the same in all of them."""
    frames = int(np.diff(trace.trial_starts).max())
    if config.mode is Mode.OPEN:
        assert reenactment is not None
        return reenactment.light_states(number, seed, frames)
    states = np.full((len(scenario.light_lanes), frames), LightState.UNKNOWN, np.uint8)
    recorded = scenario.light_states[:, config.init_steps : config.init_steps + frames]
    states[:, : recorded.shape[1]] = recorded
    return states
