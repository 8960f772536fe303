"""Engines: who carries out a ledger. The rows that come back are the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.task import Task
from roadworthy.evaluation.underway import OnResult


class EpisodeEngine(Protocol):
    """Carries out episodes, anywhere and in any order."""

    def probe(self, task: Task) -> tuple[str, ...]:
        """What is wrong with the policy of a task, before anything is run; see probe.py."""

    def run(self, task: Task, owed: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0) -> None:
        """Hand over a result for every one of these episodes, a failed one where it can't be carried out.

        completed: how many of the run were completed before, which tells whether the policy works at all.
        """
