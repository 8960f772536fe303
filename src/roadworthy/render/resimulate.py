"""Simulate episodes again from their traces, for data that traces lack: observations and states of lights.

The simulator applies the recorded actions. Where its motion differs from the trace in the last bits, as on another
processor, the trace's motion replaces it before events and observations are computed.
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
from roadworthy.sim import state
from roadworthy.sim.config import Mode, SimConfig
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.layout import ObservationLayout

APART_M = 0.5  # a larger distance from the trace after one step is not rounding: the world differs from the trace's
_EXTRA = {"acceleration": state.ACCELERATION, "lateral": state.LATERAL, "jerk": state.JERK, "steering": state.STEERING}


@dataclass(frozen=True, eq=False)
class ObservedFrame:
    """The observations of the driven agents of a world in a frame of its trace."""

    observations: NDArray[np.float32]  # (rows, size)
    has_seen: NDArray[np.bool_]  # (rows,) whether there is an observation; the final one of a trial counts


class Resimulation:
    """One world with a run's pack and config, in which any of the run's episodes can be simulated again."""

    def __init__(self, pack: Pack, config: SimConfig) -> None:
        config = replace(config, observe=replace(config.observe, final=True))
        self._env = DriveEnv(pack, 1, config, sampling=False, threads=1)
        self._env.reset()

    @property
    def layout(self) -> ObservationLayout:
        """The meaning of each number of an observation."""
        return self._env.observation_layout

    def light_states(self, scenario: int, seed: int, frames: int) -> NDArray[np.uint8]:
        """Return the states of lights in a trial of an open world, (lights, frames); see `DriveEnv.light_states`."""
        self._env.assign(0, scenario, seed, now=True)
        return self._env.light_states(0, frames)

    def observations(self, trace: Trace, scenario: int, seed: int) -> Iterator[ObservedFrame]:
        """Yield the observations in each frame of the trace, in order."""
        env = self._env
        env.assign(0, scenario, seed, now=True)
        agents = int(env.clocks[0, state.AGENT_COUNT])
        if agents != trace.agent_count:
            raise RoadworthyError(
                f"episode {trace.episode_id!r} can't be simulated again: its trace has {trace.agent_count} agents, its "
                f"scenario has {agents} under the run's config; was the pack or the config replaced?"
            )
        rows = min(env.rows_per_world, agents)
        starts = set(trace.trial_starts[:-1].tolist())
        for frame in range(trace.frame_count):
            if frame in starts:
                yield ObservedFrame(env.observations[:rows].copy(), env.signals.active[:rows].copy())
            else:
                yield self._step(trace, frame, rows)

    def _step(self, trace: Trace, frame: int, rows: int) -> ObservedFrame:
        env = self._env
        actions = np.zeros((env.row_count, 2), np.float32)
        actions[:rows] = trace.actions[frame, :rows]
        env.step_with_motion(actions, lambda: self._hold_to(trace, frame))
        has_ended = env.signals.trial_ended[:rows]
        seen = np.where(has_ended[:, None], env.final_observation[:rows], env.observations[:rows])
        return ObservedFrame(seen, np.where(has_ended, trace.active[frame, :rows], env.signals.active[:rows]))

    def _hold_to(self, trace: Trace, frame: int) -> None:
        """Replace the simulator's motion by the trace's where they differ."""
        world = self._env.agents[0][:, : trace.agent_count]
        there, driven = trace.present[frame], trace.active[frame]
        apart = np.hypot(world[state.X] - trace.x[frame], world[state.Y] - trace.y[frame])
        lost = np.flatnonzero(driven & ~(apart < APART_M))
        if len(lost):
            raise RoadworthyError(
                f"episode {trace.episode_id!r} can't be simulated again: in frame {frame}, agent {lost[0]} is "
                f"{apart[lost[0]]:.2f} m from its trace; were the pack, the config or the simulator changed?"
            )
        turned = there & (world[state.HEADING] != trace.heading[frame])
        for line, values in (
            (state.X, trace.x),
            (state.Y, trace.y),
            (state.HEADING, trace.heading),
            (state.SPEED, trace.speed),
        ):
            world[line] = np.where(there, values[frame], world[line])
        world[state.COS] = np.where(turned, np.cos(world[state.HEADING]), world[state.COS])
        world[state.SIN] = np.where(turned, np.sin(world[state.HEADING]), world[state.SIN])
        for name, line in _EXTRA.items():
            if name in trace.extra:
                world[line] = np.where(driven, trace.extra[name][frame], world[line])


def light_states(
    scenario: Scenario, number: int, seed: int, trace: Trace, config: SimConfig, resimulation: Resimulation | None
) -> NDArray[np.uint8]:
    """Return the states of lights in a trial of an episode, (lights, frames); they are the same in all trials."""
    frames = int(np.diff(trace.trial_starts).max())
    if config.mode is Mode.OPEN:
        assert resimulation is not None
        return resimulation.light_states(number, seed, frames)
    states = np.full((len(scenario.light_lanes), frames), LightState.UNKNOWN, np.uint8)
    recorded = scenario.light_states[:, config.init_steps : config.init_steps + frames]
    states[:, : recorded.shape[1]] = recorded
    return states
