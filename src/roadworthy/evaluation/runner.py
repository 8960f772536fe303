"""The contract between engines and runners: what runs episodes, and how it can be sent to another process.

An engine opens a `RunnerSpec` in each of its processes and lets the `Runner` ask for episodes until there are none.
Driving worlds and Gymnasium environments each have their own runner; engines do not know which of them they run.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Protocol

from roadworthy.errors import RoadworthyError
from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.watch import Watch, Whereabouts
from roadworthy.record.episodes import EpisodeResult, EpisodeRow

OnResult = Callable[[EpisodeResult], None]


class NextSpec(Protocol):
    """Gives a runner its next episode."""

    def __call__(self, share: tuple[int, int] | None = None) -> EpisodeSpec | None:
        """Return the next episode, or None if there is none for now.

        share: (number, count) asks for an episode of one of `count` fixed shares of all episodes, for environments
        that reset themselves: if each took the next one, those with short episodes would run more of them.
        """


class Runner(Protocol):
    """Runs episodes in a batch of environments of one kind, in one process."""

    def run(self, next_spec: NextSpec, on_result: OnResult) -> None:
        """Run episodes until `next_spec` gives none and all have ended; called again after it raised an error."""

    def close(self) -> None:
        """Release the environments."""


class RunnerSpec(Protocol):
    """Everything that a process needs to run the episodes of a run. It can be pickled."""

    @property
    def evaluator(self) -> str:
        """The name of the evaluation, for rows."""

    @property
    def watched(self) -> int:
        """The number of environments whose time is measured one by one; 0 if episodes are timed from their start."""

    def open(self, watch: Watch, *, process: int = 0, most: int | None = None, threads: int | None = None) -> Runner:
        """Build the environments, and compile or load all that a first step needs.

        Args:
            watch: Where the runner notes which episodes its environments work on.
            process: The number of this process in its pool, for the rows.
            most: The largest number of episodes that can run side by side.
            threads: The number of threads of the simulator; None for a number that fits the machine.
        """

    def probe(self) -> tuple[str, ...]:
        """Return what is wrong with the policy, found before any episode counts."""

    def failed(self, episode: EpisodeSpec, reason: str, at: Whereabouts | None = None) -> EpisodeResult:
        """Return the result of an episode that can't be run."""

    def without_renderer(self, reason: str) -> RunnerSpec | None:
        """Return a spec that does not draw, after a renderer ended its process; None if it made no difference."""


class RunError(RoadworthyError):
    """A run can't continue. Episodes that have ended stay; details: the traceback."""

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message)
        self.details = details


def episode_row(episode: EpisodeSpec, evaluator: str, at: Whereabouts, process: int = 0, **fields: Any) -> EpisodeRow:
    """Return the row of an episode. Engines and runners share its first columns; fields: the other columns."""
    return EpisodeRow(
        episode_id=episode.episode_id,
        evaluator=evaluator,
        scenario_id=episode.scenario_id,
        seed=episode.seed,
        replicate=episode.replicate,
        world=at.env,
        slot=process,
        first_step=at.first_step,
        last_step=at.first_step + max(0, at.steps - 1),
        steps=at.steps,
        wall_s=at.spent_s,
        **fields,
    )


def failed_result(
    episode: EpisodeSpec, evaluator: str, reason: str, at: Whereabouts | None = None, **fields: Any
) -> EpisodeResult:
    """Return the result of an episode that could not be run or finished."""
    fields = {"factors": dict(episode.factors), **fields}
    return EpisodeResult(
        episode_row(episode, evaluator, at or Whereabouts(), trials=0, status="failed", error=reason, **fields)
    )


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error."""
    if isinstance(error, RunError) and error.details:
        return error.details
    return "".join(traceback.format_exception(error)).strip()


def reason_of(error: BaseException) -> str:
    """Return what was raised, then where."""
    return f"{type(error).__name__}: {error}\n{traceback_of(error)}"
