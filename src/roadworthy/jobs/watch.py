"""How long envs have spent on their episodes, seen from another process: a hanging env can't say so itself."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from typing import Any

from roadworthy.evaluation.ledger import EpisodeSpec

_EVERYBODY = -1.0  # is called: the envs of a vector env have no calls of their own
# Who is called, since when (0: nobody is), and whether anything is drawn (1: yes); then the columns of each env.
_CALLED, _SINCE, _DRAWS, _HEAD = 0, 1, 2, 3
_EPISODE, _FIRST_STEP, _STEPS, _SPENT, _COLUMNS = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Overdue:
    """An episode that took too long."""

    env: int
    place: int  # in the job's ledger
    first_step: int
    steps: int  # that were made and returned
    spent_s: float


class Watch:
    """What each env is at and how long it has been; its numbers may lie in memory that two processes share.

    Only time inside the env counts, so an episode may take as long however many others are played beside it.
    """

    def __init__(self, envs: int, context: SpawnContext | None = None) -> None:
        size = _HEAD + envs * _COLUMNS
        self._envs = envs
        self._numbers: Any = context.RawArray(ctypes.c_double, size) if context else (ctypes.c_double * size)()
        self.clear()

    def clear(self) -> None:
        """Nothing is played."""
        self._numbers[_SINCE] = self._numbers[_DRAWS] = 0.0
        for env in range(self._envs):
            self.end(env)

    def begin(self, env: int, owed: EpisodeSpec, first_step: int) -> None:
        """An env is about to begin an episode."""
        at = _HEAD + env * _COLUMNS
        self._numbers[at : at + _COLUMNS] = (-1.0, float(first_step), 0.0, 0.0)
        self._numbers[at + _EPISODE] = float(owed.scenario)

    def end(self, env: int) -> None:
        """Its episode is over."""
        self._numbers[_HEAD + env * _COLUMNS + _EPISODE] = -1.0

    @contextmanager
    def call(self, env: int | None = None, steps: int = 0) -> Iterator[None]:
        """An env, or all of them, is called; if it returns, so many steps more were made."""
        numbers, started = self._numbers, time.monotonic()
        numbers[_CALLED] = _EVERYBODY if env is None else float(env)
        numbers[_SINCE] = started
        try:
            yield
        finally:
            numbers[_SINCE] = 0.0
            took = time.monotonic() - started
            for number in range(self._envs) if env is None else (env,):
                numbers[_HEAD + number * _COLUMNS + _STEPS] += steps
                numbers[_HEAD + number * _COLUMNS + _SPENT] += took

    @contextmanager
    def rendering(self) -> Iterator[None]:
        """Mark that a renderer is at work: a process that dies meanwhile was ended by it, and not by an episode."""
        self._numbers[_DRAWS] = 1.0
        try:
            yield
        finally:
            self._numbers[_DRAWS] = 0.0

    @property
    def is_rendering(self) -> bool:
        """Whether a renderer is at work, or was when the process died."""
        return bool(self._numbers[_DRAWS])

    def overdue(self, limit_s: float) -> list[Overdue]:
        """The episodes that their envs have spent more time on than they may."""
        called, since = self._numbers[_CALLED], self._numbers[_SINCE]
        running = time.monotonic() - since if since else 0.0
        found = []
        for env in range(self._envs):
            at = _HEAD + env * _COLUMNS
            place, first_step, steps, spent = self._numbers[at : at + _COLUMNS]
            spent += running if called in (_EVERYBODY, float(env)) else 0.0
            if place >= 0.0 and spent > limit_s:
                found.append(Overdue(env, int(place), int(first_step), int(steps), spent))
        return found
