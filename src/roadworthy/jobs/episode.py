"""One episode while it runs, and the row that becomes of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.jobs.batch import Begun, Broken, Moved
from roadworthy.record import EpisodeResult, EpisodeRow

SUCCESS_KEYS = ("success", "is_success")  # where envs that know no `outcomes` tell it
MODEST_TEXT = 200  # characters of a factor; longer ones are no factors


@dataclass(frozen=True)
class Ended:
    """What a metric is given: an episode that ended."""

    steps: int
    rewards: NDArray[np.float64]  # (steps,)
    is_terminated: bool
    is_truncated: bool
    first_info: Mapping[str, Any]  # of the reset
    last_info: Mapping[str, Any]  # of the last step
    last_observation: Any
    factors: Mapping[str, Any]


Metric = Callable[[Ended], float | None]


@dataclass
class Underway:
    """An episode that is being played."""

    owed: EpisodeSpec
    env: int
    first_step: int  # of the job, counted from its start
    instruction: str | None
    begun: Begun
    started: float = field(default_factory=time.monotonic)
    rewards: list[float] = field(default_factory=list)
    last: Moved | None = None

    @property
    def observation(self) -> Any:
        """What the policy sees."""
        return self.begun.observation if self.last is None else self.last.observation

    def add(self, moved: Moved) -> None:
        """A step was made."""
        self.last = moved
        self.rewards.append(moved.reward)

    def is_over(self, max_steps: int | None) -> bool:
        """Whether it has ended by itself or by the job's limit."""
        if self.last is None:
            return False
        return self.last.is_terminated or self.last.is_truncated or len(self.rewards) == max_steps

    @property
    def wall_s(self) -> float:
        """Seconds since it began; envs side by side share them."""
        return time.monotonic() - self.started

    @property
    def factors(self) -> dict[str, float | str]:
        """What was asked for, and what else the env says that it drew."""
        told = self.begun.info.get("factors", {})
        drawn = {str(name): _plain(value) for name, value in dict(told).items()} if isinstance(told, Mapping) else {}
        return {name: value for name, value in (drawn | dict(self.owed.factors)).items() if value is not None}

    def result(
        self,
        job: str,
        outcomes: Mapping[str, float | None],
        failure: Broken | str | None = None,
        *,
        artifacts: Mapping[str, str] | None = None,
        artifact_errors: Mapping[str, str] | None = None,
        density: Mapping[str, float] | None = None,
    ) -> EpisodeResult:
        """The row of an episode that ended, or that could not be finished."""
        more: dict[str, Any] = {"instruction": self.instruction, "density": dict(density) if density else None}
        row = EpisodeRow(
            episode_id=self.owed.episode_id,
            evaluator=job,
            scenario_id=self.owed.scenario_id,
            seed=self.owed.seed,
            replicate=self.owed.replicate,
            world=self.env,
            slot=0,
            first_step=self.first_step,
            last_step=self.first_step + max(0, len(self.rewards) - 1),
            steps=len(self.rewards),
            trials=1 if failure is None else 0,
            status="completed" if failure is None else "failed",
            wall_s=self.wall_s,
            error=failure.error if isinstance(failure, Broken) else failure,
            factors=self.factors,
            outcomes=dict(outcomes),
            artifacts=dict(artifacts or {}),
            artifact_errors=dict(artifact_errors or {}),
            more={name: value for name, value in more.items() if value is not None},
        )
        return EpisodeResult(row)

    def ended(self) -> Ended:
        """For metrics."""
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


def outcomes_of(ended: Ended) -> dict[str, float | None]:
    """What an episode came to: what every env tells, and what this one says in the info of its last step."""
    outcomes: dict[str, float | None] = {
        "return": float(ended.rewards.sum()),
        "steps": float(ended.steps),
        "terminated": float(ended.is_terminated),
    }
    told = ended.last_info.get("outcomes")
    if isinstance(told, Mapping):
        return outcomes | {str(name): _number(value) for name, value in told.items()}
    for key in SUCCESS_KEYS:
        if key in ended.last_info:
            return outcomes | {"success": _number(ended.last_info[key])}
    return outcomes


def measured(ended: Ended, metrics: Mapping[str, Metric]) -> tuple[dict[str, float | None], dict[str, str]]:
    """All outcomes of an episode, and why metrics of the job have none; a metric's fault is not the episode's."""
    outcomes, errors = outcomes_of(ended), {}
    for name, metric in metrics.items():
        try:
            value = metric(ended)
            outcomes[name] = None if value is None else float(value)
        except Exception as error:
            outcomes[name] = None
            errors[f"metric {name}"] = f"{type(error).__name__}: {error}"
    return outcomes, errors


def _number(value: Any) -> float | None:
    """A number of any kind, or None for what is none."""
    try:
        number = float(np.asarray(value).item())
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _plain(value: Any) -> float | str | None:
    if isinstance(value, str):
        return value[:MODEST_TEXT]
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    return _number(value)
