"""A stretch: a fixed number of steps in one env, whatever episodes they hold.

Where a job is counted in steps, how many episodes end in them depends on how long these are: a mean over those that
happened to end favours short ones. So the unit of count is the stretch: its row holds the means over the episodes that
ended in it, and each of these is listed as an attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roadworthy.evaluation.ledger import EpisodeSpec
from roadworthy.jobs.batch import Broken
from roadworthy.jobs.episode import Underway
from roadworthy.record import AgentRow, EpisodeResult, EpisodeRow


@dataclass
class Stretch:
    """One env's steps so far."""

    owed: EpisodeSpec
    steps: int = 0
    wall_s: float = 0.0
    attempts: list[AgentRow] = field(default_factory=list)  # episodes that ended, by their numbers in the stretch
    unfinished: list[dict[str, Any]] = field(default_factory=list)  # episodes that were cut off or failed, and where
    instructions: list[str] = field(default_factory=list)
    failure: Broken | str | None = None
    artifacts: dict[str, str] = field(default_factory=dict)
    artifact_errors: dict[str, str] = field(default_factory=dict)
    env: int = 0

    def add(
        self,
        episode: Underway,
        outcomes: Mapping[str, float | None],
        failure: Broken | str | None,
        artifacts: Mapping[str, str],
        artifact_errors: Mapping[str, str],
    ) -> None:
        """An episode in it is over, by itself or because no steps are left."""
        count, number = len(episode.rewards), int(episode.owed.episode_id.rpartition("-")[2])
        first, last = self.steps, self.steps + count - 1
        if outcomes:
            self.attempts.append(AgentRow(self.owed.episode_id, 0, number, first, last, dict(outcomes)))
        elif count:
            self.unfinished.append({"attempt": number, "first_step": first, "last_step": last})
        self.env = episode.env
        self.steps += count
        self.failure = self.failure or failure
        self.artifacts |= {f"{name}_{number}": path for name, path in artifacts.items()}
        self.artifact_errors |= {f"{name}_{number}": error for name, error in artifact_errors.items()}
        if episode.instruction and episode.instruction not in self.instructions:
            self.instructions.append(episode.instruction)
        self.wall_s += episode.wall_s

    def result(self, job: str) -> EpisodeResult:
        """Its row."""
        error = self.failure.error if isinstance(self.failure, Broken) else self.failure
        names = dict.fromkeys(name for row in self.attempts for name in row.figures)
        more: dict[str, Any] = {"instruction": "; ".join(self.instructions)} if self.instructions else {}
        more |= {"unfinished": self.unfinished} if self.unfinished else {}
        row = EpisodeRow(
            episode_id=self.owed.episode_id,
            evaluator=job,
            scenario_id=self.owed.scenario_id,
            seed=self.owed.seed,
            replicate=self.owed.replicate,
            world=self.env,
            slot=0,
            first_step=0,
            last_step=max(0, self.steps - 1),
            steps=self.steps,
            trials=len(self.attempts),
            status="completed" if self.failure is None else "failed",
            wall_s=self.wall_s,
            error=error,
            outcomes={name: self._mean(name) for name in names} | {"episodes": float(len(self.attempts))},
            artifacts=self.artifacts,
            artifact_errors=self.artifact_errors,
            more=more,
        )
        return EpisodeResult(row, tuple(self.attempts))

    def _mean(self, name: str) -> float | None:
        values = [value for row in self.attempts if (value := row.figures.get(name)) is not None]
        return float(np.mean(values)) if values else None
