"""DriveEnv for PettingZoo: the driven agents of one world as a ParallelEnv.

Agents are named by their slot. `agent_0` is the self-driving car if it is driven. An agent leaves `agents` when its
episode has ended. With several trials all agents stay until the last one ends; an agent that is done early has `active`
False in its info, observes 0, and its actions have no effect. gymnasium.py says how signals become terminated and
truncated, and what an info has; here it also has `role`, "ego" or "coplayer".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.errors import UsageError
from roadworthy.scenario.pack import Pack
from roadworthy.scenario.schema import Floats
from roadworthy.sim.adapters import gymnasium as drive_gymnasium
from roadworthy.sim.adapters.one_world import OneWorld
from roadworthy.sim.config import AtGoal, SimConfig
from roadworthy.sim.state import ROLES

try:
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise UsageError(f"PettingZoo can't be imported ({error}); pip install 'roadworthy[gym]'") from error


class DriveParallelEnv(ParallelEnv[str, Floats, NDArray[Any]]):  # type: ignore[misc]  # it has no annotations for mypy
    """All driven agents of one world, stepped together."""

    metadata = {"name": "roadworthy_drive_v0", "render_modes": []}  # noqa: RUF012 (PettingZoo declares it so)
    render_mode = None

    def __init__(
        self,
        pack: Pack | str | Path,
        config: SimConfig | None = None,
        *,
        seed: int | None = None,
        scenarios: Sequence[int] | None = None,
    ) -> None:
        """Make the world.

        seed: of the run, until `reset` gets one; by default a random one.
        scenarios: numbers of the pack's scenarios to draw from; all by default.
        """
        config = config or SimConfig()
        if config.goal.at_goal is AtGoal.RESPAWN:
            raise UsageError(
                "goal.at_goal is 'respawn', but in PettingZoo an agent that has left can't come back; "
                "allowed: leave, stop, new_goal, continue; or use DriveVectorEnv"
            )
        self._world = OneWorld(pack, config, seed=seed, scenarios=scenarios)
        self.drive = self._world.drive
        self.possible_agents = [f"agent_{slot}" for slot in range(self.drive.row_count)]
        self.agents: list[str] = []
        self._rows = {agent: row for row, agent in enumerate(self.possible_agents)}
        # Each agent has its own spaces, because a caller that samples from one may have seeded it.
        self.observation_spaces = {agent: drive_gymnasium.observation_space(self.drive) for agent in self._rows}
        self.action_spaces = {agent: drive_gymnasium.action_space(self.drive) for agent in self._rows}

    def observation_space(self, agent: str) -> spaces.Space[Floats]:
        """Return the space of the agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[NDArray[Any]]:
        """Return the space of the agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, dict[str, Any]]]:
        """Start the next episode. A seed restarts the run.

        options: `scenario` (number in the pack) and `episode_seed` (0 by default) choose the episode. Others are
        ignored, as PettingZoo's own test expects.
        """
        observations, infos = self._world.reset(seed, options)
        self.agents = self._left()
        return self._by_agent(observations), self._told(infos, self.drive.roles)

    def step(
        self, actions: Mapping[str, NDArray[Any]]
    ) -> tuple[dict[str, Floats], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Make a step of the world. Every active agent in `agents` needs an action."""
        roles = self.drive.roles
        outcome = self._world.step(self._in_rows(actions))
        results = (
            self._by_agent(outcome.observations),
            self._by_agent(outcome.rewards.tolist()),
            self._by_agent(outcome.terminated.tolist()),
            self._by_agent(outcome.truncated.tolist()),
            self._told(outcome.infos, roles),
        )
        self.agents = self._left()
        return results

    def close(self) -> None:
        """Release the memory."""
        self._world.close()

    def _left(self) -> list[str]:
        return [agent for agent, row in self._rows.items() if self._world.is_left[row]]

    def _by_agent(self, values: Any) -> dict[str, Any]:
        """Return the value of each agent; arrays are copied, so that keeping one row does not keep all."""
        rows = ((agent, values[self._rows[agent]]) for agent in self.agents)
        return {agent: value.copy() if isinstance(value, np.ndarray) else value for agent, value in rows}

    def _told(self, infos: list[dict[str, Any]], roles: NDArray[np.int32]) -> dict[str, dict[str, Any]]:
        return {agent: infos[self._rows[agent]] | {"role": ROLES[roles[self._rows[agent]]]} for agent in self.agents}

    def _in_rows(self, actions: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
        """Return the actions by row, (rows, 2), with 0 for undriven rows."""
        strangers = [agent for agent in actions if agent not in self.agents]
        if strangers:
            raise UsageError(f"{strangers[0]!r} was given an action; agents are: {', '.join(self.agents) or 'none'}")
        in_rows = np.zeros((self.drive.row_count, 2))
        is_active = self.drive.signals.active
        for agent in self.agents:
            row = self._rows[agent]
            if agent in actions:
                action = np.asarray(actions[agent])
                if action.shape != (2,) or action.dtype.kind not in "iuf":
                    raise UsageError(f"the action of {agent!r} is {actions[agent]!r}, expected two numbers")
                in_rows[row] = action
            elif is_active[row]:
                raise UsageError(f"{agent!r} was given no action; every active agent needs one")
        return in_rows
