"""Which episode runs next in which world, and what became of the episodes that have ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.scenario.schema import Floats
from roadworthy.sim.rules.draws import SCENARIO, WORLD, choose, mix

ATTEMPTS = 100  # scenarios that can't be driven, one after another, before a world gives up


@dataclass(frozen=True)
class Episode:
    """One episode: what runs in a world."""

    number: int  # which of the run's episodes; -1 for one that was assigned
    scenario: int  # its number in the pack
    seed: int  # of all draws in it


class Sampler:
    """Draws episodes for training: episode e is the same whatever world it runs in.

    World w of the N worlds of a run has the episodes w, w + N, w + 2 N and so on; several envs may share a run.
    """

    def __init__(self, seed: int, scenarios: Sequence[int], worlds: int, first_world: int, world_total: int) -> None:
        self.seed, self._scenarios = seed, scenarios
        self.first_world, self.world_total = first_world, world_total
        self.rounds = np.zeros(worlds, np.int64)  # episodes drawn for each world

    def restart(self, seed: int) -> None:
        """Begin again with the first episodes, of another seed."""
        self.seed = seed
        self.rounds[:] = 0

    def next(self, world: int) -> Episode:
        """The next episode of a world."""
        number = self.first_world + world + int(self.rounds[world]) * self.world_total
        self.rounds[world] += 1
        return self.draw(number)

    def draw(self, number: int, attempt: int = 0) -> Episode:
        """Episode `number`; a later attempt stands in for one whose scenario can't be driven."""
        run_seed: Any = np.uint64(self.seed)
        seed: Any = np.uint64(mix(run_seed, number))
        seed = np.uint64(mix(seed, attempt))
        place = choose(seed, WORLD, 0, SCENARIO, len(self._scenarios))
        return Episode(number, int(self._scenarios[place]), int(seed))


@dataclass(frozen=True)
class EndedEpisodes:
    """Episodes of single rows that have ended, one line each, in the order of their ends. F figures, K trials."""

    rows: NDArray[np.int64]  # (n,)
    numbers: NDArray[np.int64]  # (n,) Episode.number
    scenarios: NDArray[np.int64]  # (n,) number in the pack
    seeds: NDArray[np.uint64]  # (n,)
    is_ego: NDArray[np.bool_]  # (n,) else a co-player
    is_cut: NDArray[np.bool_]  # (n,) ended from outside: figures up to there, not part of any average
    figures: Floats  # (n, F) see logs.figure_names
    trials: Floats  # (n, K, len(TRIAL_FIGURES)) see logs.TRIAL_FIGURES; NaN for trials that did not end

    def __len__(self) -> int:
        return len(self.rows)


class EpisodeLog:
    """Keeps the newest ended episodes until they are taken."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._parts: deque[EndedEpisodes] = deque()
        self._kept = 0
        self.dropped = 0  # episodes that nobody took in time

    def add(self, ended: EndedEpisodes) -> None:
        self._parts.append(ended)
        self._kept += len(ended)
        while self._kept > self._room and len(self._parts) > 1:
            gone = len(self._parts.popleft())
            self._kept -= gone
            self.dropped += gone

    def take(self, nothing: EndedEpisodes) -> EndedEpisodes:
        """All that are kept; they are the caller's now."""
        parts = [nothing, *self._parts]
        self._parts.clear()
        self._kept = 0
        return EndedEpisodes(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in EndedEpisodes.__dataclass_fields__)
        )
