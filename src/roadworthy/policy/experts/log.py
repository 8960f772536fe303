"""The expert of replay worlds, which drives every agent along its own recording."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.kernels import entry, rule
from roadworthy.scenario.schema import Floats
from roadworthy.sim import state
from roadworthy.sim.config import Mode
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.rules.inverse_dynamics import infer_action, lookahead_s
from roadworthy.sim.state import Maps, Params, Scenarios, Worlds

_ZERO, _HALF = np.float32(0.0), np.float32(0.5)


class LogExpert:
    """Computes the actions that bring each agent back to its recording from its current state."""

    def __init__(self, env: DriveEnv) -> None:
        if env.config.mode is not Mode.REPLAY:
            raise UsageError(
                f"expert:log follows recordings, but the mode of the env is {env.config.mode.value!r}; "
                "set mode = 'replay', or choose expert:drive"
            )
        self._env = env
        self._actions = np.zeros((env.row_count, 2), np.float32)

    def act(self) -> Floats:
        """Return (rows, 2) an action for every row, as `env.step` takes them; the next call overwrites it."""
        self._env.call_with_state(_follow_recordings, self._actions)
        return self._actions

    def reset(self, mask: NDArray[np.bool_]) -> None:
        """Do nothing: the expert has no memory."""


@entry
def _follow_recordings(
    worlds: Worlds, maps: Maps, scenarios: Scenarios, settings: NDArray[np.void], actions_out: Floats
) -> None:
    """Write the action of every driving agent, and 0 for the others."""
    p = settings[0]
    rows_per_world = len(actions_out) // len(worlds.clocks)
    for w in range(len(worlds.clocks)):
        clock, flags = worlds.clocks[w], worlds.agent_flags[w]
        driven = clock[state.DRIVEN_COUNT] if clock[state.SCENARIO] >= 0 else np.int32(0)
        for a in range(rows_per_world):
            row = w * rows_per_world + a
            actions_out[row, 0] = actions_out[row, 1] = _ZERO
            if a < driven and flags[state.IS_DRIVING, a] != 0:
                actions_out[row, 0], actions_out[row, 1] = _follow(worlds, scenarios, w, a, p)


@rule
def _follow(worlds: Worlds, scenarios: Scenarios, w: int, a: int, p: Params) -> tuple[Any, Any]:
    """Return the action that brings agent a back to its recording."""
    agents, flags, clock = worlds.agents[w], worlds.agent_flags[w], worlds.clocks[w]
    s = clock[state.SCENARIO]
    dt, motion = scenarios.dt[s], scenarios.motion[s]
    frame = clock[state.STEP] - flags[state.FIRST_STEP, a]
    steps = max(int(lookahead_s(p) / dt + _HALF), 1)
    aim = _recorded_frame(scenarios, s, a, frame + steps)
    is_over = aim <= frame  # then it stops at the last pose
    ahead = np.float32(steps if is_over else aim - frame) * dt
    speed = _ZERO if is_over else motion[state.MOTION_SPEED, aim, a]
    x, y, heading = motion[state.MOTION_X, aim, a], motion[state.MOTION_Y, aim, a], motion[state.MOTION_HEADING, aim, a]
    return infer_action(agents, flags, a, (x, y, heading, speed), ahead, dt, p)


@rule
def _recorded_frame(scenarios: Scenarios, s: int, a: int, frame: int) -> Any:
    """Return the first frame at or after a given one in which agent a was recorded, or else the last such frame."""
    count = np.int64(scenarios.counts[s, state.FRAME_COUNT])
    for later in range(frame, count):
        if scenarios.valid[s, later, a] != 0:
            return np.int64(later)
    earlier = min(np.int64(frame), count) - 1
    while earlier > 0 and scenarios.valid[s, earlier, a] == 0:
        earlier -= 1
    return earlier
