"""An episode that runs in a Gymnasium environment, and its result when it ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.evaluation.runner import episode_row
from roadworthy.evaluation.runners.gym.batch import Begun, Broken, Moved
from roadworthy.evaluation.runners.gym.outcomes import Ended, number
from roadworthy.evaluation.watch import Whereabouts
from roadworthy.record import EpisodeResult

if TYPE_CHECKING:
    from roadworthy.evaluation.runners.gym.spec import GymSpec

CUT_OFF = "cut off: all steps of the run were made"
MODEST_TEXT = 200  # characters of a factor that are kept

Failure = Broken | str  # why an episode could not be finished


@dataclass
class InFlight:
    """An episode that runs."""

    spec: EpisodeSpec
    env: int
    first_step: int  # of the batch
    instruction: str | None
    begun: Begun
    started: float = field(default_factory=time.monotonic)
    rewards: list[float] = field(default_factory=list)
    last: Moved | None = None

    @property
    def observation(self) -> Any:
        """The observation that the policy acts on."""
        return self.begun.observation if self.last is None else self.last.observation

    def add(self, moved: Moved) -> None:
        """Add a step."""
        self.last = moved
        self.rewards.append(moved.reward)

    def is_over(self, max_steps: int | None) -> bool:
        """Return whether it has ended by itself or reached the limit of steps."""
        if self.last is None:
            return False
        return self.last.is_terminated or self.last.is_truncated or len(self.rewards) == max_steps

    @property
    def wall_s(self) -> float:
        """Seconds since its start; environments side by side share them."""
        return time.monotonic() - self.started

    @property
    def factors(self) -> dict[str, float | str]:
        """The factors of the ledger, and those that the environment reports to have drawn."""
        given = self.begun.info.get("factors", {})
        drawn = {str(name): _plain(value) for name, value in dict(given).items()} if isinstance(given, Mapping) else {}
        return {name: value for name, value in (drawn | dict(self.spec.factors)).items() if value is not None}

    def result(
        self,
        spec: GymSpec,
        outcomes: Mapping[str, float | None],
        failure: Failure | None,
        artifacts: Mapping[str, str],
        artifact_errors: Mapping[str, str],
        process: int = 0,
    ) -> EpisodeResult:
        """Return the row of an episode that has ended or failed."""
        row = episode_row(
            self.spec,
            spec.evaluator,
            Whereabouts(self.env, self.spec.scenario, self.first_step, len(self.rewards), self.wall_s),
            process,
            trials=1 if failure is None else 0,
            status="completed" if failure is None else "failed",
            error=failure.error if isinstance(failure, Broken) else failure,
            factors=self.factors,
            outcomes=dict(outcomes),
            artifacts=dict(artifacts),
            artifact_errors=dict(artifact_errors),
            more=spec.more(self.instruction),
        )
        return EpisodeResult(row)

    def ended(self) -> Ended:
        """Return what metrics are given."""
        assert self.last is not None
        return Ended(
            len(self.rewards),
            np.array(self.rewards),
            self.last.is_terminated,
            self.last.is_truncated,
            self.begun.info,
            self.last.info,
            self.last.observation,
            self.factors,
        )


def _plain(value: Any) -> float | str | None:
    if isinstance(value, str):
        return value[:MODEST_TEXT]
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    return number(value)
