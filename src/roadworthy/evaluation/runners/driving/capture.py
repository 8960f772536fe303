"""Record the motion of every agent of an env, world by world, until an episode ends.

A step is copied as one block for all worlds, which costs microseconds; a world's own part is cut out of the blocks when
its episode ends, or when a buffer of some steps is full.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.record.traces import Trace
from roadworthy.sim import state
from roadworthy.sim.config import Actions
from roadworthy.sim.env import DriveEnv, on_host

# Lines of `agents` in a trace by name, and the additional lines of agents that policies control.
MOTION = {"x": state.X, "y": state.Y, "heading": state.HEADING, "speed": state.SPEED}
EXTRA = {"acceleration": state.ACCELERATION, "lateral": state.LATERAL, "jerk": state.JERK, "steering": state.STEERING}
_LINES = np.array([*MOTION.values(), *EXTRA.values()])
_FLAGS = np.array([state.IS_PRESENT, state.IS_DRIVING, state.EVENTS])
_BUFFER_STEPS = 64

Frames = tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32]]  # lines, flags, actions of each frame


class Capture:
    """The motion of all episodes that run in an env."""

    def __init__(self, env: DriveEnv) -> None:
        self._env = env
        self._is_discrete = env.config.actions is Actions.DISCRETE
        self._pieces: list[list[Frames]] = [[] for _ in range(env.world_count)]
        self._trial_frames: list[list[int]] = [[] for _ in range(env.world_count)]
        self._first = np.zeros(env.world_count, np.int64)  # the buffer's step from which on a world's motion is kept
        self._bodies: list[dict[str, Any]] = [{} for _ in range(env.world_count)]
        self._filled = 0
        self._make_buffers()

    def begin(self, world: int) -> None:
        """Start to record a world in which an episode has just started."""
        env = self._env
        count = int(env.clocks[world, state.AGENT_COUNT])
        agents, flags = on_host(env.agents[world])[:, :count], on_host(env.agent_flags[world])[:, :count]
        goals = agents[state.GOALS :].reshape(-1, 2, count).transpose(2, 0, 1)
        self._bodies[world] = {
            "length": agents[state.LENGTH].copy(),
            "width": agents[state.WIDTH].copy(),
            "kinds": flags[state.TYPE].astype(np.int8),
            "roles": flags[state.ROLE].astype(np.int8),
            "sources": flags[state.SOURCE].copy(),
            "goals": goals.copy(),
            "goal_counts": flags[state.GOAL_COUNT].copy(),
        }
        self._pieces[world], self._trial_frames[world] = [], []
        self._start_trial(world)

    def watch(self) -> None:
        """Record the step that all worlds have just made; for `DriveEnv.set_pre_reset_callback`."""
        env = self._env
        if env.agents.shape[-1] > self._lines.shape[-1]:  # a scenario with more agents has started
            self._empty()
            self._make_buffers()
        k = self._filled
        _copy_lines(env.agents, _LINES, self._lines[k])
        _copy_lines(env.agent_flags, _FLAGS, self._flags[k])
        self._actions[k] = on_host(env.actions).reshape(self._actions.shape[1:])
        self._filled += 1
        self._over = on_host(env.clocks[:, state.TRIAL_ENDED]) != 0
        if self._filled == _BUFFER_STEPS:
            self._empty()

    def after_step(self, running: list[int]) -> None:
        """Record the first frame of trials that started in this step, in worlds whose episode continues."""
        for world in running:
            self._trial_frames[world][-1] += 1
            if self._over[world]:
                self._start_trial(world)

    def end(self, world: int, spec: EpisodeSpec) -> Trace:
        """Return the motion of the episode that has just ended in a world."""
        self._trial_frames[world][-1] += 1
        self._cut_out(world)
        lines, flags, choices = (np.concatenate(parts) for parts in zip(*self._pieces[world], strict=True))
        frames, _, agents = lines.shape
        active = flags[:, 1] != 0
        # The simulator leaves an agent that stopped driving with its last events and forces: they happened once.
        np.copyto(lines[:, len(MOTION) :], np.float32(0), where=~active[:, None])
        np.copyto(flags[:, 2], 0, where=~active)
        actions = np.zeros((frames, agents, 2), np.int8 if self._is_discrete else np.float32)
        driven = min(choices.shape[1], agents)
        np.copyto(actions[:, :driven], choices[:, :driven], casting="unsafe", where=active[:, :driven, None])
        columns: dict[str, Any] = dict(zip((*MOTION, *EXTRA), lines.transpose(1, 0, 2), strict=True))
        self._pieces[world] = []
        return Trace(
            dt=float(self._env.pack.packed_scenario(spec.scenario).dt),
            trial_starts=np.cumsum([0, *self._trial_frames[world]]).astype(np.int32),
            **{name: columns[name] for name in MOTION},
            present=flags[:, 0] != 0,
            active=active,
            events=flags[:, 2].astype(np.uint16),
            actions=actions,
            extra={name: columns[name] for name in EXTRA},
            **self._bodies[world],
            scenario_id=spec.scenario_id,
            episode_id=spec.episode_id,
        )

    def _make_buffers(self) -> None:
        worlds, room = self._env.world_count, self._env.agents.shape[-1]
        self._lines = np.zeros((_BUFFER_STEPS, worlds, len(_LINES), room), np.float32)
        self._flags = np.zeros((_BUFFER_STEPS, worlds, len(_FLAGS), room), np.int32)
        self._actions = np.zeros((_BUFFER_STEPS, worlds, self._env.rows_per_world, 2), np.float32)
        self._over = np.zeros(worlds, np.bool_)

    def _start_trial(self, world: int) -> None:
        """Record the state in which a trial starts."""
        self._cut_out(world)
        count = len(self._bodies[world]["length"])
        lines = on_host(self._env.agents[world])[_LINES, :count]
        flags = on_host(self._env.agent_flags[world])[_FLAGS, :count]
        flags[2] = 0  # nothing has happened yet
        choices = np.zeros((1, self._env.rows_per_world, 2), np.float32)
        self._pieces[world].append((lines[None], flags[None], choices))
        self._trial_frames[world].append(1)

    def _cut_out(self, world: int) -> None:
        """Move the frames of a world from the buffer to its own pieces."""
        first, count = int(self._first[world]), len(self._bodies[world]["length"])
        if first < self._filled and self._pieces[world]:
            steps = slice(first, self._filled)
            lines, flags = self._lines[steps, world, :, :count], self._flags[steps, world, :, :count]
            self._pieces[world].append((lines.copy(), flags.copy(), self._actions[steps, world].copy()))
        self._first[world] = self._filled

    def _empty(self) -> None:
        for world, pieces in enumerate(self._pieces):
            if pieces:
                self._cut_out(world)
        self._filled = 0
        self._first[:] = 0


def _copy_lines(block: Any, lines: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Copy some lines of a block of all worlds, (worlds, lines, agents)."""
    if isinstance(block, np.ndarray):
        np.take(block, lines, axis=1, out=out, mode="clip")  # without clipping NumPy would copy twice
    else:
        out[:] = on_host(block[:, lines])
