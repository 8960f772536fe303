"""Measure from another process how long environments have worked on their episodes: a hanging one can't report it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from roadworthy.evaluation.ledger import EpisodeSpec

_ALL = -1.0  # all are called at once: a vector environment has no separate calls
# What is called, since when (0: nothing is), and whether a renderer works (1); then the columns of each environment.
_CALLED, _SINCE, _DRAWS, _HEAD = 0, 1, 2, 3
_EPISODE, _FIRST_STEP, _STEPS, _SPENT, _COLUMNS = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Whereabouts:
    """How far an episode has come."""

    env: int = 0
    scenario: int = -1
    # `EpisodeSpec.scenario`, the place in the ledger of a Gymnasium run.
    first_step: int = 0
    # Counted over all episodes of the environment.
    steps: int = 0
    # Steps that were made and have returned.
    spent_s: float = 0.0
    # Seconds in its environment.


class Watch:
    """What each environment works on and for how long. Its numbers may lie in a file that two processes share.

    Only the time in the environment counts, so the number of environments side by side does not shorten a limit.
    """

    def __init__(self, envs: int, file: Path | None = None, *, is_new: bool = True) -> None:
        """Watch environments; file: where the numbers lie; is_new: whether to create it."""
        size = _HEAD + envs * _COLUMNS
        self.envs = envs
        self._numbers: Any = np.zeros(size)
        if file is not None:
            self._numbers = np.memmap(file, np.float64, "w+" if is_new else "r+", shape=(size,))
        if is_new:
            self.clear()

    def clear(self) -> None:
        """Note that nothing runs."""
        self._numbers[_SINCE] = self._numbers[_DRAWS] = 0.0
        for env in range(self.envs):
            self.end(env)

    def begin(self, env: int, episode: EpisodeSpec, first_step: int) -> None:
        """Note that an environment is about to start an episode."""
        at = _HEAD + env * _COLUMNS
        self._numbers[at : at + _COLUMNS] = (-1.0, float(first_step), 0.0, 0.0)
        self._numbers[at + _EPISODE] = float(episode.scenario)

    def end(self, env: int) -> None:
        """Note that the episode of an environment has ended."""
        self._numbers[_HEAD + env * _COLUMNS + _EPISODE] = -1.0

    @contextmanager
    def call(self, env: int | None = None, steps: int = 0) -> Iterator[None]:
        """Measure a call of an environment, or of all; steps: the number of steps that are made when it returns."""
        numbers, started = self._numbers, time.monotonic()
        numbers[_CALLED] = _ALL if env is None else float(env)
        numbers[_SINCE] = started
        try:
            yield
        finally:
            numbers[_SINCE] = 0.0
            took = time.monotonic() - started
            for number in range(self.envs) if env is None else (env,):
                numbers[_HEAD + number * _COLUMNS + _STEPS] += steps
                numbers[_HEAD + number * _COLUMNS + _SPENT] += took

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Watch a call of the policy: it has to return within the limit, but its time counts for no episode."""
        self._numbers[_CALLED], self._numbers[_SINCE] = _ALL, time.monotonic()
        try:
            yield
        finally:
            self._numbers[_SINCE] = 0.0

    @contextmanager
    def rendering(self) -> Iterator[None]:
        """Note that a renderer works: if the process dies meanwhile, the renderer ended it, and not an episode."""
        self._numbers[_DRAWS] = 1.0
        try:
            yield
        finally:
            self._numbers[_DRAWS] = 0.0

    @property
    def is_rendering(self) -> bool:
        """Whether a renderer works, or did when the process died."""
        return bool(self._numbers[_DRAWS])

    def running(self, limit_s: float = -1.0) -> list[Whereabouts]:
        """Return the episodes that have taken longer than a limit, or all that run."""
        called, since = self._numbers[_CALLED], self._numbers[_SINCE]
        running = time.monotonic() - since if since else 0.0
        found = []
        for env in range(self.envs):
            at = _HEAD + env * _COLUMNS
            scenario, first_step, steps, spent = self._numbers[at : at + _COLUMNS]
            spent += running if called in (_ALL, float(env)) else 0.0
            if scenario >= 0.0 and spent > limit_s:
                found.append(Whereabouts(env, int(scenario), int(first_step), int(steps), float(spent)))
        return found
