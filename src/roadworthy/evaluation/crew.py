"""A crew: the policy under test drives the egos, and whichever partner an episode has drawn drives its co-players."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.evaluation.capture import on_host
from roadworthy.policy.actor import Actor
from roadworthy.sim.env import DriveEnv
from roadworthy.sim.state import COPLAYER


class Crew:
    """Several actors at the wheels of one env: each is shown all rows, and drives its own."""

    def __init__(self, make_ego: Callable[[], Actor], make_partners: Sequence[Callable[[], Actor]]) -> None:
        self._ego, self._partners = make_ego(), [make() for make in make_partners]
        self.name = self._ego.name

    def start(self, env: DriveEnv) -> None:
        self._env = env
        for actor in (self._ego, *self._partners):
            actor.start(env)

    def act(
        self, observations: Any, active: Any, episode_seeds: NDArray[np.uint64], episode_steps: NDArray[np.int64]
    ) -> Any:
        env = self._env
        partner_of_row = np.repeat(env.hidden["partner"], env.rows_per_world)
        is_coplayer = env.roles == COPLAYER
        actions = np.array(on_host(self._ego.act(observations, active, episode_seeds, episode_steps)))
        for number, partner in enumerate(self._partners):
            mine = is_coplayer & (partner_of_row == number)
            # Asked in any case: its memory and its account of the world go on with every step.
            chosen = on_host(partner.act(observations, active, episode_seeds, episode_steps))
            actions[mine] = chosen[mine]
        return actions

    def reset(self, mask: NDArray[np.bool_]) -> None:
        for actor in (self._ego, *self._partners):
            actor.reset(mask)
