"""Episodes: which one a world runs next, and the results of those that have ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import Floats
from roadworthy.sim.rules.draws import SCENARIO, WORLD, choose, mix

ATTEMPTS = 100  # consecutive scenarios without an agent to drive, before a world gives up


@dataclass(frozen=True)
class Episode:
    """One episode of a world."""

    number: int  # number of the episode in the run; -1 for an assigned one
    scenario: int  # number of the scenario in the pack
    seed: int  # of all draws of the episode


class Sampler:
    """Draw episodes for training. Episode e is the same in whichever world it runs.

    World w of the N worlds of a run has the episodes w, w + N, w + 2 N and so on. Several envs may share a run.
    """

    def __init__(self, seed: int, scenarios: Sequence[int], worlds: int, first_world: int, world_total: int) -> None:
        self.seed, self._scenarios = seed, scenarios
        self.first_world, self.world_total = first_world, world_total
        self.rounds = np.zeros(worlds, np.int64)  # episodes that each world has drawn

    def restart(self, seed: int) -> None:
        """Restart with the first episode of another seed."""
        self.seed = seed
        self.rounds[:] = 0

    def next(self, world: int) -> Episode:
        """Return the next episode of a world."""
        number = self.first_world + world + int(self.rounds[world]) * self.world_total
        self.rounds[world] += 1
        return self.draw(number)

    def draw(self, number: int, attempt: int = 0) -> Episode:
        """Return episode `number`. A later attempt replaces one whose scenario has no agent to drive."""
        run_seed: Any = np.uint64(self.seed)
        seed: Any = np.uint64(mix(run_seed, number))
        seed = np.uint64(mix(seed, attempt))
        place = choose(seed, WORLD, 0, SCENARIO, len(self._scenarios))
        return Episode(number, int(self._scenarios[place]), int(seed))


@dataclass(frozen=True)
class EndedEpisodes:
    """Ended episodes of single rows, in the order in which they ended. F figures, K trials."""

    rows: NDArray[np.int64]  # (n,)
    numbers: NDArray[np.int64]  # (n,) Episode.number
    scenarios: NDArray[np.int64]  # (n,) number of the scenario in the pack
    seeds: NDArray[np.uint64]  # (n,)
    is_ego: NDArray[np.bool_]  # (n,) False for co-players
    is_cut: NDArray[np.bool_]  # (n,) the episode was cut short; such episodes enter no average
    figures: Floats  # (n, F) see episode_figures.figure_names
    trials: Floats  # (n, K, len(TRIAL_FIGURES)) see episode_figures.TRIAL_FIGURES; NaN for trials that did not end

    def __len__(self) -> int:
        return len(self.rows)


class EpisodeLog:
    """Keep the most recently ended episodes until they are taken."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._parts: deque[EndedEpisodes] = deque()
        self._kept = 0

    def add(self, ended: EndedEpisodes) -> None:
        self._parts.append(ended)
        self._kept += len(ended)
        while self._kept > self._room and len(self._parts) > 1:
            self._kept -= len(self._parts.popleft())

    def take(self, nothing: EndedEpisodes) -> EndedEpisodes:
        """Return all kept episodes and forget them."""
        parts = [nothing, *self._parts]
        self._parts.clear()
        self._kept = 0
        return EndedEpisodes(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in EndedEpisodes.__dataclass_fields__)
        )
