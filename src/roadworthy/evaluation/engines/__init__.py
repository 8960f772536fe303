"""Engines: where episodes run. The rows are the same in all of them.

An engine is a class of the entry point group `roadworthy.engines`, or `module:Name` in a config file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from roadworthy import plugins
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import OnResult, RunnerSpec

GROUP = "roadworthy.engines"


@dataclass(frozen=True)
class Limits:
    """What an episode and its process may use."""

    time_s: float | None = 300.0
    # Seconds for an episode; None for no limit.
    start_s: float = 900.0
    # Seconds for a process to get ready, which may include compiling the simulator.
    memory_bytes: int | None = None
    # Memory of a process; None for no limit.
    retries: int = 1
    # How often an episode is retried after its process was lost.


class EpisodeEngine(Protocol):
    """Runs episodes, anywhere and in any order. It is made once, with a number of processes, and serves many runs."""

    limits: Limits
    # May be changed between runs.

    def __init__(self, workers: int | None = None, limits: Limits | None = None) -> None:
        """Prepare for runs; workers: the number of processes, one per core if None."""

    def probe(self, spec: RunnerSpec) -> tuple[str, ...]:
        """Return what is wrong with the policy of a run; a policy that can't act at all shows that in the run."""

    def run(
        self, spec: RunnerSpec, episodes: Sequence[EpisodeSpec], on_result: OnResult, *, completed: int = 0
    ) -> None:
        """Call `on_result` once for each of these episodes, with a failed result for those that can't be run.

        Raises an error if the run as a whole can't continue.

        completed: the number of episodes of the run that were completed before, which shows whether the policy works.
        """

    def close(self) -> None:
        """End all processes."""


def engine_class(name: str) -> Any:
    """Return the engine class with this name."""
    return plugins.load(GROUP, name, "engine")
